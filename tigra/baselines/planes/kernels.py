"""Compiled loops over planes, feature maps (C, H, W, B) with the batch last.

The rules of `tigra.kernels` apply. With the batch last, a row of a plane is one run of W * B numbers, and the same
row shifted by v pixels is the run shifted by v * B. So windows become long copies and sums.
"""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def unfold(x, size, out):
    """Copy the pixels of all size x size windows: row (c, u, v) is plane c shifted by (u, v).

    Parameters
    ----------
    x : array (C, H, W, B)
        Planes, contiguous.
    size : int
        Height and width of a window.
    out : array (C size size, (H - size + 1) (W - size + 1) B)
        Filled with the result.
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
    """Add every row (c, u, v) to plane c, shifted back by (u, v): the adjoint of `unfold`.

    Parameters
    ----------
    columns : array (C size size, (H - size + 1) (W - size + 1) B)
        Rows to add.
    size : int
        Height and width of a window.
    out : array (C, H, W, B)
        Filled with the sums.
    """
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
    """Compute the largest value of each size x size window, and its place.

    Of equal values the first in row-major order counts; a NaN is larger than everything. Rows and columns that do not
    fill a window at the bottom and right are left out. The place is searched for once the largest value is known, from
    the last to the first: two simple loops are vectorised, one that does both is not.

    Parameters
    ----------
    x : array (C, H, W, B)
        Planes.
    size : int
        Height and width of a window.
    out : array (C, H // size, W // size, B)
        Filled with the largest values.
    place : int array, as out
        Filled with the index of the largest value in its window.
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
    """Write grad to the places of the maxima, and 0 elsewhere.

    Parameters
    ----------
    grad, place : arrays (C, H // size, W // size, B)
        dE/dout, and the places from `max_pool`.
    size : int
        Height and width of a window.
    out : array (C, H, W, B)
        Filled with the gradient of the input.
    """
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
    """Compute the mean of each size x size window.

    Parameters
    ----------
    x : array (C, H, W, B)
        Planes.
    size : int
        Height and width of a window.
    out : array (C, H // size, W // size, B)
        Filled with the means.
    """
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
    """Write grad / size^2 to every pixel of a window, and 0 outside the windows.

    Parameters
    ----------
    grad : array (C, H // size, W // size, B)
        dE/dout.
    size : int
        Height and width of a window.
    out : array (C, H, W, B)
        Filled with the gradient of the input.
    """
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


@kernel
def bilinear(places, height, width, clamped, corners, weights, slopes):
    """Compute the four pixels around each place, their weights, and the slopes of the weights.

    Parameters
    ----------
    places : array (2, T, B)
        Column and row in pixels.
    height, width : int
        Size of the plane.
    clamped : bool
        If True, places outside are moved to the border and have slope 0. Otherwise pixels outside count as 0.
    corners : int array (T, 4, B)
        Filled with row * width + column of the pixels.
    weights : array (T, 4, B)
        Filled with the weights.
    slopes : array (2, T, 4, B)
        Filled with dweight/dplace.
    """
    n_places, _, n_batch = weights.shape
    for t in range(n_places):
        for b in range(n_batch):
            x, moves_x = _within(places[0, t, b], width, clamped)
            y, moves_y = _within(places[1, t, b], height, clamped)
            left, top = np.floor(x), np.floor(y)
            right_share, lower_share = x - left, y - top
            first_column, first_row = (int(left) if left == left else 0), (int(top) if top == top else 0)
            for corner in range(4):
                u, v = corner // 2, corner % 2
                row, column = first_row + u, first_column + v
                inside = 0 <= row < height and 0 <= column < width
                corners[t, corner, b] = row * width + column if inside else 0
                across = right_share if v else 1 - right_share
                down = lower_share if u else 1 - lower_share
                weights[t, corner, b] = across * down * inside
                slopes[0, t, corner, b] = (down if v else -down) * (inside and moves_x)
                slopes[1, t, corner, b] = (across if u else -across) * (inside and moves_y)


@kernel
def _within(place, size, clamped):
    """Clamp a place to 0..size-1 or just outside; also return whether it still moves with its input. NaN stays."""
    lowest, highest = (0, size - 1) if clamped else (-2, size + 1)
    moves = not clamped or 0 < place < size - 1
    if place < lowest:
        return float(lowest), moves
    if place > highest:
        return float(highest), moves
    return float(place), moves


@kernel
def gather(x, corners, weights, out):
    """Compute the weighted sum of the four pixels around each place.

    Parameters
    ----------
    x : array (C, H W, B)
        Planes.
    corners, weights : arrays (T, 4, B)
        Result of `bilinear`.
    out : array (C, T, B)
        Filled with the sums.
    """
    n_maps, n_places, n_batch = out.shape
    for c in range(n_maps):
        plane = x[c]
        for t in range(n_places):
            to, corner, weight = out[c, t], corners[t], weights[t]
            for b in range(n_batch):
                upper = weight[0, b] * plane[corner[0, b], b] + weight[1, b] * plane[corner[1, b], b]
                to[b] = upper + (weight[2, b] * plane[corner[2, b], b] + weight[3, b] * plane[corner[3, b], b])


@kernel
def gather_gradient(x, corners, weights, slopes, grad, grad_x, grad_places):
    """Compute the gradients of the pixels and of the places from that of `gather`.

    Parameters
    ----------
    x : array (C, H W, B)
        Planes.
    corners, weights, slopes : arrays
        Result of `bilinear`.
    grad : array (C, T, B)
        dE/dout of `gather`.
    grad_x : array (C, H W, B)
        Filled with the gradient of the pixels.
    grad_places : array (2, T, B)
        Filled with the gradient of the places.
    """
    n_maps, n_places, n_batch = grad.shape
    grad_x[:] = 0
    grad_places[:] = 0
    for c in range(n_maps):
        plane, plane_grad = x[c], grad_x[c]
        for t in range(n_places):
            for corner in range(4):
                pixel, weight, slope = corners[t, corner], weights[t, corner], grad[c, t]
                for b in range(n_batch):
                    plane_grad[pixel[b], b] += weight[b] * slope[b]
                for axis in range(2):
                    along, to = slopes[axis, t, corner], grad_places[axis, t]
                    for b in range(n_batch):
                        to[b] += slope[b] * along[b] * plane[pixel[b], b]
