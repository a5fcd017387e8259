"""Whole layers on a padded grid, one call for all maps of a micro-batch.

Signals are stored in a frame of zeros, (H + 2, (W + 2) * B). With the batch last, a grid row of B images is one
contiguous run of numbers, and the left and right neighbours are the same run shifted by B. Beyond the border, the
frame supplies zeros. Data stays in the CPU cache, and threads seldom wait for the GIL. A step of a recursion is a
formula for all nodes (`tigra.kernels.stencils`). Functions whose names end in _row process one run.

Neighbours are added in the same order as in `tigra.kernels.steps.stencil_step`, with bit-identical results. Equal
neighbourhoods and ties are therefore preserved here, too.
"""

import numpy as np

from tigra.kernels.compiling.columns import columns
from tigra.kernels.decorator import kernel
from tigra.kernels.stencils import around, fill_filtered, fill_horner


def _chebyshev(now, before, straight, diagonal, times_before):
    """2 (L - I) now - before, for weights with their factor; L - I has no diagonal, so the node itself is not there."""
    s, d = around(now)
    return (straight * s + diagonal * d + times_before * before,)  # Eq. (14)


def _measured_chebyshev(now, before, mean, straight, diagonal, times_before):
    """As `_chebyshev`; and for the moments abs(t) of the new signal, and (abs(t) - mean)^2 of the one before."""
    (t,) = _chebyshev(now, before, straight, diagonal, times_before)
    return t, abs(t), *_square(now.node, mean)


def _square(t, mean):
    deviation = abs(t) - mean
    return (deviation * deviation,)


def _gradient(t, slope, jump):
    """dE/dt, see `_slopes`."""
    return (slope * t + jump * np.sign(t),)


def _clenshaw(later, after, t, slope, jump, straight, diagonal, minus_one):
    """b_k = dE/dt_k + 2 (L - I) b_{k+1} - b_{k+2}."""
    (through,), (own,) = _chebyshev(later, after, straight, diagonal, minus_one), _gradient(t, slope, jump)
    return (through + own,)  # Eq. (20)


_fill_chebyshev = columns(_chebyshev, points=1)
_fill_measured = columns(_measured_chebyshev, points=1, lines=1, sums=2)
_add_sizes = columns(lambda t: (abs(t),), windows=0, points=1, results=0, sums=1)
_add_squares = columns(_square, windows=0, points=1, lines=1, results=0, sums=1)
_fill_gradient = columns(_gradient, windows=0, points=1, lines=2)
_fill_clenshaw = columns(_clenshaw, points=2, lines=2)


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
    framed : array (2 or more, H+2, (W+2) B)
        Scratch, zero at the rim.
    out : array (M+1, N, B)
        Result.
    """
    n_maps, n_nodes, n_batch = y.shape
    row, one = framed.shape[2], y.dtype.type(1)
    end, layout, flat = row - n_batch, (height, row, n_batch, 1), framed.reshape(len(framed), framed[0].size)
    for k in range(n_maps):
        mask = sets[k].reshape(height, n_nodes // height * n_batch)
        _into_frame(y[k], framed[0])
        for m in range(len(out)):
            if m > 0:  # L^m y = L (L^{m-1} y), the terms of Eq. (10) [eq:pol_filt_1]
                fill_filtered(layout, flat[(m + 1) % 2], flat[m % 2], one, -straight, -diagonal)
            power, total = framed[m % 2], out[m].reshape(mask.shape)
            for i in range(height):
                if k == 0:
                    _fill_row(total[i], y.dtype.type(0))
                here = power[i + 1, n_batch:end]
                _add_masked_row(beta[k], mask[i], here, total[i])  # 1[N_k] of Eq. (11) [eq:pol_filt_2]


@kernel
def grid_powers_adjoint(height, terms, sets, straight, diagonal, framed, out):
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
    framed : array (3, H+2, (W+2) B)
        Scratch, zero at the rim.
    out : array (K, N, B)
        Result.
    """
    n_maps, n_nodes, n_batch = out.shape
    row = framed.shape[2]
    end, layout, flat = row - n_batch, (height, row, n_batch, 1), framed.reshape(3, framed[0].size)
    degree = len(terms) - 1
    for k in range(n_maps):
        mask = sets[k].reshape(height, n_nodes // height * n_batch)
        for m in range(degree, -1, -1):
            masked, term = 2 if m < degree else m % 2, terms[m].reshape(mask.shape)
            for i in range(height):
                to = framed[masked, i + 1, n_batch:end]
                _mask_row(mask[i], term[i], to)  # 1[N_k] of Eq. (17) [eq:der_fm]: masked, then filtered
            if m < degree:
                fill_horner(layout, flat[(m + 1) % 2], flat[2], flat[m % 2], -straight, -diagonal)
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
    rows : array (3, W B)
        Scratch.
    moments : array (K, orders, 2, B)
        Result.
    """
    n_maps, n_nodes, n_batch = z.shape
    one, two, zero, last = z.dtype.type(1), z.dtype.type(2), z.dtype.type(0), moments.shape[1] - 1
    layout, flat = (height, framed.shape[2], n_batch, 1), framed.reshape(3, framed[0].size)
    one_nth, sizes, means, squares = z.dtype.type(1.0 / n_nodes), rows[0], rows[1], rows[2]
    for i in range(n_maps):
        _into_frame(z[i], framed[0])
        _add_sizes(layout, flat[0], sizes)
        for k in range(last + 1):
            t, before, after = flat[k % 3], flat[(k - 1) % 3], flat[(k + 1) % 3]
            _sum_of_runs(sizes, one_nth, moments[i, k, 0])
            _repeat_row(moments[i, k, 0], means)
            if k == last:
                _add_squares(layout, t, means, squares)
            elif k == 0:  # t_1 = (L - I) t_0
                _fill_measured(layout, t, t, means, after, sizes, squares, -straight, -diagonal, zero)
            else:  # Eq. (14)
                weights = -two * straight, -two * diagonal, -one
                _fill_measured(layout, t, before, means, after, sizes, squares, *weights)
            _sum_of_runs(squares, one_nth, moments[i, k, 1])


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
    rows : array (2 or more, W B)
        Scratch.
    out : array (K, N, B)
        Filled with dE/dz.
    """
    n_maps, n_nodes, n_batch = z.shape
    row, last = framed.shape[2], moments.shape[1] - 1
    end, layout = row - n_batch, (height, row, n_batch, 1)
    one, two, zero = z.dtype.type(1), z.dtype.type(2), z.dtype.type(0)
    t, b = framed_t.reshape(last + 1, framed_t[0].size), framed.reshape(3, framed[0].size)
    for i in range(n_maps):
        _into_frame(z[i], framed_t[0])
        for k in range(1, last + 1):
            times, times_before, before = (one, zero, t[0]) if k == 1 else (two, -one, t[k - 2])
            _fill_chebyshev(layout, t[k - 1], before, t[k], -times * straight, -times * diagonal, times_before)
        for v in range(1, height + 1):  # b_{K_max+1} = 0
            _fill_row(framed[(last + 1) % 3, v, n_batch:end], zero)
        for k in range(last, -1, -1):
            _slopes(n_nodes, moments[i, k, 0], grads[i, k], rows)
            if k == last:
                _fill_gradient(layout, t[k], rows[0], rows[1], b[k % 3])
                continue
            times = one if k == 0 else two
            later, after = b[(k + 1) % 3], b[(k + 2) % 3]
            weights = -times * straight, -times * diagonal, -one
            _fill_clenshaw(layout, later, after, t[k], rows[0], rows[1], b[k % 3], *weights)
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
def _mask_row(mask, x, to):
    for q in range(to.size):
        to[q] = mask[q] * x[q]


@kernel
def _add_masked_row(weight, mask, x, total):
    for q in range(total.size):
        total[q] += weight * (mask[q] * x[q])
