"""Graph coarsening: from a grid to one with half the sides; an extension of the paper."""

from __future__ import annotations

import numpy as np

from tigra.errors import UsageError
from tigra.graph import Graph, GraphSignal
from tigra.graph.polynomials import laplacian_step
from tigra.kernels.oriented.coarsening import (
    block_means,
    block_means_adjoint,
    smooth_block_means,
    smooth_block_means_adjoint,
)
from tigra.layers.base import Layer
from tigra.layers.frames import frames_of


class Coarsen(Layer):
    """Smooth maps once, and replace blocks of 2x2 nodes by their means.

    The layers that follow work on a graph of their own, a grid with half the sides, which is four times cheaper and
    sees twice as far.

    Parameters
    ----------
    graph : Graph
        A padded grid, from `grid_graph`.

    Notes
    -----
    The layer computes (I - L/2) y and then the mean of each block. Along a side with an odd number of nodes, it takes
    every second node, from the first to the last, instead of pairs, because pairs would not be symmetric under
    rotations.

    Quarter turns stay exact. Shifts stay exact if they are multiples of 2 pixels, of 4 after two coarsenings, and so
    on.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> layer = Coarsen(grid_graph((2, 2), neighbours=4))
    >>> y = np.array([0.0, 8.0, 0.0, 8.0]).reshape(1, 4, 1)
    >>> layer.forward(GraphSignal(y, np.ones((1, 4, 1), bool))).values.ravel()  # the mean of 1, 5, 1, 5
    array([3.])
    """

    def __init__(self, graph: Graph):
        super().__init__()
        if graph.stencil is None:
            raise UsageError("Coarsening needs the grid of an image's pixels, got another graph.")
        self.graph, self.shape = graph, graph.stencil.shape

    @property
    def coarse_shape(self) -> tuple[int, int]:
        """Height and width of the coarse grid."""
        return coarse_shape(self.shape)

    def forward(self, signal: GraphSignal) -> GraphSignal:
        """y (K, N, B)  ->  (K, N', B), all nodes active."""
        y = np.ascontiguousarray(self._check_signal(signal, None, self.graph.n_nodes).values)
        height, width = self.coarse_shape
        coarse = self._space.result("coarse", (len(y), height * width, y.shape[2]), y.dtype)
        if frames := frames_of(self.graph, y.shape[2], y.dtype):
            smooth_block_means(y, *self._in_frames(frames, y.dtype), coarse)
        else:
            smooth = self._space.array("smooth", y.shape, y.dtype)
            laplacian_step(self.graph, y, y, -0.5, 1, 0, out=smooth)
            block_means(smooth, *self.shape, coarse)
        self._cache = y.shape
        return GraphSignal(coarse, self._space.all_true((1, *coarse.shape[1:])))

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/d(output) (K, N', B)  ->  dE/dy (K, N, B)."""
        shape, grad = self._take_cache(), np.ascontiguousarray(grad)
        grad_y = self._space.result("grad", shape, grad.dtype)
        if frames := frames_of(self.graph, shape[2], grad.dtype):
            smooth_block_means_adjoint(grad, *self._in_frames(frames, grad.dtype), grad_y)
            return grad_y
        spread = self._space.array("smooth", shape, grad.dtype)
        block_means_adjoint(grad, *self.shape, spread)
        return laplacian_step(self.graph, spread, spread, -0.5, 1, 0, out=grad_y)  # L is symmetric

    def to_onnx(self, to, signal):
        """A convolution, and means over blocks; along an odd side a block has one node."""
        smooth = to.laplacian(self.graph, signal.values, -0.5, 1.0)
        height, width = self.shape
        return signal._replace(
            values=to.pool("AveragePool", smooth, (2 - height % 2, 2 - width % 2), (2, 2)), active=None
        )

    def _in_frames(self, frames, dtype) -> tuple:
        """Arguments of the kernels for padded grids."""
        scratch = frames.zeroed("frames", 2, self._space)
        return self.shape[1], (frames.layout, *frames.smoothing), scratch

    @property
    def label(self) -> str:
        """GC[2]"""
        return "GC[2]"


def coarse_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """Sides of a coarsened grid: half, rounded up.

    Examples
    --------
    >>> coarse_shape((32, 7))
    (16, 4)
    """
    return (shape[0] + 1) // 2, (shape[1] + 1) // 2
