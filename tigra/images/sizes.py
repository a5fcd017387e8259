"""Resize, downsample and pad images, and check their shape. `tigra.images.transforms` has these names, too."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError

AT_ONCE = 1024  # images per batch, to save memory


def resize(images: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Resize images to (height, width) by bilinear interpolation; the aspect ratio may change.

    When an image gets smaller, the triangle of weights widens with the pixels it covers, so that every
    pixel counts, as in Pillow. Pixel centres are at 1/2, 3/2, ...

    Parameters
    ----------
    images : array of shape (n, height, width)
        The images.
    shape : (int, int)
        New height and width.

    Returns
    -------
    array of shape (n, *shape)
        The resized images.

    Examples
    --------
    >>> resize(np.array([[[0.0, 1.0]]]), (1, 4))
    array([[[0.  , 0.25, 0.75, 1.  ]]])
    >>> resize(np.array([[[1.0, 1.0, 0.0, 0.0]]]), (1, 2)).round(3)
    array([[[0.857, 0.143]]])
    """
    images, (height, width) = checked_images(images), checked_shape(shape)
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

    Returns
    -------
    array of shape (n, height // factor, width // factor)
        The smaller images.

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
    images = checked_images(images)
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
    """Pad images with zeros to a larger size.

    If the difference is odd, the larger half goes below and to the right.

    Parameters
    ----------
    images : array of shape (n, height, width)
        The images.
    shape : (int, int)
        New height and width.

    Returns
    -------
    array of shape (n, *shape)
        The padded images.

    Examples
    --------
    >>> pad(np.ones((1, 1, 2)), (3, 3))
    array([[[0., 0., 0.],
            [1., 1., 0.],
            [0., 0., 0.]]])
    """
    images, (height, width) = checked_images(images), checked_shape(shape)
    down, right = height - images.shape[1], width - images.shape[2]
    if down < 0 or right < 0:
        raise UsageError(f"Images of {images.shape[1:]} cannot be padded to the smaller {height}x{width}; resize them.")
    return np.pad(images, ((0, 0), (down // 2, down - down // 2), (right // 2, right - right // 2)))


def checked_picture_shape(shape) -> tuple[int, ...]:
    """Return a shape (height, width) or, for colour, (height, width, 3); raise UsageError if it is neither."""
    if not isinstance(shape, (tuple, list)) or len(shape) != 3:
        return checked_shape(shape)
    if shape[2] != 3:
        raise UsageError(f"Colour images have shape (height, width, 3), got {shape!r}.")
    return (*checked_shape(shape[:2]), 3)


def checked_shape(shape) -> tuple[int, int]:
    """Check the shape of images.

    Parameters
    ----------
    shape : object
        The shape to check.

    Returns
    -------
    (int, int)
        Height and width.

    Raises
    ------
    UsageError
        If it is not two whole numbers of at least 1.
    """
    try:
        height, width = shape
    except (TypeError, ValueError):
        height = width = 0
    if not all(isinstance(size, (int, np.integer)) and size >= 1 for size in (height, width)):
        raise UsageError(f"shape must be (height, width) in whole pixels, got {shape!r}.")
    return int(height), int(width)


def checked_images(images, colour: bool = False) -> np.ndarray:
    """Check images.

    Parameters
    ----------
    images : array_like
        The images to check.
    colour : bool
        Whether colour images (n, height, width, 3) are allowed, too.

    Returns
    -------
    array of shape (n, height, width) or (n, height, width, 3)
        The images.

    Raises
    ------
    ShapeError
        If they are not an array of these axes with real numbers.
    """
    images = np.asarray(images)
    is_colour = colour and images.ndim == 4 and images.shape[3] == 3
    is_image = (images.ndim == 3 or is_colour) and 0 not in images.shape[1:]
    if not is_image or not np.issubdtype(images.dtype, np.floating):
        allowed = "(n, height, width) or (n, height, width, 3)" if colour else "(n, height, width)"
        raise ShapeError(f"Expected real images {allowed} in [0, 1], got {images.dtype} {images.shape}.")
    return images


def as_planes(images: np.ndarray) -> np.ndarray:
    """Return the channels of colour images as grey images, (3 n, height, width); grey images as they are."""
    return images if images.ndim == 3 else np.moveaxis(images, 3, 1).reshape(-1, *images.shape[1:3])


def from_planes(planes: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Undo `as_planes`: return images with as many channels as `like`."""
    return planes if like.ndim == 3 else np.moveaxis(planes.reshape(-1, 3, *planes.shape[1:]), 1, 3)
