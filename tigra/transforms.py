"""Images turned, shifted and smoothed. Images are arrays (n, height, width) with values in [0, 1]."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from tigra.errors import ShapeError, UsageError

SPLINE_ORDERS = {"cubic": 3, "linear": 1}


def rotate(images: np.ndarray, degrees, interpolation: str = "cubic") -> np.ndarray:
    """Turn each image about its centre, counter-clockwise; zeros come in from outside.

    degrees : one angle for all, or one for each image. Multiples of 90 are exact where the
        image allows it (180 always, 90 and 270 for square images).
    interpolation : "cubic", spline of order 3, or "linear". Values are clipped to [0, 1].

    >>> rotate(np.array([[[1.0, 0.0], [0.0, 0.0]]]), 90)
    array([[[0., 0.],
            [1., 0.]]])
    """
    if interpolation not in SPLINE_ORDERS:
        raise UsageError(f"interpolation must be 'cubic' or 'linear', got {interpolation!r}.")
    images = np.asarray(images)
    if images.ndim != 3 or not np.issubdtype(images.dtype, np.floating):
        raise ShapeError(f"Expected real images (n, height, width) in [0, 1], got {images.dtype} {images.shape}.")
    angles = np.asarray(degrees, dtype=np.float64)
    if angles.shape not in ((), (len(images),)) or not np.isfinite(angles).all():
        raise UsageError(f"Expected one finite angle, or one for each of {len(images)} images, got {degrees!r}.")
    angles = np.broadcast_to(angles, len(images))
    turned = [_rotated(image, angle, interpolation) for image, angle in zip(images, angles, strict=True)]
    return np.array(turned, dtype=images.dtype).reshape(images.shape)


def _rotated(image, angle, interpolation):
    quarter_turns = angle / 90
    if quarter_turns == int(quarter_turns) and (image.shape[0] == image.shape[1] or quarter_turns % 2 == 0):
        return np.rot90(image, int(quarter_turns) % 4)
    order = SPLINE_ORDERS[interpolation]
    turned = ndimage.rotate(image.astype(np.float64), angle, reshape=False, order=order)
    return np.clip(turned, 0.0, 1.0)


def random_rotations(images: np.ndarray, rng: np.random.Generator, interpolation="cubic") -> np.ndarray:
    """Turn each image by its own angle, uniform in [0, 360) degrees."""
    return rotate(images, rng.uniform(0, 360, len(images)), interpolation)


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
