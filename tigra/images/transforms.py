"""Rotate, shift, smooth and standardise images, arrays (n, height, width) in [0, 1].

Functions that change the size of images are in `tigra.images.sizes`, those of the background in
`tigra.images.background`; they are available here, too.
"""

from __future__ import annotations

import functools

import numpy as np
import scipy

from tigra.errors import UsageError
from tigra.images.background import border_grey, checked_background, less_border
from tigra.images.blur import blur_both_ways
from tigra.images.sampling import sample_moved
from tigra.images.sizes import (
    AT_ONCE,
    as_planes,
    checked_images,
    checked_shape,
    downsample,
    from_planes,
    pad,
    resize,
)
from tigra.kernels.functions import exp

INTERPOLATIONS = "cubic", "linear"

__all__ = [
    "INTERPOLATIONS",
    "border_grey",
    "checked_shape",
    "downsample",
    "gaussian",
    "less_border",
    "pad",
    "random_shifts",
    "resize",
    "rotate",
    "smooth",
    "standardise",
    "translate",
]


# --- isometries -----------------------------------------------------------------------------------------


def rotate(
    images: np.ndarray, degrees, interpolation: str = "cubic", clip: bool = True, background: str = "black"
) -> np.ndarray:
    """Rotate each image about its centre, counter-clockwise; its background enters from outside.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        The images.
    degrees : float or array of shape (n,)
        One angle for all images, or one for each. Multiples of 90 are exact where possible (180 always,
        90 and 270 for square images).
    interpolation : {"cubic", "linear"}
        Splines of order 3, or linear.
    clip : bool
        Clip values to [0, 1], which a spline may leave. Use False for maps that are not grey levels.
    background : {"black", "border"}
        What enters: zeros, or the median of the image's border pixels.

    Returns
    -------
    array of the same shape
        Equal to `scipy.ndimage.rotate` (mode "constant") up to rounding.

    Examples
    --------
    >>> rotate(np.array([[[1.0, 0.0], [0.0, 0.0]]]), 90)
    array([[[0., 0.],
            [1., 0.]]])
    """
    images = checked_images(images, colour=True)
    angles = np.asarray(degrees, dtype=np.float64)
    if angles.shape not in ((), (len(images),)) or not np.isfinite(angles).all():
        raise UsageError(f"Expected one finite angle, or one for each of {len(images)} images, got {degrees!r}.")
    angles = np.broadcast_to(angles, len(images))
    motions = np.stack(
        [scipy.special.cosdg(angles), scipy.special.sindg(angles), 0 * angles, 0 * angles], axis=1
    )  # exact at 90 degrees
    quarters = angles / 90
    is_square = images.shape[1] == images.shape[2]
    exact = (quarters % 1 == 0) & (is_square | (quarters % 2 == 0))
    turned = _moved(images, motions, interpolation, ~exact, clip, background)
    for place in np.flatnonzero(exact):
        turned[place] = np.rot90(images[place], int(quarters[place] % 4))
    return turned


def translate(
    images: np.ndarray, shifts, interpolation: str = "cubic", clip: bool = True, background: str = "black"
) -> np.ndarray:
    """Shift each image by (down, right) pixels; its background enters, and what leaves the image is lost.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        The images.
    shifts : array of shape (2,) or (n, 2)
        One shift for all images, or one for each. Whole numbers are exact. Others are equal to
        `scipy.ndimage.shift` up to rounding.
    interpolation, clip, background
        As for `rotate`.

    Returns
    -------
    array of the same shape
        The shifted images.

    Examples
    --------
    >>> translate(np.array([[[0.0, 1.0, 0.0]]]), (0, 1))
    array([[[0., 0., 1.]]])
    >>> translate(np.array([[[0.0, 1.0, 0.0]]]), (0, 0.25), "linear")
    array([[[0.  , 0.75, 0.25]]])
    """
    images = checked_images(images, colour=True)
    shifts = np.asarray(shifts, dtype=np.float64)
    if shifts.shape not in ((2,), (len(images), 2)) or not np.isfinite(shifts).all():
        raise UsageError(f"Expected one pair of finite shifts, or one for each of {len(images)} images, got {shifts}.")
    shifts = np.broadcast_to(shifts, (len(images), 2))
    motions = np.concatenate([np.broadcast_to([1.0, 0.0], shifts.shape), shifts], axis=1)
    exact = (shifts % 1 == 0).all(axis=1)
    moved = _moved(images, motions, interpolation, ~exact, clip, background)
    ground = border_grey(images) if background == "border" else np.zeros(len(images))
    for place in np.flatnonzero(exact):
        down, right = np.clip(shifts[place], -max(images.shape), max(images.shape))
        moved[place] = _shifted(images[place], int(down), int(right), ground[place])
    return moved


def _shifted(image, down: int, right: int, ground):
    """Shift an image by whole pixels over its background."""
    height, width = image.shape[:2]
    moved = np.empty_like(image)
    moved[:] = ground
    moved[max(down, 0) : height + min(down, 0), max(right, 0) : width + min(right, 0)] = image[
        max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)
    ]
    return moved


def _moved(images, motions, interpolation, which, clip, background):
    """Return a copy of the images in which those of the mask `which` are moved and interpolated."""
    if interpolation not in INTERPOLATIONS:
        raise UsageError(f"interpolation must be 'cubic' or 'linear', got {interpolation!r}.")
    has_ground = checked_background(background) == "border"
    moved, places, frame = images.copy(), np.flatnonzero(which), 2
    for start in range(0, len(places), AT_ONCE):
        part = places[start : start + AT_ONCE]
        planes = as_planes(images[part])
        coefficients = (less_border(planes) if has_ground else planes).astype(np.float64)
        if interpolation == "cubic":
            for axis in (1, 2):
                coefficients = scipy.ndimage.spline_filter1d(coefficients, 3, axis=axis, mode="mirror")
        framed = np.pad(coefficients, ((0, 0), (frame, frame), (frame, frame)), mode="reflect")
        sampled = np.empty(planes.shape)
        per_plane = np.repeat(motions[part], len(planes) // max(1, len(part)), axis=0)
        sample_moved(framed, frame, per_plane, interpolation == "cubic", sampled)
        if has_ground:
            sampled += border_grey(planes)[:, None, None]
        moved[part] = from_planes(np.clip(sampled, 0.0, 1.0) if clip else sampled, images)
    return moved


def random_shifts(
    images,
    rng: np.random.Generator,
    largest: float,
    whole: bool = True,
    interpolation: str = "cubic",
    background: str = "black",
) -> np.ndarray:
    """Shift each image by its own random shift, uniform in [-largest, largest] down and right.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        The images.
    rng : numpy.random.Generator
        Source of the shifts.
    largest : float
        Largest shift in pixels.
    whole : bool
        Whether to shift by whole pixels only.
    interpolation : {"cubic", "linear"}
        How images are interpolated if `whole` is False.
    background : {"black", "border"}
        As for `rotate`.

    Returns
    -------
    array of the same shape
        The shifted images.
    """
    if whole:
        shifts: np.ndarray = rng.integers(-int(largest), int(largest), (len(images), 2), endpoint=True)
    else:
        shifts = rng.uniform(-largest, largest, (len(images), 2))
    return translate(images, shifts, interpolation, background=background)


# --- grey levels ------------------------------------------------------------------------------------------


def smooth(images: np.ndarray, sigma: float) -> np.ndarray:
    """Blur images with a Gaussian; pixels outside count as 0, and sigma below 0.05 has no effect.

    The result is the mean of blurring rows first and columns first. These differ only in rounding, and
    their mean treats both axes exactly alike, so that rotating an image by 90 degrees rotates the result
    exactly.

    Parameters
    ----------
    images : array of shape (n, height, width)
        The images.
    sigma : float
        Standard deviation of the Gaussian in pixels.

    Returns
    -------
    array of shape (n, height, width)
        The blurred images.

    Examples
    --------
    >>> smooth(np.array([[[0.0, 1.0, 0.0]]]), 0.5).round(3)
    array([[[0.084, 0.619, 0.084]]])
    """
    if not (np.isfinite(sigma) and sigma >= 0):
        raise UsageError(f"smoothing must be a number of pixels >= 0, got {sigma!r}.")
    weights = gaussian(sigma)
    if len(weights) == 1:
        return images

    images = np.ascontiguousarray(images)
    both, scratch = np.empty((2, *images.shape), images.dtype)
    blur_both_ways(images, weights, scratch, both)
    return both


@functools.lru_cache(maxsize=16)
def gaussian(sigma: float) -> np.ndarray:
    """Weights of a Gaussian up to 4 sigma, as in `scipy.ndimage.gaussian_filter1d`; [1] for sigma below 0.05.

    Examples
    --------
    >>> gaussian(0.5).round(3)
    array([0.   , 0.106, 0.787, 0.106, 0.   ])
    """
    if sigma < 0.05:  # the weight next to a pixel would be exp(-200)
        return np.ones(1)
    reach = int(4.0 * float(sigma) + 0.5)
    weights = exp(-0.5 / (sigma * sigma) * np.arange(-reach, reach + 1) ** 2)
    weights /= weights.sum()
    weights.flags.writeable = False  # callers share it
    return weights


def standardise(images: np.ndarray) -> np.ndarray:
    """Scale each image to mean 0 and standard deviation 1; a constant image becomes 0.

    Parameters
    ----------
    images : array of shape (n, height, width)
        The images.

    Returns
    -------
    array of shape (n, height, width)
        The scaled images.

    Examples
    --------
    >>> standardise(np.array([[[1.0, 3.0]], [[5.0, 5.0]]]))
    array([[[-1.,  1.]],
    <BLANKLINE>
           [[ 0.,  0.]]])
    """
    images = checked_images(images)
    centred = images - images.mean(axis=(1, 2), keepdims=True)
    deviation = centred.std(axis=(1, 2), keepdims=True)
    tiny = 1e-6 * np.abs(images).max(axis=(1, 2), keepdims=True, initial=0)  # rounding errors of a constant image
    return np.where(deviation > tiny, centred / np.where(deviation > tiny, deviation, 1), 0)
