"""Kernels of graph coarsening, `tigra.layers.Coarsen`."""

from tigra.kernels.decorator import kernel


@kernel
def block_means(x, height, width, out):
    """Fill out with the means of blocks of 2x2 nodes.

    Along an odd side, a block is a single node: the first, third, and so on to the last. The four values of a block are
    added along its diagonals, so that a quarter turn of the image only swaps them.

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
    below = 1 - height % 2
    beside = 1 - width % 2
    rows, columns = (height + 1) // 2, (width + 1) // 2
    quarter = x.dtype.type(0.25)
    for k in range(len(x)):
        for i in range(rows):
            for j in range(columns):
                node = 2 * i * width + 2 * j
                a, b = x[k, node], x[k, node + beside]
                c, d = x[k, node + below * width], x[k, node + below * width + beside]
                to = out[k, i * columns + j]
                for q in range(n_batch):
                    to[q] = quarter * ((a[q] + d[q]) + (b[q] + c[q]))


@kernel
def block_means_adjoint(grad, height, width, out):
    """Fill out (K, N, B) with the adjoint of `block_means` applied to grad (K, N', B)."""
    n_batch = grad.shape[2]
    below = 1 - height % 2
    beside = 1 - width % 2
    columns = (width + 1) // 2
    weight = grad.dtype.type(1.0 / ((1 + below) * (1 + beside)))
    zero = grad.dtype.type(0)
    for k in range(len(grad)):
        for i in range(height):
            for j in range(width):
                to = out[k, i * width + j]
                if (below or i % 2 == 0) and (beside or j % 2 == 0):
                    source = grad[k, i // 2 * columns + j // 2]
                    for q in range(n_batch):
                        to[q] = weight * source[q]
                else:
                    for q in range(n_batch):
                        to[q] = zero
