"""Local binary patterns that do not change when a picture is turned (Ojala et al., 2002), in NumPy."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.hog import colour_histogram
from tigra.images.colour import LUMA

CIRCLES = (8, 1), (16, 2), (24, 3)  # points, and radius in pixels
AT_ONCE = 256  # pictures


def lbp_features(pictures: np.ndarray) -> np.ndarray:
    """Return one row of features for each picture: histograms of uniform patterns, "riu2", on three circles.

    Parameters
    ----------
    pictures : array of shape (n, height, width) or (n, height, width, 3)
        Levels in [0, 1]. Patterns are those of the luminance.

    Returns
    -------
    array of shape (n, features)
        Square roots of shares; in colour, followed by a histogram of colours.

    Examples
    --------
    >>> picture = np.random.default_rng(0).random((1, 9, 9))
    >>> bool(np.allclose(lbp_features(picture), lbp_features(np.rot90(picture, axes=(1, 2)))))
    True
    """
    grey = pictures @ np.array(LUMA) if pictures.ndim == 4 else pictures
    parts = [grey[start : start + AT_ONCE] for start in range(0, len(grey), AT_ONCE)]
    found = np.vstack([np.hstack([_histograms(part, *circle) for circle in CIRCLES]) for part in parts])
    return np.hstack([found, colour_histogram(pictures)]) if pictures.ndim == 4 else found


def _histograms(grey: np.ndarray, points: int, radius: int) -> np.ndarray:
    """Shares of the patterns: by the number of ones if they are in one piece, else "not uniform"."""
    turns = 2 * np.pi * np.arange(points) / points
    inner = grey[:, radius : grey.shape[1] - radius, radius : grey.shape[2] - radius]
    signs = np.stack([_moved(grey, radius, -radius * np.sin(t), radius * np.cos(t)) >= inner - 1e-9 for t in turns])
    changes = (signs != np.roll(signs, 1, axis=0)).sum(axis=0)
    patterns = np.where(changes <= 2, signs.sum(axis=0), points + 1).reshape(len(grey), -1)
    return np.sqrt([np.bincount(row, minlength=points + 2) / len(row) for row in patterns])


def _moved(grey: np.ndarray, radius: int, down: float, right: float) -> np.ndarray:
    """Levels at a place beside every inner pixel, between pixels by linear interpolation."""
    height, width = (size - 2 * radius for size in grey.shape[1:])
    down, right = round(down, 9), round(right, 9)
    top, left = int(np.floor(down)), int(np.floor(right))
    total = np.zeros((len(grey), height, width))
    for row, by_row in ((top, 1 - (down - top)), (top + 1, down - top)):
        for column, by_column in ((left, 1 - (right - left)), (left + 1, right - left)):
            if by_row * by_column:
                part = np.s_[:, radius + row : radius + row + height, radius + column : radius + column + width]
                total += by_row * by_column * grey[part]
    return total
