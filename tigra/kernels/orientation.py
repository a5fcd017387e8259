"""The discrete gradient of a padded grid, its adjoint, and cross products from a rotation system.

As in `tigra.kernels.steps`, the batch comes last: a grid row of B images is one run of numbers, and neighbours in the
row are the same run shifted. Rows are copied into a ring of buffers with zeros at either end, so no node needs a test
for the border.

Results on the grid are exact *to the last bit* under its symmetries. Differences of opposite neighbours are summed in
pairs. A quarter turn or a reflection only swaps the two of a pair, or reverses the sign of a difference, and neither
changes a rounding. Products are not contracted into fused multiply-adds, because `fastmath` is off.
"""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def grid_gradient(height, dilation, y, diagonal, unit, d_x, d_y):
    """Fill d_x and d_y with unit * sum_o w_o o y(v + dilation o), o over the eight neighbours; zeros outside.

    Parameters
    ----------
    height : int
        Rows of the grid.
    dilation : int
        Distance of neighbours in pixels.
    y : array (K, N, B)
        Maps, contiguous.
    diagonal : float
        Weight of diagonal neighbours; straight ones have weight 1.
    unit : float
        Factor.
    d_x, d_y : array (K, N, B)
        Results: along columns (to the right) and along rows (down).
    """
    n_maps, n_nodes, n_batch = y.shape
    length, rim, n_rows = n_nodes // height * n_batch, dilation * n_batch, 2 * dilation + 1
    ring = np.zeros((n_rows, length + 2 * rim), y.dtype)
    for k in range(n_maps):
        source = y[k].reshape(height, length)
        to_x, to_y = d_x[k].reshape(height, length), d_y[k].reshape(height, length)
        for i in range(-dilation, dilation):
            _load_row(source, i, rim, ring[i % n_rows])
        for i in range(height):
            _load_row(source, i + dilation, rim, ring[(i + dilation) % n_rows])
            above, here, below = ring[(i - dilation) % n_rows], ring[i % n_rows], ring[(i + dilation) % n_rows]
            _x_row(above, here, below, rim, diagonal, unit, to_x[i])
            _y_row(above, below, rim, diagonal, unit, to_y[i])


@kernel
def grid_gradient_adjoint(height, dilation, g_x, g_y, diagonal, unit, out):
    """Fill out with the adjoint of `grid_gradient`, applied to g_x and g_y; all (K, N, B).

    Both components of the gradient are antisymmetric matrices, so the adjoint is minus the divergence.
    """
    n_maps, n_nodes, n_batch = out.shape
    length, rim, n_rows = n_nodes // height * n_batch, dilation * n_batch, 2 * dilation + 1
    ring_x, ring_y = np.zeros((n_rows, length + 2 * rim), out.dtype), np.zeros((n_rows, length + 2 * rim), out.dtype)
    row = np.zeros(length, out.dtype)
    for k in range(n_maps):
        source_x, source_y = g_x[k].reshape(height, length), g_y[k].reshape(height, length)
        target = out[k].reshape(height, length)
        for i in range(-dilation, dilation):
            _load_row(source_x, i, rim, ring_x[i % n_rows])
            _load_row(source_y, i, rim, ring_y[i % n_rows])
        for i in range(height):
            up, middle, down = (i - dilation) % n_rows, i % n_rows, (i + dilation) % n_rows
            _load_row(source_x, i + dilation, rim, ring_x[down])
            _load_row(source_y, i + dilation, rim, ring_y[down])
            to = target[i]
            _x_row(ring_x[up], ring_x[middle], ring_x[down], rim, diagonal, -unit, to)
            _y_row(ring_y[up], ring_y[down], rim, diagonal, -unit, row)
            for q in range(length):
                to[q] += row[q]


@kernel
def _x_row(above, here, below, rim, diagonal, unit, to):
    """Fill to with the component along columns, from framed rows."""
    length = to.size
    left, right = here[:length], here[2 * rim :]
    up_left, up_right = above[:length], above[2 * rim :]
    down_left, down_right = below[:length], below[2 * rim :]
    for q in range(length):
        d = (up_right[q] - down_left[q]) + (down_right[q] - up_left[q])
        to[q] = unit * ((right[q] - left[q]) + diagonal * d)


@kernel
def _y_row(above, below, rim, diagonal, unit, to):
    """Fill to with the component along rows, from framed rows."""
    length = to.size
    up_left, up, up_right = above[:length], above[rim : rim + length], above[2 * rim :]
    down_left, down, down_right = below[:length], below[rim : rim + length], below[2 * rim :]
    for q in range(length):
        d = (down_right[q] - up_left[q]) + (down_left[q] - up_right[q])
        to[q] = unit * ((down[q] - up[q]) + diagonal * d)


@kernel
def _load_row(x, i, rim, row):
    """Fill the middle of a framed row with row i of a grid x, or with zeros outside."""
    middle = row[rim : row.size - rim]
    if 0 <= i < len(x):
        source = x[i]
        for q in range(middle.size):
            middle[q] = source[q]
    else:
        for q in range(middle.size):
            middle[q] = 0


@kernel
def rotation_cross(indptr, order, a, b, out):
    """Fill out with sum_i a_i (b_{i+1} - b_{i-1}) over the neighbours of each node in their cyclic order.

    Parameters
    ----------
    indptr, order : array (N+1,), array (edges,)
        The neighbours of node v in cyclic order are order[indptr[v] : indptr[v+1]].
    a, b, out : array (K, N, B)
        Maps, and the result.
    """
    n_maps, n_nodes, n_batch = a.shape
    for k in range(n_maps):
        for v in range(n_nodes):
            around, total = order[indptr[v] : indptr[v + 1]], out[k, v]
            total[:] = 0
            for i in range(around.size):
                here, later, earlier = a[k, around[i]], b[k, around[(i + 1) % around.size]], b[k, around[i - 1]]
                for q in range(n_batch):
                    total[q] += here[q] * (later[q] - earlier[q])


@kernel
def rotation_cross_adjoint(indptr, order, b, g, times, out):
    """Fill out with times * the gradient for a of sum(g * rotation_cross(a, b)); with times -1 that for b, given a."""
    n_maps, n_nodes, n_batch = b.shape
    out[:] = 0
    for k in range(n_maps):
        for v in range(n_nodes):
            around, slope = order[indptr[v] : indptr[v + 1]], g[k, v]
            for i in range(around.size):
                to, later, earlier = out[k, around[i]], b[k, around[(i + 1) % around.size]], b[k, around[i - 1]]
                for q in range(n_batch):
                    to[q] += times * (slope[q] * (later[q] - earlier[q]))
