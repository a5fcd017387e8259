"""Compiled loops, and the decorator that compiles them; the only module that imports numba.

Kernels take plain arrays, fill `out`, allocate no more than a few rows of scratch and check nothing:
their callers own shapes and dtypes. Kernels call only kernels of their own file, because numba's
on-disk cache does not notice edits in other files. They release the GIL, so that worker threads
run in parallel. Those that do the work of a whole layer on a grid stand in `tigra.grid_kernels`.

`stencil_step`, `combine` and `add_masked` make the numbers by which dynamic pooling chooses nodes,
and on a grid they do so independently of the order of the nodes *to the last bit*: every node goes
through the same operations in the same order wherever it lies, and neighbours are added in pairs
that a rotation by 90 degrees or a reflection only swaps (floating-point addition is commutative).
So equal neighbourhoods give equal numbers, and ties stay ties when an image is turned. No
`fastmath`: it would reorder sums. (`csr_step`, for other graphs, adds edges in the order of its list.)
"""

import numpy as np
from numba import njit


def kernel(function):
    """Compile a function, and keep the result on disk where there is a folder to write to.

    Divisions follow NumPy, without a test for 0, which would keep loops from being vectorised.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return njit(**options)(function)


@kernel
def stencil_step(height, x, y, straight, diagonal, times_x, times_y, out):
    """Fill out with times_x * x + straight * S x + diagonal * D x + times_y * y on a grid of `height` rows.

    S x adds the four straight neighbours of each node, D x the four diagonal ones, zeros outside.

    x, y, out : (K, N, B), contiguous. With the batch last a grid row of B images is one
    run of W * B numbers, and the neighbours to the left and right are the same run shifted by B. Three
    rows at a time are copied between B zeros at either end, so that no node needs a test for the border.
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
    """Fill row with row i of a grid x, or with zeros outside of it (a loop: faster than row[:] = x[i] in numba)."""
    if 0 <= i < len(x):
        source = x[i]
        for q in range(row.size):
            row[q] = source[q]
    else:
        for q in range(row.size):
            row[q] = 0


@kernel
def csr_step(indptr, indices, data, x, y, times_lx, times_x, times_y, out):
    """Fill out with times_lx * L x + times_x * x + times_y * y, L given as CSR arrays.

    x, y, out : (K, N, B). One edge weight meets B contiguous values.
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
def combine(weights, x, out):
    """Fill out[i] with sum_r weights[i, r] x[r], added in the order of r at every place.

    weights : (I, R); x : (R, P); out : (I, P). Runs over blocks that stay in the L1 cache, by four terms at a time,
    so that sums are fetched and put back a quarter as often.
    """
    n_rows, n_terms = weights.shape
    n_places = x.shape[1]
    block = 512
    for start in range(0, n_places, block):
        stop = min(start + block, n_places)
        for i in range(n_rows):
            to = out[i, start:stop]
            first, source = weights[i, 0], x[0, start:stop]
            for q in range(stop - start):
                to[q] = first * source[q]
            single = 1 + (n_terms - 1) % 4
            for r in range(1, single):
                weight, term = weights[i, r], x[r, start:stop]
                for q in range(stop - start):
                    to[q] += weight * term[q]
            for r in range(single, n_terms, 4):
                w0, w1, w2, w3 = weights[i, r], weights[i, r + 1], weights[i, r + 2], weights[i, r + 3]
                x0, x1, x2, x3 = x[r, start:stop], x[r + 1, start:stop], x[r + 2, start:stop], x[r + 3, start:stop]
                for q in range(stop - start):
                    to[q] = to[q] + w0 * x0[q] + w1 * x1[q] + w2 * x2[q] + w3 * x3[q]


@kernel
def add_masked(weight, mask, x, out):
    """out[m] += weight * mask * x[m] for every m; mask (P,) bool, x and out (M, P)."""
    n_terms, n_places = x.shape
    for m in range(n_terms):
        to, source = out[m], x[m]
        for q in range(n_places):
            to[q] += weight * (mask[q] * source[q])


@kernel
def absolute_moments(t, mean, variance):
    """Mean and variance over the nodes of abs(t), for each image; t (N, B), the others (B,)."""
    n_nodes, n_batch = t.shape
    one_nth = mean.dtype.type(1.0 / n_nodes)
    mean[:] = 0
    variance[:] = 0
    for v in range(n_nodes):
        row = t[v]
        for b in range(n_batch):
            mean[b] += abs(row[b])
    for b in range(n_batch):
        mean[b] *= one_nth
    for v in range(n_nodes):
        row = t[v]
        for b in range(n_batch):
            deviation = abs(row[b]) - mean[b]
            variance[b] += deviation * deviation
    for b in range(n_batch):
        variance[b] *= one_nth


@kernel
def absolute_moments_gradient(t, mean, grad_mean, grad_variance, out):
    """dE/dt from dE/dmean and dE/dvariance of abs(t); sign(0) = 0. t, out (N, B), the others (B,).

    sign(t) / N * (dE/dmean + 2 (abs(t) - mean) dE/dvariance): Eqs. (18), (19), corrected.
    """
    n_nodes, n_batch = t.shape
    one_nth = mean.dtype.type(1.0 / n_nodes)
    two = mean.dtype.type(2.0)
    for v in range(n_nodes):
        row, to = t[v], out[v]
        for b in range(n_batch):
            value = row[b]
            slope = one_nth * (grad_mean[b] + two * (abs(value) - mean[b]) * grad_variance[b])
            to[b] = slope * np.sign(value)


# --- dynamic pooling ------------------------------------------------------------------------------------------


@kernel
def count_signs(z, omega, positive, zero):
    """Count the nodes of omega (1, N, B) where z (K, N, B) is above 0, and where it is 0; both (K, B), int32."""
    n_maps, n_nodes, n_batch = z.shape
    for k in range(n_maps):
        above, level = positive[k], zero[k]
        for b in range(n_batch):
            above[b] = level[b] = 0
        for v in range(n_nodes):
            value, is_in = z[k, v], omega[0, v]
            for b in range(n_batch):
                above[b] += is_in[b] & (value[b] > 0)
            for b in range(n_batch):
                level[b] += is_in[b] & (value[b] == 0)


@kernel
def candidates(z, omega, outside, out):
    """Fill out (K, B, N), nodes last, with z (K, N, B) on the nodes of omega (1, N, B), and `outside` elsewhere."""
    n_maps, n_nodes, n_batch = z.shape
    for k in range(n_maps):
        for v in range(n_nodes):
            source, is_in, to = z[k, v], omega[0, v], out[k, :, v]
            for b in range(n_batch):
                to[b] = source[b] if is_in[b] else outside


@kernel
def keep_above(z, omega, threshold, active, y):
    """Fill active with "in omega, and above the threshold (K, B)", y with z there and 0 elsewhere.

    Runs of 16 nodes are worked off together, with the thresholds repeated: long loops are quicker than short ones.
    """
    n_maps, n_nodes, n_batch = z.shape
    levels, zero = np.empty(16 * n_batch, z.dtype), z.dtype.type(0)
    inside = omega.reshape(n_nodes * n_batch)
    for k in range(n_maps):
        source, marks, target = z[k].reshape(inside.size), active[k].reshape(inside.size), y[k].reshape(inside.size)
        for q in range(levels.size):
            levels[q] = threshold[k, q % n_batch]
        for start in range(0, inside.size, levels.size):
            stop = min(start + levels.size, inside.size)
            value, is_in, mark, to = source[start:stop], inside[start:stop], marks[start:stop], target[start:stop]
            for q in range(stop - start):
                mark[q] = is_in[q] & (value[q] > levels[q])
            for q in range(stop - start):
                to[q] = value[q] if mark[q] else zero  # no product: a NaN or -inf that is dropped must not survive


# --- learning -------------------------------------------------------------------------------------------------


@kernel
def adam_step(parameters, mean, square, gradient, decay, rates, epsilon):
    """One step of Adam (`tigra.optim.Adam`) in place; all arrays are vectors of one length.

    rates : (learning rate, 1 - b1, 1 - b2, 1 - b1^n, 1 - b2^n). In blocks that stay in the L1 cache, each worked off
    by three loops with one target, which are vectorised.
    """
    rate, take_mean, take_square, grown_mean, grown_square = rates
    for start in range(0, parameters.size, 1024):
        p, m, v = parameters[start : start + 1024], mean[start : start + 1024], square[start : start + 1024]
        g, d = gradient[start : start + 1024], decay[start : start + 1024]
        for q in range(m.size):
            m[q] += take_mean * (g[q] - m[q])
        for q in range(v.size):
            v[q] += take_square * (g[q] * g[q] - v[q])
        for q in range(p.size):
            p[q] -= rate * ((m[q] / grown_mean) / (np.sqrt(v[q] / grown_square) + epsilon) + d[q] * p[q])


# --- images ----------------------------------------------------------------------------------------------------


@kernel
def sample_moved(coefficients, frame, motions, cubic, out):
    """Fill out with images read at moved places: out[n] at p takes image n at A (p - centre) + centre - shift.

    coefficients : (n, H + 2 frame, W + 2 frame), spline coefficients, or pixels if not `cubic`, framed so
        that all neighbours of a place inside the image can be read
    motions : (n, 4) rows (cosine, sine, shift down, shift right); A is [[cosine, sine], [-sine, cosine]]
    Places outside of the image, beyond the centres of its outer pixels, give 0.
    """
    n_images, height, width = out.shape
    middle_row, middle_column = 0.5 * (height - 1), 0.5 * (width - 1)
    down, right = np.empty(4), np.empty(4)
    for n in range(n_images):
        source, target = coefficients[n], out[n]
        cosine, sine, shift_down, shift_right = motions[n]
        for i in range(height):
            for j in range(width):
                row = cosine * (i - middle_row) + sine * (j - middle_column) + middle_row - shift_down
                column = -sine * (i - middle_row) + cosine * (j - middle_column) + middle_column - shift_right
                if row < 0 or row > height - 1 or column < 0 or column > width - 1:
                    target[i, j] = 0
                    continue
                top, left = int(row), int(column)  # both are >= 0, so this rounds down
                _spline_weights(row - top, cubic, down)
                _spline_weights(column - left, cubic, right)
                total = 0.0
                for a in range(4):
                    line = source[top + frame - 1 + a]
                    part = 0.0
                    for b in range(4):
                        part += right[b] * line[left + frame - 1 + b]
                    total += down[a] * part
                target[i, j] = total


@kernel
def _spline_weights(t, cubic, weights):
    """Fill weights of the pixels at -1, 0, 1, 2 for a place t in [0, 1): cubic B-spline, or linear."""
    if cubic:
        rest = 1 - t
        weights[0] = rest * rest * rest / 6
        weights[1] = 2 / 3 - t * t * (2 - t) / 2
        weights[2] = 2 / 3 - rest * rest * (2 - rest) / 2
        weights[3] = t * t * t / 6
    else:
        weights[0], weights[1], weights[2], weights[3] = 0, 1 - t, t, 0
