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
