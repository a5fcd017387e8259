"""Model files: they come back bit for bit, and whatever else is in a file is refused in one sentence."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

import tigra
from tests.model_members import members, npy, write
from tigra import ModelFileError
from tigra.model_arrays import packed
from tigra.model_file import check_writable, load_model, packaged_models
from tigra.training.training import FitOptions, Training


@pytest.fixture
def network(small_network, small_splits):
    network = small_network(smoothing=0.5)
    network.calibrate(small_splits.train.images)
    network.class_names = ["zero", "one", "zwei äöü"]
    return network


@pytest.mark.parametrize("options", [{}, {"mixing": "full", "active_set": "union"}, {"dtype": "float64"}])
def test_a_network_comes_back_bit_for_bit(tmp_path, small_network, small_splits, options):
    network = small_network(**options)
    network.calibrate(small_splits.train.images)
    tigra.save(network, tmp_path / "model.npz")
    again = tigra.load(tmp_path / "model.npz")
    assert again.parameters.tobytes() == network.parameters.tobytes()
    assert again.options == network.options and again.class_names == network.class_names
    images = small_splits.test.images
    assert again.scores(images).tobytes() == network.scores(images).tobytes()


def test_models_that_come_with_tigra_have_names_but_a_file_goes_first(tmp_path, monkeypatch, network):
    monkeypatch.chdir(tmp_path)
    assert tigra.load("mnist-012").n_classes == tigra.load_model("mnist-012").network.n_classes == 3
    (tmp_path / "mnist-012").mkdir()
    assert tigra.load("mnist-012").class_names == ["0", "1", "2"]
    (tmp_path / "mnist-012").rmdir()
    tigra.save(network, "mnist-012")
    assert tigra.load("mnist-012").class_names == network.class_names
    with pytest.raises(ModelFileError, match="Cannot read the model file mnist-021: .*; models that .*: mnist-012"):
        tigra.load("mnist-021")


def test_packaged_models_load_and_are_small():
    models = packaged_models()
    assert list(models) == sorted(models) and sum(path.stat().st_size for path in models.values()) <= 10**6
    for name in models:
        assert load_model(name).training["dataset"], name


def test_options_given_as_numpy_numbers_are_saved(tmp_path, small_network):
    options = {"dtype": np.dtype("float64"), "diagonal_weight": np.float32(0.25), "neighbours": np.int64(8)}
    options |= {"smoothing": np.float32(1), "standardise": np.bool_(True), "seed": np.int64(3)}
    network = tigra.build_network("S[1]-FC[2]", np.array([3, 4]), np.int64(2), **options)
    tigra.save(network, tmp_path / "model.npz")
    assert tigra.load(tmp_path / "model.npz").options == network.options


def test_what_could_not_be_loaded_is_not_saved(tmp_path, network):
    for names in ([0, 1, 2], ["a", "b"], ["a", "b", "\x1b[31m"], ("a", "b", "c")):
        network.class_names = names
        with pytest.raises(ModelFileError, match="printable texts"):
            tigra.save(network, tmp_path / "model.npz")
    network.class_names = ["a", "b", "c"]
    with pytest.raises(ModelFileError, match="not finite"):
        tigra.save(network.with_parameters(np.full(network.n_parameters, np.nan)), tmp_path / "model.npz")
    with pytest.raises(ModelFileError, match="build_network"):
        tigra.save(
            tigra.Network(network.layers, network.graph, {"n_classes": 3, "image_shape": (14, 14)}), tmp_path / "m.npz"
        )
    assert os.listdir(tmp_path) == []


def test_a_file_from_before_an_option_existed_is_read_with_its_default(tmp_path, small_network):
    network = small_network()
    tigra.save(network, tmp_path / "new.npz")
    write(tmp_path / "old.npz", edited(tmp_path / "new.npz", lambda meta: meta["options"].pop("margin")))
    assert tigra.load(tmp_path / "old.npz").options == network.options


def test_class_names_of_any_script_come_back(tmp_path, network):
    tigra.save(network, tmp_path / "model.npz")
    assert tigra.load(tmp_path / "model.npz").class_names == ["zero", "one", "zwei äöü"]


def test_the_same_network_gives_the_same_file(tmp_path, network):
    for name in ("first", "second"):
        tigra.save(network, tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_the_state_of_a_run_comes_back_bit_for_bit(tmp_path, network, small_splits):
    training = Training(network, small_splits, FitOptions(epochs=3, batch_size=20))
    next(iter(training.run()))
    arrays, numbers = training.snapshot()
    tigra.save(training.best_network(), tmp_path / "model.npz", {"dataset": "small"}, (arrays, numbers))
    model = load_model(tmp_path / "model.npz")
    assert model.training == {"dataset": "small"} and model.resume[1] == numbers
    assert all(model.resume[0][name].tobytes() == array.tobytes() for name, array in arrays.items())


def test_numpy_opens_it_without_pickle(tmp_path, network):
    tigra.save(network, tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["layers/00.SpectralConv.alpha"], network.layers[0].params["alpha"])


def test_every_truncation_is_refused(tmp_path, network):
    tigra.save(network, tmp_path / "model.npz")
    whole = (tmp_path / "model.npz").read_bytes()
    for length in [0, 1, 30, len(whole) // 2, len(whole) - 1]:
        (tmp_path / "cut.npz").write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match="cut.npz is damaged or not a tigra model file"):
            tigra.load(tmp_path / "cut.npz")


@pytest.mark.slow
def test_flipped_bytes_are_refused_or_harmless(tmp_path, network):
    """A flip is either noticed (names, check sums), or lies where nothing is stored (zip's dates and the like)."""
    tigra.save(network, tmp_path / "model.npz")
    whole, noticed = bytearray((tmp_path / "model.npz").read_bytes()), 0
    places = np.random.default_rng(0).integers(0, len(whole), 150)
    for place in places:
        spoilt = whole.copy()
        spoilt[place] ^= 0xFF
        (tmp_path / "flipped.npz").write_bytes(spoilt)
        try:
            again = tigra.load(tmp_path / "flipped.npz")
            assert again.parameters.tobytes() == network.parameters.tobytes()
            assert again.options == network.options
        except ModelFileError as error:
            assert "\n" not in str(error)
            noticed += 1
    assert noticed > 100


@pytest.mark.parametrize(
    "content", [b"", b"not a zip file", b"\x89PNG\r\n\x1a\n" * 9, pickle.dumps({"a": 1}), b"PK\x03\x04" + b"\0" * 100]
)
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "foreign.npz").write_bytes(content)
    with pytest.raises(ModelFileError, match="not a tigra model file"):
        tigra.load(tmp_path / "foreign.npz")


def test_an_npz_of_somebody_else_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(ModelFileError, match=r"no meta\.json"):
        tigra.load(tmp_path / "other.npz")


class Bomb:
    """Unpickling this would leave a mark."""

    def __reduce__(self):
        return os.system, ("touch executed",)


def test_pickled_content_is_refused_and_not_executed(tmp_path, network, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tigra.save(network, "model.npz")
    for name in ("layers/00.SpectralConv.alpha.npy", "layers/08.Dense.bias.npy"):
        content = members("model.npz")
        assert name in content
        content[name] = npy(np.array([Bomb()] * 3, dtype=object))
        write("hostile.npz", content)
        with pytest.raises(ModelFileError, match="damaged or not a tigra model file"):
            tigra.load("hostile.npz")
        content[name] = pickle.dumps(Bomb())
        write("hostile.npz", content)
        with pytest.raises(ModelFileError):
            tigra.load("hostile.npz")
    assert not (tmp_path / "executed").exists()


def edited(path, edit):
    """The members of a model file with its meta.json changed."""
    content = members(path)
    meta = json.loads(content["meta.json"])
    edit(meta)
    content["meta.json"] = json.dumps(meta)
    return content


@pytest.mark.slow
@pytest.mark.parametrize(
    "edit, message",
    [
        (lambda meta: meta.update(format="other"), "belongs to another program"),
        (lambda meta: meta.update(version=3), "written by a newer tigra; update tigra"),
        (lambda meta: meta.update(version="x"), "version 'x', this tigra reads up to 2"),
        (lambda meta: meta.pop("options"), "KeyError"),
        (lambda meta: meta["options"].update(architecture="SC[3"), "expected"),
        (lambda meta: meta["options"].update(architecture="S[99999]-FC[99]"), "smaller than the network"),
        (lambda meta: meta["options"].update(architecture="S[3]-FC[8]"), "not those of its architecture"),
        (lambda meta: meta["options"].update(image_shape=[10**6, 10**6]), "image_shape"),
        (lambda meta: meta["options"].update(image_shape=[3, -3]), "image_shape"),
        (lambda meta: meta["options"].update(image_shape=[0, 10**9], margin=0), "image_shape"),
        (lambda meta: meta["options"].update(margin=10**6), "margin"),
        (lambda meta: meta["options"].update(margin=-3), "margin"),
        (lambda meta: meta["options"].update(margin="4"), "margin"),
        (lambda meta: meta["options"].update(image_shape="ab"), "image_shape"),
        (lambda meta: meta["options"].update(n_classes=10**12), "parameters"),
        (lambda meta: meta["options"].update(smoothing=1e12), "smoothing"),
        (lambda meta: meta["options"].update(dtype="object"), "damaged"),
        (lambda meta: meta["options"].update(evil=1), "no option 'evil'"),
        (lambda meta: meta["options"].pop("architecture"), "damaged"),
        (lambda meta: meta["options"].pop("image_shape"), "damaged"),
        (lambda meta: meta["options"].update(seed=-1), "seed"),
        (lambda meta: meta.update(class_names=["a"]), "class names"),
        (lambda meta: meta.update(class_names=[1, 2, 3]), "class names"),
        (lambda meta: meta.update(class_names=["a", "b", "\x1b[31m"]), "class names"),
        (lambda meta: meta.update(training=[]), "training record"),
        (lambda meta: meta.update(training={"dataset": ["a"]}), "training record"),
        (lambda meta: meta.update(training={"dataset": "\x1b[31m"}), "training record"),
        (lambda meta: meta.update(training={"history": 5}), "training record"),
        (lambda meta: meta.update(training={"accuracy": 5}), "training record"),
        (lambda meta: meta.update(training={"accuracy": {"a": "b"}}), "training record"),
        (lambda meta: meta.update(training={"accuracy": {"a": float("nan")}}), "NaN"),
        (lambda meta: meta.update(resume={}), "not those of its architecture"),
    ],
)
def test_a_meta_file_that_lies_is_refused(tmp_path, network, edit, message):
    tigra.save(network, tmp_path / "model.npz")
    write(tmp_path / "lying.npz", edited(tmp_path / "model.npz", edit))
    with pytest.raises(ModelFileError, match=message) as caught:
        tigra.load(tmp_path / "lying.npz")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros((2, 4), np.float32), "shape or type"),
        (np.zeros((2, 3), np.float64), "shape or type"),
        (np.zeros((3, 2), np.float32).T, "shape or type"),
        (np.full((2, 3), np.nan, np.float32), "not finite"),
        (np.zeros(10**6, np.float32), "wrong size"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, network, array, message):
    tigra.save(network, tmp_path / "model.npz")
    content = members(tmp_path / "model.npz")
    content["layers/00.SpectralConv.alpha.npy"] = npy(array)
    write(tmp_path / "other.npz", content)
    with pytest.raises(ModelFileError, match=message):
        tigra.load(tmp_path / "other.npz")


@pytest.mark.parametrize("name", ["03.Logarithm.offset", "04.Standardise.deviation"])
@pytest.mark.parametrize("value", [0, -1])
def test_constants_that_must_be_positive_are_checked(tmp_path, name, value):
    network = tigra.build_network("SC[2, 1]-DP[4]-S[1]", (3, 3), 2, log_offset=0.1)
    tigra.save(network, tmp_path / "model.npz")
    content = members(tmp_path / "model.npz")
    content[f"layers/{name}.npy"] = npy(np.full(8, value, np.float32))
    write(tmp_path / "other.npz", content)
    with pytest.raises(ModelFileError, match=f"{name} must be positive"):
        tigra.load(tmp_path / "other.npz")


def test_a_header_that_claims_a_huge_array_allocates_nothing(tmp_path, network):
    tigra.save(network, tmp_path / "model.npz")
    content = members(tmp_path / "model.npz")
    name = "layers/00.SpectralConv.alpha.npy"
    content[name] = content[name].replace(b"(2, 3), }", b"(2,99999999999999), }")
    write(tmp_path / "huge.npz", content)
    with pytest.raises(ModelFileError):
        tigra.load(tmp_path / "huge.npz")


def test_extra_missing_and_compressed_members_are_refused(tmp_path, network):
    tigra.save(network, tmp_path / "model.npz")
    content = members(tmp_path / "model.npz")
    write(tmp_path / "extra.npz", content | {"../../evil": b"x"})
    write(tmp_path / "missing.npz", dict(list(content.items())[:-1]))
    write(tmp_path / "bomb.npz", content | {"zeros": b"\0" * 10**7}, zipfile.ZIP_DEFLATED)
    for name in ("extra", "missing", "bomb"):
        with pytest.raises(ModelFileError, match="damaged or not a tigra model file"):
            tigra.load(tmp_path / f"{name}.npz")


def test_meta_that_is_nested_without_end_is_refused(tmp_path):
    write(tmp_path / "deep.npz", {"meta.json": "[" * 200_000})
    with pytest.raises(ModelFileError, match="not a tigra model file"):
        tigra.load(tmp_path / "deep.npz")


def test_missing_files_and_folders_are_refused(tmp_path):
    for path in (tmp_path / "none.npz", tmp_path):
        with pytest.raises(ModelFileError, match="Cannot read the model file"):
            tigra.load(path)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, network, monkeypatch):
    tigra.save(network, tmp_path / "model.npz")
    before = (tmp_path / "model.npz").read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    for function in ("fsync", "replace"):
        monkeypatch.setattr(os, function, fail)
        with pytest.raises(ModelFileError, match="No space left"):
            tigra.save(network.with_parameters(network.parameters + 1), tmp_path / "model.npz")
        monkeypatch.undo()
        assert os.listdir(tmp_path) == ["model.npz"]
        assert (tmp_path / "model.npz").read_bytes() == before


def test_unwritable_places_are_found_before_training(tmp_path):
    with pytest.raises(ModelFileError, match="it is a folder; choose another file"):
        check_writable(tmp_path)
    with pytest.raises(ModelFileError, match="choose another file with --out"):
        check_writable(tmp_path / "none" / "model.npz")
    with pytest.raises(ModelFileError, match="name too long"):
        check_writable(tmp_path / ("x" * 300))
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(ModelFileError, match="Cannot write"):
        check_writable(tmp_path / "loop" / "model.npz")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="not a regular file"):
        check_writable(tmp_path / "pipe")
    check_writable(tmp_path / "model.npz")
    assert sorted(os.listdir(tmp_path)) == ["loop", "pipe"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, network, mask):
    previous = os.umask(mask)
    try:
        tigra.save(network, tmp_path / "model.npz")
        assert os.umask(mask) == mask, "it is only looked at"
    finally:
        os.umask(previous)
    assert (tmp_path / "model.npz").stat().st_mode & 0o777 == 0o666 & ~mask


def test_an_existing_file_keeps_its_permissions(tmp_path, network):
    tigra.save(network, tmp_path / "model.npz")
    (tmp_path / "model.npz").chmod(0o640)
    tigra.save(network, tmp_path / "model.npz")
    assert (tmp_path / "model.npz").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(tmp_path, network):
    (tmp_path / "link.npz").symlink_to(tmp_path / "model.npz")
    tigra.save(network, tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink() and tigra.load(tmp_path / "model.npz")


def test_packing_is_deterministic_and_uncompressed(network):
    content = packed({"a": 1}, {"x": np.zeros(3)})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
