"""Kernels of graph coarsening, `tigra.layers.Coarsen`.

Along an odd side, a block is a single node: the first, third, and so on to the last. The four values of a block are
added along its diagonals, so that a quarter turn of the image only swaps them.
"""

from tigra.kernels.decorator import kernel
from tigra.kernels.oriented.frames import into_frame, out_of_frame, stencil


@kernel
def block_means(x, height, width, out):
    """Fill out with the means of blocks of 2x2 nodes.

    Parameters
    ----------
    x : array (K, N, B)
        Maps.
    height, width : int
        Sides of the grid.
    out : array (K, N', B)
        Result, on a grid with half the sides, rounded up.
    """
    n_batch = x.shape[2]
    for k in range(len(x)):
        _means(x[k].reshape(x[k].size), 0, width * n_batch, height, width, n_batch, out[k].reshape(out[k].size))


@kernel
def block_means_adjoint(grad, height, width, out):
    """Fill out (K, N, B) with the adjoint of `block_means` applied to grad (K, N', B)."""
    n_batch = grad.shape[2]
    for k in range(len(grad)):
        to = out[k].reshape(out[k].size)
        _spread(grad[k].reshape(grad[k].size), height, width, n_batch, 0, width * n_batch, to)


@kernel
def smooth_block_means(x, width, smoothing, scratch, out):
    """`block_means` of (I - L/2) x on a padded grid, map by map inside the cache.

    Parameters
    ----------
    x : array (K, N, B)
        Maps.
    width : int
        Width of the grid.
    smoothing : (layout, float, float, float)
        The layout of frames (`tigra.kernels.oriented.frames`), and the weights of a node, its straight and its diagonal
        neighbours in I - L/2.
    scratch : array (2, pitch)
        Scratch frames whose first and last rows are zero.
    out : array (K, N', B)
        Result.
    """
    (layout, node, straight, diagonal), zero, n_batch = smoothing, x.dtype.type(0), x.shape[2]
    height, row, beside, rim = layout
    for k in range(len(x)):
        into_frame(x[k].reshape(x[k].size), layout, scratch[0])
        stencil(scratch[0], scratch[0], layout, node, straight, diagonal, zero, scratch[1])
        _means(scratch[1], rim * row + beside, row, height, width, n_batch, out[k].reshape(out[k].size))


@kernel
def smooth_block_means_adjoint(grad, width, smoothing, scratch, out):
    """Fill out (K, N, B) with the adjoint of `smooth_block_means`: I - L/2 is symmetric, and comes last."""
    (layout, node, straight, diagonal), zero, n_batch = smoothing, grad.dtype.type(0), grad.shape[2]
    height, row, beside, rim = layout
    for k in range(len(grad)):
        source = grad[k].reshape(grad[k].size)
        _spread(source, height, width, n_batch, rim * row + beside, row, scratch[0])
        stencil(scratch[0], scratch[0], layout, node, straight, diagonal, zero, scratch[1])
        out_of_frame(scratch[1], layout, out[k].reshape(out[k].size))


@kernel
def _means(x, first, row, height, width, n_batch, out):
    """The means of blocks of one map, whose rows of `row` numbers begin at x[first]."""
    below, beside = (1 - height % 2) * row, (1 - width % 2) * n_batch
    columns, quarter = (width + 1) // 2, x.dtype.type(0.25)
    for i in range((height + 1) // 2):
        top = x[first + 2 * i * row :]
        right, bottom, corner = top[beside:], top[below:], top[below + beside :]
        to = out[i * columns * n_batch :]
        for j in range(columns):
            node, place = 2 * j * n_batch, j * n_batch
            for q in range(n_batch):
                a, b, c, d = top[node + q], right[node + q], bottom[node + q], corner[node + q]
                to[place + q] = quarter * ((a + d) + (b + c))


@kernel
def _spread(grad, height, width, n_batch, first, row, out):
    """The adjoint of `_means`; nodes that belong to no block become 0."""
    is_even, is_paired = height % 2 == 0, width % 2 == 0
    columns, zero = (width + 1) // 2, grad.dtype.type(0)
    weight = grad.dtype.type(1.0 / ((1 + is_even) * (1 + is_paired)))
    for i in range(0, height, 2):
        source, to = grad[i // 2 * columns * n_batch :], out[first + i * row :]
        for j in range(columns):
            for q in range(n_batch):
                to[2 * j * n_batch + q] = weight * source[j * n_batch + q]
        for j in range(width // 2):
            for q in range(n_batch):
                to[(2 * j + 1) * n_batch + q] = to[2 * j * n_batch + q] if is_paired else zero
        if i + 1 < height:
            below = to[row:]
            for q in range(width * n_batch):
                below[q] = to[q] if is_even else zero
