"""Signals in the spectral domain: Fourier transform, convolution, filters, translation (paper, section 3).

Layers use polynomial filters, which need no eigenvectors. Here the eigenvectors are computed, for teaching and for
tests. Signals are arrays (N,) or (N, B), nodes first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from scipy import fft
from scipy.linalg import eigh

from tigra.errors import GraphError, ShapeError, UsageError
from tigra.graph import Graph, GridGraph

MOST_NODES = 2500  # of a dense (N, N) matrix: 50x50 pixels, the largest graph of the paper


class FourierBasis:
    """Eigenvectors chi_i of the Laplacian of a graph, with frequencies lambda_0 <= ... <= lambda_{N-1}.

    Parameters
    ----------
    graph : Graph
        The graph.

    Attributes
    ----------
    kind : {"sines", "cosines", "eigenvectors"}
        How the eigenvectors are computed.

        "sines": a padded grid. L is a combination of the adjacency matrices of rows and columns, whose
        eigenvectors are sines. So chi is a product of sines, and there is a fast transform at any size.

        "cosines": one row or column with a free boundary. chi is D^1/2 times a cosine. A free grid of three or more
        rows and columns has no such form, because its degrees are not a product of one factor for rows and one
        for columns. For two rows or columns they are, but these use the eigendecomposition.

        "eigenvectors": any other graph, by eigendecomposition, up to `MOST_NODES` nodes.
    eigenvalues : array of shape (N,)
        Frequencies.

    Notes
    -----
    Departs from the paper: the paper does not say which of chi_i and -chi_i to take, or which basis for equal
    frequencies, although Eqs. (5) and (8) depend on both. Here the first nonzero entry of chi_i is positive. Equal
    frequencies are in the order of (row, column) for sines, and in that of LAPACK otherwise.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> row = FourierBasis(grid_graph((1, 3), boundary="free"))
    >>> row.kind, row.eigenvalues.round(3).tolist()
    ('cosines', [0.0, 1.0, 2.0])
    >>> row.vectors.round(3) + 0.0
    array([[ 0.5  ,  0.707,  0.5  ],
           [ 0.707,  0.   , -0.707],
           [ 0.5  , -0.707,  0.5  ]])
    """

    def __init__(self, graph: Graph):
        self.graph = graph
        self.kind = _kind(graph)
        if self.kind == "eigenvectors":
            self.eigenvalues, self.vectors = _eigenvectors(graph)
            return
        frequencies = _sine_frequencies(graph) if self.kind == "sines" else _cosine_frequencies(graph.n_nodes)
        self._order = np.argsort(frequencies.round(12), kind="stable")  # rounded, so that equal ones keep their order
        self.eigenvalues = frequencies[self._order]

    @cached_property
    def vectors(self) -> np.ndarray:
        """chi as a dense matrix (N, N), with eigenvector i in column i; up to `MOST_NODES` nodes."""
        _check_size(self.graph.n_nodes, "A matrix of all eigenvectors")
        return self.inverse(np.eye(self.graph.n_nodes))

    def transform(self, y: np.ndarray) -> np.ndarray:
        """Return the graph Fourier transform, hat y(lambda_i) = sum_n y(v_n) chi_i(v_n), Eq. (3).

        >>> from tigra.graph import grid_graph
        >>> row = grid_graph((1, 3), boundary="free")
        >>> FourierBasis(row).transform(np.sqrt(row.degrees)).round(3) + 0.0  # D^1/2 1 has frequency 0 alone
        array([2., 0., 0.])
        """
        y = self._checked(y)
        if self.kind == "eigenvectors":
            return self.vectors.T @ y  # Eq. (3)
        return self._fast(y)[self._order]

    def inverse(self, y_hat: np.ndarray) -> np.ndarray:
        """Return the signal of a spectrum, y(v_n) = sum_i hat y(lambda_i) chi_i(v_n), Eq. (4)."""
        y_hat = self._checked(y_hat)
        if self.kind == "eigenvectors":
            return self.vectors @ y_hat  # Eq. (4)
        unsorted = np.empty_like(y_hat)
        unsorted[self._order] = y_hat
        return self._fast(unsorted)

    def _fast(self, y: np.ndarray) -> np.ndarray:
        """Return chi^T y with frequencies in the order of nodes; it equals chi y, as these matrices are symmetric."""
        if self.kind == "cosines":
            return fft.dct(y, type=1, axis=0, norm="ortho")
        assert isinstance(self.graph, GridGraph)
        image = y.reshape(*self.graph.shape, *y.shape[1:])
        return fft.dstn(image, type=1, axes=(0, 1), norm="ortho").reshape(y.shape)

    def _checked(self, y) -> np.ndarray:
        y, n_nodes = np.asarray(y), self.graph.n_nodes
        if y.ndim not in (1, 2) or y.shape[0] != n_nodes or not np.issubdtype(y.dtype, np.number):
            raise ShapeError(
                f"Expected signals ({n_nodes},) or ({n_nodes}, B), nodes first, got {y.dtype} {y.shape};"
                " an image (height, width) becomes a signal by .ravel()."
            )
        return y.astype(np.result_type(y.dtype, np.float64), copy=False)


# --- what one does with a spectrum --------------------------------------------------------------------


def convolve(basis: FourierBasis, y1: np.ndarray, y2: np.ndarray) -> np.ndarray:
    """Generalised convolution, (y1 * y2)(v_n) = sum_i hat y1(lambda_i) hat y2(lambda_i) chi_i(v_n), Eq. (5) [eq:conv].

    Unlike a filter it depends on the sign of each chi_i, and on the choice of eigenvectors of equal frequencies.

    Parameters
    ----------
    basis : FourierBasis
        The eigenvectors.
    y1, y2 : arrays of shape (N,) or (N, B)
        Signals. Batches are convolved pair by pair; a single signal is convolved with each of the other batch.

    Returns
    -------
    array of shape (N,) or (N, B)
        The convolution.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> basis = FourierBasis(grid_graph((1, 3), boundary="free"))
    >>> chi_1 = basis.vectors[:, 1]
    >>> bool(np.allclose(convolve(basis, 2 * chi_1, 3 * chi_1), 6 * chi_1))
    True
    """
    y1_hat, y2_hat = basis.transform(y1), basis.transform(y2)
    if y1_hat.ndim != y2_hat.ndim:  # NumPy would broadcast the single one along the batch
        y1_hat, y2_hat = (y_hat.reshape(len(y_hat), -1) for y_hat in (y1_hat, y2_hat))
    if y1_hat.ndim == 2 and y1_hat.shape[1] != y2_hat.shape[1] and 1 not in (y1_hat.shape[1], y2_hat.shape[1]):
        raise ShapeError(f"Expected as many signals in y1 as in y2, or one, got {y1_hat.shape} and {y2_hat.shape}.")
    return basis.inverse(y1_hat * y2_hat)  # Eq. (5) [eq:conv]


def spectral_filter(basis: FourierBasis, response, y: np.ndarray) -> np.ndarray:
    """Filter a signal, hat y_f(lambda_i) = hat y(lambda_i) hat h(lambda_i), Eq. (6).

    Parameters
    ----------
    basis : FourierBasis
        The eigenvectors.
    response : callable or array of shape (N,)
        hat h, a function of the frequencies, or its values at `basis.eigenvalues`.
    y : array of shape (N,) or (N, B)
        Signals.

    Returns
    -------
    array, as y
        The filtered signals.
    """
    y_hat, h_hat = basis.transform(y), _values(basis, response)
    return basis.inverse(y_hat * (h_hat if y_hat.ndim == 1 else h_hat[:, None]))  # Eq. (6)


def filter_matrix(basis: FourierBasis, response) -> np.ndarray:
    """Return H = chi hat H chi^T, hat H = diag(hat h(lambda_0), ...), Eq. (7) [eq:hatH], as a dense matrix.

    Parameters
    ----------
    basis : FourierBasis
        The eigenvectors.
    response : callable or array of shape (N,)
        hat h, a function of the frequencies, or its values at `basis.eigenvalues`.

    Returns
    -------
    array of shape (N, N)
        The matrix H.
    """
    return basis.vectors * _values(basis, response) @ basis.vectors.T  # Eq. (7) [eq:hatH]


def translate_to(basis: FourierBasis, y: np.ndarray, node: int) -> np.ndarray:
    """Generalised translation, T_v y = sqrt(N) sum_i hat y(lambda_i) chi_i(v) chi_i, Eq. (8) [eq:transl].

    It puts the kernel with spectrum hat y at node v: column v of sqrt(N) H, with hat h = hat y. It does not shift
    the image y; for that see `tigra.theory.isometries`.

    Parameters
    ----------
    basis : FourierBasis
        The eigenvectors.
    y : array of shape (N,) or (N, B)
        Kernels.
    node : int
        Index of the node v.

    Returns
    -------
    array, as y
        The kernels at node v.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> basis = FourierBasis(grid_graph((1, 3), boundary="free"))
    >>> kernel = basis.inverse(np.ones(3))  # hat h = 1: the identity, so its translation is a delta
    >>> translate_to(basis, kernel, 2).round(3) + 0.0
    array([0.   , 0.   , 1.732])
    """
    n_nodes = basis.graph.n_nodes
    if not isinstance(node, (int, np.integer)) or not 0 <= node < n_nodes:
        raise UsageError(f"node must be a whole number from 0 to {n_nodes - 1}, got {node!r}.")
    delta = np.zeros(n_nodes)
    delta[node] = 1.0
    return np.sqrt(n_nodes) * spectral_filter(basis, basis.transform(delta), y)  # Eq. (8) [eq:transl]


def polynomial_response(alpha, frequencies) -> np.ndarray:
    """Return hat h(lambda) = sum_m alpha_m lambda^m, Eq. (9).

    Parameters
    ----------
    alpha : array of shape (M+1,) or (K, M+1)
        Coefficients of one filter, or of K filters.
    frequencies : array of shape (F,)
        Frequencies lambda.

    Returns
    -------
    array of shape (F,) or (K, F)

    Examples
    --------
    >>> polynomial_response([1.0, -0.5], [0.0, 1.0, 2.0])
    array([1. , 0.5, 0. ])
    """
    alpha, frequencies = np.asarray(alpha, dtype=np.float64), np.asarray(frequencies, dtype=np.float64)
    if alpha.ndim not in (1, 2) or alpha.shape[-1] == 0 or frequencies.ndim != 1:
        raise ShapeError(
            "Expected coefficients (M+1,) or (K, M+1) and a list of frequencies,"
            f" got shapes {alpha.shape} and {frequencies.shape}."
        )
    return alpha @ np.vander(frequencies, alpha.shape[-1], increasing=True).T  # Eq. (9)


def _values(basis: FourierBasis, response: Callable | np.ndarray) -> np.ndarray:
    """Return hat h(lambda_i): (N,)."""
    frequencies = basis.eigenvalues
    values = np.asarray(response(frequencies) if callable(response) else response)
    if values.shape not in ((), frequencies.shape):
        raise ShapeError(f"A filter needs one response for each of {len(frequencies)} frequencies, got {values.shape}.")
    return np.broadcast_to(values, frequencies.shape)


# --- frequencies and eigenvectors ---------------------------------------------------------------------


def _kind(graph: Graph) -> str:
    if isinstance(graph, GridGraph) and graph.stencil is not None:
        if graph.stencil.scale is None:
            return "sines"
        if min(graph.shape) == 1:
            return "cosines"
    return "eigenvectors"


def _sine_frequencies(graph: Graph) -> np.ndarray:
    """Return the frequencies (N,) of a padded grid, for each pair of sines, in the order of nodes."""
    assert graph.stencil is not None
    (height, width), straight, diagonal, _ = graph.stencil
    down, right = (2 * np.cos(np.pi * np.arange(1, n + 1) / (n + 1)) for n in (height, width))  # of paths
    return (1 - straight * (down[:, None] + right) - diagonal * down[:, None] * right).ravel()


def _cosine_frequencies(n_nodes: int) -> np.ndarray:
    """Return the frequencies (N,) of a free path."""
    return 1 - np.cos(np.pi * np.arange(n_nodes) / (n_nodes - 1))


def _eigenvectors(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    _check_size(graph.n_nodes, "The eigendecomposition")
    eigenvalues, vectors = eigh(graph.laplacian.toarray())
    entries = np.abs(vectors) > 1e-9  # the largest entry of a unit vector of at most 2500 is above 0.02
    first = vectors[entries.argmax(axis=0), np.arange(graph.n_nodes)]
    return eigenvalues, vectors * np.sign(first)


def _check_size(n_nodes: int, what: str) -> None:
    if n_nodes > MOST_NODES:
        raise GraphError(
            f"{what} needs a dense matrix, at most {MOST_NODES} nodes, got {n_nodes}; padded grids have a fast"
            " transform at any size, and polynomial filters (tigra.graph.polynomials) need none."
        )
