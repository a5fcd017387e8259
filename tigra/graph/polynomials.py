"""Polynomials of the Laplacian applied to signals: powers, Chebyshev polynomials, and their adjoints.

Signals are arrays (K, N, B). Every recursion is a chain of `laplacian_step`, which uses the stencil of a grid, or the
CSR matrix of another graph. L is symmetric, so the adjoint of "x -> (L^0 x, ..., L^M x)" is "(g_0, ..., g_M) ->
sum_m L^m g_m", and likewise for T_k. `tigra.graph.operators` has faster versions for padded grids.
"""

from __future__ import annotations

import numpy as np

from tigra.graph.graph import Graph, GridGraph, grid_graph
from tigra.kernels.steps import csr_step, stencil_step


def laplacian_step(graph: Graph, x, y, times_lx, times_x, times_y, out) -> np.ndarray:
    """One step of a recursion: out = times_lx * L x + times_x * x + times_y * y.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    x, y : array (K, N, B)
        Signals.
    times_lx, times_x, times_y : float
        Factors.
    out : array (K, N, B)
        Filled with the result. It must be C-contiguous and must not overlap x or y.

    Returns
    -------
    array (K, N, B)
        out.
    """
    number = x.dtype.type  # a float64 scalar would turn float32 arithmetic into float64
    if isinstance(graph, GridGraph) and graph.dilation > 1:
        return _dilated_step(graph, x, y, times_lx, times_x, times_y, out)
    if graph.stencil is None:
        csr_step(*graph.csr_arrays(x.dtype), x, y, number(times_lx), number(times_x), number(times_y), out)
        return out
    (height, _), straight, diagonal, scale = graph.stencil
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    if scale is None:  # L x = x - straight * S x - diagonal * D x
        weights = -times_lx * straight, -times_lx * diagonal, times_lx + times_x, times_y
        stencil_step(height, x, y, *map(number, weights), out)
        return out
    scale = graph.scale_column(x.dtype)  # L x = x - scale * (straight * S + diagonal * D)(scale * x)
    scaled, neighbours = scale * x, np.empty(x.shape, x.dtype)
    stencil_step(height, scaled, scaled, number(straight), number(diagonal), number(0), number(0), neighbours)
    np.multiply(y, number(times_y), out=out)
    out += number(times_lx + times_x) * x
    out -= number(times_lx) * (scale * neighbours)
    return out


def _dilated_step(graph: GridGraph, x, y, times_lx, times_x, times_y, out) -> np.ndarray:
    """`laplacian_step` on a dilated grid, which consists of dilation^2 grids that are not connected.

    `csr_step` would add neighbours in the order of the nodes, so ties would not survive a rotation.
    """
    (height, width), apart, (n_maps, _, n_batch) = graph.shape, graph.dilation, x.shape
    whole_x, whole_y, whole_out = (part.reshape(n_maps, height, width, n_batch) for part in (x, y, out))
    for i, j in np.ndindex(min(apart, height), min(apart, width)):
        part_x, part_y = (np.ascontiguousarray(whole[:, i::apart, j::apart]) for whole in (whole_x, whole_y))
        part = grid_graph(part_x.shape[1:3], graph.neighbours, graph.diagonal_weight or 1.0)
        flat = n_maps, part.n_nodes, n_batch
        signals, room = (part_x.reshape(flat), part_y.reshape(flat)), np.empty(flat, x.dtype)
        laplacian_step(part, *signals, times_lx, times_x, times_y, out=room)
        whole_out[:, i::apart, j::apart] = room.reshape(part_x.shape)
    return out


def laplacian_powers(graph: Graph, x: np.ndarray, degree: int, out: np.ndarray | None = None) -> np.ndarray:
    """Powers of the Laplacian, L^m x for m = 0..degree, the terms of Eq. (10) [eq:pol_filt_1].

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    x : array (K, N, B)
        Signals.
    degree : int
        Highest power.
    out : array (degree+1, K, N, B), optional
        Filled with the result if given.

    Returns
    -------
    array (degree+1, K, N, B)
        One signal per power.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> pixel = np.array([0.0, 1.0, 0.0]).reshape(1, 3, 1)
    >>> laplacian_powers(grid_graph((1, 3), neighbours=4), pixel, degree=2)[:, 0, :, 0]
    array([[ 0.   ,  1.   ,  0.   ],
           [-0.25 ,  1.   , -0.25 ],
           [-0.5  ,  1.125, -0.5  ]])
    """
    powers = np.empty((degree + 1, *x.shape), x.dtype) if out is None else out
    powers[0] = x
    for m in range(1, degree + 1):
        laplacian_step(graph, powers[m - 1], powers[m - 1], 1, 0, 0, out=powers[m])
    return powers


def laplacian_powers_adjoint(graph: Graph, terms: np.ndarray, room: np.ndarray | None = None) -> np.ndarray:
    """Adjoint of `laplacian_powers`, sum_m L^m terms[m], by Horner's rule.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    terms : array (degree+1, K, N, B)
        One signal per power.
    room : array (2, K, N, B), optional
        Scratch array; the result is one of its halves.

    Returns
    -------
    array (K, N, B)
        The sum.
    """
    result, spare = np.empty((2, *terms[0].shape), terms[0].dtype) if room is None else room
    result[:] = terms[-1]
    for term in terms[-2::-1]:
        laplacian_step(graph, result, term, 1, 0, 1, out=spare)  # term + L result
        result, spare = spare, result
    return result


def chebyshev(graph: Graph, x: np.ndarray, max_order: int):
    """Chebyshev signals t_k = T_k(L - I) x, by the recursion t_k = 2 (L - I) t_{k-1} - t_{k-2}, Eq. (14).

    Three arrays are reused in turn, so use or copy t_k before requesting t_{k+1}.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    x : array (K, N, B)
        Signals.
    max_order : int
        Highest order.

    Yields
    ------
    array (K, N, B)
        t_k for k = 0..max_order.

    Examples
    --------
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
    current, spare = np.empty((2, *x.shape), x.dtype)
    yield laplacian_step(graph, x, x, 1, -1, 0, out=current)  # t_1 = (L - I) x
    for _ in range(2, max_order + 1):
        laplacian_step(graph, current, previous, 2, -2, -1, out=spare)  # Eq. (14)
        previous, current, spare = current, spare, previous
        yield current


def chebyshev_adjoint(graph: Graph, terms) -> np.ndarray:
    """Adjoint of `chebyshev`, sum_k T_k(L - I) terms[k], by Clenshaw's rule.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    terms : sequence of arrays (K, N, B)
        One signal per order.

    Returns
    -------
    array (K, N, B)
        The sum.

    Notes
    -----
    With b_k = terms[k] + 2 (L - I) b_{k+1} - b_{k+2}, the sum is terms[0] + (L - I) b_1 - b_2.
    """
    if len(terms) == 1:
        return terms[0].copy()
    later = terms[-1].copy()  # b_{k+1}
    after, spare = np.zeros((2, *later.shape), later.dtype)  # b_{k+2}, and room for b_k
    for term in terms[-2:0:-1]:
        laplacian_step(graph, later, after, 2, -2, -1, out=spare)
        spare += term
        later, after, spare = spare, later, after
    laplacian_step(graph, later, after, 1, -1, -1, out=spare)
    spare += terms[0]
    return spare
