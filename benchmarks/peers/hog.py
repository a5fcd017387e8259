"""Histograms of oriented gradients (Dalal and Triggs, 2005) in NumPy, and a coarse histogram of colours."""

from __future__ import annotations

import numpy as np

ORIENTATIONS = 9  # of [0, 180) degrees
CLIPPED = 0.2  # largest entry of a normalised block
SMALL = 1e-5
LEVELS = 4  # of each colour in the histogram


def cell_side(height: int, width: int) -> int:
    """Pixels of a cell: 8, as usual, or what gives small pictures four cells a side."""
    return max(1, min(8, min(height, width) // 4))


def hog_features(pictures: np.ndarray) -> np.ndarray:
    """Return one row of features for each picture.

    Parameters
    ----------
    pictures : array of shape (n, height, width) or (n, height, width, 3)
        Levels in [0, 1]. In colour, each pixel has the gradient of the channel in which it is largest.

    Returns
    -------
    array of shape (n, features)
        Blocks of 2x2 cells, normalised (L2-Hys); in colour, followed by the square roots of a histogram of colours.

    Examples
    --------
    >>> edge = np.zeros((1, 8, 8))
    >>> edge[:, :, 4:] = 1  # its gradient points to the right: orientation 0
    >>> features = hog_features(edge).reshape(-1, ORIENTATIONS)
    >>> bool((features[:, 0] >= features.max(axis=1)).all())
    True
    """
    planes = pictures[..., None] if pictures.ndim == 3 else pictures
    down, right = _gradients(planes)
    strength = np.hypot(down, right)
    channel = strength.argmax(axis=3)[..., None]
    down, right, strength = (np.take_along_axis(some, channel, 3)[..., 0] for some in (down, right, strength))
    place = np.rad2deg(np.arctan2(down, right)) % 180 / (180 / ORIENTATIONS)
    lower = np.floor(place).astype(int)
    share = place - lower
    cells = sum(
        _in_cells(strength * weight, (lower + step) % ORIENTATIONS) for step, weight in ((0, 1 - share), (1, share))
    )
    blocks = _normalised(np.asarray(cells))
    return np.hstack([blocks, colour_histogram(pictures)]) if pictures.ndim == 4 else blocks


def _gradients(planes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Central differences down and to the right; 0 at the border."""
    down, right = np.zeros_like(planes), np.zeros_like(planes)
    down[:, 1:-1] = planes[:, 2:] - planes[:, :-2]
    right[:, :, 1:-1] = planes[:, :, 2:] - planes[:, :, :-2]
    return down, right


def _in_cells(weights: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """Histograms (n, rows, columns, ORIENTATIONS) of the whole cells in the middle of the pictures."""
    n, height, width = weights.shape
    side = cell_side(height, width)
    rows, columns = height // side, width // side
    top, left = (height - rows * side) // 2, (width - columns * side) // 2
    inside = np.s_[:, top : top + rows * side, left : left + columns * side]
    shape = n, rows, side, columns, side
    found = [
        np.where(bins[inside] == number, weights[inside], 0).reshape(shape).sum(axis=(2, 4))
        for number in range(ORIENTATIONS)
    ]
    return np.stack(found, axis=3)


def _normalised(cells: np.ndarray) -> np.ndarray:
    """Blocks of 2x2 cells, each divided by its length, clipped, and divided again."""
    corners = cells[:, :-1, :-1], cells[:, :-1, 1:], cells[:, 1:, :-1], cells[:, 1:, 1:]
    blocks = np.concatenate(corners, axis=3)
    for most in (CLIPPED, np.inf):
        blocks = np.minimum(blocks / np.sqrt((blocks**2).sum(axis=3, keepdims=True) + SMALL), most)
    return blocks.reshape(len(cells), -1)


def colour_histogram(pictures: np.ndarray) -> np.ndarray:
    """Square roots of the shares of LEVELS**3 colours, in each picture."""
    levels = np.minimum((LEVELS * pictures).astype(int), LEVELS - 1)
    colours = (levels @ np.array([LEVELS**2, LEVELS, 1])).reshape(len(pictures), -1)
    return np.sqrt([np.bincount(row, minlength=LEVELS**3) / len(row) for row in colours])
