"""The background of pictures: found at their border, subtracted, and continued outside; and a window for those without.

Textures and patches of photographs fill their frame. A square frame does not turn with what it shows: a network sees
its edges, and new corners when a picture is turned. A round window, which is 1 in the middle and falls smoothly to 0 at
the inscribed circle, turns with the picture.

All functions take grey images (n, height, width) or colour images (n, height, width, 3), in which every channel has a
background of its own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tigra.errors import UsageError
from tigra.images.sizes import checked_images

BACKGROUNDS = "black", "border"  # what may enter when images are moved
WINDOWS = "window", "window-mean"
WORDS = {  # of the protocol
    "border": ", background from the border",
    "window": ", round window",
    "window-mean": ", round window, mean subtracted",
}
FALL = 0.25  # the share of the radius in which the window falls from 1 to 0
LEVELS, WEIGHTS = 2.0**18, 2.0**12  # steps of grey levels and of the window in sums, which are exact
LARGEST = 2.0**6  # grey level in sums; images in [0, 1] are far below
FULL = 0.8  # images fill the frame if their border varies at least this many times as much as the whole
OBLONG = 1.25  # from this ratio of the sides on, a round window would hide too much
LEAST_SPARE = 10  # images more than classes, for brightness to say anything
EXPLAINED = 0.5  # brightness is a sign of the class from this share of its variance on
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


def entering(background: str) -> str:
    """Return what enters when images of a network with this `background` are moved: "black" or "border".

    A window hides most of what enters.

    >>> entering("black"), entering("border"), entering("window")
    ('black', 'border', 'border')
    """
    return "black" if background == "black" else "border"


# --- found in training images -----------------------------------------------------------------------------------


def find_background(images, labels=None) -> str:
    """Return what the option `background` should be for images like these.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3), or LazyImages
        Images in [0, 1].
    labels : array of shape (n,), optional
        Their classes. Without them, brightness does not count as a sign of the class.

    Returns
    -------
    {"black", "border", "window", "window-mean"}
        A window if images are about square and most fill the frame: their border varies about as much as the rest. It
        is "window" if classes explain at least half of the variance of the mean brightness, else "window-mean". For
        other images, "black" if most have a black border, else "border". For pictures of one colour it is "black",
        because without their background there would be nothing left of them.

    Examples
    --------
    >>> find_background(np.pad(np.ones((2, 1, 1)), ((0, 0), (1, 1), (1, 1))))
    'black'
    >>> find_background(np.pad(np.zeros((2, 1, 1)), ((0, 0), (1, 1), (1, 1)), constant_values=1))
    'border'
    >>> stripes, labels = np.tile([0.2, 0.4, 0.6, 0.4], (12, 8, 2)), np.repeat([0, 1], 6)
    >>> find_background(stripes), find_background(stripes + 0.4 * labels[:, None, None], labels)
    ('window-mean', 'window')
    """
    parts = [_looks(np.asarray(images[start : start + AT_ONCE])) for start in range(0, len(images), AT_ONCE)]
    if not parts:
        return "black"
    sides = np.shape(images[:1])[1:3]
    looks = Looks(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    is_full = np.median(looks.variation) > BLACK and np.median(looks.fullness) >= FULL
    if is_full and max(sides) < OBLONG * min(sides):
        share = 0.0 if labels is None else explained(looks.brightness, np.asarray(labels))
        return "window" if share >= EXPLAINED else "window-mean"
    is_black = np.median(looks.border) <= BLACK
    is_plain = np.median(looks.contrast) <= BLACK
    return "black" if is_black or is_plain else "border"


class Looks(NamedTuple):
    """What `find_background` asks of images, one number each.

    Attributes
    ----------
    border, contrast : array (n,)
        The median of the border and the largest difference from it, in the channel where it is largest.
    variation, fullness : array (n,)
        The root mean square difference of border pixels from their median, and its ratio to that of all pixels.
    brightness : array (n,)
        The mean.
    """

    border: np.ndarray
    contrast: np.ndarray
    variation: np.ndarray
    fullness: np.ndarray
    brightness: np.ndarray


def _looks(images: np.ndarray) -> Looks:
    greys = border_grey(images)
    rows = len(images)
    apart = np.abs(images - greys[:, None, None], dtype=np.float64)
    squares = (apart**2).reshape(rows, *images.shape[1:3], -1).mean(axis=3)
    inside = squares[:, 1:-1, 1:-1].reshape(rows, -1).sum(axis=1)
    every = squares.reshape(rows, -1).sum(axis=1)
    n_pixels = squares[0].size
    n_border = n_pixels - squares[0, 1:-1, 1:-1].size
    variation, overall = np.sqrt(np.maximum(every - inside, 0) / n_border), np.sqrt(every / n_pixels)
    return Looks(
        greys.reshape(rows, -1).max(axis=1),
        apart.reshape(rows, -1).max(axis=1),
        variation,
        variation / np.maximum(overall, np.finfo(np.float64).tiny),
        images.reshape(rows, -1).mean(axis=1, dtype=np.float64),
    )


def explained(values: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of the variance of values that classes explain (adjusted R squared), at most 1.

    It is 0 in the mean if classes have nothing to do with the values, and 0 where there are fewer than ten more values
    than classes: by chance it would be large often.

    >>> values, labels = np.repeat([1.0, 3.0], 8), np.repeat([0, 1], 8)
    >>> explained(values, labels), explained(values[4:12], labels[4:12])
    (1.0, 0.0)
    """
    classes, n = np.unique(labels), len(values)
    total = ((values - values.mean()) ** 2).sum()
    if total == 0 or n < len(classes) + LEAST_SPARE:
        return 0.0
    within = sum(((values[labels == c] - values[labels == c].mean()) ** 2).sum() for c in classes)
    return float(1 - within / (n - len(classes)) / (total / (n - 1)))


# --- the window -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def round_window(height: int, width: int) -> np.ndarray:
    """Return the weights of the pixels, (height, width), read-only; they depend on the distance from the centre only.

    Examples
    --------
    >>> round_window(5, 5).round(2)
    array([[0.  , 0.38, 0.9 , 0.38, 0.  ],
           [0.38, 1.  , 1.  , 1.  , 0.38],
           [0.9 , 1.  , 1.  , 1.  , 0.9 ],
           [0.38, 1.  , 1.  , 1.  , 0.38],
           [0.  , 0.38, 0.9 , 0.38, 0.  ]])
    """
    down, right = np.arange(height) - (height - 1) / 2, np.arange(width) - (width - 1) / 2
    radius = min(height, width) / 2
    share = (radius - np.sqrt(down[:, None] ** 2 + right**2)) / (FALL * radius)
    share = np.minimum(np.maximum(share, 0.0), 1.0)
    weights = share * share * (3 - 2 * share)
    weights.flags.writeable = False
    return weights


@lru_cache(maxsize=16)
def window_weights(height: int, width: int) -> np.ndarray:
    """Return the window as whole numbers, for exact sums."""
    return np.rint(WEIGHTS * round_window(height, width)).astype(np.int64)


def window_mean(images: np.ndarray) -> np.ndarray:
    """Return the mean grey level of each image in the window, (n,) or (n, 3).

    Sums are of whole numbers, so quarter turns of an image do not change a bit of them.

    Examples
    --------
    >>> window_mean(np.pad(np.full((1, 2, 2), 0.25), ((0, 0), (1, 1), (1, 1)))).round(2)
    array([0.09])
    """
    weights = window_weights(*images.shape[1:3])
    levels = np.rint(LEVELS * images.clip(-LARGEST, LARGEST).astype(np.float64)).astype(np.int64)
    totals = np.einsum("nhw...,hw->n...", levels, weights)
    return totals / (LEVELS * max(1, weights.sum()))


def windowed(images: np.ndarray, subtracts_mean: bool = False) -> np.ndarray:
    """Return the images under the window, less their mean in it if asked for.

    Parameters
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3)
        The images.
    subtracts_mean : bool
        Whether to subtract from each image, in every channel, its mean in the window.

    Returns
    -------
    array of the same shape and dtype
        The images, which are 0 from the inscribed circle on.

    Examples
    --------
    >>> windowed(np.full((1, 5, 5), 0.5))[0, 0].round(2)
    array([0.  , 0.19, 0.45, 0.19, 0.  ])
    """
    weights = round_window(*images.shape[1:3]).astype(images.dtype)
    if subtracts_mean:
        images = images - window_mean(images).astype(images.dtype)[:, None, None]
    return images * weights.reshape(weights.shape + (1,) * (images.ndim - 3))
