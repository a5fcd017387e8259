"""Views: scores averaged over rotated copies of an image."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from tigra_cli.main import main

import tigra
from tigra.datasets.splits import Split
from tigra.errors import UsageError
from tigra.images.store import LazyImages
from tigra.images.transforms import rotate
from tigra.training.views import Views


class Stored(LazyImages):
    """Images that are read when they are asked for."""

    def __init__(self, images):
        super().__init__(images.shape)
        self.images = images

    def take(self, rows):
        return self.images[rows]


@pytest.fixture(scope="module")
def network():
    return tigra.load("mnist-012")


@pytest.fixture(scope="module")
def digits():
    return tigra.load_dataset("mnist-012").test_upright


@pytest.mark.parametrize("n_views", [1, 2, 3])
def test_scores_are_the_mean_over_equally_spaced_angles(network, digits, n_views):
    images = digits.images[:5]
    wanted = np.mean([network.scores(rotate(images, 90 * view / n_views)) for view in range(n_views)], axis=0)
    np.testing.assert_allclose(Views(network, n_views).scores(images), wanted, rtol=1e-6, atol=1e-6)
    assert n_views > 1 or np.array_equal(Views(network, 1).scores(images), network.scores(images))


def test_lazy_images_give_the_same_scores(network, digits):
    images = digits.images[:5]
    assert np.array_equal(Views(network).scores(Stored(images)), Views(network).scores(images))


def test_quarter_turns_change_nothing_and_eighth_turns_little(network, digits):
    images, views = digits.images[:40], Views(network)
    upright = views.predict_proba(images)
    np.testing.assert_allclose(views.predict_proba(np.rot90(images, axes=(1, 2))), upright, atol=1e-5)  # float32
    eighth = rotate(images, 45)
    one, two = (np.abs(model.scores(eighth) - model.scores(images)).mean() for model in (network, views))
    assert two < 0.7 * one  # the two sets of views differ only by interpolating twice


def test_corners_are_filled_with_the_background_that_the_network_expects(rng):
    options = {"image_shape": (9, 9), "n_classes": 2, "batch_norm": True, "background": "border"}
    network = tigra.build_network("OC[3, 2]-S[1]-FC[4]", **options)
    image = np.full((1, 9, 9), 0.75)
    image[0, 3:6, 2:7] = rng.random((3, 5))
    wanted = (network.scores(image) + network.scores(rotate(image, 45, background="border"))) / 2
    np.testing.assert_allclose(Views(network).scores(image), wanted, rtol=1e-6)


def test_pixels_beyond_0_and_1_are_not_clipped(network, digits):
    images = 4 * digits.images[:3] - 2
    wanted = (network.scores(images) + network.scores(rotate(images, 45, clip=False))) / 2
    np.testing.assert_allclose(Views(network).scores(images), wanted, rtol=1e-5, atol=1e-5)  # float32


def test_views_have_what_a_classifier_has(network, digits):
    views = Views(network)
    assert (views.image_shape, views.class_names, views.temperature) == (
        network.image_shape,
        network.class_names,
        network.temperature,
    )
    few = Split(digits.images[:20], digits.labels[:20])
    assert tigra.accuracy(views, few) == (views.predict(few.images) == few.labels).mean()
    np.testing.assert_allclose(views.predict_proba(few.images).sum(axis=1), 1, atol=1e-6)


def test_views_are_not_saved(network, tmp_path):
    with pytest.raises(tigra.TigraError, match="save their `classifier`"):
        tigra.save(Views(network), tmp_path / "views.npz")


@pytest.mark.parametrize("wrong", [0, 17, 2.0, "2", None, True])
def test_wrong_numbers_of_views_are_refused(network, wrong):
    with pytest.raises(UsageError, match="whole number from 1 to 16"):
        Views(network, wrong)


def test_views_on_the_command_line(network, digits, tmp_path):
    image = digits.images[0]
    Image.fromarray(np.round(255 * image).astype(np.uint8)).save(tmp_path / "digit.png")
    found = {}
    for views in ("1", "2"):
        words = ["predict", "mnist-012", str(tmp_path / "digit.png"), "--views", views, "--json"]
        (entry,) = json.loads(CliRunner().invoke(main, words).stdout)["predictions"]
        pixels = np.round(255 * image)[None] / 255
        wanted = Views(network, int(views)).predict_proba(pixels)[0]
        np.testing.assert_allclose(list(entry["probabilities"].values()), wanted, atol=2e-6)  # six digits are printed
        found[views] = entry
    assert found["1"]["probabilities"] != found["2"]["probabilities"]
    words = ["evaluate", "mnist-012", "--views", "2", "--runs", "1", "--json"]
    report = json.loads(CliRunner().invoke(main, words).stdout)
    assert report["views"] == 2 and report["protocol"].endswith("scores averaged over 2 views")
    wrong = CliRunner().invoke(main, ["evaluate", "mnist-012", "--views", "17"])
    assert wrong.exit_code == 2 and "1<=x<=16" in wrong.output


def test_an_image_does_not_change_the_scores_of_others(network, digits):
    images = digits.images[:6].copy()
    before = Views(network).scores(images)
    images[0] *= 1.5
    assert np.array_equal(Views(network).scores(images)[1:], before[1:])


def test_names_follow_the_network_and_known_scores_are_not_computed_again(digits, monkeypatch):
    network = tigra.load("mnist-012")
    views, images, calls = Views(network), digits.images[:3], []
    network.class_names = ["zero", "one", "two"]
    assert views.class_names == ["zero", "one", "two"]
    known, wanted = network.scores(images), views.scores(images)
    right = tigra.Network.scores
    monkeypatch.setattr(tigra.Network, "scores", lambda *words: calls.append(1) or right(*words))
    assert np.array_equal(views.averaged(known, images), wanted) and len(calls) == 1
