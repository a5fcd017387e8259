"""Resize, pad, rotate, shift, smooth and standardise images, arrays (n, height, width) in [0, 1]."""

from __future__ import annotations

import numpy as np
from scipy import ndimage
from scipy.special import cosdg, sindg

from tigra.errors import ShapeError, UsageError
from tigra.kernels.sampling import sample_moved

INTERPOLATIONS = "cubic", "linear"
AT_ONCE = 1024  # images per batch, to save memory


# --- size ---------------------------------------------------------------------------------------------


def resize(images: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Resize images to (height, width) by bilinear interpolation; the aspect ratio may change.

    When an image gets smaller, the triangle of weights widens with the pixels it covers, so that every
    pixel counts, as in Pillow. Pixel centres are at 1/2, 3/2, ...

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
    """Resize images to `height` rows, each a weighted sum of a few rows."""
    if images.shape[1] == height:
        return images
    rows, weights = _triangle_weights(images.shape[1], height)
    return sum(weight[:, None] * images[:, row] for row, weight in zip(rows, weights, strict=True))


def _triangle_weights(old: int, new: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (rows, weights), both (taps, new): the old rows of each new row, and their weights."""
    scale = old / new
    support = max(scale, 1.0)
    centre = (np.arange(new) + 0.5) * scale
    first = np.maximum(np.floor(centre - support + 0.5), 0).astype(int)
    rows = first + np.arange(int(2 * support) + 2)[:, None]
    weights = np.maximum(1 - np.abs(rows + 0.5 - centre) / support, 0) * (rows < old)
    return np.minimum(rows, old - 1), weights / weights.sum(axis=0)


def downsample(images: np.ndarray, factor: int, antialias: bool = False) -> np.ndarray:
    """Down-sample images by `factor` each way, by bicubic interpolation (Keys, a = -1/2).

    Parameters
    ----------
    images : array of shape (n, height, width)
        The images.
    factor : int
        Size of the blocks that become one pixel. Incomplete blocks at the bottom and right are left out.
    antialias : bool
        True widens the kernel by the factor and centres it on the block, as Pillow does, which smooths away
        details finer than the new pixels. False interpolates from 4x4 pixels.

    Notes
    -----
    Without `antialias`, images are always sampled half-way between pixels, since interpolation smooths a
    little there but not on a pixel. The centre of an odd block is on a pixel, so odd blocks are sampled half
    a pixel off. Otherwise odd and even factors would not be comparable.

    Examples
    --------
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
    """Return one row for each block of `factor` rows, all with the same weights."""
    scale, n_new = factor if antialias else 1, images.shape[1] // factor
    reach = 2 * scale  # of the kernel, to each side
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
    """Evaluate Keys' cubic kernel with a = -1/2 at distances t >= 0."""
    near, far = (1.5 * t - 2.5) * t**2 + 1, ((-0.5 * t + 2.5) * t - 4) * t + 2
    return np.where(t < 1, near, np.where(t < 2, far, 0.0))


def pad(images: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Pad images with zeros to (height, width); of an odd rest the larger half goes below and right.

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
    """Rotate each image about its centre, counter-clockwise; zeros enter from outside.

    Parameters
    ----------
    images : array of shape (n, height, width)
        The images.
    degrees : float or array of shape (n,)
        One angle for all images, or one for each. Multiples of 90 are exact where possible (180 always,
        90 and 270 for square images).
    interpolation : {"cubic", "linear"}
        Splines of order 3, or linear.
    clip : bool
        Clip values to [0, 1], which a spline may leave. Use False for maps that are not grey levels.

    Returns
    -------
    array of shape (n, height, width)
        Equal to `scipy.ndimage.rotate` (mode "constant") up to rounding.

    Examples
    --------
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
    """Shift each image by (down, right) pixels; zeros enter, and what leaves the image is lost.

    Parameters
    ----------
    images : array of shape (n, height, width)
        The images.
    shifts : array of shape (2,) or (n, 2)
        One shift for all images, or one for each. Whole numbers are exact. Others are equal to
        `scipy.ndimage.shift` up to rounding.
    interpolation, clip
        As for `rotate`.

    Examples
    --------
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
    """Shift an image by whole pixels."""
    (height, width), down, right = image.shape, int(down), int(right)
    moved = np.zeros_like(image)
    moved[max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = image[
        max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)
    ]
    return moved


def _moved(images, motions, interpolation, which, clip):
    """Return a copy of the images in which those of the mask `which` are moved and interpolated."""
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
    """Shift each image by its own random shift, uniform in [-largest, largest] down and right."""
    if whole:
        shifts: np.ndarray = rng.integers(-int(largest), int(largest), (len(images), 2), endpoint=True)
    else:
        shifts = rng.uniform(-largest, largest, (len(images), 2))
    return translate(images, shifts, interpolation)


# --- grey levels ------------------------------------------------------------------------------------------


def smooth(images: np.ndarray, sigma: float) -> np.ndarray:
    """Blur images by a Gaussian of standard deviation sigma pixels, zeros outside; no effect below 0.05.

    The result is the mean of blurring rows first and columns first. These differ only in rounding, and
    their mean treats both axes exactly alike, so that rotating an image by 90 degrees rotates the result
    exactly.

    >>> smooth(np.array([[[0.0, 1.0, 0.0]]]), 0.5).round(3)
    array([[[0.084, 0.619, 0.084]]])
    """
    if not (np.isfinite(sigma) and sigma >= 0):
        raise UsageError(f"smoothing must be a number of pixels >= 0, got {sigma!r}.")
    if sigma < 0.05:  # the weight next to a pixel would be exp(-200)
        return images

    def blur(array, axis):
        return ndimage.gaussian_filter1d(array, sigma, axis=axis, mode="constant")

    return 0.5 * (blur(blur(images, 1), 2) + blur(blur(images, 2), 1))


def less_border(images: np.ndarray) -> np.ndarray:
    """Subtract from each image the median of its border pixels, so that the background is about 0.

    >>> less_border(np.array([[[2.0, 2.0, 2.0], [2.0, 5.0, 3.0], [2.0, 2.0, 2.0]]]))
    array([[[0., 0., 0.],
            [0., 3., 1.],
            [0., 0., 0.]]])
    """
    images = _checked(images)
    return images - border_grey(images)[:, None, None]


def border_grey(images: np.ndarray) -> np.ndarray:
    """Return the median of the border pixels of each image, (n,); every pixel counts once.

    >>> border_grey(np.array([[[2.0], [5.0], [2.0]]]))
    array([2.])
    """
    inner = np.zeros(images.shape[1:], bool)
    inner[1:-1, 1:-1] = True
    return np.median(images[:, ~inner], axis=1).astype(images.dtype)


def standardise(images: np.ndarray) -> np.ndarray:
    """Scale each image to mean 0 and standard deviation 1; a constant image becomes 0.

    >>> standardise(np.array([[[1.0, 3.0]], [[5.0, 5.0]]]))
    array([[[-1.,  1.]],
    <BLANKLINE>
           [[ 0.,  0.]]])
    """
    images = _checked(images)
    centred = images - images.mean(axis=(1, 2), keepdims=True)
    deviation = centred.std(axis=(1, 2), keepdims=True)
    tiny = 1e-6 * np.abs(images).max(axis=(1, 2), keepdims=True, initial=0)  # rounding errors of a constant image
    return np.where(deviation > tiny, centred / np.where(deviation > tiny, deviation, 1), 0)


# --- checks -------------------------------------------------------------------------------------------------


def checked_shape(shape) -> tuple[int, int]:
    """Return shape as (height, width); raise UsageError unless it is two whole numbers >= 1."""
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
