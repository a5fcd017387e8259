"""Arrays that begin on a cache line, and arrays to work in that are made once and used again.

A processor reads 32 or 64 bytes at a time, and reads across the border of a cache line take twice as long. NumPy
aligns to 16 bytes only: the same loop over a grid takes 1.5 times as long there as on a border of 64.
"""

from __future__ import annotations

import math

import numpy as np

CACHE_LINE = 64  # bytes
MOST_SHAPES = 3  # of one name: micro-batches of a batch differ by a few images, the last ones of an epoch more


def aligned_empty(shape: tuple[int, ...], dtype) -> np.ndarray:
    """As `np.empty`, with the first number at the beginning of a cache line.

    >>> aligned_empty((3, 5), np.float32).ctypes.data % 64
    0
    """
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    raw = np.empty(n_bytes + CACHE_LINE, np.uint8)
    start = -raw.ctypes.data % CACHE_LINE
    return raw[start : start + n_bytes].view(dtype).reshape(shape)


class Workspace:
    """Scratch arrays by name; one that is asked for again with the same shape and dtype is the same array.

    It is zero when it is made, and afterwards holds what its user left in it.

    keeps_results : whether results of a call outlive the next call, as a user of a layer expects. In the
        training loop nobody looks at them later, and new memory in every step is slow: the system gives
        memory of worker threads back, and must clear it again for the next step.

    >>> space = Workspace()
    >>> space.array("a", (2,), np.float32) is space.array("a", (2,), np.float32)
    True
    """

    def __init__(self, keeps_results: bool = True):
        self.keeps_results = keeps_results
        self._arrays: dict = {}  # (name, shape, dtype) -> array

    def result(self, name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
        """An array to be filled with a result: a new one, or the one of the last call if results need not be kept."""
        return aligned_empty(shape, dtype) if self.keeps_results else self.array(name, shape, dtype)

    def array(self, name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
        """The array of that name, shape and dtype; at first one of zeros. Of each name a few shapes are kept."""
        key = name, tuple(shape), np.dtype(dtype)
        if key not in self._arrays:
            others = [other for other in self._arrays if other[0] == name]
            for old in others[: max(0, len(others) + 1 - MOST_SHAPES)]:
                del self._arrays[old]
            self._arrays[key] = aligned_empty(shape, dtype)
            self._arrays[key].fill(0)
        return self._arrays[key]

    def frames(self, name: str, n_frames: int, grid_shape: tuple[int, int], n_batch: int, dtype) -> np.ndarray:
        """(n_frames, H+2, (W+2) B), zero at the rim as long as nobody writes there (`tigra.grid_kernels`)."""
        height, width = grid_shape
        return self.array(name, (n_frames, height + 2, (width + 2) * n_batch), dtype)
