"""Spectral convolution in which every pair of maps has a filter of its own, with a rectifier: beyond the paper."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.graph.polynomials import (
    laplacian_powers,
    laplacian_powers_adjoint,
    laplacian_step,
)
from tigra.kernels.steps import combine
from tigra.layers.base import Layer
from tigra.option_fields import renamed

LARGEST_THRESHOLD = 0.4  # of the start values


class PairedConv(Layer):
    """K_out maps, each the rectified sum of K_in maps that went through polynomial filters of their own.

        F_{i,k} = sum_{m=0..M} alpha_{i,m,k} L^m                              cf. Eq. (10) [eq:pol_filt_1]
        z_i     = max(0, 1/s_i sum_k 1[N_k] (F_{i,k} y_k) - abs(theta_i))     cf. Eqs. (11), (12) [eq:lincomb]

    alpha : array (K_out, M+1, K_in), or (K_out, M+1+J, K_in) with J gradients
    threshold : array (K_out,), theta: responses below it are cut off
    s : `state["deviation"]` (K_out,), the deviation of the sums over training images at the start values; constants
        that `calibrate` sets once, so that every layer starts with responses of order 1
    active_set : "map" or "union", as for `SpectralConv`, or "all": what pooling left at 0 is filtered like the rest
    gradients : J, how many products of gradients are terms of each map, too; the j-th is that of its own gradient and
        of the gradient of the map p = k + j (counted around: K_in is 0 again), weighted by alpha_{i,M+1+j,k},

        q_{k,j} = y_k (L y_p) + y_p (L y_k) - L (y_k y_p),   node by node
                  (on a padded grid, at node n: sum_m w_nm (y_k,n - y_k,m) (y_p,n - y_p,m) over its neighbours m, those
                  outside of the grid, too, where y is 0; w_nm the edge's weight over the degree, inside -L_nm)

        for which M must be at least 1. Filters of the Laplacian are the same in all directions, so that they answer to
        an edge as to a blob; how steep a map is (j = 0), and whether two maps rise in the same direction (j > 0), does
        not depend on how the image lies either, and tells the two apart.
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

    calibration_images = 64  # maps are large: a few images will do
    positive_state = ("deviation",)

    @renamed(active="active_set")
    def __init__(self, graph: Graph, alpha, threshold, active_set: str = "map", gradients: int = 0, diffusion: int = 0):
        if active_set not in ("map", "union", "all"):
            raise UsageError(f"active_set must be 'map', 'union' or 'all', got {active_set!r}.")
        if np.ndim(alpha) != 3 or not np.size(alpha) or np.shape(threshold) != np.shape(alpha)[:1]:
            raise ShapeError(
                "PairedConv expects alpha of shape (K_out, M+1, K_in), or (K_out, M+1+J, K_in) with J gradients, none"
                f" of them 0, and threshold of shape (K_out,), got {np.shape(alpha)} and {np.shape(threshold)}."
            )
        if not isinstance(gradients, (int, np.integer)) or not 0 <= gradients <= np.shape(alpha)[2]:
            raise UsageError(
                f"gradients must be a number of products from 0 to K_in = {np.shape(alpha)[2]}, got {gradients!r}."
            )
        if not isinstance(diffusion, (int, np.integer)) or diffusion < 0:
            raise UsageError(f"diffusion must be a whole number of steps >= 0, got {diffusion!r}.")
        super().__init__(alpha=alpha, threshold=threshold)
        self.graph, self.active_set, self.gradients, self.diffusion = graph, active_set, int(gradients), int(diffusion)
        self.degree = alpha.shape[1] - 1 - self.gradients
        if gradients and self.degree < 1:
            raise UsageError(f"Gradients are made of L y: filters need a degree of at least 1, got {self.degree}.")
        self.state = {"deviation": np.ones(len(alpha), alpha.dtype)}

    @staticmethod
    def shapes(n_in: int, n_filters: int, degree: int, gradients: int = 0) -> dict[str, tuple[int, ...]]:
        """Name -> shape of the parameters; a layer of fewer maps than gradients has as many products as maps."""
        return {"alpha": (n_filters, degree + 1 + min(gradients, n_in), n_in), "threshold": (n_filters,)}

    @classmethod
    def init(cls, graph, n_in, n_filters, degree, rng, dtype, active_set="map", gradients=0, diffusion=0) -> PairedConv:
        """Random alpha, whose size `calibrate` settles; thresholds from 0 to 0.4 of the responses' deviation."""
        _, n_terms, _ = shape = cls.shapes(n_in, n_filters, degree, gradients)["alpha"]
        alpha = rng.standard_normal(shape) / np.sqrt(n_terms * n_in)
        threshold = np.linspace(0, LARGEST_THRESHOLD, n_filters)
        return cls(graph, alpha.astype(dtype), threshold.astype(dtype), active_set, min(gradients, n_in), diffusion)

    @property
    def needs_calibration(self) -> bool:
        """Whether the deviations are still 1."""
        return bool(np.all(self.state["deviation"] == 1))

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
        terms, maps, sets, omega = self._terms(signal)
        z = self._sums(terms, lambda shape, dtype: self._space.result("z", shape, dtype))
        z -= np.abs(self.params["threshold"])[:, None]
        z = np.maximum(z, 0, out=z).reshape(len(z), *terms.shape[2:])
        self._cache = terms, maps, sets, z
        return GraphSignal(self._diffused(z, "diffused"), omega)

    def backward(self, grad_z: np.ndarray) -> np.ndarray:
        """dE/dz (K_out, N, B)  ->  dE/dy (K_in, N, B); fills grads alpha, threshold."""
        terms, maps, sets, z = self._take_cache()
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
            self._add_gradients_adjoint(maps, grad_terms)
        room = space.result("room", (2, *terms.shape[1:]), terms.dtype)
        return laplacian_powers_adjoint(self.graph, grad_terms[: self.degree + 1], room)

    def decisions(self, x: GraphSignal, y: GraphSignal) -> list[np.ndarray]:
        """Which responses are above the threshold."""
        return [] if self._cache is None else [self._cache[3] > 0]

    @property
    def label(self) -> str:
        """SC[K, M]"""
        return f"SC[{len(self.params['alpha'])}, {self.degree}]"

    def filter_coefficients(self, params: dict[str, np.ndarray]) -> np.ndarray:
        """Coefficients (K, M+1) of the response to equal input maps, before threshold and rectifier."""
        return params["alpha"][:, : self.degree + 1].sum(axis=2) / self.state["deviation"][:, None]

    def _weights(self) -> np.ndarray:
        """alpha / s as a matrix (K_out, (M+1+J) K_in)."""
        alpha = self.params["alpha"]
        return alpha.reshape(len(alpha), -1) / self.state["deviation"][:, None]

    def _terms(self, signal):
        """(1[N_k] L^m y_k and 1[N_k] q_{k,j} as (M+1+J, K_in, N, B), y and L y, the sets or None for all, Omega)."""
        alpha = self.params["alpha"]
        y, sets = self._check_signal(signal, alpha.shape[2], self.graph.n_nodes)
        omega = np.any(sets, axis=0, keepdims=True) if len(sets) > 1 else sets
        terms = self._space.array("terms", (alpha.shape[1], *y.shape), y.dtype)
        laplacian_powers(self.graph, np.ascontiguousarray(y), self.degree, out=terms[: self.degree + 1])
        maps = terms[:2]
        if self.gradients:
            self._fill_gradients(maps, terms[self.degree + 1 :])
        if self.active_set == "all":
            return terms, maps, None, np.ones_like(omega)
        sets = omega if self.active_set == "union" else sets
        if sets.all():
            return terms, maps, None, omega
        if self.gradients:  # of maps as they are, before terms are masked
            maps = self._space.array("maps", maps.shape, maps.dtype)
            np.copyto(maps, terms[:2])
        terms *= sets
        return terms, maps, sets, omega

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

    def _fill_gradients(self, maps, out):
        """out[j, k] = q_{k,j} = y_k (L y_p) + y_p (L y_k) - L (y_k y_p); maps are y and L y."""
        y, filtered = maps
        sums, products = (self._space.array(name, y.shape, y.dtype) for name in ("sums", "products"))
        for j, q in enumerate(out):
            for k, p in self._partners(j):  # map by map: what is used again is still in the cache
                np.multiply(y[k], filtered[p], out=sums[k])
                sums[k] += np.multiply(y[p], filtered[k], out=products[k])
                np.multiply(y[k], y[p], out=products[k])
            laplacian_step(self.graph, products, sums, -1, 0, 1, out=q)

    def _add_gradients_adjoint(self, maps, grad_terms):
        """Add to dE/dy and dE/d(L y), the first two of grad_terms, what comes through q, whose dE/dq are the last."""
        (y, filtered), (grad_y, grad_filtered) = maps, grad_terms[:2]
        filtered_h, scratch = (self._space.array(name, y.shape, y.dtype) for name in ("sums", "products"))
        for j, h in enumerate(grad_terms[self.degree + 1 :]):
            laplacian_step(self.graph, h, h, 1, 0, 0, out=filtered_h)  # L is symmetric
            for k, p in self._partners(j):
                for one, other in ((k, p), (p, k)):  # twice the same for j = 0: y_k stands in it twice
                    grad_filtered[one] += np.multiply(h[k], y[other], out=scratch[k])
                    grad_y[one] += np.multiply(h[k], filtered[other], out=scratch[k])
                    grad_y[one] -= np.multiply(filtered_h[k], y[other], out=scratch[k])

    def _partners(self, j):
        """Pairs (k, k + j), the latter counted around."""
        n_in = self.params["alpha"].shape[2]
        return [(k, (k + j) % n_in) for k in range(n_in)]
