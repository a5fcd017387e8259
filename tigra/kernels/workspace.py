"""Arrays that begin on a cache line, and arrays to work in that are made once and used again.

A processor reads 32 or 64 bytes at a time, and reads across the border of a cache line take twice as long. NumPy
aligns to 16 bytes only: the same loop over a grid takes 1.5 times as long there as on a border of 64.
"""

from __future__ import annotations

import math

import numpy as np

CACHE_LINE = 64  # bytes


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
    """Scratch arrays by name. Arrays of one name share their memory, whatever their shape.

    So there is as much memory as the largest array of each name needs, and none is fetched for a shape that was
    larger before: micro-batches differ by a few images, the last ones of an epoch by more. What stands in an array
    that is asked for is what was left there, or nothing of sense if it had another shape the last time.

    keeps_results : whether results of a call outlive the next call, as a user of a layer expects. In the
        training loop nobody looks at them later, and new memory in every step is slow: the system gives
        memory of worker threads back, and must clear it again for the next step.

    >>> space = Workspace()
    >>> space.array("a", (2,), np.float32) is space.array("a", (2,), np.float32)
    True
    >>> np.shares_memory(space.array("a", (4, 3), np.float32), space.array("a", (5,), np.float64))
    True
    """

    def __init__(self, keeps_results: bool = True):
        self.keeps_results = keeps_results
        self._memory: dict[str, np.ndarray] = {}  # name -> bytes, as many as the largest array of that name needed
        self._arrays: dict[str, np.ndarray] = {}  # name -> the array that was asked for last
        self._rims: dict[str, tuple] = {}  # name -> (frames whose rim is zero, images in them)

    def __getstate__(self) -> dict:
        return {"keeps_results": self.keeps_results}  # scratch is not worth saving, sending or copying

    def __setstate__(self, state: dict) -> None:
        Workspace.__init__(self, **state)

    def result(self, name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
        """An array to be filled with a result: a new one, or the one of the last call if results need not be kept."""
        return aligned_empty(shape, dtype) if self.keeps_results else self.array(name, shape, dtype)

    def array(self, name: str, shape: tuple[int, ...], dtype) -> np.ndarray:
        """The array of that name: the same as the last time, or another shape of the same memory."""
        array = self._arrays.get(name)
        if array is None or array.shape != shape or array.dtype != dtype:
            n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
            if name not in self._memory or self._memory[name].size < n_bytes:
                self._memory[name] = aligned_empty((n_bytes,), np.uint8)
            array = self._arrays[name] = self._memory[name][:n_bytes].view(dtype).reshape(shape)
        return array

    def frames(self, name: str, n_frames: int, grid_shape: tuple[int, int], n_batch: int, dtype) -> np.ndarray:
        """(n_frames, H+2, (W+2) B), zero at the rim as long as nobody writes there (`tigra.kernels.grid`)."""
        height, width = grid_shape
        frames = self.array(name, (n_frames, height + 2, (width + 2) * n_batch), dtype)
        cleared, of_batch = self._rims.get(name, (None, None))
        if cleared is not frames or of_batch != n_batch:  # another shape left its numbers there
            frames[:, 0] = frames[:, -1] = 0
            frames[:, :, :n_batch] = frames[:, :, -n_batch:] = 0
            self._rims[name] = frames, n_batch
        return frames
