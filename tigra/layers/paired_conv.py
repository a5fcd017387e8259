"""Spectral convolution with one filter per pair of maps and a rectifier; an extension of the paper."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.graph.polynomials import (
    laplacian_powers,
    laplacian_powers_adjoint,
    laplacian_step,
)
from tigra.kernels.products import times, times_transposed, transposed_times
from tigra.layers.base import Layer
from tigra.option_fields import renamed

LARGEST_THRESHOLD = 0.4  # of the initial values


class PairedConv(Layer):
    """Spectral convolution with a filter for each pair of input and output maps, followed by a rectifier.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    alpha : array (K_out, M+1, K_in)
        Filter coefficients; (K_out, M+1+J, K_in) with J products of gradients.
    threshold : array (K_out,)
        theta; responses below its absolute value become 0.
    active_set : {"map", "union", "all"}
        "map" and "union" as for `SpectralConv`. With "all", nodes that pooling set to 0 are filtered like the others.
    gradients : int
        J, the number of products of gradients per input map, from 0 to K_in. Needs M of at least 1.
    diffusion : int
        How often each output map is replaced by (I - L/2) z_i, the mean of the map and of its neighbours' average.

    Notes
    -----
    The layer computes

        F_{i,k} = sum_{m=0..M} alpha_{i,m,k} L^m                              cf. Eq. (10) [eq:pol_filt_1]
        z_i     = max(0, 1/s_i sum_k 1[N_k] (F_{i,k} y_k) - abs(theta_i))     cf. Eqs. (11), (12) [eq:lincomb]

    `SpectralConv` with full mixing is the special case alpha_{i,m,k} = alpha_{i,m} beta_{i,k} without the rectifier.

    Scale: s is `state["deviation"]` (K_out,), the root mean square of the sums over training images at the initial
    parameters. `calibrate` sets it once, so that every layer starts with responses of order 1.

    Threshold: it only lowers responses. The empty background of an image therefore stays exactly 0 in every map, and
    dynamic pooling never has to select nodes by rounding errors.

    Products of gradients: with p = (k + j) mod K_in and j = 0..J-1, node by node,

        q_{k,j} = y_k (L y_p) + y_p (L y_k) - L (y_k y_p)

    is added to the terms of map k, with weight alpha_{i,M+1+j,k}. On a padded grid, its value at node n is the sum
    over all neighbours m of w_nm (y_k,n - y_k,m) (y_p,n - y_p,m). Here w_nm is the edge weight divided by the degree,
    and neighbours outside the grid count with y = 0. Filters of the Laplacian are isotropic, so they respond to an
    edge as to a blob. The slope of a map (j = 0), and whether two maps rise in the same direction (j > 0), are
    invariant to rotations, too, and distinguish the two.

    Diffusion: the rectifier creates edges finer than the grid. How they fall on the nodes depends on the orientation
    of the image, and the differences grow from layer to layer. Diffusion keeps the maps smooth, as theorems 2 and 3
    require.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> alpha = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])  # the identity, and L
    >>> layer = PairedConv(grid_graph((1, 3), neighbours=4), alpha, threshold=np.array([0.0, 0.5]))
    >>> pixel = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1)
    >>> layer.forward(GraphSignal(pixel, np.ones((1, 3, 1), bool))).values[:, :, 0]  # L gives -1/4, 1, -1/4
    array([[0. , 1. , 0. ],
           [0. , 0.5, 0. ]])
    """

    calibration_images = 64  # of all classes; maps are large, and a few images are enough
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
            raise UsageError(f"Gradients need filters of degree at least 1, got {self.degree}.")
        self.state = {"deviation": np.ones(len(alpha), alpha.dtype)}

    @staticmethod
    def shapes(n_in: int, n_filters: int, degree: int, gradients: int = 0) -> dict[str, tuple[int, ...]]:
        """Name -> shape of the parameters; the number of products is at most the number of input maps."""
        return {"alpha": (n_filters, degree + 1 + min(gradients, n_in), n_in), "threshold": (n_filters,)}

    @classmethod
    def init(cls, graph, n_in, n_filters, degree, rng, dtype, active_set="map", gradients=0, diffusion=0) -> PairedConv:
        """Create a layer with normal random alpha, scaled later by `calibrate`, and thresholds from 0 to 0.4."""
        _, n_terms, _ = shape = cls.shapes(n_in, n_filters, degree, gradients)["alpha"]
        alpha = rng.standard_normal(shape) / np.sqrt(n_terms * n_in)
        threshold = np.linspace(0, LARGEST_THRESHOLD, n_filters)
        return cls(graph, alpha.astype(dtype), threshold.astype(dtype), active_set, min(gradients, n_in), diffusion)

    @property
    def needs_calibration(self) -> bool:
        """Whether the deviations are still 1."""
        return bool(np.all(self.state["deviation"] == 1))

    def calibrate(self, signal: GraphSignal) -> None:
        """Set the deviations from this layer's input for a batch of training images."""
        self.state["deviation"][:] = 1
        sums = self.sums(signal).astype(np.float64)
        deviation = np.sqrt((sums**2).mean(axis=1))
        self.state["deviation"][:] = np.where(deviation > 0, deviation, 1)

    def sums(self, signal: GraphSignal) -> np.ndarray:
        """The sums (K_out, N B) before threshold and rectifier; invalidates the cache of an earlier forward."""
        self.forget()  # the new terms overwrite its terms
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
        grad_alpha = times_transposed(grad_sums, flat_terms, self.grads["alpha"].reshape(weights.shape))
        grad_alpha /= self.state["deviation"][:, None]
        grad_terms = space.array("grad_terms", terms.shape, terms.dtype)
        transposed_times(weights, grad_sums, grad_terms.reshape(flat_terms.shape))
        if sets is not None:
            grad_terms *= sets
        if self.gradients:
            self._add_gradients_adjoint(maps, grad_terms)
        room = space.result("room", (2, *terms.shape[1:]), terms.dtype)
        return laplacian_powers_adjoint(self.graph, grad_terms[: self.degree + 1], room)

    def decisions(self, x: GraphSignal, y: GraphSignal) -> list[np.ndarray]:
        """Which responses are above the threshold."""
        return [] if self._cache is None else [self._cache[3] > 0]

    def to_onnx(self, to, signal):
        """Terms of all maps, masked by the active sets, their weighted sum, the rectifier and diffusion."""
        y, omega = signal.values, to.union(signal.active)
        terms = to.powers(self.graph, y, self.degree)
        for j in range(self.gradients):
            partners = [p for _, p in self._partners(j)]
            other, filtered = (to.take(term, partners) if j else term for term in terms[:2])
            sums = to.add(to.multiply(y, filtered), to.multiply(other, terms[1]))
            terms.append(to.subtract(sums, to.laplacian(self.graph, to.multiply(y, other))))
        sets = {"map": signal.active, "union": omega, "all": None}[self.active_set]
        flat = to.concatenate([to.where(sets, term) for term in terms])
        z = to.relu(to.mix(flat, self._weights(), -np.abs(self.params["threshold"])))
        active = None if self.active_set == "all" else omega
        return signal._replace(values=to.diffused(self.graph, z, self.diffusion), active=active)

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
        if self.gradients:  # keep a copy of the maps before the terms are masked
            maps = self._space.array("maps", maps.shape, maps.dtype)
            np.copyto(maps, terms[:2])
        terms *= sets
        return terms, maps, sets, omega

    def _sums(self, terms, room):
        """The sums before the rectifier, (K_out, N B), in an array made by room(shape, dtype)."""
        weights = self._weights()
        flat = terms.reshape(weights.shape[1], -1)
        sums = room((len(weights), flat.shape[1]), terms.dtype)
        return times(weights, flat, sums)

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
            for k, p in self._partners(j):  # map by map, to reuse the CPU cache
                np.multiply(y[k], filtered[p], out=sums[k])
                sums[k] += np.multiply(y[p], filtered[k], out=products[k])
                np.multiply(y[k], y[p], out=products[k])
            laplacian_step(self.graph, products, sums, -1, 0, 1, out=q)

    def _add_gradients_adjoint(self, maps, grad_terms):
        """Add the gradient through q, whose dE/dq are the last of grad_terms, to dE/dy and dE/d(L y), the first two."""
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
        """Pairs (k, (k + j) mod K_in)."""
        n_in = self.params["alpha"].shape[2]
        return [(k, (k + j) % n_in) for k in range(n_in)]
