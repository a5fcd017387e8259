import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from tests.kernels.forms import BOTH, DTYPES, blank, form_of
from tigra import ShapeError, UsageError
from tigra.datasets.splits import turned_at_random
from tigra.images import blur
from tigra.images.transforms import (
    downsample,
    gaussian,
    less_border,
    pad,
    random_shifts,
    resize,
    rotate,
    smooth,
    standardise,
    translate,
)


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
    for degrees in (-90, 90, 270, 450):
        expected = [np.clip(ndimage.rotate(image, degrees, reshape=False), 0, 1) for image in images]
        np.testing.assert_allclose(rotate(images, degrees), expected, atol=1e-12)
    assert np.all(rotate(np.ones((1, 50, 30)), 270)[0, 10:40] > 0.99), "the part that stays in the frame"


def test_random_rotations_come_from_the_generator(rng):
    images = rng.uniform(size=(5, 8, 8))
    first, second, other = (turned_at_random(images, np.random.default_rng(seed)) for seed in (1, 1, 2))
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


@pytest.mark.parametrize("images", [np.zeros((1, 3, 3), np.uint8), np.zeros((3, 3)), np.zeros((2, 0, 4))])
def test_images_that_do_not_fit_are_refused(images):
    with pytest.raises(ShapeError, match="real images"):
        rotate(images, 45)


@pytest.mark.parametrize("call", [lambda x: rotate(x, 5, "nearest"), lambda x: smooth(x, -1)])
def test_impossible_options_are_refused(call):
    with pytest.raises(UsageError, match="must be"):
        call(np.zeros((1, 3, 3)))


# --- size ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [(28, 28), (64, 64), (5, 9), (100, 3), (1, 1)])
@pytest.mark.parametrize("new", [(26, 26), (50, 50), (7, 13), (28, 28), (1, 1), (3, 100)])
def test_resizing_is_pillows_bilinear(old, new, rng):
    images = rng.uniform(size=(2, *old)).astype(np.float32)
    expected = [Image.fromarray(image).resize(new[::-1], Image.Resampling.BILINEAR) for image in images]
    resized = resize(images, new)
    assert resized.dtype == np.float32
    np.testing.assert_allclose(resized, np.array([np.asarray(image) for image in expected]), atol=2e-6)  # float32


def test_resizing_treats_rows_and_columns_and_both_ends_alike(rng):
    images = rng.uniform(size=(3, 28, 28))
    for move in (lambda x: x[:, ::-1], lambda x: x.transpose(0, 2, 1), lambda x: np.rot90(x, axes=(1, 2))):
        np.testing.assert_allclose(resize(move(images), (26, 26)), move(resize(images, (26, 26))), atol=1e-14)


def test_resizing_keeps_flat_images_flat_and_many_images_apart(rng):
    images = np.broadcast_to(rng.uniform(size=(2500, 1, 1)), (2500, 9, 7))
    np.testing.assert_allclose(resize(images, (4, 11)), np.broadcast_to(images[:, :1, :1], (2500, 4, 11)), rtol=1e-12)


def test_padding_centres(rng):
    images = rng.uniform(size=(2, 28, 28))
    padded = pad(images, (34, 35))
    np.testing.assert_array_equal(padded[:, 3:31, 3:31], images)
    assert padded.shape == (2, 34, 35) and np.isclose(padded.sum(), images.sum())
    with pytest.raises(UsageError, match="cannot be padded to the smaller 20x40"):
        pad(images, (20, 40))


@pytest.mark.parametrize("shape", [3, (3,), (0, 4), (2.5, 4), "ab", None])
def test_impossible_sizes_are_refused(shape):
    for change in (resize, pad):
        with pytest.raises(UsageError, match="shape must be"):
            change(np.zeros((1, 2, 2)), shape)


# --- shifts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("down", [-9, -2, 0, 3, 8])
@pytest.mark.parametrize("right", [-1, 0, 5, 7])
def test_whole_shifts_are_exact(down, right, rng):
    images = rng.uniform(size=(2, 8, 7))
    expected = np.array([ndimage.shift(image, (down, right), order=0) for image in images])
    np.testing.assert_array_equal(translate(images, (down, right)), expected)


@pytest.mark.parametrize("interpolation, order", [("cubic", 3), ("linear", 1)])
def test_other_shifts_are_scipys_clipped(interpolation, order, rng):
    images, shifts = rng.uniform(size=(3, 8, 9)), [(0.5, -1.25), (2.0, 0.1), (-7.9, 3.3)]
    for moved, image, shift in zip(translate(images, shifts, interpolation), images, shifts, strict=True):
        expected = np.clip(ndimage.shift(image, shift, order=order), 0, 1)
        np.testing.assert_allclose(moved, expected, rtol=1e-12, atol=1e-12)


def test_random_shifts_are_whole_or_real_and_reach_both_ends():
    images = np.zeros((4000, 1, 1))
    seen = {}

    class Generator:
        def __init__(self):
            self.rng = np.random.default_rng(0)

        def integers(self, *arguments, **options):
            seen["whole"] = self.rng.integers(*arguments, **options)
            return seen["whole"]

        def uniform(self, *arguments):
            seen["real"] = self.rng.uniform(*arguments)
            return seen["real"]

    random_shifts(images, Generator(), 6, whole=True)
    random_shifts(images, Generator(), 6, whole=False)
    assert set(seen["whole"].ravel()) == set(range(-6, 7)) and seen["whole"].shape == (4000, 2)
    assert -6 <= seen["real"].min() < -5.9 and 5.9 < seen["real"].max() <= 6 and np.any(seen["real"] % 1)


@pytest.mark.parametrize("shifts", [np.nan, (1, np.inf), [(1, 2)] * 2, (1, 2, 3)])
def test_shifts_that_do_not_fit_are_refused(shifts):
    with pytest.raises(UsageError, match="shifts"):
        translate(np.zeros((3, 4, 4)), shifts)


def test_more_images_than_are_worked_off_at_once_stay_in_their_order(rng):
    images, angles = rng.uniform(size=(2100, 4, 4)), rng.uniform(0, 360, 2100)
    angles[::7] = 90
    turned = rotate(images, angles)
    for place in (0, 1, 1023, 1024, 1365, 2099):
        np.testing.assert_array_equal(turned[place], rotate(images[place : place + 1], angles[place])[0])


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (2, 2), (3, 1)])
def test_tiny_images_can_be_moved(shape, rng):
    images = rng.uniform(size=(2, *shape))
    assert np.isfinite(rotate(images, 33.0)).all() and np.isfinite(translate(images, (0.3, 0.2))).all()


# --- grey levels -------------------------------------------------------------------------------------------


def test_standardised_images_have_mean_0_and_deviation_1(rng):
    images = rng.uniform(size=(4, 6, 5)) * [[[1]], [[1e-3]], [[10]], [[0]]] + [[[0]], [[5]], [[-3]], [[0.1]]]
    result = standardise(images)
    np.testing.assert_allclose(result.mean(axis=(1, 2)), 0, atol=1e-10)
    np.testing.assert_allclose(result.std(axis=(1, 2)), [1, 1, 1, 0], rtol=1e-9)
    assert np.all(standardise(np.full((1, 7, 9), 0.1, np.float32)) == 0), "rounding errors of a flat image stay 0"


@pytest.mark.parametrize("move, by", [(rotate, 33.0), (translate, (0.3, -1.6))])
def test_maps_that_are_no_grey_levels_can_be_moved_unclipped(move, by, rng):
    maps = rng.standard_normal((2, 9, 9))
    reference = [ndimage.rotate(m, by, reshape=False) if move is rotate else ndimage.shift(m, by) for m in maps]
    np.testing.assert_allclose(move(maps, by, clip=False), reference, rtol=1e-12, atol=1e-12)
    assert move(maps, by).min() == 0 and move(maps, by).max() <= 1


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_smoothed_down_sampling_is_pillows_bicubic(factor, rng):
    """But for the outermost pixels, where Pillow cuts the kernel off and we repeat the edge; float32 in Pillow."""
    image = rng.uniform(size=(12 * factor, 10 * factor)).astype(np.float32)
    expected = np.asarray(Image.fromarray(image).resize((10, 12), Image.Resampling.BICUBIC))
    found = downsample(image[None].astype(np.float64), factor, antialias=True)[0]
    np.testing.assert_allclose(found[2:-2, 2:-2], expected[2:-2, 2:-2], atol=1e-6)


@pytest.mark.parametrize("factor", [2, 3, 4, 5, 6])
def test_plain_down_sampling_reads_cubic_polynomials_exactly_half_way_between_pixels(factor):
    places = np.arange(10.0 * factor) / 20

    def scene(row, column):
        return 0.3 * row**2 - row * column + 0.1 * column**2 + row

    found = downsample(scene(places[:, None], places)[None], factor)[0]
    read = (np.arange(10) * factor + (factor - 1) // 2 + 0.5) / 20
    expected = scene(read[:, None], read)
    np.testing.assert_allclose(found[1:-1, 1:-1], expected[1:-1, 1:-1], atol=1e-12)


def test_down_sampling_leaves_out_blocks_that_are_not_full_and_refuses_odd_factors(rng):
    images = rng.uniform(size=(2, 11, 8))
    assert downsample(images, 3).shape == (2, 3, 2)
    np.testing.assert_array_equal(downsample(images, 1), images)
    assert downsample(images.astype(np.float32), 2).dtype == np.float32
    for factor in (0, 9, 1.5, "a"):
        with pytest.raises(UsageError, match="from 1 to 8"):
            downsample(images, factor)


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 3), (4, 5)])
def test_every_border_pixel_counts_once_in_the_ground(shape, rng):
    images = rng.random((3, *shape))
    for image, less in zip(images, less_border(images), strict=True):
        (height, width), border = shape, []
        for row in range(height):
            for column in range(width):
                if row in (0, height - 1) or column in (0, width - 1):
                    border.append(image[row, column])
        np.testing.assert_array_equal(less, image - np.median(border))
    turned = np.ascontiguousarray(images.transpose(0, 2, 1))
    np.testing.assert_array_equal(less_border(turned), less_border(images).transpose(0, 2, 1))


@BOTH
@DTYPES
@pytest.mark.parametrize("shape", [(2, 9, 7), (1, 1, 3)])
def test_blurring_has_the_bits_of_scipy(form, dtype, rtol, shape, rng):
    images, weights = rng.standard_normal(shape).astype(dtype), gaussian(0.7)
    for axis, kernel in ((1, blur.blur_columns), (2, blur.blur_rows)):
        out = blank(*shape, dtype=dtype)
        form_of(kernel, form)(images, weights, out)
        expected = ndimage.correlate1d(images, weights, axis=axis, mode="constant")
        np.testing.assert_array_equal(out, expected)
    one, other = images, images
    for axis in (1, 2):
        one = ndimage.correlate1d(one, weights, axis=axis, mode="constant")
        other = ndimage.correlate1d(other, weights, axis=3 - axis, mode="constant")
    form_of(blur.blur_both_ways, form)(images, weights, blank(*shape, dtype=dtype), out)
    np.testing.assert_array_equal(out, (one + other) * dtype(0.5))
