"""Spectral convolution: polynomial filters of the Laplacian (paper, section 4.1)."""

from __future__ import annotations

from fractions import Fraction
from itertools import compress
from math import comb

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.graph.operators import masked_powers, masked_powers_adjoint
from tigra.graph.polynomials import laplacian_powers, laplacian_powers_adjoint
from tigra.kernels.products import dot, times, times_transposed, transposed_times
from tigra.layers.base import Layer
from tigra.option_fields import renamed


class SpectralConv(Layer):
    """Spectral convolution: polynomial filters of the Laplacian, whose outputs are mixed over the input maps.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    alpha : array (K_out, M+1)
        Coefficients of K_out filters of degree M.
    beta : array (K_in,) or (K_out, K_in)
        Weights of the input maps. As printed in the paper, one vector for all filters ("vector" mixing), or one row
        per filter ("full" mixing).
    active_set : {"map", "union"}
        Nodes on which a filtered map counts: the set N_k of its input map, or the union Omega of all sets.

    Notes
    -----
    The layer computes

        F_i  = sum_{m=0..M} alpha_{i,m} L^m                  Eq. (10) [eq:pol_filt_1]
        z_i  = sum_k beta_k 1[N_k] (F_i y_k)                 Eqs. (11), (12) [eq:pol_filt_2, eq:lincomb]

    Implementation: beta has no index i, so the input maps can be mixed before the filters are applied,

        u_m = sum_k beta_k 1[N_k] L^m y_k
        z_i = sum_m alpha_{i,m} u_m

    With one set for all maps, u_m = 1[Omega] L^m (sum_k beta_k y_k). Full mixing is one product,
    z_i = sum_{m,k} (alpha_{i,m} beta_{i,k}) 1[N_k] L^m y_k. tests/layers/test_spectral_conv.py compares all of them
    with the equations as printed.

    Departs from the paper: Eq. (11) indexes the set by the filter i of this layer, although it is a set of the layer
    below. We use the set of the input map k (docs/errata.md).

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> layer = SpectralConv(grid_graph((1, 3), neighbours=4), alpha=[[1.0, 0.0], [0.0, 1.0]], beta=[2.0])
    >>> pixel = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1)
    >>> layer.forward(GraphSignal(pixel, np.ones((1, 3, 1), bool))).values[:, :, 0]
    array([[ 0. ,  2. ,  0. ],
           [-0.5,  2. , -0.5]])
    """

    @renamed(active="active_set")
    def __init__(self, graph: Graph, alpha, beta, active_set: str = "map"):
        alpha, beta = np.asarray(alpha), np.asarray(beta)
        if active_set not in ("map", "union"):
            raise UsageError(
                "active_set must be 'map' or 'union' ('all' goes with mixing 'pairs', 'gradients' and 'products'),"
                f" got {active_set!r}."
            )
        if alpha.ndim != 2 or beta.ndim not in (1, 2) or (beta.ndim == 2 and len(beta) != len(alpha)):
            raise ShapeError(
                "SpectralConv expects alpha of shape (K_out, M+1) and beta of shape (K_in,) or"
                f" (K_out, K_in), got {alpha.shape} and {beta.shape}."
            )
        super().__init__(alpha=alpha, beta=beta)
        self.graph = graph
        self.active_set = active_set

    @staticmethod
    def shapes(n_in: int, n_filters: int, degree: int, mixing: str = "vector") -> dict[str, tuple[int, ...]]:
        """Name -> shape of the parameters."""
        return {"alpha": (n_filters, degree + 1), "beta": (n_in,) if mixing == "vector" else (n_filters, n_in)}

    @classmethod
    def init(cls, graph, n_in, n_filters, degree, rng, dtype, mixing="vector", active_set="map") -> SpectralConv:
        """Create a layer as in section 6.1 of the paper: spectral windows for alpha, U[0, 1] for beta."""
        if mixing not in ("vector", "full"):
            raise UsageError(f"mixing must be 'vector' or 'full', got {mixing!r}.")
        alpha = spectral_windows(n_filters, degree)
        beta = rng.uniform(0, 1, cls.shapes(n_in, n_filters, degree, mixing)["beta"])
        return cls(graph, alpha.astype(dtype), beta.astype(dtype), active_set)

    def forward(self, signal: GraphSignal) -> GraphSignal:
        """y (K_in, N, B), active (K_in or 1, N, B)  ->  z (K_out, N, B), active (1, N, B) = Omega."""
        y, sets = self._check_signal(signal, self.params["beta"].shape[-1], self.graph.n_nodes)
        y, sets = np.ascontiguousarray(y), np.ascontiguousarray(sets)
        omega = np.any(sets, axis=0, keepdims=True) if len(sets) > 1 else sets
        if self.active_set == "union":
            sets = omega
        z = self._forward_full(y, sets) if self.params["beta"].ndim == 2 else self._forward_vector(y, sets)
        return GraphSignal(z, omega)

    def backward(self, grad_z: np.ndarray) -> np.ndarray:
        """dE/dz (K_out, N, B)  ->  dE/dy (K_in, N, B); fills grads alpha, beta."""
        if self.params["beta"].ndim == 2:
            return self._backward_full(grad_z)
        return self._backward_vector(grad_z)

    def to_onnx(self, to, signal):
        """Powers of L of all maps, masked by the active sets, and their weighted sum."""
        alpha, beta = self.params["alpha"], self.params["beta"]
        y, omega = signal.values, to.union(signal.active)
        sets = omega if self.active_set == "union" else signal.active
        if beta.ndim == 1 and sets is omega:  # one set for all maps: mix first, filter once
            y, beta = to.mix(y, beta[None]), np.ones((1, 1), beta.dtype)
        terms = [to.where(sets, term) for term in to.powers(self.graph, y, alpha.shape[1] - 1)]
        weights = alpha[:, :, None] * np.atleast_2d(beta)[:, None, :]  # (K_out or 1, M+1, K_in)
        values = to.mix(to.concatenate(terms), _flat(np.ascontiguousarray(weights)))
        return signal._replace(values=values, active=omega)

    @property
    def label(self) -> str:
        """SC[K, M]"""
        n_filters, n_terms = self.params["alpha"].shape
        return f"SC[{n_filters}, {n_terms - 1}]"

    def filter_coefficients(self, params: dict[str, np.ndarray]) -> np.ndarray:
        """Coefficients (K, M+1) of the filters as polynomials of L, for parameters like this layer's."""
        return params["alpha"]

    def _forward_vector(self, y, sets):
        alpha, beta = self.params["alpha"], self.params["beta"]
        if len(sets) == 1:  # one set for all maps: mix first, filter once
            mixed = self._space.array("mixed", (1, *y.shape[1:]), y.dtype)
            times(beta[None], _flat(y), _flat(mixed))
            u = masked_powers(self.graph, mixed, sets, np.ones_like(beta[:1]), alpha.shape[1] - 1, self._space)
        else:  # u_m = sum_k beta_k 1[N_k] L^m y_k
            u = masked_powers(self.graph, y, sets, beta, alpha.shape[1] - 1, self._space)
        z = self._space.result("z", (len(alpha), *y.shape[1:]), y.dtype)
        times(alpha, _flat(u), _flat(z))  # Eq. (12) [eq:lincomb]
        self._cache = y, sets, u
        return z

    def _backward_vector(self, grad_z):
        alpha, beta = self.params["alpha"], self.params["beta"]
        y, sets, u = self._take_cache()
        times_transposed(_flat(grad_z), _flat(u), self.grads["alpha"])  # Eq. (15) [eq:der1]
        grad_u = self._space.array("grad_u", u.shape, u.dtype)
        transposed_times(alpha, _flat(grad_z), _flat(grad_u))
        back = masked_powers_adjoint(self.graph, grad_u, sets, self._space)
        if len(sets) == 1:
            times_transposed(_flat(back), _flat(y), self.grads["beta"][None])  # Eq. (16) [eq:der2]
            grad_y = self._space.result("grad_y", y.shape, y.dtype)
            return np.multiply(beta[:, None, None], back, out=grad_y)  # Eq. (17) [eq:der_fm]
        for k in range(len(y)):
            self.grads["beta"][k] = dot(y[k], back[k])  # Eq. (16) [eq:der2]
        back *= beta[:, None, None]  # Eq. (17) [eq:der_fm]
        return back

    def _forward_full(self, y, sets):
        alpha, beta = self.params["alpha"], self.params["beta"]
        terms = self._space.result("terms", (alpha.shape[1], *y.shape), y.dtype)
        laplacian_powers(self.graph, y, alpha.shape[1] - 1, out=terms)
        terms *= sets  # (M+1, K_in, N, B)
        z = self._space.result("z", (len(alpha), *y.shape[1:]), y.dtype)
        weights = alpha[:, :, None] * beta[:, None, :]  # (K_out, M+1, K_in)
        times(_flat(weights), terms.reshape(weights[0].size, -1), _flat(z))  # Eq. (12) [eq:lincomb]
        self._cache = terms, sets
        return z

    def _backward_full(self, grad_z):
        alpha, beta = self.params["alpha"], self.params["beta"]
        terms, sets = self._take_cache()
        weights = alpha[:, :, None] * beta[:, None, :]
        flat_terms = terms.reshape(weights[0].size, -1)
        grad_weights = times_transposed(_flat(grad_z), flat_terms, np.empty_like(_flat(weights))).reshape(weights.shape)
        self.grads["alpha"][:] = (grad_weights * beta[:, None, :]).sum(axis=2)  # Eq. (15) [eq:der1]
        self.grads["beta"][:] = (grad_weights * alpha[:, :, None]).sum(axis=1)  # Eq. (16) [eq:der2]
        grad_terms = self._space.array("grad_terms", terms.shape, terms.dtype)
        transposed_times(_flat(weights), _flat(grad_z), grad_terms.reshape(flat_terms.shape))
        grad_terms *= sets
        room = self._space.result("room", (2, *terms.shape[1:]), terms.dtype)
        return laplacian_powers_adjoint(self.graph, grad_terms, room)  # Eq. (17) [eq:der_fm]


def spectral_windows(n_filters: int, degree: int) -> np.ndarray:
    """Initial values of alpha: polynomials fitted to rectangular windows that cover the spectrum [0, 2].

    The windows have equal width and overlap their neighbours by half (paper, section 6.1). A single filter gets the
    whole spectrum. The least-squares fit at 1000 frequencies is solved in fractions and rounded once, so that a
    coefficient that is 0 is exactly 0, and all are the same on every processor.

    Parameters
    ----------
    n_filters : int
        Number of windows.
    degree : int
        Degree of the polynomials.

    Returns
    -------
    array (n_filters, degree+1)
        Coefficients, lowest power first.

    Examples
    --------
    >>> spectral_windows(1, 1)
    array([[1., 0.]])
    >>> low, high = spectral_windows(2, 1) @ np.array([[1.0, 1.0], [0.0, 2.0]])  # at 0 and at 2
    >>> bool(low[0] > low[1]), bool(high[0] < high[1])
    (True, True)
    """
    frequencies = (np.arange(1000) + 0.5) / 500
    width = 4.0 / (n_filters + 1)
    lower = np.arange(n_filters) * width / 2
    windows = (frequencies >= lower[:, None]) & (frequencies <= lower[:, None] + width)
    places = [2 * j - 999 for j in range(1000)]  # 1000 (frequency - 1), whole numbers
    powers = [[place**m for place in places] for m in range(2 * degree + 1)]
    total = [sum(power) for power in powers]
    matrix = [[Fraction(total[m + n]) for n in range(degree + 1)] for m in range(degree + 1)]
    sides = [[Fraction(sum(compress(powers[m], window))) for window in windows] for m in range(degree + 1)]
    fitted = _solved(matrix, sides)
    return np.array([_shifted([row[i] for row in fitted]) for i in range(n_filters)])


def _solved(matrix: list[list[Fraction]], sides: list[list[Fraction]]) -> list[list[Fraction]]:
    """Solution X of A X = B for a positive definite A, by elimination."""
    rows = [[*a, *b] for a, b in zip(matrix, sides, strict=True)]
    for m, pivot in enumerate(rows):
        pivot[:] = [value / pivot[m] for value in pivot]
        for other in rows:
            if other is not pivot and other[m]:
                factor = other[m]
                other[:] = [value - factor * scaled for value, scaled in zip(other, pivot, strict=True)]
    return [row[len(rows) :] for row in rows]


def _shifted(coefficients: list[Fraction]) -> list[float]:
    """Coefficients of powers of lambda, from those of powers of t = 1000 (lambda - 1)."""
    scaled = [c * 1000**m for m, c in enumerate(coefficients)]
    signed = [[c * comb(m, n) * (-1) ** (m - n) for m, c in enumerate(scaled)] for n in range(len(scaled))]
    return [float(sum(terms)) for terms in signed]


def _flat(array: np.ndarray) -> np.ndarray:
    """(A, ...) -> (A, everything else), a view."""
    return array.reshape(len(array), -1)
