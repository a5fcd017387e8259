"""Spectral convolution in which every pair of maps has a filter of its own, with a rectifier: beyond the paper."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.kernels import combine
from tigra.layers.base import Layer
from tigra.polynomials import laplacian_powers, laplacian_powers_adjoint, laplacian_step

LARGEST_THRESHOLD = 0.4  # of the start values


class PairedConv(Layer):
    """K_out maps, each the rectified sum of K_in maps that went through polynomial filters of their own.

        F_{i,k} = sum_{m=0..M} alpha_{i,m,k} L^m                              cf. Eq. (10) [eq:pol_filt_1]
        z_i     = max(0, 1/s_i sum_k 1[N_k] (F_{i,k} y_k) - abs(theta_i))     cf. Eqs. (11), (12) [eq:lincomb]

    alpha : array (K_out, M+1, K_in), or (K_out, M+2, K_in) with gradients
    threshold : array (K_out,), theta: responses below it are cut off
    s : `state["deviation"]` (K_out,), the deviation of the sums over training images at the start values; constants
        that `calibrate` sets once, so that every layer starts with responses of order 1
    active : "map" or "union", as for `SpectralConv`, or "all": what pooling left at 0 is filtered like the rest
    gradients : whether each map's squared gradient is one more term, weighted by alpha_{i,M+1,k},

        g_k = 2 y_k (L y_k) - L (y_k y_k),   node by node   (on a padded grid, at node n: sum_j W_nj / d (y_n - y_j)^2)

        for which M must be at least 1. Filters of the Laplacian are the same in all directions, so that they answer to
        an edge as to a blob; how steep a map is does not depend on directions either, and tells the two apart.
    diffusion : how often each z_i is at last replaced by (I - L/2) z_i, half of itself, half of its neighbours' mean.
        A rectifier leaves edges that are finer than the grid; how they fall on its nodes depends on how the image lies,
        and each layer adds to the difference. Smooth maps are what theorems 2 and 3 ask for, behind every layer.

    `SpectralConv` with full mixing is the case alpha_{i,m,k} = alpha_{i,m} beta_{i,k}, without the rectifier. The
    threshold only takes away: the empty background of an image is exactly 0 in every map, so that no map has
    a plateau from which dynamic pooling would have to choose by rounding errors.

    >>> from tigra.graph import grid_graph
    >>> alpha = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])  # the identity, and L
    >>> layer = PairedConv(grid_graph((1, 3), neighbours=4), alpha, threshold=np.array([0.0, 0.5]))
    >>> pixel = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1)
    >>> layer.forward(GraphSignal(pixel, np.ones((1, 3, 1), bool))).values[:, :, 0]  # L gives -1/4, 1, -1/4
    array([[0. , 1. , 0. ],
           [0. , 0.5, 0. ]])
    """

    def __init__(
        self, graph: Graph, alpha, threshold, active: str = "map", gradients: bool = False, diffusion: int = 0
    ):
        if active not in ("map", "union", "all"):
            raise UsageError(f"active must be 'map', 'union' or 'all', got {active!r}.")
        if np.ndim(alpha) != 3 or not np.size(alpha) or np.shape(threshold) != np.shape(alpha)[:1]:
            raise ShapeError(
                "PairedConv expects alpha of shape (K_out, M+1, K_in), none of them 0, and threshold of shape (K_out,),"
                f" got {np.shape(alpha)} and {np.shape(threshold)}."
            )
        if not isinstance(gradients, (bool, np.bool_)):
            raise UsageError(f"gradients must be True or False, got {gradients!r}.")
        if not isinstance(diffusion, (int, np.integer)) or diffusion < 0:
            raise UsageError(f"diffusion must be a whole number of steps >= 0, got {diffusion!r}.")
        super().__init__(alpha=alpha, threshold=threshold)
        self.graph, self.active, self.gradients, self.diffusion = graph, active, bool(gradients), int(diffusion)
        self.degree = alpha.shape[1] - 1 - int(gradients)
        if gradients and self.degree < 1:
            raise UsageError(f"Gradients are made of L y: filters need a degree of at least 1, got {self.degree}.")
        self.state = {"deviation": np.ones(len(alpha), alpha.dtype)}

    @classmethod
    def init(cls, graph, n_in, n_filters, degree, rng, dtype, active="map", gradients=False, diffusion=0) -> PairedConv:
        """Random alpha, whose size `calibrate` settles; thresholds from 0 to 0.4 of the responses' deviation."""
        n_terms = degree + 1 + int(gradients)
        alpha = rng.standard_normal((n_filters, n_terms, n_in)) / np.sqrt(n_terms * n_in)
        threshold = np.linspace(0, LARGEST_THRESHOLD, n_filters)
        return cls(graph, alpha.astype(dtype), threshold.astype(dtype), active, gradients, diffusion)

    @property
    def is_calibrated(self) -> bool:
        """Whether the deviations differ from 1."""
        return bool(np.any(self.state["deviation"] != 1))

    def calibrate(self, signal: GraphSignal) -> None:
        """Take the deviations from a batch of training images as they arrive here."""
        self.state["deviation"][:] = 1
        sums = self.sums(signal).astype(np.float64)
        deviation = np.sqrt((sums**2).mean(axis=1))
        self.state["deviation"][:] = np.where(deviation > 0, deviation, 1)

    def sums(self, signal: GraphSignal) -> np.ndarray:
        """What threshold and rectifier are applied to, (K_out, N B); a forward before it can no longer go backward."""
        self.forget()  # its terms lie where those of this signal come
        return self._sums(self._terms(signal)[0], np.empty)

    def forward(self, signal: GraphSignal) -> GraphSignal:
        """y (K_in, N, B), active (K_in or 1, N, B)  ->  z (K_out, N, B), active (1, N, B) = Omega."""
        terms, sets, omega = self._terms(signal)
        y = signal.values
        z = self._sums(terms, lambda shape, dtype: self._space.result("z", shape, dtype))
        z -= np.abs(self.params["threshold"])[:, None]
        z = np.maximum(z, 0, out=z).reshape(len(z), *terms.shape[2:])
        self._cache = y, terms, sets, z
        return GraphSignal(self._diffused(z, "diffused"), omega)

    def backward(self, grad_z: np.ndarray) -> np.ndarray:
        """dE/dz (K_out, N, B)  ->  dE/dy (K_in, N, B); fills grads alpha, threshold."""
        y, terms, sets, z = self._take_cache()
        grad_z = self._diffused(np.ascontiguousarray(grad_z), "grad_z")  # L is symmetric
        space, weights = self._space, self._weights()
        positive = np.greater(z, 0, out=space.array("positive", z.shape, bool))
        grad_sums = np.multiply(grad_z, positive, out=space.array("grad_sums", z.shape, z.dtype)).reshape(len(z), -1)
        self.grads["threshold"][:] = -np.sign(self.params["threshold"]) * grad_sums.sum(axis=1)
        flat_terms = terms.reshape(weights.shape[1], -1)
        grad_weights = (grad_sums @ flat_terms.T) / self.state["deviation"][:, None]
        self.grads["alpha"][:] = grad_weights.reshape(self.params["alpha"].shape)
        grad_terms = space.array("grad_terms", terms.shape, terms.dtype)
        np.matmul(weights.T, grad_sums, out=grad_terms.reshape(flat_terms.shape))
        if sets is not None:
            grad_terms *= sets
        if self.gradients:
            self._add_gradients_adjoint(y, terms[1], grad_terms)
        room = space.result("room", (2, *terms.shape[1:]), terms.dtype)
        return laplacian_powers_adjoint(self.graph, grad_terms[: self.degree + 1], room)

    def _weights(self) -> np.ndarray:
        """alpha / s as a matrix (K_out, (M+1) K_in)."""
        alpha = self.params["alpha"]
        return alpha.reshape(len(alpha), -1) / self.state["deviation"][:, None]

    def _terms(self, signal):
        """(1[N_k] L^m y_k as (M+1, K_in, N, B), the sets or None if they are not needed, Omega)."""
        alpha = self.params["alpha"]
        y, sets = self._check_signal(signal, alpha.shape[2], self.graph.n_nodes)
        omega = sets.any(axis=0, keepdims=True) if len(sets) > 1 else sets
        terms = self._space.array("terms", (alpha.shape[1], *y.shape), y.dtype)
        laplacian_powers(self.graph, np.ascontiguousarray(y), self.degree, out=terms[: self.degree + 1])
        if self.gradients:
            self._squared_gradients(terms[0], terms[1], out=terms[-1])
        if self.active == "all":
            return terms, None, np.ones_like(omega)
        sets = omega if self.active == "union" else sets
        if sets.all():
            return terms, None, omega
        terms *= sets
        return terms, sets, omega

    def _sums(self, terms, room):
        """The sums before the rectifier, (K_out, N B), in an array that room(shape, dtype) gives."""
        weights = self._weights()
        flat = terms.reshape(weights.shape[1], -1)
        sums = room((len(weights), flat.shape[1]), terms.dtype)
        combine(weights, flat, sums)
        return sums

    def _diffused(self, z, name):
        """(I - L/2)^diffusion z."""
        for step in range(self.diffusion):
            room = self._space.result(f"{name} {step % 2}", z.shape, z.dtype)
            z = laplacian_step(self.graph, z, z, -0.5, 1, 0, out=room)
        return z

    def _squared_gradients(self, y, filtered, out):
        """Fill out with g = 2 y (L y) - L (y y); filtered is L y."""
        product, square = (self._space.array(name, y.shape, y.dtype) for name in ("product", "square"))
        np.multiply(y, filtered, out=product)
        np.multiply(y, y, out=square)
        laplacian_step(self.graph, square, product, -1, 0, 2, out=out)

    def _add_gradients_adjoint(self, y, filtered, grad_terms):
        """Add to dE/dy and dE/d(L y), the first two of grad_terms, what comes through g, whose dE/dg is the last."""
        product, square = (self._space.array(name, y.shape, y.dtype) for name in ("product", "square"))
        grad_g = grad_terms[-1]
        grad_terms[1] += np.multiply(np.multiply(grad_g, y, out=product), 2, out=product)
        grad_terms[0] += np.multiply(np.multiply(grad_g, filtered, out=product), 2, out=product)
        laplacian_step(self.graph, grad_g, grad_g, 2, 0, 0, out=square)  # L is symmetric
        grad_terms[0] -= np.multiply(square, y, out=square)
