"""GraphWriter: the operations of `tigra.graph` as ONNX nodes.

On a grid, the Laplacian is a convolution with 3x3 filters. Powers are taken step by step, as in tigra: one large
convolution for L^2 would be wrong at the border, where the padding is 0 after every step.
"""

from __future__ import annotations

import math

import numpy as np

from tigra.errors import UsageError
from tigra.graph import Graph, GridGraph
from tigra.graph.orientation import has_gradient
from tigra.onnx.writer import Tensor, Writer

LARGEST_MATRIX = 4096  # nodes of a custom graph, whose Laplacian is stored as a dense matrix


class GraphWriter(Writer):
    """A `Writer` that knows Laplacians and gradients of maps on graphs."""

    def laplacian(self, graph: Graph, x: Tensor, times_lx: float = 1.0, times_x: float = 0.0) -> Tensor:
        """times_lx L x + times_x x."""
        if not isinstance(graph, GridGraph):
            return self._by_matrix(x, times_lx * _dense(graph) + times_x * np.eye(graph.n_nodes))
        weight, middle = graph.diagonal_weight, times_lx + times_x
        if graph.boundary == "padded":
            edges = -times_lx * _around(1, weight) / (4 + 4 * weight)
            edges[1, 1] = middle
            return self._stencil(x, edges, graph.dilation)
        if graph.n_nodes == 1:  # an isolated node, where L is 0
            return self.multiply(x, times_x)
        assert graph.stencil is not None and graph.stencil.scale is not None
        scale = graph.stencil.scale.reshape(graph.shape)
        neighbours = self._stencil(self.multiply(x, scale), _around(1, weight), 1)
        return self.subtract(self.multiply(x, middle), self.multiply(neighbours, times_lx * scale))

    def powers(self, graph: Graph, x: Tensor, degree: int) -> list[Tensor]:
        """L^m x for m = 0..degree."""
        terms = [x]
        for _ in range(degree):
            terms.append(self.laplacian(graph, terms[-1]))
        return terms

    def diffused(self, graph: Graph, x: Tensor, steps: int) -> Tensor:
        """(I - L/2)^steps x."""
        for _ in range(steps):
            x = self.laplacian(graph, x, -0.5, 1.0)
        return x

    def chebyshev(self, graph: Graph, x: Tensor, max_order: int) -> list[Tensor]:
        """T_k(L - I) x for k = 0..max_order, Eq. (14)."""
        terms = [x]
        if max_order:
            terms.append(self.laplacian(graph, x, 1.0, -1.0))
        for _ in range(2, max_order + 1):
            terms.append(self.subtract(self.laplacian(graph, terms[-1], 2.0, -2.0), terms[-2]))  # Eq. (14)
        return terms

    def pair_products(self, graph: Graph, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        """Dot and cross products of the gradients of maps, taken in pairs (`tigra.graph.orientation`)."""
        if not has_gradient(graph):
            return self._dot_by_laplacian(graph, a, b), self._cross_by_rotation(graph, a, b)
        assert isinstance(graph, GridGraph)
        (a_x, a_y), (b_x, b_y) = self._gradient(graph, a), self._gradient(graph, b)
        dot = self.add(self.multiply(a_x, b_x), self.multiply(a_y, b_y))
        return dot, self.subtract(self.multiply(a_x, b_y), self.multiply(a_y, b_x))

    def _gradient(self, graph: GridGraph, x: Tensor) -> tuple[Tensor, Tensor]:
        weight = graph.diagonal_weight
        side = np.array([weight, 1.0, weight]) / (2 + 4 * weight)
        across = np.stack([-side, 0 * side, side], axis=1)
        return self._stencil(x, across, graph.dilation), self._stencil(x, across.T, graph.dilation)

    def _stencil(self, x: Tensor, weights: np.ndarray, dilation: int) -> Tensor:
        """Every map, cross-correlated with the same 3x3 weights; zeros outside."""
        filters = np.broadcast_to(weights, (x.shape[0], 1, 3, 3))
        return self.convolve(x, filters, pads=dilation, dilation=dilation, each=True)

    def _by_matrix(self, x: Tensor, matrix: np.ndarray) -> Tensor:
        """A symmetric matrix (N, N) times each map."""
        flat = self.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
        return self.reshape(self.product(flat, matrix), x.shape)

    def _dot_by_laplacian(self, graph: Graph, a: Tensor, b: Tensor) -> Tensor:
        """a Lb + b La - L(ab)."""
        sums = self.add(
            self.multiply(a, self.laplacian(graph, b)),
            self.multiply(b, self.laplacian(graph, a)),
        )
        return self.subtract(sums, self.laplacian(graph, self.multiply(a, b)))

    def _cross_by_rotation(self, graph: Graph, a: Tensor, b: Tensor) -> Tensor:
        """The sum over consecutive neighbours m, m' of a_m b_m' - a_m' b_m, one entry for each edge of a node."""
        assert graph.rotation is not None
        around = graph.rotation.tolist()
        here = [m for nodes in around for m in nodes]
        after = [m for nodes in around for m in [*nodes[1:], *nodes[:1]]]
        to_node = np.repeat(np.eye(graph.n_nodes), [len(nodes) for nodes in around], axis=0)
        flat = [self.reshape(x, (x.shape[0], graph.n_nodes)) for x in (a, b)]
        ends = [self._nodes(x, places) for x in flat for places in (here, after)]
        terms = self.subtract(self.multiply(ends[0], ends[3]), self.multiply(ends[1], ends[2]))
        return self.reshape(self.product(terms, to_node), a.shape)

    def _nodes(self, x: Tensor, places: list[int]) -> Tensor:
        return self.node("Gather", [x, self.constant(places, np.int64)], (x.shape[0], len(places)), axis=2)


def _around(straight: float, diagonal: float) -> np.ndarray:
    """Weights of the eight neighbours of a pixel, and 0 in the middle."""
    return np.array([[diagonal, straight, diagonal], [straight, 0.0, straight], [diagonal, straight, diagonal]])


def _dense(graph: Graph) -> np.ndarray:
    if graph.n_nodes > LARGEST_MATRIX:
        raise UsageError(
            f"A custom graph is exported to ONNX as a dense matrix, so it may have at most {LARGEST_MATRIX} nodes, got"
            f" {graph.n_nodes}; use a smaller graph or the grid of pixels."
        )
    return graph.laplacian.toarray()
