"""Polynomials of the Laplacian applied to signals: powers, Chebyshev polynomials, and their adjoints.

Signals are arrays (K, N, B). Every recursion here is a chain of `laplacian_step`, which runs on
the grid's stencil where there is one and on the CSR matrix elsewhere. L is symmetric, so the
adjoint of "x -> (L^0 x, ..., L^M x)" is "(g_0, ..., g_M) -> sum_m L^m g_m", and likewise for T_k.
"""

from __future__ import annotations

import numpy as np

from tigra.graph import Graph
from tigra.kernels import csr_step, stencil_step


def laplacian_step(graph: Graph, x, y, times_lx, times_x, times_y, out) -> np.ndarray:
    """Fill and return out = times_lx * L x + times_x * x + times_y * y; out may be y, not x.

    out must be C-contiguous, as new arrays are; x and y are used as they come.
    """
    number = x.dtype.type  # a float64 scalar would turn float32 arithmetic into float64
    if graph.stencil is None:
        csr_step(*graph.csr_arrays(x.dtype), x, y, number(times_lx), number(times_x), number(times_y), out)
        return out
    (height, width), straight, diagonal, scale = graph.stencil
    n_maps, _, n_batch = x.shape
    rows = np.zeros((3, (width + 2) * n_batch), x.dtype)
    sums = np.empty((2, width * n_batch), x.dtype)

    def by_rows(array):
        return array.reshape(n_maps, height, width * n_batch)

    if scale is None:  # L x = x - straight * S x - diagonal * D x
        weights = -times_lx * straight, -times_lx * diagonal, times_lx + times_x, times_y
        stencil_step(by_rows(x), by_rows(y), *map(number, weights), rows, sums, by_rows(out))
        return out
    scale = graph.scale_column(x.dtype)  # L x = x - scale * (straight * S + diagonal * D)(scale * x)
    scaled, neighbours = scale * x, np.empty(x.shape, x.dtype)
    weights = straight, diagonal, 0.0, 0.0
    stencil_step(by_rows(scaled), by_rows(scaled), *map(number, weights), rows, sums, by_rows(neighbours))
    np.multiply(y, number(times_y), out=out)
    out += number(times_lx + times_x) * x
    out -= number(times_lx) * (scale * neighbours)
    return out


def laplacian_powers(graph: Graph, x: np.ndarray, degree: int) -> np.ndarray:
    """L^m x for m = 0..degree, the terms of Eq. (10) [eq:pol_filt_1]: (K, N, B) -> (degree+1, K, N, B).

    >>> from tigra.graph import grid_graph
    >>> pixel = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1)
    >>> laplacian_powers(grid_graph((1, 3), neighbours=4), pixel, degree=2)[:, 0, :, 0]
    array([[ 0.   ,  1.   ,  0.   ],
           [-0.25 ,  1.   , -0.25 ],
           [-0.5  ,  1.125, -0.5  ]])
    """
    powers = np.empty((degree + 1, *x.shape), x.dtype)
    powers[0] = x
    for m in range(1, degree + 1):
        laplacian_step(graph, powers[m - 1], powers[m - 1], 1, 0, 0, out=powers[m])
    return powers


def laplacian_powers_adjoint(graph: Graph, terms: np.ndarray) -> np.ndarray:
    """sum_m L^m terms[m] by Horner's rule: (degree+1, K, N, B) -> (K, N, B)."""
    result, spare = terms[-1].copy(), np.empty(terms[0].shape, terms[0].dtype)
    for term in terms[-2::-1]:
        laplacian_step(graph, result, term, 1, 0, 1, out=spare)  # term + L result
        result, spare = spare, result
    return result


def chebyshev(graph: Graph, x: np.ndarray, max_order: int):
    """Yield t_k = T_k(L - I) x for k = 0..max_order, Eq. (14): t_k = 2 (L - I) t_{k-1} - t_{k-2}.

    Only three signals exist at any time: use or copy t_k before asking for t_{k+1}.

    >>> from tigra.graph import grid_graph
    >>> pixel = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1)
    >>> for t in chebyshev(grid_graph((1, 3), neighbours=4), pixel, max_order=2):
    ...     print(t.ravel() + 0.0)
    [0. 1. 0.]
    [-0.25  0.   -0.25]
    [ 0.   -0.75  0.  ]
    """
    previous = x.copy()
    yield previous
    if max_order == 0:
        return
    current = laplacian_step(graph, x, x, 1, -1, 0, out=np.empty(x.shape, x.dtype))  # t_1 = (L - I) x
    yield current
    for _ in range(2, max_order + 1):
        laplacian_step(graph, current, previous, 2, -2, -1, out=previous)  # Eq. (14)
        previous, current = current, previous
        yield current


def chebyshev_adjoint(graph: Graph, terms) -> np.ndarray:
    """sum_k T_k(L - I) terms[k] by Clenshaw's rule, b_k = terms[k] + 2 (L - I) b_{k+1} - b_{k+2}.

    terms : sequence of K_max + 1 arrays (K, N, B); the result is terms[0] + (L - I) b_1 - b_2.
    """
    if len(terms) == 1:
        return terms[0].copy()
    later, after = terms[-1].copy(), np.zeros(terms[-1].shape, terms[-1].dtype)  # b_{k+1}, b_{k+2}
    for term in terms[-2:0:-1]:
        laplacian_step(graph, later, after, 2, -2, -1, out=after)
        after += term
        later, after = after, later
    laplacian_step(graph, later, after, 1, -1, -1, out=after)
    after += terms[0]
    return after
