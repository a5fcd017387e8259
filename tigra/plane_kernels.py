"""Compiled loops over planes: feature maps (C, H, W, B) of pixels, with the batch last.

Rules are those of `tigra.kernels`. With the batch last, a row of a plane is one run of W * B numbers, and the
same row shifted by v pixels is the run shifted by v * B: windows become long copies and sums.
"""

from tigra.kernels import kernel


@kernel
def unfold(x, size, out):
    """Fill out with the pixels of all size x size windows of x: row (c, u, v) is plane c shifted by (u, v).

    x : (C, H, W, B), contiguous; out : (C size size, (H - size + 1) (W - size + 1) B)
    """
    n_maps, height, width, n_batch = x.shape
    n_rows, run = height - size + 1, (width - size + 1) * n_batch
    for c in range(n_maps):
        plane = x[c].reshape(height, width * n_batch)
        for u in range(size):
            for v in range(size):
                target = out[(c * size + u) * size + v].reshape(n_rows, run)
                for i in range(n_rows):
                    source, to = plane[i + u, v * n_batch : v * n_batch + run], target[i]
                    for q in range(run):
                        to[q] = source[q]


@kernel
def fold(columns, size, out):
    """The adjoint of `unfold`: add every row (c, u, v) of columns to plane c, shifted back by (u, v)."""
    n_maps, height, width, n_batch = out.shape
    n_rows, run = height - size + 1, (width - size + 1) * n_batch
    for c in range(n_maps):
        plane = out[c].reshape(height, width * n_batch)
        for i in range(height):
            to = plane[i]
            for q in range(to.size):
                to[q] = 0
        for i in range(n_rows):
            for u in range(size):
                for v in range(size):
                    source = columns[(c * size + u) * size + v, i * run : (i + 1) * run]
                    to = plane[i + u, v * n_batch : v * n_batch + run]
                    for q in range(run):
                        to[q] += source[q]


@kernel
def max_pool(x, size, out, place):
    """Fill out with the largest value of each size x size window, place with its number in the window.

    Of equal values the first in row-major order counts; a NaN is larger than everything. What does not fill a
    window at the right and lower border is left out. The place is looked for once the largest value is known, from
    the last to the first: two simple loops are vectorised, one that does both is not.

    x : (C, H, W, B); out, place : (C, H // size, W // size, B)
    """
    n_maps, n_rows, n_columns, n_batch = out.shape
    for c in range(n_maps):
        for i in range(n_rows):
            for j in range(n_columns):
                best, where, first = out[c, i, j], place[c, i, j], x[c, i * size, j * size]
                for b in range(n_batch):
                    best[b] = first[b]
                for number in range(1, size * size):
                    value = x[c, i * size + number // size, j * size + number % size]
                    for b in range(n_batch):
                        best[b] = best[b] if (value[b] <= best[b]) | (best[b] != best[b]) else value[b]
                for b in range(n_batch):
                    where[b] = 0
                for number in range(size * size - 1, 0, -1):
                    value = x[c, i * size + number // size, j * size + number % size]
                    for b in range(n_batch):
                        where[b] = number if value[b] == best[b] else where[b]
                for b in range(n_batch):
                    where[b] = 0 if first[b] == best[b] else where[b]


@kernel
def max_pool_gradient(grad, place, size, out):
    """Fill out with grad at the places that `max_pool` found, and 0 elsewhere."""
    n_maps, n_rows, n_columns, n_batch = grad.shape
    out[:, n_rows * size :] = 0
    out[:, :, n_columns * size :] = 0
    for c in range(n_maps):
        for i in range(n_rows):
            for j in range(n_columns):
                slope, where = grad[c, i, j], place[c, i, j]
                for number in range(size * size):
                    to = out[c, i * size + number // size, j * size + number % size]
                    for b in range(n_batch):
                        to[b] = slope[b] if where[b] == number else 0


@kernel
def mean_pool(x, size, out):
    """Fill out with the mean of each size x size window of x; shapes as for `max_pool`."""
    n_maps, n_rows, n_columns, n_batch = out.shape
    share = x.dtype.type(1.0 / (size * size))
    for c in range(n_maps):
        for i in range(n_rows):
            for j in range(n_columns):
                mean, first = out[c, i, j], x[c, i * size, j * size]
                for b in range(n_batch):
                    mean[b] = first[b]
                for number in range(1, size * size):
                    value = x[c, i * size + number // size, j * size + number % size]
                    for b in range(n_batch):
                        mean[b] += value[b]
                for b in range(n_batch):
                    mean[b] *= share


@kernel
def mean_pool_gradient(grad, size, out):
    """Fill out with grad / size^2 in every window, and 0 outside of them."""
    n_maps, n_rows, n_columns, n_batch = grad.shape
    share = grad.dtype.type(1.0 / (size * size))
    out[:, n_rows * size :] = 0
    out[:, :, n_columns * size :] = 0
    for c in range(n_maps):
        for i in range(n_rows):
            for j in range(n_columns):
                slope = grad[c, i, j]
                for number in range(size * size):
                    to = out[c, i * size + number // size, j * size + number % size]
                    for b in range(n_batch):
                        to[b] = share * slope[b]
