"""Trust: calibrated probabilities, pictures unlike the training, and heat maps that turn with the picture."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tigra
from tests.cli.running import run
from tigra.datasets.splits import Split
from tigra.experiments.report.counts import calibration_error
from tigra.experiments.report.heat import heat_maps, heat_picture
from tigra.model_file import load_model, packaged_models
from tigra.models.loss import softmax
from tigra.training.familiarity import Familiar
from tigra.training.temperature import fitted_temperature


@pytest.fixture(scope="module")
def network():
    return tigra.load(packaged_models()["mnist-012"])


def test_the_temperature_undoes_a_scale_and_calibrates(rng):
    scores = rng.normal(size=(2000, 3)) * 2
    labels = np.array([rng.choice(3, p=p) for p in softmax(scores.T).T])  # calibrated as they are
    assert fitted_temperature(scores, labels) == pytest.approx(1, abs=0.1)
    assert fitted_temperature(5 * scores, labels) == pytest.approx(5 * fitted_temperature(scores, labels), rel=2e-3)
    calibrated = softmax(5 * scores.T / fitted_temperature(5 * scores, labels)).T
    assert calibration_error(calibrated, labels) < 0.04 < calibration_error(softmax(5 * scores.T).T, labels)
    certain = fitted_temperature(np.eye(3)[[0, 1, 2]], np.array([0, 1, 2]))  # all right: still not quite sure
    assert 0.5 < softmax(np.eye(3) / certain)[0, 0] < 0.95


def test_the_temperature_of_the_packaged_model_halves_its_error(network, mnist_012):
    scores = network.scores(mnist_012.valid.images)
    network.temperature = fitted_temperature(scores, mnist_012.valid.labels)
    try:
        after = network.predict_proba(mnist_012.test.images)
    finally:
        network.temperature = 1.0
    before = network.predict_proba(mnist_012.test.images)
    errors = [calibration_error(p, mnist_012.test.labels) for p in (before, after)]
    assert errors[1] < 0.75 * errors[0] and (before.argmax(axis=1) == after.argmax(axis=1)).all()


@pytest.fixture(scope="module")
def familiar(network, mnist_012):
    return Familiar.of(network, mnist_012.train, mnist_012.valid)


def test_pictures_unlike_the_training_are_noticed(network, familiar, mnist_012, rng):
    def flagged(images):
        return (familiar.distances(network.embedding(images)) > 1).mean()

    assert len(familiar.features) == 500 and flagged(mnist_012.valid.images) <= 0.02
    assert flagged(mnist_012.test.images) < 0.1  # rotated
    assert flagged(rng.random((8, 28, 28))) == flagged(1 - mnist_012.test.images[:8]) == 1


def test_few_validation_pictures_flag_few_ordinary_ones(network, familiar, mnist_012):
    """The largest of 10 distances alone is often small; the training pictures help."""
    test, valid = (network.embedding(split.images) for split in (mnist_012.test_upright, mnist_012.valid))
    kept = familiar.features.astype(np.float64)
    nearest = [np.sort(np.sqrt(np.square(kept - row).sum(axis=1)))[5] for row in kept]  # the first is itself
    for start in (0, 40, 80):
        some = slice(start, start + 10)
        found = Familiar.of(network, mnist_012.train, Split(*(array[some] for array in mnist_012.valid)))
        both = np.concatenate([familiar.distances(valid[some]) * familiar.limit, nearest])
        assert found.limit == pytest.approx(np.quantile(both, 0.99), rel=1e-4)
        assert (found.distances(test) > 1).mean() <= 0.06


def test_model_files_keep_both_and_older_files_load(network, familiar, mnist_012, tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    before, network.temperature = network.temperature, 0.5
    try:
        tigra.save(network, path, {"familiar": familiar})
    finally:
        network.temperature = before
    loaded = load_model(path)
    found = loaded.training["familiar"]
    assert loaded.network.temperature == 0.5 and found.limit == familiar.limit
    assert found.features.tobytes() == familiar.features.tobytes()
    images = mnist_012.test.images[:4]
    np.testing.assert_allclose(loaded.network.predict_proba(images), softmax(network.scores(images).T * 2).T, rtol=1e-6)
    old = load_model(Path(__file__).parents[1] / "models" / "version_0_1" / "finished.npz")
    assert old.network.temperature == 1 and "familiar" not in old.training
    for spoilt in ({"temperature": 0.0}, {"temperature": "1"}, {"familiar": {"images": 1, "inputs": 64, "limit": 1.0}}):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        members["meta.json"] = json.dumps(json.loads(members["meta.json"]) | spoilt).encode()
        with zipfile.ZipFile(tmp_path / "spoilt.npz", "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        with pytest.raises(tigra.ModelFileError):
            tigra.load(tmp_path / "spoilt.npz")


def test_predict_rejects_flags_and_explains(network, familiar, mnist_012, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tigra.save(network, "model.npz", {"familiar": familiar})
    pictures = {"digit.png": mnist_012.test.images[0], "noise.png": np.random.default_rng(0).random((28, 28))}
    for name, image in pictures.items():
        Image.fromarray(np.uint8(255 * image)).save(name)
    words = ["predict", "model.npz", "digit.png", "noise.png", "--explain", "heat"]
    digit, noise = json.loads(run(*words, "--json").stdout)["predictions"]
    assert digit["doubt"] == "" and digit["distance"] < 1 < noise["distance"] and "unlike" in noise["doubt"]
    image = tigra.read_image("digit.png", (28, 28))[None]  # through the last layer on its own: the same numbers
    assert list(digit["probabilities"].values()) == pytest.approx(network.predict_proba(image)[0], abs=1e-6)
    assert sorted(path.name for path in (tmp_path / "heat").iterdir()) == ["digit.png.png", "noise.png.png"]
    with Image.open("heat/digit.png.png") as picture:
        assert picture.size == (224, 224) and picture.mode == "RGB"
    said = run(*words[:4], "--reject", "0.999").stdout
    assert said.count("no label") == 2 and "low probability, unlike the training pictures" in said


def test_heat_maps_turn_with_the_picture(network, mnist_012):
    images = mnist_012.test.images[:6]
    heat = heat_maps(network, images)
    turned = heat_maps(network, np.rot90(images, axes=(1, 2)).copy())
    np.testing.assert_allclose(turned, np.rot90(heat, axes=(1, 2)), atol=1e-3 * np.abs(heat).max())
    mirrored = heat_maps(network, images[:, :, ::-1].copy())
    assert np.abs(mirrored - heat[:, :, ::-1]).max() > 0.01 * np.abs(heat).max(), "the network tells left from right"
    assert heat_picture(images[0], heat[0]).getpixel((0, 0)) == (0, 0, 0)


def test_heat_is_the_derivative_times_the_pixel(rng):
    network = tigra.build_network("SC[2, 2]-S[2]-FC[4]", (5, 5), 3, margin=1, dtype="float64")
    network.parameters += 0.3 * rng.normal(size=network.n_parameters)
    image, step = rng.random((1, 5, 5)), 1e-6
    heat, best = heat_maps(network, image)[0], network.predict(image)[0]

    def lead(images):  # score of the predicted class above the mean of the others
        scores = network.scores(images)[0]
        return scores[best] - np.delete(scores, best).mean()

    for place in ((0, 0), (2, 3)):
        change = np.zeros((1, 5, 5))
        change[(0, *place)] = step
        slope = (lead(image + change) - lead(image - change)) / (2 * step)
        assert heat[place] == pytest.approx(slope * image[(0, *place)], rel=1e-4, abs=1e-9)
