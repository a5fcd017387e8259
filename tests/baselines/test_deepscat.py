"""DeepScat: fitted to a data set, chosen on validation images, kept on disk, saved and loaded."""

import contextlib
import json
import sqlite3
import zipfile

import numpy as np
import pytest

import tigra
from tests.model_members import members, npy, write
from tigra import (
    ArchitectureError,
    ModelFileError,
    ShapeError,
    TrainingError,
    UsageError,
    build_deepscat,
)
from tigra.baselines.deepscat.deepscat import count_fitted, read_deepscat
from tigra.baselines.deepscat.feature_cache import FeatureCache, image_key, scattering_features
from tigra.baselines.deepscat.fitting import fit_deepscat, suited
from tigra.experiments.recipes import DEEPSCAT_RECIPES
from tigra.images.store import LazyImages
from tigra.models.notation import format_architecture, parse_architecture

TEXT = "W[2, 3]-PCA[4]"


class Lazy(LazyImages):
    """Images that are made when they are asked for."""

    def __init__(self, images):
        super().__init__(images.shape)
        self.images = images

    def take(self, rows):
        return self.images[rows]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("features")


@pytest.fixture
def fitted(small_splits, cache):
    return fit_deepscat(small_splits, TEXT, cache=cache)[0]


# --- as text ------------------------------------------------------------------------------------------------


def test_the_papers_text_parses_and_builds():
    text = "W[2, 5]-PCA[20]"
    assert format_architecture(parse_architecture(text)) == text
    model = build_deepscat(" W[2,5] -PCA[20]", (50, 50), 8)
    assert model.options["architecture"] == text and model.scattering.n_features == 341
    assert model.n_parameters == count_fitted(text, (50, 50), 8) == 8 * 341 * 21
    assert not model.is_fitted


@pytest.mark.parametrize(
    "text, message",
    [
        ("W[2, 5]", r"W\[order, octaves\]-PCA\[dimension\], got"),
        ("PCA[20]-W[2, 5]", r"W\[order, octaves\]-PCA\[dimension\], got"),
        ("W[2, 5]-FC[5]", r"W\[order, octaves\]-PCA\[dimension\], got"),
        ("W[3, 5]-PCA[20]", "too high an order; use at most 2"),
        ("W[2, 7]-PCA[20]", "too many octaves for images of 50x50 pixels; use at most 6"),
        ("W[1, 5]-PCA[6]", r"PCA\[6\] at position 9 must have fewer dimensions than there are features.*at most 5"),
        ("W[2, 0]-PCA[6]", "a whole number of at least 1"),
    ],
)
def test_texts_that_are_no_deepscat_are_refused(text, message):
    with pytest.raises(ArchitectureError, match=message):
        read_deepscat(text, (50, 50))


@pytest.mark.parametrize("text", ["W[2, 3]-PCA[4]", "W[2, 3]-FC[4]", "S[2]-PCA[4]", "SC[2, 2]-W[1, 1]"])
def test_a_network_refuses_what_is_fitted_and_says_who_takes_it(text):
    with pytest.raises(ArchitectureError, match="is fitted, not trained by gradients.*build_deepscat"):
        tigra.build_network(text, (14, 14), 3)


@pytest.mark.parametrize(
    "options",
    [
        {"n_classes": 1},
        {"n_classes": 2.0},
        {"n_classes": True},
        {"log": 1},
        {"standardise": "no"},
        {"dtype": "int8"},
        {"dtype": "?"},
        {"n_classes": 10**9},
    ],
)
def test_options_that_cannot_work_are_refused(options):
    with pytest.raises(UsageError):
        build_deepscat(**{"architecture": TEXT, "image_shape": (14, 14), "n_classes": 3} | options)


def test_a_text_is_suited_to_small_images_and_small_classes():
    assert suited("W[2, 5]-PCA[20]", (50, 50), np.repeat([0, 1], 300)) == "W[2, 5]-PCA[20]"
    assert suited("W[2, 5]-PCA[20]", (50, 15), np.repeat([0, 1], [300, 9])) == "W[2, 3]-PCA[7]"


@pytest.mark.slow
def test_recipes_are_arguments_that_exist(small_splits, cache):
    assert set(DEEPSCAT_RECIPES) == set(tigra.RECIPES)
    for recipe in DEEPSCAT_RECIPES["eth-80"].values():
        read_deepscat(recipe.architecture, (50, 50))
        fit_deepscat(small_splits, TEXT, recipe.log, recipe.standardise, recipe.candidates, cache=cache)


# --- fitting ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_learns_upright_digits_and_names_turned_ones(small_splits, fitted):
    assert fitted.is_fitted and fitted.class_names == small_splits.class_names
    assert tigra.accuracy(fitted, small_splits.train) == 1.0
    assert tigra.accuracy(fitted, small_splits.valid) >= 0.8  # chance is 0.33
    assert tigra.accuracy(fitted, small_splits.test) >= 0.65
    probabilities = fitted.predict_proba(small_splits.test.images)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    assert (probabilities.argmax(axis=1) == fitted.predict(small_splits.test.images)).all()
    wrong = probabilities[np.arange(24), small_splits.test.labels] < 0.5
    assert probabilities.max() > 0.9 and probabilities[wrong].max(initial=0) < 1  # on the scale of validation images


def test_scores_are_negative_distances_of_scaled_features(small_splits, cache):
    images, labels = small_splits.train
    for log in (False, True):
        for standardise in (False, True):
            model = build_deepscat(TEXT, (14, 14), 3, log, standardise)
            model.cache = cache
            features = model.features(images).astype(float)
            f = np.log(features + 1e-6) if log else features
            f = (f - f.mean(axis=0)) / f.std(axis=0) if standardise else f
            r = f - f[labels == 1].mean(axis=0)
            v = np.linalg.svd(r[labels == 1])[2][:4]
            expected = (r**2).sum(axis=1) - ((r @ v.T) ** 2).sum(axis=1)
            scores = model.fit(images, labels).scores(images)
            np.testing.assert_allclose(-scores[:, 1], expected, rtol=1e-6, atol=1e-9 * expected.max())


@pytest.mark.slow
def test_settings_are_chosen_by_validation_images_alone(small_splits, cache):
    candidates = {"octaves": [3, 2, 9], "dimension": [4, 2, 99], "log": [False, True], "standardise": [True]}
    model, trials = fit_deepscat(small_splits, TEXT, candidates=candidates, cache=cache)
    assert trials[0][:3] == (TEXT, False, False)
    assert len(trials) == len(set(trials)) == 1 + 2 * 2 * 2
    best = max(trials, key=lambda trial: trial.valid_accuracy)
    options = model.options
    assert (options["architecture"], options["log"], options["standardise"]) == best[:3]
    for trial in trials:
        alone, (same,) = fit_deepscat(small_splits, *trial[:3], cache=cache)
        assert same == trial
        assert tigra.accuracy(alone, small_splits.valid) == trial.valid_accuracy
        if trial == best:
            images = small_splits.test.images
            assert alone.predict_proba(images).tobytes() == model.predict_proba(images).tobytes()


def test_labels_of_test_images_play_no_part(small_splits, cache):
    class WithoutTest:
        train, valid, class_names = small_splits.train, small_splits.valid, small_splits.class_names
        image_shape = small_splits.image_shape

    assert fit_deepscat(WithoutTest(), TEXT, cache=cache)[0].is_fitted


def test_candidates_that_do_not_exist_are_refused(small_splits):
    with pytest.raises(UsageError, match="candidates must be for octaves, log, standardise, dimension, got angles"):
        fit_deepscat(small_splits, TEXT, candidates={"angles": [4]})
    for wrong in ({"dimension": 5}, {"dimension": ["a"]}, {"octaves": [2.5]}, {"log": [1]}, {"standardise": "no"}):
        with pytest.raises(UsageError, match=r"candidates\['[a-z]+'\] must be a list of (int|bool), got"):
            fit_deepscat(small_splits, TEXT, candidates=wrong)


def test_too_many_dimensions_are_refused_before_anything_is_scattered(small_splits):
    def fail(*_):
        pytest.fail("scattered")

    with pytest.raises(UsageError, match=r"PCA\[40\] needs at least 42 training images of every class"):
        fit_deepscat(small_splits, "W[2, 3]-PCA[40]", on_progress=fail)


def test_threads_and_laziness_and_the_cache_do_not_change_a_bit(small_splits, tmp_path):
    images, model = small_splits.train.images[:8], build_deepscat(TEXT, (14, 14), 3)
    plain = model.features(images)
    assert model.features(Lazy(images), threads=3).tobytes() == plain.tobytes()
    model.cache = tmp_path
    for threads in (2, 1):  # made, then found
        assert model.features(images, threads).tobytes() == plain.tobytes()
    model.cache = None
    assert model.features(images[7:]).tobytes() == plain[7:].tobytes()


def test_wrong_images_and_labels_are_refused(small_splits, fitted):
    images, labels = small_splits.train
    with pytest.raises(TrainingError, match="has not been fitted"):
        build_deepscat(TEXT, (14, 14), 3).predict(images)
    with pytest.raises(ShapeError, match="image 3 has NaN"):
        fitted.predict(np.where(np.arange(48)[:, None, None] == 3, np.nan, images))
    with pytest.raises(ShapeError, match="divide 8-bit pixels by 255"):
        fitted.predict(255 * images)
    with pytest.raises(ShapeError, match=r"\(n, 14, 14\), got \(48, 7, 14\)"):
        fitted.predict(images[:, ::2])
    for wrong in (labels[:-1], labels + 1, labels / 2):
        with pytest.raises(ShapeError, match="training set"):
            fitted.fit(images, wrong)


def test_probabilities_are_numbers_at_any_temperature(small_splits, fitted):
    """However small it is: the nearest plane takes all."""
    images = small_splits.test.images[:4]
    fitted.planes.state["temperature"] = np.array([1e-320])
    probabilities = fitted.predict_proba(images)
    np.testing.assert_array_equal(probabilities, np.eye(3)[fitted.predict(images)])


# --- kept on disk --------------------------------------------------------------------------------------------


def test_features_are_made_once_for_each_image(small_splits, tmp_path, monkeypatch):
    images = small_splits.train.images[:8]
    scattering = build_deepscat(TEXT, (14, 14), 3).scattering
    made, calls = [], []
    compute = scattering.features
    monkeypatch.setattr(scattering, "features", lambda image: made.append(1) or compute(image))
    first = scattering_features(scattering, images[:5], cache=tmp_path)
    again = scattering_features(scattering, images[::-1], 2, tmp_path, lambda *progress: calls.append(progress))
    assert len(made) == 8 and calls == [("scattering images", 8, 8)]
    assert first.tobytes() == again[::-1][:5].tobytes()
    other = build_deepscat("W[2, 2]-PCA[4]", (14, 14), 3).scattering
    assert scattering_features(other, images[:1], cache=tmp_path).shape == (1, other.n_features)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["garbage", "row", "short", "folder"])
def test_a_damaged_cache_is_made_anew(small_splits, tmp_path, damage):
    scattering, images = build_deepscat(TEXT, (14, 14), 3).scattering, small_splits.train.images[:4]
    expected = scattering_features(scattering, images, cache=tmp_path)
    (path,) = (tmp_path / "scattering").iterdir()
    if damage == "garbage":
        path.write_bytes(b"no data base" * 1000)
    if damage in ("row", "short"):
        with sqlite3.connect(path) as database:
            new = b"x" * (len(expected[0].tobytes()) if damage == "row" else 3)
            database.execute("UPDATE features SET row = ?", (new,))
        database.close()
    if damage == "folder":
        path.unlink()
        path.mkdir()
    for _ in range(2):
        assert scattering_features(scattering, images, cache=tmp_path).tobytes() == expected.tobytes()
    if damage != "folder":
        with contextlib.closing(FeatureCache(scattering, tmp_path)) as known:
            assert len(known.rows([image_key(image) for image in images])) == 4


@pytest.mark.parametrize("damage", ["middle", "columns", "infinite", "swapped", "schema", "write version"])
def test_a_cache_that_is_damaged_inside_costs_time_once(small_splits, tmp_path, damage, monkeypatch):
    """The first page is whole, so that it opens; what it holds is unreadable, another program's, or no numbers."""
    scattering, images = build_deepscat(TEXT, (14, 14), 3).scattering, small_splits.train.images[:4]
    expected = scattering_features(scattering, images, cache=tmp_path)
    (path,) = (tmp_path / "scattering").iterdir()
    content = path.read_bytes()
    if damage == "middle":
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    elif damage == "schema":
        path.write_bytes(content.replace(b"row BLOB", b"r\xffw BLOB"))
    elif damage == "write version":
        path.write_bytes(content[:18] + b"\x07" + content[19:])
    else:
        row = np.full(expected.shape[1], np.inf, "<f4").tobytes()
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            if damage == "columns":
                database.execute("DROP TABLE features")
                database.execute("CREATE TABLE features (image, row)")
            elif damage == "swapped":
                keys = [image_key(image) for image in images]
                database.execute("UPDATE features SET image = x'00' WHERE image = ?", keys[:1])
                database.execute("UPDATE features SET image = ? WHERE image = ?", keys[:2])
                database.execute("UPDATE features SET image = ? WHERE image = x'00'", keys[1:2])
            else:
                known = FeatureCache(scattering, tmp_path)
                known.close()
                for image in images:
                    values = row, known._checksum(image_key(image), row), image_key(image)
                    database.execute("UPDATE features SET row = ?, crc = ? WHERE image = ?", values)
    assert scattering_features(scattering, images, cache=tmp_path).tobytes() == expected.tobytes()
    scattering_features(scattering, images, cache=tmp_path)
    monkeypatch.setattr(scattering, "features", lambda image: pytest.fail("scattered again"))
    assert scattering_features(scattering, images, cache=tmp_path).tobytes() == expected.tobytes()


def test_a_cache_that_cannot_be_written_costs_time_only(small_splits, tmp_path):
    (tmp_path / "file").write_text("")
    scattering = build_deepscat(TEXT, (14, 14), 3).scattering
    assert len(scattering_features(scattering, small_splits.train.images[:2], cache=tmp_path / "file")) == 2


# --- saved ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"log": True, "standardise": True}])
def test_a_fitted_deepscat_comes_back_bit_for_bit(tmp_path, small_splits, cache, options):
    model, _ = fit_deepscat(small_splits, TEXT, **options, cache=cache)
    model.class_names = ["zero", "one", "zwei äöü"]
    tigra.save(model, tmp_path / "model.npz", {"dataset": "small"})
    again = tigra.load(tmp_path / "model.npz")
    assert isinstance(again, tigra.DeepScat) and again.is_fitted and again.cache is None
    assert again.options == model.options and again.class_names == model.class_names
    images = small_splits.test.images[:4]
    assert again.scores(images).tobytes() == model.scores(images).tobytes()
    assert again.predict_proba(images).tobytes() == model.predict_proba(images).tobytes()
    tigra.save(again, tmp_path / "again.npz", {"dataset": "small"})
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "model.npz").read_bytes()


def test_what_is_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(ModelFileError, match="has not been fitted"):
        tigra.save(build_deepscat(TEXT, (14, 14), 3), tmp_path / "model.npz")


def _refused(path, content, message):
    write(path, content)
    with pytest.raises(ModelFileError, match=f"damaged or not a tigra model file.*{message}"):
        tigra.load(path)


@pytest.mark.parametrize(
    "edit, message",
    [
        (lambda meta: meta["options"].update(architecture="W[2, 3]-PCA[5]"), "smaller|wrong"),
        (lambda meta: meta["options"].update(architecture="S[2]-FC[3]"), "DeepScat is W"),
        (lambda meta: meta["options"].update(n_classes=10**9), "numbers to fit"),
        (lambda meta: meta["options"].update(n_classes=2.5), "n_classes must be"),
        (lambda meta: meta["options"].update(n_classes="3" * 10**6), "n_classes must be"),
        (lambda meta: meta["options"].update(n_classes=[3]), "n_classes must be"),
        (lambda meta: meta["options"].update(image_shape=[10**6, 10**6]), "image shape"),
        (lambda meta: meta["options"].update(image_shape=[14, -14]), "image_shape"),
        (lambda meta: meta["options"].update(dtype="object"), "dtype"),
        (lambda meta: meta["options"].update(log="yes"), "log"),
        (lambda meta: meta["options"].update(margin=3), "build_deepscat has no option 'margin'"),
        (lambda meta: meta["options"].pop("architecture"), "KeyError"),
        (lambda meta: meta.update(resume={}), "cannot be resumed"),
        (lambda meta: meta.update(class_names=["a"]), "class names"),
    ],
)
def test_a_meta_file_that_lies_is_refused(tmp_path, fitted, edit, message):
    tigra.save(fitted, tmp_path / "model.npz")
    content = members(tmp_path / "model.npz")
    meta = json.loads(content["meta.json"])
    edit(meta)
    _refused(tmp_path / "lie.npz", content | {"meta.json": json.dumps(meta)}, message)


def test_arrays_that_do_not_fit_are_refused(tmp_path, fitted):
    tigra.save(fitted, tmp_path / "model.npz")
    content = members(tmp_path / "model.npz")
    axes, temperature = "layers/02.AffinePCA.axes.npy", "layers/02.AffinePCA.temperature.npy"
    good = fitted.planes.state["axes"]
    for name, array, message in (
        (axes, good.astype(np.float32), "smaller than the network"),
        (axes, good[:, :, :2], "smaller than the network"),
        (axes, np.ascontiguousarray(good.transpose(0, 2, 1)), "wrong shape or type"),
        (axes, good.view(np.int64), "wrong shape or type"),
        (axes, np.full_like(good, np.nan), "not finite"),
        (temperature, np.zeros(1), "must be positive"),
        (temperature, np.array([None]), "wrong"),
    ):
        _refused(tmp_path / "lie.npz", content | {name: npy(array)}, message)
    _refused(
        tmp_path / "lie.npz", {k: v for k, v in content.items() if k != temperature}, "not those of its architecture"
    )
    with zipfile.ZipFile(tmp_path / "zipped.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    with pytest.raises(ModelFileError, match="compressed"):
        tigra.load(tmp_path / "zipped.npz")
