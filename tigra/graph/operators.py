"""The operations that layers need: powers summed over maps, moments of Chebyshev signals, and their adjoints.

On a padded grid, each operation is one call of a compiled kernel. Other graphs, including grids with boundary="free",
use `tigra.graph.polynomials` step by step and are slower. Both agree up to rounding.
"""

from __future__ import annotations

import numpy as np

from tigra.graph import Graph
from tigra.graph.polynomials import (
    chebyshev,
    chebyshev_adjoint,
    laplacian_powers,
    laplacian_powers_adjoint,
)
from tigra.kernels.grid import (
    grid_moments,
    grid_moments_adjoint,
    grid_powers,
    grid_powers_adjoint,
)
from tigra.kernels.moments import absolute_moments, absolute_moments_gradient
from tigra.kernels.steps import add_masked
from tigra.kernels.workspace import Workspace, aligned_empty


def masked_powers(graph: Graph, y, sets, beta, degree: int, space: Workspace) -> np.ndarray:
    """Powers of the Laplacian, masked and summed over maps: u_m = sum_k beta_k 1[N_k] L^m y_k.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    y : array (K, N, B)
        Maps.
    sets : bool array (K, N, B)
        The sets N_k.
    beta : array (K,)
        Weights of the maps.
    degree : int
        Highest power.
    space : Workspace
        Scratch arrays.

    Returns
    -------
    array (degree+1, N, B)
        u_m for m = 0..degree.
    """
    n_maps, n_nodes, n_batch = y.shape
    if is_padded_grid(graph):
        shape, *weights = _stencil(graph, y.dtype)
        u = space.result("u", (degree + 1, n_nodes, n_batch), y.dtype)
        framed = space.frames("powers", 3, shape, n_batch, y.dtype)
        grid_powers(shape[0], y, sets, beta, *weights, framed, u)
        return u
    u = np.zeros((degree + 1, n_nodes * n_batch), y.dtype)
    for k in range(n_maps):
        powers = laplacian_powers(graph, y[k : k + 1], degree)
        add_masked(beta[k], sets[k].reshape(-1), powers.reshape(u.shape), u)
    return u.reshape(degree + 1, n_nodes, n_batch)


def masked_powers_adjoint(graph: Graph, terms, sets, space: Workspace) -> np.ndarray:
    """Adjoint of `masked_powers` without beta: sum_m L^m 1[N_k] terms[m] for every set N_k.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    terms : array (M+1, N, B)
        One signal per power.
    sets : bool array (K, N, B)
        The sets N_k.
    space : Workspace
        Scratch arrays.

    Returns
    -------
    array (K, N, B)
        One signal per set.
    """
    n_batch = terms.shape[2]
    back = space.result("back", sets.shape, terms.dtype)
    if is_padded_grid(graph):
        shape, *weights = _stencil(graph, terms.dtype)
        framed = space.frames("powers", 3, shape, n_batch, terms.dtype)
        grid_powers_adjoint(shape[0], terms, sets, *weights, framed, back)
        return back
    for k in range(len(sets)):
        back[k] = laplacian_powers_adjoint(graph, (terms * sets[k])[:, None])[0]
    return back


def chebyshev_moments(graph: Graph, z, max_order: int, space: Workspace) -> np.ndarray:
    """Mean and variance over the nodes of abs(T_k(L - I) z_i).

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    z : array (K, N, B)
        Maps.
    max_order : int
        Highest Chebyshev order.
    space : Workspace
        Scratch arrays.

    Returns
    -------
    array (K, max_order+1, 2, B)
        Mean and variance for each map and order.
    """
    n_maps, n_nodes, n_batch = z.shape
    if n_batch == 1 < n_maps and is_padded_grid(graph):  # maps in the place of images: loops over rows are longer
        as_images = np.ascontiguousarray(z.reshape(n_maps, n_nodes).T).reshape(1, n_nodes, n_maps)
        return np.moveaxis(chebyshev_moments(graph, as_images, max_order, space), 3, 0)[:, 0, ..., None].copy()
    moments = aligned_empty((n_maps, max_order + 1, 2, n_batch), z.dtype)
    if is_padded_grid(graph):
        shape, *weights = _stencil(graph, z.dtype)
        framed, rows = _room(shape, n_batch, z.dtype, space)
        grid_moments(shape[0], z, *weights, framed, rows, moments)
        return moments
    for i in range(n_maps):
        for k, t in enumerate(chebyshev(graph, z[i : i + 1], max_order)):  # Eq. (14)
            absolute_moments(t[0], moments[i, k, 0], moments[i, k, 1])
    return moments


def chebyshev_moments_adjoint(graph: Graph, z, moments, grad_moments, space: Workspace) -> np.ndarray:
    """Gradient of `chebyshev_moments`. The Chebyshev signals are computed again.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    z : array (K, N, B)
        Maps.
    moments : array (K, max_order+1, 2, B)
        Result of `chebyshev_moments`.
    grad_moments : array (K, max_order+1, 2, B)
        dE/dmoments.
    space : Workspace
        Scratch arrays.

    Returns
    -------
    array (K, N, B)
        dE/dz.
    """
    _, n_orders, _, n_batch = moments.shape
    grad_z = space.result("grad_z", z.shape, z.dtype)
    if is_padded_grid(graph):
        shape, *weights = _stencil(graph, z.dtype)
        framed, rows = _room(shape, n_batch, z.dtype, space)
        framed_t = space.frames("t", n_orders, shape, n_batch, z.dtype)
        grid_moments_adjoint(shape[0], z, *weights, moments, grad_moments, framed_t, framed, rows, grad_z)
        return grad_z
    grad_t = np.empty((n_orders, 1, *z.shape[1:]), z.dtype)
    for i in range(len(z)):
        for k, t in enumerate(chebyshev(graph, z[i : i + 1], n_orders - 1)):
            absolute_moments_gradient(  # Eqs. (18), (19) [eq:der_stat1, eq:der_stat2]
                t[0], moments[i, k, 0], grad_moments[i, k, 0], grad_moments[i, k, 1], grad_t[k, 0]
            )
        grad_z[i] = chebyshev_adjoint(graph, grad_t)[0]  # Eq. (20)
    return grad_z


def is_padded_grid(graph: Graph) -> bool:
    """Whether all nodes have the same stencil."""
    return graph.stencil is not None and graph.stencil.scale is None


def _stencil(graph: Graph, dtype) -> tuple:
    """((height, width), weight of straight neighbours, of diagonal ones), the weights in dtype."""
    assert graph.stencil is not None
    shape, straight, diagonal, _ = graph.stencil
    return shape, dtype.type(straight), dtype.type(diagonal)


def _room(shape, n_batch, dtype, space: Workspace) -> tuple[np.ndarray, np.ndarray]:
    return space.frames("chebyshev", 3, shape, n_batch, dtype), space.array("rows", (3, shape[1] * n_batch), dtype)
