"""Images resized, padded, turned, shifted, smoothed and standardised: arrays (n, height, width) in [0, 1]."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.special import cosdg, sindg

from tigra.errors import ShapeError, UsageError
from tigra.kernels.sampling import sample_moved

INTERPOLATIONS = "cubic", "linear"
AT_ONCE = 1024  # images, so that work arrays stay small


# --- size ---------------------------------------------------------------------------------------------


def resize(images: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Images of another size (height, width), stretched if the proportions differ.

    Bilinear; when an image gets smaller, the triangle of weights widens with the pixels it covers,
    so that none of them is lost (as Pillow does it). The number of pixels sets the scale: pixel
    centres lie at 1/2, 3/2, ...

    >>> resize(np.array([[[0.0, 1.0]]]), (1, 4))
    array([[[0.  , 0.25, 0.75, 1.  ]]])
    >>> resize(np.array([[[1.0, 1.0, 0.0, 0.0]]]), (1, 2)).round(3)
    array([[[0.857, 0.143]]])
    """
    images, (height, width) = _checked(images), checked_shape(shape)
    resized = np.empty((len(images), height, width), images.dtype)
    for start in range(0, len(images), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        taller = _resized_rows(images[part], height)
        resized[part] = _resized_rows(taller.transpose(0, 2, 1), width).transpose(0, 2, 1)
    return resized


def _resized_rows(images, height):
    """Images with `height` rows: sums of a few weighted rows each."""
    if images.shape[1] == height:
        return images
    rows, weights = _triangle_weights(images.shape[1], height)
    return sum(weight[:, None] * images[:, row] for row, weight in zip(rows, weights, strict=True))


def _triangle_weights(old: int, new: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows, weights), both (taps, new): the old rows that make each new one, and their shares."""
    scale = old / new
    support = max(scale, 1.0)
    centre = (np.arange(new) + 0.5) * scale
    first = np.maximum(np.floor(centre - support + 0.5), 0).astype(int)
    rows = first + np.arange(int(2 * support) + 2)[:, None]
    weights = np.maximum(1 - np.abs(rows + 0.5 - centre) / support, 0) * (rows < old)
    return np.minimum(rows, old - 1), weights / weights.sum(axis=0)


def downsample(images: np.ndarray, factor: int, antialias: bool = False) -> np.ndarray:
    """Images with `factor` times fewer pixels each way, by bicubic interpolation (Keys, a = -1/2).

    There is a new pixel for each block of factor x factor old ones; blocks that are not full, below and right, are
    left out.

    antialias : True widens the kernel by the factor and centres it on the block, as Pillow does: details finer
        than the new pixels are smoothed away. False samples the picture as it is, from 4x4 pixels, always half-way
        between old ones: on the centre of odd blocks lies a pixel, and between pixels interpolation smooths a little,
        so that odd and even factors would sample two different pictures. Odd blocks are read half a pixel off.

    >>> downsample(np.arange(8.0).reshape(1, 1, 8).repeat(2, axis=1), 2)
    array([[[0.4375, 2.5   , 4.5   , 6.5625]]])
    """
    images = _checked(images)
    if not isinstance(factor, (int, np.integer)) or not 1 <= factor <= min(images.shape[1:]):
        raise UsageError(f"factor must be a whole number from 1 to {min(images.shape[1:])}, got {factor!r}.")
    if factor == 1:
        return images.copy()
    rows = _downsampled_rows(images, factor, antialias)
    return _downsampled_rows(rows.transpose(0, 2, 1), factor, antialias).transpose(0, 2, 1)


def _downsampled_rows(images, factor, antialias):
    """Images with one row for each block of `factor` rows: every new row is the same weighted sum of old ones."""
    scale, n_new = factor if antialias else 1, images.shape[1] // factor
    reach = 2 * scale  # the kernel's, to each side
    framed = np.pad(images, ((0, 0), (reach, reach), (0, 0)), mode="edge")
    offsets = np.arange(-reach, factor + reach)  # from a block's first row
    middle = (factor - 1) / 2 if antialias else (factor - 1) // 2 + 0.5
    weights = _keys(np.abs(offsets - middle) / scale)
    weights = (weights / weights.sum()).astype(images.dtype)
    new = np.zeros((len(images), n_new, images.shape[2]), images.dtype)
    for offset, weight in zip(offsets[weights != 0], weights[weights != 0], strict=True):
        first = reach + offset
        new += weight * framed[:, first : first + factor * (n_new - 1) + 1 : factor]
    return new


def _keys(t):
    """Keys' cubic kernel with a = -1/2 at distances t >= 0: 1 at 0, and 0 from 2 on."""
    near, far = (1.5 * t - 2.5) * t**2 + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t < 1, near, np.where(t < 2, far, 0.0))


def pad(images: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Images in the middle of a larger frame of zeros; of an odd rest the larger half goes below and right.

    >>> pad(np.ones((1, 1, 2)), (3, 3))
    array([[[0., 0., 0.],
            [1., 1., 0.],
            [0., 0., 0.]]])
    """
    images, (height, width) = _checked(images), checked_shape(shape)
    down, right = height - images.shape[1], width - images.shape[2]
    if down < 0 or right < 0:
        raise UsageError(f"Images of {images.shape[1:]} cannot be padded to the smaller {height}x{width}; resize them.")
    return np.pad(images, ((0, 0), (down // 2, down - down // 2), (right // 2, right - right // 2)))


# --- isometries -----------------------------------------------------------------------------------------


def rotate(images: np.ndarray, degrees, interpolation: str = "cubic", clip: bool = True) -> np.ndarray:
    """Turn each image about its centre, counter-clockwise; zeros come in from outside.

    degrees : one angle for all, or one for each image. Multiples of 90 are exact where the
        image allows it (180 always, 90 and 270 for square images).
    interpolation : "cubic", spline of order 3, or "linear"
    clip : values to [0, 1], which a spline may leave; False for maps whose values are no grey levels

    The numbers are those of `scipy.ndimage.rotate` (mode "constant") to rounding, many images at a time.

    >>> rotate(np.array([[[1.0, 0.0], [0.0, 0.0]]]), 90)
    array([[[0., 0.],
            [1., 0.]]])
    """
    images = _checked(images)
    angles = np.asarray(degrees, dtype=np.float64)
    if angles.shape not in ((), (len(images),)) or not np.isfinite(angles).all():
        raise UsageError(f"Expected one finite angle, or one for each of {len(images)} images, got {degrees!r}.")
    angles = np.broadcast_to(angles, len(images))
    motions = np.stack([cosdg(angles), sindg(angles), 0 * angles, 0 * angles], axis=1)  # exact at 90 degrees
    quarters = angles / 90
    is_square = images.shape[1] == images.shape[2]
    exact = (quarters % 1 == 0) & (is_square | (quarters % 2 == 0))
    turned = _moved(images, motions, interpolation, ~exact, clip)
    for place in np.flatnonzero(exact):
        turned[place] = np.rot90(images[place], int(quarters[place] % 4))
    return turned


def translate(images: np.ndarray, shifts, interpolation: str = "cubic", clip: bool = True) -> np.ndarray:
    """Move each image by (down, right) pixels; what leaves the frame is lost, zeros come in.

    shifts : one pair of real numbers for all, or one for each image, (n, 2). Whole numbers are exact;
        the others have the numbers of `scipy.ndimage.shift` to rounding.
    interpolation, clip : as in `rotate`

    >>> translate(np.array([[[0.0, 1.0, 0.0]]]), (0, 1))
    array([[[0., 0., 1.]]])
    >>> translate(np.array([[[0.0, 1.0, 0.0]]]), (0, 0.25), "linear")
    array([[[0.  , 0.75, 0.25]]])
    """
    images = _checked(images)
    shifts = np.asarray(shifts, dtype=np.float64)
    if shifts.shape not in ((2,), (len(images), 2)) or not np.isfinite(shifts).all():
        raise UsageError(f"Expected one pair of finite shifts, or one for each of {len(images)} images, got {shifts}.")
    shifts = np.broadcast_to(shifts, (len(images), 2))
    motions = np.concatenate([np.broadcast_to([1.0, 0.0], shifts.shape), shifts], axis=1)
    exact = (shifts % 1 == 0).all(axis=1)
    moved = _moved(images, motions, interpolation, ~exact, clip)
    for place in np.flatnonzero(exact):
        moved[place] = _shifted(images[place], *np.clip(shifts[place], -max(images.shape), max(images.shape)))
    return moved


def _shifted(image, down, right):
    """An image moved by whole pixels."""
    (height, width), down, right = image.shape, int(down), int(right)
    moved = np.zeros_like(image)
    moved[max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = image[
        max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)
    ]
    return moved


def _moved(images, motions, interpolation, which, clip):
    """A copy of the images in which those of the mask `which` are moved, interpolated and perhaps clipped."""
    if interpolation not in INTERPOLATIONS:
        raise UsageError(f"interpolation must be 'cubic' or 'linear', got {interpolation!r}.")
    moved, places, frame = images.copy(), np.flatnonzero(which), 2
    for start in range(0, len(places), AT_ONCE):
        part = places[start : start + AT_ONCE]
        coefficients = images[part].astype(np.float64)
        if interpolation == "cubic":
            for axis in (1, 2):
                coefficients = ndimage.spline_filter1d(coefficients, 3, axis=axis, mode="mirror")
        framed = np.pad(coefficients, ((0, 0), (frame, frame), (frame, frame)), mode="reflect")
        sampled = np.empty(images[part].shape)
        sample_moved(framed, frame, motions[part], interpolation == "cubic", sampled)
        moved[part] = np.clip(sampled, 0.0, 1.0) if clip else sampled
    return moved


def random_shifts(images, rng: np.random.Generator, largest: float, whole: bool = True, interpolation="cubic"):
    """Move each image by its own shift, uniform in [-largest, largest] down and right; whole pixels, or real."""
    if whole:
        shifts: np.ndarray = rng.integers(-int(largest), int(largest), (len(images), 2), endpoint=True)
    else:
        shifts = rng.uniform(-largest, largest, (len(images), 2))
    return translate(images, shifts, interpolation)


# --- grey levels ------------------------------------------------------------------------------------------


def smooth(images: np.ndarray, sigma: float) -> np.ndarray:
    """Gaussian blur with standard deviation sigma pixels, zeros outside; below 0.05 it does nothing.

    The mean of "rows first" and "columns first": both are the same blur but for rounding, and
    their mean treats the two axes alike to the last bit, so that turning an image by 90 degrees
    turns the result exactly.

    >>> smooth(np.array([[[0.0, 1.0, 0.0]]]), 0.5).round(3)
    array([[[0.084, 0.619, 0.084]]])
    """
    if not (np.isfinite(sigma) and sigma >= 0):
        raise UsageError(f"smoothing must be a number of pixels >= 0, got {sigma!r}.")
    if sigma < 0.05:  # the blur's weight beside a pixel would be exp(-200): nothing
        return images

    def blur(array, axis):
        return ndimage.gaussian_filter1d(array, sigma, axis=axis, mode="constant")

    return 0.5 * (blur(blur(images, 1), 2) + blur(blur(images, 2), 1))


def less_border(images: np.ndarray) -> np.ndarray:
    """Each image minus the median of its border pixels, so that the ground on which things stand is about 0.

    >>> less_border(np.array([[[2.0, 2.0, 2.0], [2.0, 5.0, 3.0], [2.0, 2.0, 2.0]]]))
    array([[[0., 0., 0.],
            [0., 3., 1.],
            [0., 0., 0.]]])
    """
    images = _checked(images)
    return images - border_grey(images)[:, None, None]


def border_grey(images: np.ndarray) -> np.ndarray:
    """The median of each image's border pixels, (n,); every one counts once, in images of one row or column too.

    >>> border_grey(np.array([[[2.0], [5.0], [2.0]]]))
    array([2.])
    """
    inner = np.zeros(images.shape[1:], bool)
    inner[1:-1, 1:-1] = True
    return np.median(images[:, ~inner], axis=1).astype(images.dtype)


def standardise(images: np.ndarray) -> np.ndarray:
    """Each image with mean 0 and standard deviation 1; a flat one becomes 0.

    >>> standardise(np.array([[[1.0, 3.0]], [[5.0, 5.0]]]))
    array([[[-1.,  1.]],
    <BLANKLINE>
           [[ 0.,  0.]]])
    """
    images = _checked(images)
    centred = images - images.mean(axis=(1, 2), keepdims=True)
    deviation = centred.std(axis=(1, 2), keepdims=True)
    tiny = 1e-6 * np.abs(images).max(axis=(1, 2), keepdims=True, initial=0)  # a flat image's rounding errors
    return np.where(deviation > tiny, centred / np.where(deviation > tiny, deviation, 1), 0)


# --- checks -------------------------------------------------------------------------------------------------


def checked_shape(shape) -> tuple[int, int]:
    """shape as (height, width), if it is two whole numbers of at least 1."""
    try:
        height, width = shape
    except (TypeError, ValueError):
        height = width = 0
    if not all(isinstance(size, (int, np.integer)) and size >= 1 for size in (height, width)):
        raise UsageError(f"shape must be (height, width) in whole pixels, got {shape!r}.")
    return int(height), int(width)


def _checked(images) -> np.ndarray:
    images = np.asarray(images)
    if images.ndim != 3 or 0 in images.shape[1:] or not np.issubdtype(images.dtype, np.floating):
        raise ShapeError(f"Expected real images (n, height, width) in [0, 1], got {images.dtype} {images.shape}.")
    return images
