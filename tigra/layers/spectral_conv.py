"""Spectral convolution: polynomial filters of the Laplacian (paper, section 4.1)."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.graph.operators import masked_powers, masked_powers_adjoint
from tigra.graph.polynomials import laplacian_powers, laplacian_powers_adjoint
from tigra.kernels.steps import combine
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
            combine(beta[None], _flat(y), _flat(mixed))
            u = masked_powers(self.graph, mixed, sets, np.ones_like(beta[:1]), alpha.shape[1] - 1, self._space)
        else:  # u_m = sum_k beta_k 1[N_k] L^m y_k
            u = masked_powers(self.graph, y, sets, beta, alpha.shape[1] - 1, self._space)
        z = self._space.result("z", (len(alpha), *y.shape[1:]), y.dtype)
        combine(alpha, _flat(u), _flat(z))  # Eq. (12) [eq:lincomb]
        self._cache = y, sets, u
        return z

    def _backward_vector(self, grad_z):
        alpha, beta = self.params["alpha"], self.params["beta"]
        y, sets, u = self._take_cache()
        self.grads["alpha"][:] = _flat(grad_z) @ _flat(u).T  # Eq. (15) [eq:der1]
        grad_u = self._space.array("grad_u", u.shape, u.dtype)
        np.matmul(alpha.T, _flat(grad_z), out=_flat(grad_u))
        back = masked_powers_adjoint(self.graph, grad_u, sets, self._space)
        if len(sets) == 1:
            self.grads["beta"][:] = _flat(y) @ back.ravel()  # Eq. (16) [eq:der2]
            grad_y = self._space.result("grad_y", y.shape, y.dtype)
            return np.multiply(beta[:, None, None], back, out=grad_y)  # Eq. (17) [eq:der_fm]
        for k in range(len(y)):
            self.grads["beta"][k] = np.vdot(y[k], back[k])  # Eq. (16) [eq:der2]
        back *= beta[:, None, None]  # Eq. (17) [eq:der_fm]
        return back

    def _forward_full(self, y, sets):
        alpha, beta = self.params["alpha"], self.params["beta"]
        terms = self._space.result("terms", (alpha.shape[1], *y.shape), y.dtype)
        laplacian_powers(self.graph, y, alpha.shape[1] - 1, out=terms)
        terms *= sets  # (M+1, K_in, N, B)
        z = self._space.result("z", (len(alpha), *y.shape[1:]), y.dtype)
        weights = alpha[:, :, None] * beta[:, None, :]  # (K_out, M+1, K_in)
        combine(_flat(weights), terms.reshape(weights[0].size, -1), _flat(z))  # Eq. (12) [eq:lincomb]
        self._cache = terms, sets
        return z

    def _backward_full(self, grad_z):
        alpha, beta = self.params["alpha"], self.params["beta"]
        terms, sets = self._take_cache()
        weights = alpha[:, :, None] * beta[:, None, :]
        flat_terms = terms.reshape(weights[0].size, -1)
        grad_weights = (_flat(grad_z) @ flat_terms.T).reshape(weights.shape)
        self.grads["alpha"][:] = np.einsum("imk,ik->im", grad_weights, beta)  # Eq. (15) [eq:der1]
        self.grads["beta"][:] = np.einsum("imk,im->ik", grad_weights, alpha)  # Eq. (16) [eq:der2]
        grad_terms = self._space.array("grad_terms", terms.shape, terms.dtype)
        np.matmul(_flat(weights).T, _flat(grad_z), out=grad_terms.reshape(flat_terms.shape))
        grad_terms *= sets
        room = self._space.result("room", (2, *terms.shape[1:]), terms.dtype)
        return laplacian_powers_adjoint(self.graph, grad_terms, room)  # Eq. (17) [eq:der_fm]


def spectral_windows(n_filters: int, degree: int) -> np.ndarray:
    """Initial values of alpha: polynomials fitted to rectangular windows that cover the spectrum [0, 2].

    The windows have equal width and overlap their neighbours by half (paper, section 6.1). A single filter gets the
    whole spectrum. The least-squares fit uses 1000 frequencies and the Chebyshev basis; the result is converted to
    powers of lambda.

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
    >>> spectral_windows(1, 1).round(12) + 0.0
    array([[1., 0.]])
    >>> low, high = spectral_windows(2, 1) @ np.array([[1.0, 1.0], [0.0, 2.0]])  # at 0 and at 2
    >>> bool(low[0] > low[1]), bool(high[0] < high[1])
    (True, True)
    """
    frequencies = (np.arange(1000) + 0.5) / 500
    width = 4.0 / (n_filters + 1)
    lower = np.arange(n_filters) * width / 2
    windows = (frequencies >= lower[:, None]) & (frequencies <= lower[:, None] + width)
    fit = np.polynomial.Chebyshev.fit
    return np.array(
        [_padded(fit(frequencies, window.astype(float), degree, domain=[0, 2]), degree + 1) for window in windows]
    )


def _padded(polynomial, length):
    """Coefficients of powers 0..length-1 (conversion drops trailing zeros)."""
    powers = polynomial.convert(kind=np.polynomial.Polynomial, domain=[-1, 1], window=[-1, 1])
    return np.pad(powers.coef, (0, length - len(powers.coef)))


def _flat(array: np.ndarray) -> np.ndarray:
    """(A, ...) -> (A, everything else), a view."""
    return array.reshape(len(array), -1)
