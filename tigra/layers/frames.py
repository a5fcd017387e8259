"""Frames: how the kernels of oriented networks lay out the maps of a padded grid (`tigra.kernels.oriented.frames`)."""

from __future__ import annotations

import functools
import threading
from typing import Any, NamedTuple

import numpy as np

from tigra.graph import Graph, GridGraph
from tigra.kernels.workspace import Workspace, aligned_empty

LINE = 16  # numbers of a cache line in float32
MOST_SCRATCH, LARGEST_SCRATCH = 2**27, 2**25  # bytes of frames that a thread keeps, and of those of one name

_scratch = threading.local()


class Frames(NamedTuple):
    """Layout and weights of frames for one grid, batch size and precision.

    Attributes
    ----------
    layout : (int, int, int, int)
        Height of the grid, length of a frame's row, distance of a neighbour in the same row, width of the rim.
    pitch : int
        Distance of frames in memory: an odd number of cache lines, so that equal places of many frames do not compete
        for the same part of the cache.
    stack : int
        Distance of frames that stand directly one behind the other: whole rows, and no multiple of a kilobyte, for the
        same reason.
    edges : (float, float)
        Weights of straight and diagonal neighbours in L, Eq. (1) [eq:laplacian], without their sign.
    smoothing : (float, float, float)
        Weights of a node, its straight and its diagonal neighbours in I - L/2.
    slope : (float, float)
        Weight of a diagonal edge, and the square of the factor that makes D of a linear function its slope.
    grid : tuple
        Layout, edges and slope, as `tigra.kernels.oriented.convolution` wants them.
    dtype : dtype
        Precision.
    """

    layout: tuple[int, int, int, int]
    pitch: int
    stack: int
    edges: tuple[Any, Any]
    smoothing: tuple[Any, Any, Any]
    slope: tuple[Any, Any]
    grid: tuple
    dtype: np.dtype

    @property
    def first(self) -> int:
        """Place of the first node in a frame. It begins a cache line, as do the rows of the grid if they fill lines."""
        _, row, beside, rim = self.layout
        return rim * row + beside

    def zeroed(self, name: str, n_frames: int, space: Workspace) -> np.ndarray:
        """Frames (n_frames, pitch) of a workspace, zero if they are new."""
        return space.zeroed(name, (n_frames, self.pitch), self.dtype, self.layout, self.first)


def frames_of(graph: Graph, n_batch: int, dtype) -> Frames | None:
    """The frames for maps on a graph, or None if it is no padded grid."""
    if not isinstance(graph, GridGraph) or graph.boundary != "padded":
        return None
    return grid_frames(graph, graph.shape, n_batch, dtype)


def grid_frames(graph: GridGraph, shape: tuple[int, int], n_batch: int, dtype) -> Frames:
    """The frames for maps on a grid of another shape, with the edges of a padded grid."""
    return _frames(shape, graph.dilation, graph.diagonal_weight, n_batch, np.dtype(dtype))


@functools.lru_cache(maxsize=256)
def _frames(shape, rim, weight, n_batch, dtype) -> Frames:
    (height, width), number = shape, dtype.type
    row = (width + 2 * rim) * n_batch
    lines = -(-(height + 2 * rim) * row // LINE)
    straight, diagonal = 1 / (4 + 4 * weight), weight / (4 + 4 * weight)
    layout = height, row, rim * n_batch, rim
    edges = number(straight), number(diagonal)
    slope = number(weight), number(1 / (2 + 4 * weight) ** 2)
    return Frames(
        layout=layout,
        pitch=LINE * (lines + (lines % 2 == 0)),
        stack=row * (height + 2 * rim + (row * (height + 2 * rim) % 256 == 0)),
        edges=edges,
        smoothing=(number(0.5), number(0.5 * straight), number(0.5 * diagonal)),
        slope=slope,
        grid=(layout, *edges, *slope),
        dtype=dtype,
    )


def scratch_frames(name: str, n_frames: int, frames: Frames, space: Workspace) -> np.ndarray:
    """Frames (n_frames, pitch) for use inside one call of a kernel, whose rims are zero.

    Kernels that write rims, as products do, write them anew in each call: weights that are not finite leave NaN there.

    All layers of a thread share those of one name and layout: what has just been used is still in the cache. Large ones
    would not be, and are those of the layer, from its `space`.

    Examples
    --------
    >>> frames, space = _frames((4, 4), 1, 0.0, 2, np.dtype(np.float32)), Workspace()
    >>> one, other = scratch_frames("terms", 3, frames, space), scratch_frames("terms", 2, frames, space)
    >>> one.shape, np.shares_memory(one, other)
    ((3, 80), True)
    """
    n_bytes = n_frames * frames.pitch * frames.dtype.itemsize
    if n_bytes > LARGEST_SCRATCH:
        return frames.zeroed(name, n_frames, space)
    kept: dict[tuple, np.ndarray] = vars(_scratch).setdefault("kept", {})
    key = name, frames.layout, frames.dtype
    if key not in kept or len(kept[key]) < n_frames:
        kept.pop(key, None)
        while kept and sum(array.nbytes for array in kept.values()) + n_bytes > MOST_SCRATCH:
            del kept[next(iter(kept))]  # the oldest
        kept[key] = aligned_empty((n_frames, frames.pitch), frames.dtype, frames.first)
        kept[key][...] = 0
    return kept[key][:n_frames]
