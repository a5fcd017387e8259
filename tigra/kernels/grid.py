"""Whole layers on a padded grid, one call for all maps of a micro-batch.

Signals are stored in a frame of zeros, (H + 2, (W + 2) * B). With the batch last, a grid row of B images is one
contiguous run of numbers, and the left and right neighbours are the same run shifted by B. Beyond the border, the
frame supplies zeros. Data stays in the CPU cache, and threads seldom wait for the GIL. Functions whose names end in
_row process one such run. Numba vectorises loops over three or four arrays, but seldom over more. Arrays unpacked as
`a, b = rows` lose their contiguity in numba, so the code uses rows[0], rows[1].

Neighbours are added in the same order as in `tigra.kernels.steps.stencil_step`, with bit-identical results. Equal
neighbourhoods and ties are therefore preserved here, too.
"""

import numpy as np

from tigra.kernels.decorator import kernel


@kernel
def grid_powers(height, y, sets, beta, straight, diagonal, framed, out):
    """Fill out[m] with sum_k beta_k 1[N_k] L^m y_k, where L x = x - straight * S x - diagonal * D x.

    Parameters
    ----------
    height : int
        Rows of the grid.
    y, sets : array (K, N, B)
        Maps and active sets.
    beta : array (K,)
        Weights of the maps.
    straight, diagonal : float
        Edge weights.
    framed : array (2, H+2, (W+2) B)
        Scratch, zero at the rim.
    out : array (M+1, N, B)
        Result.
    """
    n_maps, n_nodes, n_batch = y.shape
    end = n_batch + n_nodes // height * n_batch
    one, zero = y.dtype.type(1), y.dtype.type(0)
    for k in range(n_maps):
        mask = sets[k].reshape(height, end - n_batch)
        _into_frame(y[k], framed[0])
        for m in range(len(out)):
            power, past = framed[m % 2], framed[(m + 1) % 2]
            total = out[m].reshape(height, end - n_batch)
            for i in range(height):
                to = power[i + 1, n_batch:end]
                if m > 0:  # L^m y = L (L^{m-1} y), the terms of Eq. (10) [eq:pol_filt_1]
                    _neighbours_row(past, i, past[i + 1, n_batch:end], one, -straight, -diagonal, zero, to)
                if k == 0:
                    _fill_row(total[i], zero)
                _add_masked_row(beta[k], mask[i], to, total[i])  # 1[N_k] of Eq. (11) [eq:pol_filt_2]


@kernel
def grid_powers_adjoint(height, terms, sets, straight, diagonal, framed, row, out):
    """Fill out[k] with sum_m L^m 1[N_k] terms[m], by Horner's rule.

    Parameters
    ----------
    height : int
        Rows of the grid.
    terms : array (M+1, N, B)
        One signal per power.
    sets : array (K, N, B)
        Active sets.
    straight, diagonal : float
        Edge weights.
    framed : array (2, H+2, (W+2) B)
        Scratch, zero at the rim.
    row : array (W B,)
        Scratch.
    out : array (K, N, B)
        Result.
    """
    n_maps, n_nodes, n_batch = out.shape
    end = n_batch + n_nodes // height * n_batch
    one, degree = terms.dtype.type(1), len(terms) - 1
    for k in range(n_maps):
        mask = sets[k].reshape(height, end - n_batch)
        for m in range(degree, -1, -1):
            result, past = framed[m % 2], framed[(m + 1) % 2]
            term = terms[m].reshape(height, end - n_batch)
            for i in range(height):
                to = result[i + 1, n_batch:end]
                _fill_row(row, terms.dtype.type(0))
                _add_masked_row(one, mask[i], term[i], row)  # 1[N_k] of Eq. (17) [eq:der_fm]: masked, then filtered
                if m == degree:
                    _copy_row(row, to)
                else:
                    _neighbours_row(past, i, row, one, -straight, -diagonal, one, to)
        _out_of_frame(framed[0], out[k])


@kernel
def grid_moments(height, z, straight, diagonal, framed, rows, moments):
    """Fill moments with mean and variance over the nodes of abs(t_{i,k}), t_{i,k} = T_k(L - I) z_i, Eq. (14).

    Parameters
    ----------
    height : int
        Rows of the grid.
    z : array (K, N, B)
        Maps.
    straight, diagonal : float
        Edge weights.
    framed : array (3, H+2, (W+2) B)
        Scratch, zero at the rim.
    rows : array (2, W B)
        Scratch.
    moments : array (K, orders, 2, B)
        Result.
    """
    n_maps, n_nodes, n_batch = z.shape
    one_nth, zero = z.dtype.type(1.0 / n_nodes), z.dtype.type(0)
    total, means = rows[0], rows[1]
    for i in range(n_maps):
        for k in range(moments.shape[1]):
            t = framed[k % 3]
            if k == 0:
                _into_frame(z[i], t)
            _fill_row(total, zero)
            for start in range(1, height + 1, 4):  # four rows at a time stay in the L1 cache for the sum
                stop = min(start + 4, height + 1)
                if k > 0:
                    for v in range(start, stop):
                        _chebyshev_row(
                            framed[(k - 1) % 3], framed[(k - 2) % 3], v, n_batch, k == 1, straight, diagonal, t
                        )
                _add_absolute(t, start, stop, n_batch, total)
            _sum_of_runs(total, one_nth, moments[i, k, 0])
            _repeat_row(moments[i, k, 0], means)
            _fill_row(total, zero)
            for start in range(1, height + 1, 4):
                _add_squares(t, start, min(start + 4, height + 1), n_batch, means, total)
            _sum_of_runs(total, one_nth, moments[i, k, 1])


@kernel
def grid_moments_adjoint(height, z, straight, diagonal, moments, grads, framed_t, framed, rows, out):
    """Compute dE/dz from dE/dmoments: Eqs. (18)-(20) as corrected.

    The t_k are computed again, into framed_t. Clenshaw's rule then runs from the highest order down in framed:
    b_k = dE/dt_k + 2 (L - I) b_{k+1} - b_{k+2}.

    Parameters
    ----------
    height : int
        Number of rows of the grid.
    z : array (K, N, B)
        Maps.
    straight, diagonal : float
        Weights of the neighbours, divided by the degree.
    moments : array (K, orders, 2, B)
        Result of `grid_moments`.
    grads : array (K, orders, 2, B)
        dE/dmoments.
    framed_t, framed : arrays (orders, H+2, (W+2) B) and (3, H+2, (W+2) B)
        Scratch, zero at the rim.
    rows : array (2, W B)
        Scratch.
    out : array (K, N, B)
        Filled with dE/dz.
    """
    n_maps, n_nodes, n_batch = z.shape
    last = moments.shape[1] - 1
    one, two, zero = z.dtype.type(1), z.dtype.type(2), z.dtype.type(0)
    end = n_batch + n_nodes // height * n_batch
    for i in range(n_maps):
        _into_frame(z[i], framed_t[0])
        for k in range(1, last + 1):
            for v in range(1, height + 1):
                _chebyshev_row(framed_t[k - 1], framed_t[k - 2], v, n_batch, k == 1, straight, diagonal, framed_t[k])
        for v in range(1, height + 1):  # b_{K_max+1} = b_{K_max+2} = 0
            _fill_row(framed[(last + 1) % 3, v, n_batch:end], zero)
            _fill_row(framed[(last + 2) % 3, v, n_batch:end], zero)
        for k in range(last, -1, -1):
            _slopes(n_nodes, moments[i, k, 0], grads[i, k], rows)
            later, after = framed[(k + 1) % 3], framed[(k + 2) % 3]
            times = one if k == 0 else two
            for v in range(1, height + 1):
                to = framed[k % 3, v, n_batch:end]
                before = after[v, n_batch:end]
                _ring_row(later, v - 1, before, -times * straight, -times * diagonal, -one, to)  # Eq. (20)
                _add_slope_row(framed_t[k, v, n_batch:end], rows[0], rows[1], to)
        _out_of_frame(framed[0], out[i])


@kernel
def _slopes(n_nodes, mean, grads, rows):
    """dE/dt = slope * t + jump * sign(t), Eqs. (18), (19) corrected: fill rows with slope and jump, run by run.

    From sign(t) / N * (dE/dmean + 2 (abs(t) - mean) dE/dvariance).
    """
    one_nth, two = rows.dtype.type(1.0 / n_nodes), rows.dtype.type(2)
    n_batch = mean.size
    for start in range(0, rows.shape[1], n_batch):
        slope, jump = rows[0, start : start + n_batch], rows[1, start : start + n_batch]
        for b in range(n_batch):
            slope[b] = one_nth * two * grads[1, b]  # Eq. (19) [eq:der_stat2]
            jump[b] = one_nth * (grads[0, b] - two * mean[b] * grads[1, b])  # Eqs. (18), (19) [eq:der_stat1]


@kernel
def _neighbours_row(frame, i, y, times_x, straight, diagonal, times_y, to):
    """Fill to with row i of times_x * x + straight * S x + diagonal * D x + times_y * y, with x in frame."""
    length = to.size
    n_batch = (frame.shape[1] - length) // 2
    end = n_batch + length
    above, here, below = frame[i], frame[i + 1], frame[i + 2]
    up_left, up, up_right = above[:length], above[n_batch:end], above[2 * n_batch :]
    left, node, right = here[:length], here[n_batch:end], here[2 * n_batch :]
    down_left, down, down_right = below[:length], below[n_batch:end], below[2 * n_batch :]
    for q in range(length):
        s = (up[q] + down[q]) + (left[q] + right[q])
        d = (up_left[q] + down_right[q]) + (up_right[q] + down_left[q])
        to[q] = times_x * node[q] + straight * s + diagonal * d + times_y * y[q]


@kernel
def _ring_row(frame, i, y, straight, diagonal, times_y, to):
    """As `_neighbours_row` without the node itself: L - I has no diagonal, so one array fewer is read."""
    length = to.size
    n_batch = (frame.shape[1] - length) // 2
    end = n_batch + length
    above, here, below = frame[i], frame[i + 1], frame[i + 2]
    up_left, up, up_right = above[:length], above[n_batch:end], above[2 * n_batch :]
    left, right = here[:length], here[2 * n_batch :]
    down_left, down, down_right = below[:length], below[n_batch:end], below[2 * n_batch :]
    for q in range(length):
        s = (up[q] + down[q]) + (left[q] + right[q])
        d = (up_left[q] + down_right[q]) + (up_right[q] + down_left[q])
        to[q] = straight * s + diagonal * d + times_y * y[q]


@kernel
def _chebyshev_row(now, before, v, n_batch, is_first, straight, diagonal, t):
    """Fill row v of t, Eq. (14): (L - I) now for the first order, else 2 (L - I) now - before; all framed."""
    end = now.shape[1] - n_batch
    one, two, zero = now.dtype.type(1), now.dtype.type(2), now.dtype.type(0)
    if is_first:
        _ring_row(now, v - 1, now[v, n_batch:end], -straight, -diagonal, zero, t[v, n_batch:end])
    else:  # Eq. (14)
        _ring_row(now, v - 1, before[v, n_batch:end], -two * straight, -two * diagonal, -one, t[v, n_batch:end])


@kernel
def _into_frame(x, frame):
    """Copy a signal (N, B) into the middle of a frame (H+2, (W+2) B)."""
    n_batch, height = x.shape[1], len(frame) - 2
    rows = x.reshape(height, x.size // height)
    for i in range(height):
        _copy_row(rows[i], frame[i + 1, n_batch : frame.shape[1] - n_batch])


@kernel
def _out_of_frame(frame, x):
    """Copy the middle of a frame (H+2, (W+2) B) into a signal (N, B)."""
    n_batch, height = x.shape[1], len(frame) - 2
    rows = x.reshape(height, x.size // height)
    for i in range(height):
        _copy_row(frame[i + 1, n_batch : frame.shape[1] - n_batch], rows[i])


@kernel
def _copy_row(x, to):
    for q in range(to.size):
        to[q] = x[q]


@kernel
def _fill_row(to, value):
    for q in range(to.size):
        to[q] = value


@kernel
def _repeat_row(values, to):
    """Fill to with repetitions of values (B,)."""
    for start in range(0, to.size, values.size):
        _copy_row(values, to[start : start + values.size])


@kernel
def _sum_of_runs(row, times, out):
    """Fill out (B,) with times * the sum of the runs of B numbers in row."""
    _copy_row(row[: out.size], out)
    for start in range(out.size, row.size, out.size):
        run = row[start : start + out.size]
        for b in range(out.size):
            out[b] += run[b]
    for b in range(out.size):
        out[b] *= times


@kernel
def _add_absolute(t, start, stop, n_batch, total):
    """Add abs(t) of the framed rows start..stop-1 to total, four rows at a time to save writes."""
    end = t.shape[1] - n_batch
    if stop - start < 4:
        for v in range(start, stop):
            a = t[v, n_batch:end]
            for q in range(total.size):
                total[q] += abs(a[q])
        return
    a, b = t[start, n_batch:end], t[start + 1, n_batch:end]
    c, d = t[start + 2, n_batch:end], t[start + 3, n_batch:end]
    for q in range(total.size):
        total[q] += (abs(a[q]) + abs(b[q])) + (abs(c[q]) + abs(d[q]))


@kernel
def _add_squares(t, start, stop, n_batch, mean, total):
    """Add (abs(t) - mean)^2 of the framed rows start..stop-1 to total, as in `_add_absolute`."""
    end = t.shape[1] - n_batch
    if stop - start < 4:
        for v in range(start, stop):
            a = t[v, n_batch:end]
            for q in range(total.size):
                e = abs(a[q]) - mean[q]
                total[q] += e * e
        return
    a, b = t[start, n_batch:end], t[start + 1, n_batch:end]
    c, d = t[start + 2, n_batch:end], t[start + 3, n_batch:end]
    for q in range(total.size):
        m = mean[q]
        e, f, g, h = abs(a[q]) - m, abs(b[q]) - m, abs(c[q]) - m, abs(d[q]) - m
        total[q] += (e * e + f * f) + (g * g + h * h)


@kernel
def _add_masked_row(weight, mask, x, total):
    for q in range(total.size):
        total[q] += weight * (mask[q] * x[q])


@kernel
def _add_slope_row(t, slope, jump, total):
    """Add dE/dt, see `_slopes`."""
    for q in range(total.size):
        total[q] += slope[q] * t[q] + jump[q] * np.sign(t[q])
