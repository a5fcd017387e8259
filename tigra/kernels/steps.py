"""Single steps of recursions on a graph. Kernels for whole layers on a grid are in `tigra.kernels.grid`.

`stencil_step`, `add_masked` and `tigra.kernels.products.product` compute the values by which dynamic pooling selects
nodes. On a grid, these values do not depend on the order of the nodes, *to the last bit*. Every node goes through the
same operations in the same order. Neighbours are added in pairs, and a rotation by 90 degrees or a reflection only
swaps the two of a pair or two pairs, which does not change a sum because floating-point addition is commutative. Equal
neighbourhoods therefore give equal values, and ties remain ties when an image is rotated. `fastmath` is off, because
it would reorder sums.
(`csr_step`, for other graphs, adds edges in the order of the list.)
"""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def stencil_step(height, x, y, straight, diagonal, times_x, times_y, out):
    """Compute times_x * x + straight * S x + diagonal * D x + times_y * y on a grid.

    S x is the sum of the four straight neighbours of each node, D x that of the four diagonal ones, with zeros
    outside the grid.

    With the batch last, a grid row of B images is one run of W * B numbers, and the left and right neighbours are the
    same run shifted by B. Three rows at a time are copied into buffers with B zeros at either end, so no node needs a
    test for the border.

    Parameters
    ----------
    height : int
        Number of rows of the grid.
    x, y : arrays (K, N, B)
        Signals, contiguous.
    straight, diagonal, times_x, times_y : float
        The factors.
    out : array (K, N, B)
        Filled with the result, contiguous.
    """
    n_maps, n_nodes, n_batch = x.shape
    length = n_nodes // height * n_batch
    end = n_batch + length
    framed = np.zeros((3, end + n_batch), x.dtype)
    for k in range(n_maps):
        source, addend = x[k].reshape(height, length), y[k].reshape(height, length)
        target = out[k].reshape(height, length)
        _load_row(source, -1, framed[2, n_batch:end])
        _load_row(source, 0, framed[0, n_batch:end])
        for i in range(height):
            above, here, below = framed[(i + 2) % 3], framed[i % 3], framed[(i + 1) % 3]
            _load_row(source, i + 1, below[n_batch:end])
            up_left, up, up_right = above[:length], above[n_batch:end], above[2 * n_batch :]
            left, node, right = here[:length], here[n_batch:end], here[2 * n_batch :]
            down_left, down, down_right = below[:length], below[n_batch:end], below[2 * n_batch :]
            add, to = addend[i], target[i]
            for q in range(length):
                s = (up[q] + down[q]) + (left[q] + right[q])
                d = (up_left[q] + down_right[q]) + (up_right[q] + down_left[q])
                to[q] = times_x * node[q] + straight * s + diagonal * d + times_y * add[q]


@kernel
def _load_row(x, i, row):
    """Fill row with row i of a grid x, or with zeros outside (in numba, this loop is faster than row[:] = x[i])."""
    if 0 <= i < len(x):
        source = x[i]
        for q in range(row.size):
            row[q] = source[q]
    else:
        for q in range(row.size):
            row[q] = 0


@kernel
def csr_step(indptr, indices, data, x, y, times_lx, times_x, times_y, out):
    """Compute times_lx * L x + times_x * x + times_y * y for a sparse L.

    The inner loop multiplies one edge weight with B contiguous values.

    Parameters
    ----------
    indptr, indices, data : arrays
        L in CSR format.
    x, y : arrays (K, N, B)
        Signals.
    times_lx, times_x, times_y : float
        The factors.
    out : array (K, N, B)
        Filled with the result.
    """
    n_maps, n_nodes, n_batch = x.shape
    for k in range(n_maps):
        for v in range(n_nodes):
            row, node, add = out[k, v], x[k, v], y[k, v]
            for b in range(n_batch):
                row[b] = times_x * node[b] + times_y * add[b]
            for e in range(indptr[v], indptr[v + 1]):
                weight, neighbour = times_lx * data[e], x[k, indices[e]]
                for b in range(n_batch):
                    row[b] += weight * neighbour[b]


@kernel
def add_masked(weight, mask, x, out):
    """Add weight * mask * x[m] to out[m], for every m.

    Parameters
    ----------
    weight : float
        Factor.
    mask : bool array (P,)
        Positions to add to.
    x : array (M, P)
        Terms.
    out : array (M, P)
        Changed in place.
    """
    n_terms, n_places = x.shape
    for m in range(n_terms):
        to, source = out[m], x[m]
        for q in range(n_places):
            to[q] += weight * (mask[q] * source[q])
