"""Kernels of graph coarsening, `tigra.layers.Coarsen`.

Along an odd side, a block is a single node: the first, third, and so on to the last. The four values of a block are
added along its diagonals, so that a quarter turn of the image only swaps them.

Short loops over the images of a node are slow. So `means` adds whole rows of the grid, in one long loop, and then
keeps every second node of the sums; for one or two images, it goes from block to block.
"""

import numpy as np

from tigra.kernels.decorator import kernel
from tigra.kernels.oriented.frames import into_frame, out_of_frame
from tigra.kernels.stencils import fill_filtered


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
    row, to_row = width * n_batch, (width + 1) // 2 * n_batch
    line = np.empty(row, x.dtype)
    for k in range(len(x)):
        to = out[k].reshape(out[k].size)
        means(x[k].reshape(x[k].size), 0, row, (height, width, n_batch), line, to, 0, to_row)


@kernel
def block_means_adjoint(grad, height, width, out):
    """Fill out (K, N, B) with the adjoint of `block_means` applied to grad (K, N', B)."""
    for k in range(len(grad)):
        _spread(grad[k], height, width, 0, width * grad.shape[2], out[k].reshape(out[k].size))


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
        Scratch frames with a rim of zeros.
    out : array (K, N', B)
        Result.
    """
    layout, node, straight, diagonal = smoothing
    height, row, beside, rim = layout
    first, n_batch = rim * row + beside, x.shape[2]
    for k in range(len(x)):
        into_frame(x[k].reshape(x[k].size), layout, scratch[0])
        fill_filtered(layout, scratch[0], scratch[1], node, straight, diagonal)
        shape, to = (height, width, n_batch), out[k].reshape(out[k].size)
        means(scratch[1], first, row, shape, scratch[0, first:], to, 0, (width + 1) // 2 * n_batch)


@kernel
def smooth_block_means_adjoint(grad, width, smoothing, scratch, out):
    """Fill out (K, N, B) with the adjoint of `smooth_block_means`: I - L/2 is symmetric, and comes last."""
    layout, node, straight, diagonal = smoothing
    height, row, beside, rim = layout
    for k in range(len(grad)):
        _spread(grad[k], height, width, rim * row + beside, row, scratch[0])
        fill_filtered(layout, scratch[0], scratch[1], node, straight, diagonal)
        out_of_frame(scratch[1], layout, out[k].reshape(out[k].size))


@kernel
def means(x, first, row, shape, line, out, out_first, out_row):
    """The means of blocks of one map.

    Parameters
    ----------
    x : array
        Flat; rows of `row` numbers begin at x[first].
    first, row : int
        See above.
    shape : (int, int, int)
        Height and width of the grid, and number of images.
    line : array
        Scratch for a row.
    out : array
        Result, flat; rows of `out_row` numbers begin at out[out_first].
    out_first, out_row : int
        See above.
    """
    (height, width, n_batch), quarter = shape, x.dtype.type(0.25)
    columns = (width + 1) // 2
    below, beside = (1 - height % 2) * row, (1 - width % 2) * n_batch
    if below and beside and n_batch <= 2:
        _few_means(x[first:], row, (height // 2, columns, n_batch), out[out_first:], out_row)
        return
    n = width * n_batch - beside
    for i in range((height + 1) // 2):
        top, to = x[first + 2 * i * row :], out[out_first + i * out_row :]
        a, b, c, d = top[:n], top[beside:][:n], top[below:][:n], top[below + beside :][:n]
        for q in range(n):
            line[q] = quarter * ((a[q] + d[q]) + (b[q] + c[q]))
        for j in range(columns):
            node, source = to[j * n_batch :], line[2 * j * n_batch :]
            for q in range(n_batch):
                node[q] = source[q]


@kernel
def _few_means(x, row, shape, out, out_row):
    """`means` for one or two images and blocks of 2x2 nodes; fixed steps from block to block make vectors of them."""
    (n_rows, columns, n_batch), quarter = shape, x.dtype.type(0.25)
    for i in range(n_rows):
        top, low, to = x[2 * i * row :], x[(2 * i + 1) * row :], out[i * out_row :]
        if n_batch == 1:
            for j in range(columns):
                to[j] = quarter * ((top[2 * j] + low[2 * j + 1]) + (top[2 * j + 1] + low[2 * j]))
        else:
            for j in range(columns):
                to[2 * j] = quarter * ((top[4 * j] + low[4 * j + 2]) + (top[4 * j + 2] + low[4 * j]))
                to[2 * j + 1] = quarter * ((top[4 * j + 1] + low[4 * j + 3]) + (top[4 * j + 3] + low[4 * j + 1]))


@kernel
def _spread(grad, height, width, first, row, out):
    """The adjoint of `means` for grad (N', B); nodes that belong to no block become 0."""
    is_even, is_paired = height % 2 == 0, width % 2 == 0
    columns, n_batch, zero = (width + 1) // 2, grad.shape[1], grad.dtype.type(0)
    weight = grad.dtype.type(1.0 / ((1 + is_even) * (1 + is_paired)))
    for i in range(0, height, 2):
        line = out[first + i * row :][: width * n_batch]
        nodes = line.reshape(width, n_batch)
        for j in range(columns):
            source, to = grad[i // 2 * columns + j], nodes[2 * j]
            for q in range(n_batch):
                to[q] = weight * source[q]
        for j in range(width // 2):
            to, beside = nodes[2 * j], nodes[2 * j + 1]
            for q in range(n_batch):
                beside[q] = to[q] if is_paired else zero
        if i + 1 < height:
            below = out[first + (i + 1) * row :][: width * n_batch]
            for q in range(width * n_batch):
                below[q] = line[q] if is_even else zero
