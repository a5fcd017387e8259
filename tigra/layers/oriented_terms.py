"""The terms of an oriented convolution: powers of the Laplacian, and products of gradients, on rows of numbers.

A row holds one map of a micro-batch. On a padded grid it is a frame with a rim of zeros
(`tigra.kernels.oriented.frames`); on other graphs the map as it is, N B numbers. Matrix products work on both alike.
"""

from __future__ import annotations

import numpy as np

from tigra.graph import Graph
from tigra.graph.orientation import cross, cross_adjoint, dot, dot_adjoint, has_gradient
from tigra.graph.polynomials import laplacian_powers_adjoint, laplacian_step
from tigra.kernels.oriented.frames import (
    frame_laplacians,
    frame_laplacians_adjoint,
    pair_products,
    pair_products_adjoint,
)
from tigra.kernels.workspace import Workspace
from tigra.layers.frames import Frames, frames_of


def row_terms(graph: Graph, n_batch: int, dtype) -> FrameTerms | PlainTerms:
    """The terms for a graph and a size of micro-batches."""
    frames = frames_of(graph, n_batch, dtype) if has_gradient(graph) else None
    return PlainTerms(graph, n_batch) if frames is None else FrameTerms(frames)


class FrameTerms:
    """Terms on a padded grid, on flat frames.

    Parameters
    ----------
    frames : Frames
        Their layout and weights.

    Attributes
    ----------
    layout : tuple
        Layout of a row, see `tigra.kernels.oriented.frames`.
    pitch : int
        Distance of rows in memory.
    """

    def __init__(self, frames: Frames):
        self.layout, self.pitch, self._edges, _, self._slope = frames

    def laplacians(self, rows: np.ndarray, out: np.ndarray) -> None:
        """out[k] = L rows[k]."""
        frame_laplacians(rows, self.layout, *self._edges, out)

    def laplacians_adjoint(self, rows: np.ndarray, space: Workspace, out: np.ndarray) -> None:
        """out[k] = sum_m L^m rows[m, k] as maps (K, N, B)."""
        frame_laplacians_adjoint(rows, self.layout, *self._edges, self._scratch(space, rows), out)

    def products(self, pairs: np.ndarray, space: Workspace, dots: np.ndarray, crosses: np.ndarray) -> None:
        """dots[r] = dot(a_r, b_r) and crosses[r] = cross(a_r, b_r), with a, b = pairs."""
        pair_products(pairs, self.layout, *self._slope, self._scratch(space, pairs), dots, crosses)

    def products_adjoint(self, pairs, space: Workspace, dots, crosses, out) -> None:
        """out = dE/dpairs from dE/ddots and dE/dcrosses."""
        pair_products_adjoint(pairs, self.layout, *self._slope, self._scratch(space, pairs), dots, crosses, out)

    def _scratch(self, space, like) -> np.ndarray:
        return space.zeroed("scratch", (8, self.pitch), like.dtype, self.layout)


class PlainTerms:
    """Terms on any graph with a rotation system: the readable chain of operators, slower than frames.

    Parameters
    ----------
    graph : Graph
        With an orientation, see `Graph.with_rotation`.
    n_batch : int
        Images in a micro-batch.

    Attributes
    ----------
    layout : tuple
        Layout of a row, as of a frame with one row and without a rim.
    pitch : int
        Distance of rows in memory, N B.
    """

    def __init__(self, graph: Graph, n_batch: int):
        self.graph, self.shape = graph, (graph.n_nodes, n_batch)
        self.pitch = graph.n_nodes * n_batch
        self.layout = 1, self.pitch, 0, 0

    def laplacians(self, rows: np.ndarray, out: np.ndarray) -> None:
        """out[k] = L rows[k]."""
        maps = self._maps(rows)
        laplacian_step(self.graph, maps, maps, 1, 0, 0, out=self._maps(out))

    def laplacians_adjoint(self, rows: np.ndarray, space: Workspace, out: np.ndarray) -> None:
        """out[k] = sum_m L^m rows[m, k] as maps (K, N, B)."""
        out[:] = laplacian_powers_adjoint(self.graph, self._maps(rows))

    def products(self, pairs: np.ndarray, space: Workspace, dots: np.ndarray, crosses: np.ndarray) -> None:
        """dots[r] = dot(a_r, b_r) and crosses[r] = cross(a_r, b_r), with a, b = pairs."""
        a, b = self._maps(pairs)
        self._maps(dots)[:] = dot(self.graph, a, b)
        self._maps(crosses)[:] = cross(self.graph, a, b)

    def products_adjoint(self, pairs, space: Workspace, dots, crosses, out) -> None:
        """out = dE/dpairs from dE/ddots and dE/dcrosses."""
        a, b = self._maps(pairs)
        through_dot = dot_adjoint(self.graph, a, b, self._maps(dots))
        through_cross = cross_adjoint(self.graph, a, b, self._maps(crosses))
        for to, one, other in zip(self._maps(out), through_dot, through_cross, strict=True):
            np.add(one, other, out=to)

    def _maps(self, rows) -> np.ndarray:
        return rows.reshape(*rows.shape[:-1], *self.shape)
