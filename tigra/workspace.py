"""Arrays to work in, made once and used again: the steps of training allocate little."""

from __future__ import annotations

import numpy as np


class Workspace:
    """Scratch arrays by name; one that is asked for again with the same shape and dtype is the same array.

    It is zero when it is made, and afterwards holds what its user left in it.

    >>> space = Workspace()
    >>> space.array("a", (2,), np.float32) is space.array("a", (2,), np.float32)
    True
    """

    def __init__(self):
        self._arrays: dict = {}

    def array(self, name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
        """The array of that name; a new one, of zeros, if shape or dtype are new."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape or array.dtype != dtype:
            array = self._arrays[name] = np.zeros(shape, dtype)
        return array

    def frames(self, name: str, n_frames: int, grid_shape: tuple[int, int], n_batch: int, dtype) -> np.ndarray:
        """(n_frames, H+2, (W+2) B), zero at the rim as long as nobody writes there (`tigra.grid_kernels`)."""
        height, width = grid_shape
        return self.array(name, (n_frames, height + 2, (width + 2) * n_batch), dtype)
