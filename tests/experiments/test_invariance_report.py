"""What `measure_invariance` and the nearest neighbour say, against numbers found another way."""

import numpy as np
import pytest

from tigra.baselines.nearest import nearest_neighbour
from tigra.datasets.loading import load_dataset
from tigra.errors import ShapeError, UsageError
from tigra.experiments.invariance import measure_invariance, transformations
from tigra.images.background import border_grey
from tigra.models.build import build_network


@pytest.fixture(scope="module")
def digits():
    return load_dataset("mnist-012").test_upright


class Corner:
    """Stands for a network: says 1 if the upper left pixel is bright, with that probability."""

    image_shape = (3, 3)

    def predict_proba(self, images, threads):
        bright = images[:, 0, 0]
        return np.stack([1 - bright, bright], axis=1)


def test_what_changes_is_counted():
    images = np.zeros((4, 3, 3))
    images[:, 0, 0] = [0.9, 0.8, 0.2, 0.0]
    result = measure_invariance(Corner(), images, np.array([1, 0, 0, 0]))
    turned = result["half turns"]  # the bright corner goes away: probabilities 0 everywhere
    assert turned["label_changed"] == 0.5
    assert turned["probability_moved"] == pytest.approx((0.9 + 0.8 + 0.2) / 4)
    assert turned["probability_moved_most"] == pytest.approx(0.9)
    assert turned["accuracy"] == 0.75
    assert result["as they are"] == {
        "label_changed": 0.0,
        "probability_moved": 0.0,
        "probability_moved_most": 0.0,
        "accuracy": 0.75,
    }


def test_labels_may_be_left_out_and_threads_and_batches_do_not_matter(digits, monkeypatch):
    network = build_network("SC[2, 2]-DP[200]-S[3]-FC[5]", (28, 28), n_classes=3, margin=3)
    whole = measure_invariance(network, digits.images[:20], threads=2)
    assert "accuracy" not in whole["random angles"]
    monkeypatch.setattr("tigra.experiments.invariance.AT_ONCE", 100)
    assert measure_invariance(network, digits.images[:20]) == whole


def test_exact_symmetries_move_nothing_and_the_others_move_something(digits):
    network = build_network("SC[2, 2]-DP[80]-S[3]-FC[5]", (28, 28), n_classes=3, margin=4, dtype="float64")
    network.parameters[-18:] *= 50  # the last layer starts small
    result = measure_invariance(network, digits.images[:30])
    for name in ("quarter turns", "half turns", "mirror images"):
        assert result[name]["probability_moved_most"] < 1e-9
    for name in ("45 degree turns", "random angles", "sub-pixel shifts"):
        assert result[name]["probability_moved"] > 1e-6


def test_an_oriented_network_tells_mirror_images_apart_and_quarter_turns_not(digits):
    network = build_network("OC[3, 1]-GC[2]-OC[4, 1]-S[1]-FC[5]", (28, 28), 3, margin=2, dtype="float64")
    for layer in network.layers:
        if "pairs" in layer.params:
            layer.params["pairs"] *= 20  # products of gradients start small, and so does the last layer
    network.parameters[-18:] *= 50
    result = measure_invariance(network, digits.images[:12])
    for name in ("quarter turns", "half turns"):
        assert result[name]["probability_moved_most"] < 1e-9
    assert result["mirror images"]["probability_moved"] > 1e-6 and list(result)[-1] == "mirror images"


def test_images_that_are_not_square_have_no_quarter_turns():
    assert "quarter turns" not in transformations((3, 4)) and "quarter turns" in transformations((4, 4))
    square = set(transformations((4, 4)))
    assert set(transformations((3, 4))) == square - {"quarter turns"}


def test_transformations_do_what_they_are_called():
    images, rng = np.random.default_rng(0).random((40, 6, 6)), np.random.default_rng(1)
    by_name = transformations((6, 6), largest_shift=1.0)
    quarter = by_name["quarter turns"](images, rng)
    kinds = [tuple(np.array_equal(t, np.rot90(i, n)) for n in range(4)) for i, t in zip(images, quarter, strict=True)]
    assert set(kinds) == {(False, True, False, False), (False, False, False, True)}
    assert (by_name["half turns"](images, rng) == images[:, ::-1, ::-1]).all()
    assert (by_name["mirror images"](images, rng) == images[:, :, ::-1]).all()
    shifted = by_name["whole-pixel shifts"](images, rng)
    for image, moved in zip(images, shifted, strict=True):
        padded = np.pad(image, 1, constant_values=border_grey(image[None])[0])
        places = [(i, j) for i in range(3) for j in range(3) if np.array_equal(padded[i : i + 6, j : j + 6], moved)]
        assert len(places) == 1


def test_angles_and_shifts_are_those_that_the_names_say(monkeypatch):
    seen = []
    for name in ("rotate", "random_shifts"):
        monkeypatch.setattr(
            f"tigra.experiments.invariance.{name}", lambda images, *words, **_: seen.append(words) or images
        )
    images, rng = np.zeros((400, 4, 4)), np.random.default_rng(0)
    by_name = transformations((4, 4), interpolation="linear", largest_shift=1.5)
    by_name["45 degree turns"](images, rng)
    by_name["random angles"](images, rng)
    by_name["sub-pixel shifts"](images, rng)
    by_name["whole-pixel shifts"](images, rng)
    (odd, how), (angles, same), real, whole = seen
    assert set(odd) == {45, 135, 225, 315} and how == same == "linear"
    assert ((angles >= 0) & (angles < 360)).all() and np.histogram(angles, 8, (0, 360))[0].min() > 25
    assert real[1:] == (1.5, False, "linear", "border") and whole[1:] == (1.5, True, "linear", "border")


def test_no_images_are_refused():
    with pytest.raises(ShapeError, match="got none"):
        measure_invariance(Corner(), np.zeros((0, 3, 3)))


def test_lists_will_do_and_what_does_not_fit_is_refused():
    images = np.random.default_rng(0).random((4, 3, 3))
    expected = measure_invariance(Corner(), images, np.array([0, 1, 1, 0]))
    assert measure_invariance(Corner(), list(images), [0, 1, 1, 0]) == expected
    with pytest.raises(ShapeError, match="Expected one label per image"):
        measure_invariance(Corner(), images, [0, 1, 1])
    for wrong in (-1, np.nan, np.inf, "2"):
        with pytest.raises(UsageError, match="largest_shift must be a number of pixels"):
            measure_invariance(Corner(), images, largest_shift=wrong)
    with pytest.raises(UsageError, match="interpolation must be"):
        measure_invariance(Corner(), images, interpolation="nearest")


def test_nearest_neighbour_equals_the_loop():
    rng = np.random.default_rng(0)
    train, labels, images = rng.random((30, 3, 4)), rng.integers(5, size=30), rng.random((700, 3, 4))
    expected = [labels[min(range(30), key=lambda n: float(((train[n] - image) ** 2).sum()))] for image in images]
    assert (nearest_neighbour(train, labels, images) == expected).all()
    with pytest.raises(ShapeError, match="one label for each"):
        nearest_neighbour(train, labels[:3], images)
