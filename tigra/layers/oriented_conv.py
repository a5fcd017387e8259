"""Oriented convolution: Laplacian filters with dot and cross products of gradients; an extension of the paper."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError
from tigra.graph import Graph, GraphSignal
from tigra.graph.orientation import check_orientation, has_gradient
from tigra.kernels.oriented.convolution import oriented_backward, oriented_forward
from tigra.layers.base import Layer
from tigra.layers.frames import Frames, frames_of, scratch_frames
from tigra.layers.oriented_chain import chain_backward, chain_forward


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

    micro_batch = 24  # half of the batches of most recipes, so that two threads share them evenly

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
        y = np.ascontiguousarray(self._check_signal(signal, self.n_in, self.graph.n_nodes).values)
        alpha, mixing, frames = self.params["alpha"], self.mixing, self._frames(y)
        x = self._space.result("x", (len(alpha), *y.shape[1:]), y.dtype)
        if frames is None:
            self._cache = *chain_forward(self.graph, y, alpha, mixing, self._space, x), None
        else:  # the terms of Eq. (10) [eq:pol_filt_1], products of gradients, and their sums, in one call
            pairs = frames.zeroed("pairs", len(mixing), self._space)
            n_out, n_terms = alpha.shape
            terms, sums = self._scratch("terms", n_terms, frames), self._scratch("sums", n_out, frames)
            oriented_forward(y, alpha, mixing, frames.grid, terms, pairs, sums, x)
            self._cache = y, pairs, frames
        return GraphSignal(x, self._space.all_true((1, *y.shape[1:])))

    def backward(self, grad_x: np.ndarray) -> np.ndarray:
        """dE/dx (K_out, N, B)  ->  dE/dy (K_in, N, B); fills grads alpha, pairs."""
        kept, pairs, frames = self._take_cache()
        grad_x, alpha, mixing = np.ascontiguousarray(grad_x), self.params["alpha"], self.mixing
        grads = self.grads["alpha"], self.grads["pairs"].reshape(mixing.shape)
        if frames is None:
            return chain_backward(self.graph, grad_x, alpha, mixing, self._space, kept, pairs, grads)
        (n_out, n_terms), n_pairs, weights = alpha.shape, len(pairs), (alpha, mixing, frames.grid)
        grad_y, terms = self._space.result("grad y", kept.shape, kept.dtype), self._scratch("terms", n_terms, frames)
        sizes = {"sums": n_out, "grad terms": n_terms, "grad pairs": n_pairs, "scratch": 2}
        scratch = [self._scratch(name, n_rows, frames) for name, n_rows in sizes.items()]
        oriented_backward(grad_x, kept, *weights, terms, pairs, *scratch, *grads, grad_y)
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
    def mixing(self) -> np.ndarray:
        """A and B below each other, (2 R, 2 K_in)."""
        return self.params["pairs"].reshape(2 * self.n_pairs, -1)

    def _frames(self, y) -> Frames | None:
        """The frames of a padded grid; None for graphs without a discrete gradient."""
        return frames_of(self.graph, y.shape[2], y.dtype) if has_gradient(self.graph) else None

    def _scratch(self, name: str, n_frames: int, frames: Frames) -> np.ndarray:
        return scratch_frames(name, n_frames, frames, self._space)
