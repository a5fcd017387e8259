import numpy as np
import pytest
from scipy import ndimage

from tigra import ShapeError, UsageError
from tigra.transforms import random_rotations, rotate, smooth


@pytest.mark.parametrize("quarter_turns", [-3, -1, 0, 1, 2, 3, 5])
def test_multiples_of_90_degrees_are_exact_and_counter_clockwise(quarter_turns, rng):
    images = rng.uniform(size=(3, 7, 7))
    np.testing.assert_array_equal(rotate(images, 90 * quarter_turns), np.rot90(images, quarter_turns, axes=(1, 2)))


@pytest.mark.parametrize("interpolation, order", [("cubic", 3), ("linear", 1)])
def test_other_angles_are_scipys_clipped(interpolation, order, rng):
    images, angles = rng.uniform(size=(3, 8, 9)), [10.0, 123.4, 300.0]
    for turned, image, angle in zip(rotate(images, angles, interpolation), images, angles, strict=True):
        expected = ndimage.rotate(image, angle, reshape=False, order=order)
        np.testing.assert_allclose(turned, np.clip(expected, 0, 1), rtol=1e-12, atol=1e-12)


def test_angles_near_90_turn_the_same_way_as_90(rng):
    """Guards the sign: the exact path and the interpolated one must agree."""
    images = smooth(rng.uniform(size=(2, 21, 21)) * (np.hypot(*np.mgrid[-10:11, -10:11]) < 5), 1.0)
    np.testing.assert_allclose(rotate(images, 89.999), rotate(images, 90), atol=1e-3)  # smooth images, tiny angle


def test_non_square_images_turn_by_180_exactly_and_by_90_within_their_frame(rng):
    images = rng.uniform(size=(2, 4, 6))
    np.testing.assert_array_equal(rotate(images, 180), images[:, ::-1, ::-1])
    assert rotate(images, 90).shape == images.shape


def test_random_rotations_come_from_the_generator(rng):
    images = rng.uniform(size=(5, 8, 8))
    first, second, other = (random_rotations(images, np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 0.1 and first.min() >= 0 and first.max() <= 1


def test_smoothing_is_a_gaussian_and_keeps_dtype(rng):
    images = rng.uniform(size=(2, 9, 8))
    expected = [ndimage.gaussian_filter(image, 1.2, mode="constant") for image in images]
    np.testing.assert_allclose(smooth(images, 1.2), expected, rtol=1e-12)
    assert smooth(images.astype(np.float32), 1.0).dtype == np.float32
    np.testing.assert_array_equal(smooth(images, 0), images)


def test_smoothing_a_turned_image_is_the_turned_smoothed_image_to_the_last_bit(rng):
    images = rng.uniform(size=(2, 9, 9))
    for move in (lambda x: np.rot90(x, axes=(1, 2)), lambda x: x[:, ::-1], lambda x: x.transpose(0, 2, 1)):
        np.testing.assert_array_equal(smooth(np.ascontiguousarray(move(images)), 1.0), move(smooth(images, 1.0)))


@pytest.mark.parametrize("angles", [np.nan, np.inf, [1.0, 2.0], [[1.0]]])
def test_angles_that_do_not_fit_are_refused(angles):
    with pytest.raises(UsageError, match="angle"):
        rotate(np.zeros((3, 4, 4)), angles)


@pytest.mark.parametrize("images", [np.zeros((1, 3, 3), np.uint8), np.zeros((3, 3))])
def test_images_that_do_not_fit_are_refused(images):
    with pytest.raises(ShapeError, match="real images"):
        rotate(images, 45)


@pytest.mark.parametrize("call", [lambda x: rotate(x, 5, "nearest"), lambda x: smooth(x, -1)])
def test_impossible_options_are_refused(call):
    with pytest.raises(UsageError, match="must be"):
        call(np.zeros((1, 3, 3)))
