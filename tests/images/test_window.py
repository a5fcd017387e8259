"""The round window: it turns with the picture, and is found for pictures that fill their frame."""

import numpy as np
import pytest

import tigra
from tigra.datasets import load_dataset
from tigra.datasets.npz.loading import load_test_arrays
from tigra.errors import UsageError
from tigra.experiments.methods import find_method
from tigra.images.background import find_background, round_window, window_mean, windowed
from tigra.images.transforms import rotate
from tigra.training.views import Views

SIDE = 16


def stripes(rng, n_images, period=5.0, brightness=0.5):
    """Waves in random directions that fill the frame, (n, 16, 16)."""
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    turns, phases = rng.uniform(0, 2 * np.pi, (2, n_images, 1, 1))
    return brightness + 0.2 * np.sin(2 * np.pi * (np.cos(turns) * x + np.sin(turns) * y) / period + phases)


@pytest.mark.parametrize("shape", [(16, 16), (15, 15), (12, 20)])
def test_the_window_is_round_smooth_and_read_only(shape):
    window = round_window(*shape)
    assert window.min() == 0 and window.max() == 1 and window[0, 0] == 0
    np.testing.assert_array_equal(window, window[::-1, ::-1])
    if shape[0] == shape[1]:
        np.testing.assert_array_equal(window, np.rot90(window))
        np.testing.assert_array_equal(window, window.T)
    assert round_window(*shape) is window, "one for each shape"
    with pytest.raises(ValueError, match="read-only"):
        window[0, 0] = 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("colours", [(), (3,)])
def test_quarter_turns_do_not_change_a_bit(dtype, colours, rng):
    images = rng.random((4, SIDE, SIDE, *colours)).astype(dtype)
    for subtracts_mean in (False, True):
        seen = windowed(images, subtracts_mean)
        assert seen.dtype == dtype and seen.shape == images.shape
        for quarters in (1, 2, 3):
            turned = windowed(np.rot90(images, quarters, axes=(1, 2)), subtracts_mean)
            np.testing.assert_array_equal(turned, np.rot90(seen, quarters, axes=(1, 2)))


def test_the_mean_is_that_of_the_window_and_is_subtracted(rng):
    images = rng.random((3, SIDE, SIDE, 3))
    weights = round_window(SIDE, SIDE)
    expected = np.average(images.reshape(3, -1, 3), axis=1, weights=weights.ravel())
    np.testing.assert_allclose(window_mean(images), expected, atol=1e-4)
    np.testing.assert_allclose(windowed(images, True).mean(axis=(1, 2)), 0, atol=1e-4)
    np.testing.assert_allclose(windowed(images, True), windowed(images + 1, True), atol=1e-4)
    assert np.isfinite(windowed(np.full((1, 4, 4), 1e30), True)).all()


@pytest.mark.parametrize("background", ["window", "window-mean"])
def test_what_enters_at_the_corners_of_turned_pictures_is_hidden(background, rng):
    options = {"image_shape": (SIDE, SIDE), "n_classes": 2, "background": background, "smoothing": 0.5, "margin": 2}
    network = tigra.build_network("OC[4, 2]-S[2]", **options)
    images = stripes(rng, 3)
    on_black, on_border = (rotate(images, 30.0, background=entering) for entering in ("black", "border"))
    np.testing.assert_allclose(network.prepare(on_black), network.prepare(on_border), atol=0.02)
    scores = network.scores(images)
    np.testing.assert_allclose(network.scores(np.rot90(images, 1, axes=(1, 2))), scores, rtol=1e-4, atol=1e-5)


def test_pictures_that_fill_the_frame_are_found(rng):
    dark, light = (stripes(rng, 20, brightness=level) for level in (0.3, 0.7))
    labels = np.repeat([0, 1], 20)
    both = np.concatenate([dark, light])
    assert find_background(both, labels) == "window", "brightness tells the classes apart"
    assert find_background(both, rng.permutation(labels)) == "window-mean"
    assert find_background(both) == "window-mean"
    assert find_background(np.repeat(both[..., None], 3, axis=3), labels) == "window"
    objects = np.full((40, SIDE, SIDE), 0.6) + rng.normal(0, 0.02, (40, SIDE, SIDE))
    objects[:, 5:11, 5:11] = 0.1
    assert find_background(objects, labels) == "border"
    objects[:5] = dark[:5]
    assert find_background(objects, labels) == "border", "most decide"
    assert find_background(objects - 0.6, labels) == "black"
    assert find_background(both[:0], labels[:0]) == "black"
    for width, found in ((19, "window"), (20, "border")):  # a round window would hide much of an oblong picture
        assert find_background(np.pad(both, ((0, 0), (0, 0), (0, width - SIDE)), mode="wrap"), labels) == found
    for step in (20, 5, 4):  # a few pictures of each class say nothing about brightness
        assert find_background(both[::step], labels[::step]) == "window-mean"


@pytest.fixture
def file(tmp_path, rng):
    """Stripes of two periods as a file of arrays."""
    images = np.concatenate([stripes(rng, 30, period) for period in (4.0, 7.0)])
    np.savez(tmp_path / "stripes.npz", images=np.rint(255 * images).astype(np.uint8), labels=np.repeat([0, 1], 30))
    return tmp_path / "stripes.npz"


def test_a_training_chooses_the_window_and_its_model_keeps_it(file, tmp_path):
    splits, method = load_dataset(str(file)), find_method("tigranet")
    assert splits.background == "window-mean" and ", round window, mean subtracted," in splits.protocol
    network = method.start(splits, method.recipe(str(file)).with_changes({"epochs": 1})).model
    assert network.options.background == "window-mean" and network.options.smoothing == 1
    tigra.save(network, tmp_path / "model.npz")
    loaded = tigra.load(tmp_path / "model.npz")
    assert loaded.options == network.options
    np.testing.assert_array_equal(loaded.scores(splits.test.images[:]), network.scores(splits.test.images[:]))


def test_the_protocol_speaks_of_windows_only_where_there_is_one(file):
    splits = load_dataset(str(file))
    for name in ("harmnet", "deepscat", "tigranet"):
        method = find_method(name)
        recipe = method.recipe(str(file))
        run = method.start(splits, recipe if name == "deepscat" else recipe.with_changes({"epochs": 1}))
        words = "round window, mean subtracted" if name == "tigranet" else "background from the border"
        assert words in run.splits.protocol and ("window" in run.splits.protocol) == (name == "tigranet")
    tested = load_test_arrays(str(file), (SIDE, SIDE), splits.class_names, background="window-mean")
    assert ", round window, mean subtracted, " in tested.protocol and tested.entering == "border"


def test_the_user_decides(file):
    for background, words in (("window", ", round window, v"), ("border", "background from the border")):
        splits = load_dataset(str(file), background=background)
        assert splits.background == background and words in splits.protocol
        assert splits.entering == "border"
    with pytest.raises(UsageError, match="one of auto, black, border, window, window-mean, got 'round'"):
        load_dataset(str(file), background="round")
    with pytest.raises(UsageError, match="window-mean"):
        tigra.build_network("S[2]", (8, 8), 2, background="round")


def test_jitter_and_views_know_windows(file, rng):
    splits, method = load_dataset(str(file)), find_method("tigranet")
    recipe = method.recipe(str(file)).with_changes({"epochs": 1, "jitter": 0.5})
    run = method.start(splits, recipe)
    assert len(list(run.training.run())) == 1
    assert np.isfinite(Views(run.model, 2).scores(splits.test.images[:])).all()
