"""The paper's data sets: sizes, what is upright and what is transformed, and no test image to learn from.

The rules are tested on small stand-ins for MNIST and ETH-80; with $TIGRA_DATA set, on the real files too.
"""

import gzip
import hashlib
import os
import shutil

import numpy as np
import pytest

import tigra
from tests.datasets.fake_sources import VIEWS, fake_eth80, idx_bytes, write_folder
from tigra import UsageError
from tigra.datasets import sources
from tigra.images.transforms import pad, resize, rotate, translate

N_DIGITS = {"train": 400, "t10k": 150}


@pytest.fixture(scope="module")
def digits():
    """{part: (images, labels)} of noise with an empty rim, all different."""
    rng = np.random.default_rng(1)
    made = {}
    for part, n in N_DIGITS.items():
        images = np.zeros((n, 28, 28), np.uint8)
        images[:, 4:24, 4:24] = rng.integers(0, 256, (n, 20, 20))
        made[part] = images, rng.integers(0, 10, n, dtype=np.uint8)
    return made


@pytest.fixture(scope="module")
def written(tmp_path_factory, digits):
    """A folder with a small MNIST and a small ETH-80, and the SHA-256 of the former's files."""
    folder, sums = tmp_path_factory.mktemp("protocols"), {}
    (folder / "mnist").mkdir()
    for part, (images, labels) in digits.items():
        for name, array in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
            content = idx_bytes(array)
            sums[name] = hashlib.sha256(content).hexdigest()
            (folder / "mnist" / f"{name}.gz").write_bytes(gzip.compress(content, 1))
    write_folder(folder / "eth80", fake_eth80(VIEWS))
    return folder, sums


@pytest.fixture
def data_dir(written, monkeypatch):
    """The folder, whose files count as the true ones. Tests must not change them."""
    folder, sums = written
    monkeypatch.delenv("TIGRA_DATA", raising=False)
    monkeypatch.setattr(sources, "MNIST_SHA256", sums)
    monkeypatch.setattr(sources, "N_VIEWS", len(VIEWS))
    return folder


SMALL = {
    "mnist-012": {},
    "mnist-rot": {"n_train": 200, "n_valid": 50},
    "mnist-trans": {"n_train": 200, "n_valid": 50},
    "eth-80": {"n_train": 150, "n_valid": 30},
}
OBJECT_FOLDS = [{"split": "object", "fold": fold} for fold in range(10)]
PLANS = [*SMALL.items(), ("mnist-012", {"all_test": True}), *(("eth-80", fold) for fold in OBJECT_FOLDS)]


def digests(images):
    return {hashlib.sha256(np.ascontiguousarray(image, dtype=np.float64)).digest() for image in np.asarray(images)}


def assert_disjoint(splits):
    parts = [digests(split.images) for split in (splits.train, splits.valid, splits.test_upright)]
    assert [len(part) for part in parts] == [len(s.labels) for s in (splits.train, splits.valid, splits.test_upright)]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


@pytest.mark.slow
@pytest.mark.parametrize("name, options", PLANS)
def test_no_test_image_is_in_train_or_valid(data_dir, name, options):
    assert_disjoint(tigra.load_dataset(name, data_dir=data_dir, **options))


@pytest.mark.slow
@pytest.mark.parametrize("name, options", SMALL.items())
def test_the_seed_decides_everything_and_options_lead_back(data_dir, name, options):
    first = tigra.load_dataset(name, seed=3, data_dir=data_dir, **options)
    again = tigra.load_dataset(name, data_dir=data_dir, **first.options)
    for part in ("train", "valid", "test", "test_upright"):
        np.testing.assert_array_equal(getattr(first, part).images[:], getattr(again, part).images[:])
        np.testing.assert_array_equal(getattr(first, part).labels, getattr(again, part).labels)
    other = tigra.load_dataset(name, seed=4, data_dir=data_dir, **options)
    assert digests(first.test.images) != digests(other.test.images)


@pytest.mark.slow
@pytest.mark.parametrize("name, options", SMALL.items())
def test_training_images_can_be_turned_and_nothing_else_changes(data_dir, name, options):
    plain = tigra.load_dataset(name, data_dir=data_dir, **options)
    upright = np.asarray(plain.train.images)
    for n_angles in (0, 1):
        same = tigra.load_dataset(name, data_dir=data_dir, **options, train_rotations=n_angles)
        np.testing.assert_array_equal(same.train.images[:], upright)
    turned = tigra.load_dataset(name, data_dir=data_dir, **options, train_rotations=8)
    background = "border" if name == "eth-80" else "black"
    choices = np.array([rotate(upright, 45.0 * k, background=background) for k in range(8)])
    distances = np.abs(choices - turned.train.images[:]).max(axis=(2, 3))
    assert distances.min(axis=0).max() == 0 and set(distances.argmin(axis=0)) == set(range(8))
    free = tigra.load_dataset(name, data_dir=data_dir, **options, train_rotations="random")
    assert np.abs(choices - free.train.images[:]).max(axis=(2, 3)).min(axis=0).mean() > 0.1
    assert "train rotated by [0, 360) degrees, valid upright" in free.protocol
    for part in ("valid", "test", "test_upright"):
        for other in (turned, free):
            np.testing.assert_array_equal(getattr(other, part).images[:], getattr(plain, part).images[:])


def test_mnist_012_can_be_tested_on_all_of_mnists_digits(data_dir, digits):
    images, labels = digits["t10k"]
    splits = tigra.load_dataset("mnist-012", data_dir=data_dir, all_test=True)
    np.testing.assert_array_equal(splits.test_upright.images, images[labels <= 2] / 255.0)
    np.testing.assert_array_equal(splits.test.labels, labels[labels <= 2])
    assert len(splits.train.labels) == 500 and "test (all of MNIST's) rotated" in splits.protocol


def test_mnist_rot_is_digits_below_9_resized_and_turned(data_dir, digits):
    splits = tigra.load_dataset("mnist-rot", seed=5, data_dir=data_dir, **SMALL["mnist-rot"])
    images, labels = digits["t10k"]
    upright = resize(images[labels <= 8] / np.float32(255), (26, 26))
    np.testing.assert_array_equal(splits.test_upright.images, upright)
    angles = np.random.default_rng(5).uniform(0, 360, len(upright))
    np.testing.assert_array_equal(splits.test.images, rotate(upright, angles))
    assert splits.class_names == [str(digit) for digit in range(9)] and splits.image_shape == (26, 26)
    assert len(splits.train.labels) == 200 and len(splits.valid.labels) == 50
    assert set(splits.train.labels) | set(splits.valid.labels) | set(splits.test.labels) == set(range(9)), "no nines"
    known = dict(zip(map(bytes, _fitted(digits, (26, 26))), digits["train"][1], strict=True))
    for split in (splits.train, splits.valid):
        assert [known[bytes(image)] for image in split.images] == split.labels.tolist()
    assert splits.protocol.startswith("digits 0-8 resized to 26x26, train and valid upright, test rotated by [0, 360)")


def _fitted(digits, size):
    return resize(digits["train"][0] / np.float32(255), size)


def test_mnist_trans_is_padded_and_shifted_by_whole_or_real_numbers(data_dir, digits):
    options = SMALL["mnist-trans"]
    whole = tigra.load_dataset("mnist-trans", data_dir=data_dir, **options)
    images, labels = digits["t10k"]
    upright = pad(images[labels <= 8] / np.float32(255), (34, 34))
    np.testing.assert_array_equal(whole.test_upright.images, upright)
    shifts = np.random.default_rng(0).integers(-6, 6, (len(upright), 2), endpoint=True)
    np.testing.assert_array_equal(whole.test.images, translate(upright, shifts))
    assert np.isclose(whole.test.images.sum(), upright.sum()), "a shift of 6 keeps the digit inside"
    real = tigra.load_dataset("mnist-trans", data_dir=data_dir, **options, shifts="real", interpolation="linear")
    shifts = np.random.default_rng(0).uniform(-6, 6, (len(upright), 2))
    np.testing.assert_array_equal(real.test.images, translate(upright, shifts, "linear"))
    assert "by up to 6 pixels each way, whole pixels" in whole.protocol
    assert "real numbers of pixels, linear interpolation" in real.protocol
    still = tigra.load_dataset("mnist-trans", data_dir=data_dir, **options, max_shift=0)
    np.testing.assert_array_equal(still.test.images, upright)


@pytest.mark.slow
def test_eth_80_is_split_over_images_or_by_object(data_dir):
    splits = tigra.load_dataset("eth-80", data_dir=data_dir, n_train=150, n_valid=30)
    assert [len(s.labels) for s in (splits.train, splits.valid, splits.test)] == [150, 30, 80 * len(VIEWS) - 180]
    assert splits.image_shape == (50, 50) and splits.transform is None
    tested = []
    for fold in range(10):
        splits = tigra.load_dataset("eth-80", data_dir=data_dir, split="object", fold=fold)
        sizes = [np.bincount(s.labels).tolist() for s in (splits.train, splits.valid, splits.test)]
        assert sizes == [[8 * len(VIEWS)] * 8, [len(VIEWS)] * 8, [len(VIEWS)] * 8]
        tested += digests(splits.test.images)
    assert len(set(tested)) == len(tested) == 80 * len(VIEWS), "ten folds test every image once"
    assert "split by object, fold 9" in splits.protocol


def test_an_object_is_never_on_both_sides_of_a_split_by_object(data_dir):
    """Found again by their content, all views of an object are in one part."""
    objects = {}
    for name, content in fake_eth80(VIEWS).items():
        image = tigra.images.pictures.decode_image(content, name, (50, 50))
        objects[hashlib.sha256(image).digest()] = name.split("/")[0]
    splits = tigra.load_dataset("eth-80", data_dir=data_dir, split="object", fold=4)
    parts = [{objects[d] for d in digests(s.images)} for s in (splits.train, splits.valid, splits.test)]
    assert [len(part) for part in parts] == [64, 8, 8] and not (parts[0] & parts[1] or parts[0] & parts[2])
    assert parts[2] == {f"{kind}{6 if kind == 'car' else 5}" for kind in splits.class_names}, "the fifth of each class"
    for split, part in zip((splits.train, splits.test), (parts[0], parts[2]), strict=True):
        for image, label in zip(split.images[:], split.labels, strict=True):
            name = objects[hashlib.sha256(image).digest()]
            assert name in part and name.startswith(splits.class_names[label])


def test_a_damaged_picture_of_eth_80_is_refused(data_dir, tmp_path):
    shutil.copytree(data_dir / "eth80", tmp_path / "eth80")
    damaged = next((tmp_path / "eth80" / "cow3").glob("*.png"))
    damaged.write_bytes(damaged.read_bytes()[:40])
    with pytest.raises(tigra.DatasetError, match="1 pictures of ETH-80 are damaged"):
        tigra.load_dataset("eth-80", data_dir=tmp_path, n_train=150, n_valid=30)


def test_the_protocol_of_eth_80_names_the_files(data_dir):
    assert tigra.load_dataset("eth-80", data_dir=data_dir, split="object").protocol.startswith("eth80, 50x50 grey")


def test_eth_80_can_be_tested_turned(data_dir):
    splits = tigra.load_dataset("eth-80", data_dir=data_dir, n_train=150, n_valid=30, test_rotations=True)
    angles = np.random.default_rng(0).uniform(0, 360, len(splits.test.labels))
    np.testing.assert_array_equal(
        splits.test.images[:], rotate(splits.test_upright.images[:], angles, background="border")
    )


def test_eth_80_is_decoded_once(data_dir, monkeypatch):
    first = tigra.load_dataset("eth-80", data_dir=data_dir, n_train=150, n_valid=30)
    monkeypatch.setattr("tigra.images.store.build_store", lambda *_, **__: pytest.fail("decoded again"))
    again = tigra.load_dataset("eth-80", data_dir=data_dir, n_train=150, n_valid=30)
    np.testing.assert_array_equal(first.train.images[:], again.train.images[:])


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("mnist-rot", {"n_train": 10**6}, "images in all, got n_train 1000000"),
        ("mnist-rot", {"n_valid": 0}, "n_valid must be a whole number of at least 1"),
        ("mnist-rot", {"size": (0, 3)}, "shape must be"),
        ("mnist-rot", {"max_shift": 3}, "mnist-rot has no option 'max_shift'. It has seed, interpolation, size"),
        ("mnist-trans", {"size": (20, 20), "n_train": 9, "n_valid": 9}, "cannot be padded to the smaller 20x20"),
        ("mnist-trans", {"max_shift": -1}, "max_shift must be a number of pixels from 0 to 34"),
        ("mnist-trans", {"max_shift": "six"}, "max_shift must be a number"),
        ("mnist-trans", {"shifts": "some"}, "shifts must be 'whole' or 'real'"),
        ("eth-80", {"split": "view"}, "split must be 'image' or 'object'"),
        ("eth-80", {"split": "object", "fold": 10}, "fold must be a whole number from 0 to 9"),
        ("eth-80", {}, "images in all, got n_train 2300"),
        ("mnist-012", {"train_rotations": 400}, "train_rotations must be"),
    ],
)
def test_impossible_options_are_refused(data_dir, name, options, message):
    with pytest.raises(UsageError, match=message):
        tigra.load_dataset(name, data_dir=data_dir, **options)


@pytest.mark.parametrize("name, options", [("mnist-rot", {}), ("eth-80", {}), ("mnist-012", {"all_test": True})])
def test_absent_files_are_told_with_what_to_do(tmp_path, monkeypatch, name, options):
    monkeypatch.delenv("TIGRA_DATA", raising=False)
    with pytest.raises(tigra.DatasetError, match="tigra data fetch"):
        tigra.load_dataset(name, data_dir=tmp_path, **options)


# --- the real files ---------------------------------------------------------------------------------------------

REAL = {
    "mnist-012": ({"all_test": True}, (500, 100, 3147)),
    "mnist-rot": ({}, (50_000, 3_000, 8_991)),
    "mnist-trans": ({}, (50_000, 3_000, 8_991)),
    "eth-80": ({}, (2_300, 300, 680)),
}


@pytest.mark.parametrize("name", REAL)
def test_real_data_has_the_papers_sizes_and_no_test_image_to_learn_from(name):
    options, sizes = REAL[name]
    source = "eth80" if name == "eth-80" else "mnist"
    if not os.environ.get("TIGRA_DATA") or sources.find(source) is None:
        pytest.skip(f"to test this, set TIGRA_DATA to a folder with {source}")
    splits = tigra.load_dataset(name, **options)
    assert tuple(len(s.labels) for s in (splits.train, splits.valid, splits.test)) == sizes
    assert_disjoint(splits)


@pytest.mark.parametrize("name", ["mnist-rot", "mnist-trans"])
def test_digits_that_do_not_fit_into_memory_are_refused(data_dir, name):
    with pytest.raises(tigra.DatasetError, match=r"digits of 50000x50000 pixels would take .* GB, but the machine has"):
        tigra.load_dataset(name, data_dir=data_dir, size=(50000, 50000), n_train=100, n_valid=20)
