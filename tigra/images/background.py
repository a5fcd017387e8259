"""The background of pictures: found at their border, subtracted, and continued outside.

All functions take grey images (n, height, width) or colour images (n, height, width, 3), in which every channel has a
background of its own.
"""

from __future__ import annotations

import numpy as np

from tigra.errors import UsageError
from tigra.images.sizes import checked_images

BACKGROUNDS = "black", "border"
BLACK = 10 / 255  # a border up to this grey level is black; JPEG and cameras add a little noise
AT_ONCE = 1024  # images


def border_grey(images: np.ndarray) -> np.ndarray:
    """Return the median of the border pixels of each image, (n,) or (n, 3); every pixel counts once.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        The images.

    Returns
    -------
    array of shape (n,) or (n, 3)
        The median of each image's border, for every channel.

    Examples
    --------
    >>> border_grey(np.array([[[2.0], [5.0], [2.0]]]))
    array([2.])
    """
    inner = np.zeros(images.shape[1:3], bool)
    inner[1:-1, 1:-1] = True
    return np.median(images[:, ~inner], axis=1).astype(images.dtype)


def less_border(images: np.ndarray) -> np.ndarray:
    """Subtract from each image the median of its border pixels, so that the background is about 0.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        The images.

    Returns
    -------
    array of the same shape
        The images with a background of about 0.

    Examples
    --------
    >>> less_border(np.array([[[2.0, 2.0, 2.0], [2.0, 5.0, 3.0], [2.0, 2.0, 2.0]]]))
    array([[[0., 0., 0.],
            [0., 3., 1.],
            [0., 0., 0.]]])
    """
    images = checked_images(images, colour=True)
    return images - border_grey(images)[:, None, None]


def on_black(images: np.ndarray) -> np.ndarray:
    """Put images whose border is not black on black: the absolute difference from the median of the border.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        The images.

    Returns
    -------
    array of the same shape
        Images with a black border as they are; of the others, what differs from their background.

    Examples
    --------
    >>> on_black(np.pad(np.zeros((1, 1, 1)), ((0, 0), (1, 1), (1, 1)), constant_values=1))
    array([[[0., 0., 0.],
            [0., 1., 0.],
            [0., 0., 0.]]])
    """
    greys = border_grey(images)
    is_black = (greys.reshape(len(images), -1) <= BLACK).all(axis=1)
    chosen = is_black.reshape(-1, *[1] * (images.ndim - 1))
    return np.where(chosen, images, np.abs(images - greys[:, None, None]))


def checked_background(background: str) -> str:
    """Return the name of a background; raise UsageError if there is none of that name."""
    if background not in BACKGROUNDS:
        raise UsageError(f"background must be 'black' or 'border', got {background!r}.")
    return background


def find_background(images) -> str:
    """Return "black" if most images have a black border, or nothing but their background, else "border".

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3), or LazyImages
        Images in [0, 1].

    Returns
    -------
    {"black", "border"}
        What the option `background` should be. For pictures of one colour it is "black", because without their
        background there would be nothing left of them.

    Examples
    --------
    >>> find_background(np.pad(np.ones((2, 1, 1)), ((0, 0), (1, 1), (1, 1))))
    'black'
    >>> find_background(np.pad(np.zeros((2, 1, 1)), ((0, 0), (1, 1), (1, 1)), constant_values=1))
    'border'
    """
    borders, contrasts = [], []
    for start in range(0, len(images), AT_ONCE):
        part = np.asarray(images[start : start + AT_ONCE])
        greys = border_grey(part)
        borders.append(greys.reshape(len(part), -1).max(axis=1))
        contrasts.append(np.abs(part - greys[:, None, None]).reshape(len(part), -1).max(axis=1))
    is_black = not borders or np.median(np.concatenate(borders)) <= BLACK
    is_plain = not borders or np.median(np.concatenate(contrasts)) <= BLACK
    return "black" if is_black or is_plain else "border"
