"""Random number generators: one for each seed and purpose."""

from __future__ import annotations

import numpy as np


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Random number generator for one purpose.

    Parameters
    ----------
    seed : int
        Seed of the whole run.
    purpose : str
        What the numbers are for; different purposes give independent streams.

    Returns
    -------
    numpy.random.Generator
        A new generator.

    Examples
    --------
    >>> bool(generator(0, "split").integers(100) == generator(0, "split").integers(100))
    True
    """
    return np.random.default_rng([seed, *purpose.encode()])


def balanced_order(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Random order of images in which any number of first ones has equally many of each class, as far as possible.

    Parameters
    ----------
    labels : integer array (n,)
        Class numbers.
    rng : numpy.random.Generator
        Source of the order.

    Returns
    -------
    array (n,)
        Positions of the images.

    Examples
    --------
    >>> labels = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2])
    >>> labels[balanced_order(labels, np.random.default_rng(0))[:6]].tolist()
    [0, 1, 2, 0, 1, 2]
    """
    shuffled = rng.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    starts = np.searchsorted(labels[by_class], labels[by_class])
    return by_class[np.argsort(np.arange(len(labels)) - starts, kind="stable")]
