"""Random numbers: one generator for each (seed, purpose)."""

from __future__ import annotations

import numpy as np


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers of their own for each purpose, all from one seed.

    >>> bool(generator(0, "split").integers(100) == generator(0, "split").integers(100))
    True
    """
    return np.random.default_rng([seed, *purpose.encode()])
