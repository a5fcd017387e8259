"""Oriented convolution: Laplacian filters with dot and cross products of gradients; an extension of the paper."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError
from tigra.graph import Graph, GraphSignal
from tigra.graph.orientation import check_orientation
from tigra.kernels.oriented.frames import into_frames, out_of_frames
from tigra.kernels.products import outer, product
from tigra.layers.base import Layer
from tigra.layers.oriented_terms import row_terms


class OrientedConv(Layer):
    """Convolution that tells left from right: filters of the Laplacian, and products of gradients of learned pairs.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L; its orientation gives the cross product.
    alpha : array (K_out, (M+1) K_in + 2 R)
        Weights of the terms.
    pairs : array (2, R, 2 K_in)
        A and B, which mix the maps and their Laplacians into R pairs.

    Raises
    ------
    GraphError
        If the graph has no orientation: it is no padded grid, and has no rotation system.

    Notes
    -----
    With K_in maps y, R pairs and filters of degree M, the layer computes

        a_r = sum_k A_{r,k} y_k + A_{r,K+k} L y_k,    b_r likewise with B
        x_i = sum_{m,k} alpha_{i,m,k} L^m y_k + sum_r alpha_{i,r} dot(a_r, b_r) + sum_r alpha_{i,R+r} cross(a_r, b_r)

    The first sum is that of Eqs. (10) and (11) [eq:pol_filt_1], with a filter for each pair of maps. dot and cross are
    the products of the gradients of two maps (`tigra.graph.orientation`). Both turn with the image. Reflection leaves
    dot as it is and changes the sign of cross, so the layer can tell a shape from its mirror image.

    All nodes are active, also those that pooling has set to 0.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> alpha, pairs = np.array([[0.0, 0.0, 1.0, 0.0]]), np.array([[[1.0, 0.0]]] * 2)  # dot(y, y)
    >>> layer = OrientedConv(grid_graph((3, 3), diagonal_weight=0.25), alpha, pairs)
    >>> ramp = np.tile([1.0, 2.0, 3.0], (3, 1)).reshape(1, 9, 1)
    >>> float(layer.forward(GraphSignal(ramp, np.ones((1, 9, 1), bool))).values[0, 4, 0].round(6))  # slope 1, squared
    1.0
    """

    micro_batch = 8

    def __init__(self, graph: Graph, alpha, pairs):
        if np.ndim(pairs) != 3 or np.shape(pairs)[0] != 2 or np.shape(pairs)[2] % 2 or not np.size(pairs):
            raise ShapeError(f"OrientedConv expects pairs of shape (2, R, 2 K_in), got {np.shape(pairs)}.")
        n_pairs, n_in = np.shape(pairs)[1], np.shape(pairs)[2] // 2
        n_filtered = np.shape(alpha)[1] - 2 * n_pairs if np.ndim(alpha) == 2 else -1
        if n_filtered < 2 * n_in or n_filtered % n_in:
            raise ShapeError(
                f"OrientedConv expects alpha of shape (K_out, (M+1) K_in + 2 R) with M >= 1, here K_in = {n_in} and"
                f" R = {n_pairs}, got {np.shape(alpha)}."
            )
        check_orientation(graph)
        super().__init__(alpha=alpha, pairs=pairs)
        self.graph, self.n_in, self.n_pairs, self.degree = graph, n_in, n_pairs, n_filtered // n_in - 1

    @staticmethod
    def shapes(n_in: int, n_filters: int, degree: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape of the parameters, with as many pairs as input maps."""
        return {"alpha": (n_filters, (degree + 1) * n_in + 2 * n_in), "pairs": (2, n_in, 2 * n_in)}

    @classmethod
    def init(cls, graph, n_in, n_filters, degree, rng, dtype) -> OrientedConv:
        """Create a layer with normal random weights that keep the size of the maps."""
        shapes = cls.shapes(n_in, n_filters, degree)
        alpha = rng.standard_normal(shapes["alpha"]) / np.sqrt(shapes["alpha"][1])
        pairs = rng.uniform(-1, 1, shapes["pairs"]) / np.sqrt(2 * n_in)
        return cls(graph, alpha.astype(dtype), pairs.astype(dtype))

    def forward(self, signal: GraphSignal) -> GraphSignal:
        """y (K_in, N, B)  ->  x (K_out, N, B), active on all nodes."""
        y, _ = self._check_signal(signal, self.n_in, self.graph.n_nodes)
        on = row_terms(self.graph, y.shape[2], y.dtype)
        terms, pairs = self._terms(np.ascontiguousarray(y), on)
        sums = self._rows("x", len(self.params["alpha"]), terms.dtype, on)
        self._product(self.params["alpha"], terms, sums, on)
        x = self._space.result("result", (len(sums), *y.shape[1:]), y.dtype)
        out_of_frames(sums, on.layout, x)
        self._cache = terms, pairs, on, y.shape
        return GraphSignal(x, self._space.all_true((1, *y.shape[1:])))

    def backward(self, grad_x: np.ndarray) -> np.ndarray:
        """dE/dx (K_out, N, B)  ->  dE/dy (K_in, N, B); fills grads alpha, pairs."""
        terms, pairs, on, shape = self._take_cache()
        dtype, n_mixed, n_filtered = terms.dtype, 2 * self.n_in, (self.degree + 1) * self.n_in
        grad = self._rows("x", len(self.params["alpha"]), dtype, on)
        into_frames(np.ascontiguousarray(grad_x), on.layout, grad)
        self._outer(grad, terms, self.grads["alpha"], on)
        grad_terms = self._rows("grad terms", len(terms), dtype, on)
        self._product(self.params["alpha"], grad, grad_terms, on, adjoint=True)
        grad_pairs = self._rows("grad pairs", 2 * self.n_pairs, dtype, on)
        dots, crosses = grad_terms[n_filtered:].reshape(2, self.n_pairs, -1)
        on.products_adjoint(self._halves(pairs), self._space, dots, crosses, self._halves(grad_pairs))
        self._outer(grad_pairs, terms[:n_mixed], self.grads["pairs"], on)
        self._product(self._mixing, grad_pairs, grad_terms[:n_mixed], on, adjoint=True, fresh=False)
        grad_y = self._space.result("grad y", shape, dtype)
        powers = grad_terms[:n_filtered].reshape(self.degree + 1, self.n_in, -1)
        on.laplacians_adjoint(powers, self._space, grad_y)
        return grad_y

    def to_onnx(self, to, signal):
        """Powers of L, pairs, products of gradients, and their weighted sum."""
        powers = to.powers(self.graph, signal.values, self.degree)
        pairs = [to.mix(to.concatenate(powers[:2]), weights) for weights in self.params["pairs"]]
        terms = [*powers, *to.pair_products(self.graph, *pairs)]
        return signal._replace(values=to.mix(to.concatenate(terms), self.params["alpha"]), active=None)

    @property
    def label(self) -> str:
        """OC[K, M]"""
        return f"OC[{len(self.params['alpha'])}, {self.degree}]"

    def filter_coefficients(self, params: dict[str, np.ndarray]) -> np.ndarray:
        """Coefficients (K, M+1) of the response to equal input maps, without the products of gradients."""
        filtered = params["alpha"][:, : (self.degree + 1) * self.n_in]
        return filtered.reshape(len(filtered), self.degree + 1, self.n_in).sum(axis=2)

    @property
    def _mixing(self) -> np.ndarray:
        """A and B below each other, (2 R, 2 K_in)."""
        return self.params["pairs"].reshape(2 * self.n_pairs, -1)

    def _terms(self, y, on) -> tuple[np.ndarray, np.ndarray]:
        """Rows of all terms, and of the pairs a, b."""
        n_in, n_filtered = self.n_in, (self.degree + 1) * self.n_in
        terms = self._rows("terms", self.params["alpha"].shape[1], y.dtype, on)
        pairs = self._rows("pairs", 2 * self.n_pairs, y.dtype, on)
        into_frames(y, on.layout, terms[:n_in])
        for past in range(0, n_filtered - n_in, n_in):
            on.laplacians(terms[past : past + n_in], terms[past + n_in : past + 2 * n_in])
        self._product(self._mixing, terms[: 2 * n_in], pairs, on)
        dots, crosses = terms[n_filtered:].reshape(2, self.n_pairs, -1)
        on.products(self._halves(pairs), self._space, dots, crosses)
        return terms, pairs

    def _halves(self, pairs) -> np.ndarray:
        """a and b, (2, R, pitch)."""
        return pairs.reshape(2, self.n_pairs, -1)

    def _rows(self, name, n_rows, dtype, on) -> np.ndarray:
        """Scratch rows (n_rows, pitch); the rims of frames are zero."""
        return self._space.zeroed(name, (n_rows, on.pitch), dtype, on.layout)

    def _product(self, weights, x, out, on, adjoint=False, fresh=True) -> None:
        """out (+)= weights x, or weights^T x, row by row; each sum in the order of the terms."""
        height, length, _, rim = on.layout
        (n_rows, n_terms), start = weights.shape, rim * length
        form = (1, n_terms, n_terms, n_rows) if adjoint else (n_terms, 1, n_rows, n_terms)
        source, target = (x.reshape(-1), start, on.pitch), (out.reshape(-1), start, on.pitch)
        product(weights.reshape(-1), *form, *source, *target, height * length, fresh)

    def _outer(self, grad, x, out, on) -> None:
        """out = grad x^T, the sums over nodes and images."""
        height, length, _, rim = on.layout
        start = rim * length
        left, right = (grad.reshape(-1), start, on.pitch, len(grad)), (x.reshape(-1), start, on.pitch, len(x))
        outer(*left, *right, out.reshape(-1), height * length, True)
