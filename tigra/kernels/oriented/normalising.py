"""Kernels of batch normalisation of maps, `tigra.layers.MapNorm`, one map after the other.

Sums run over 128 lanes, which are added in their order at the end: the same bits on every processor, and vectors of
any width can compute them.

A map is rectified, diffused and summed before the next one, so it stays in the cache. `diffusion` and `frames` are
those of `tigra.kernels.oriented.frames.diffused`; with 0 steps they are not used.
"""

import numpy as np

from tigra.kernels.decorator import kernel
from tigra.kernels.oriented.frames import diffused, into_frame, out_of_frame

LANES = 128


@kernel
def row_sums(a, b, lanes, sums):
    """Fill sums (2, K) with the sums of a and of a * b over each row of a, b (K, n); lanes (2, 128) is scratch."""
    for k in range(len(a)):
        sums[0, k], sums[1, k] = _two_sums(a[k], b[k], lanes)


@kernel
def scales(mean, variance, epsilon, gamma, beta, inverse, scale, shift):
    """Fill inverse with 1 / sqrt(variance + epsilon), scale with gamma * inverse, shift with beta - mean * scale.

    mean, variance and inverse are in float64, the others in the precision of the maps; all (K,).
    """
    for k in range(mean.size):
        inverse[k] = 1.0 / np.sqrt(variance[k] + epsilon)
        scale[k] = np.float64(gamma[k]) * inverse[k]
        shift[k] = np.float64(beta[k]) - mean[k] * np.float64(scale[k])


@kernel
def running_scales(norm, epsilon, both):
    """Fill both[0] and both[1] with the scale and shift of `scales`, from running averages and their total weight."""
    mean, variance, total, gamma, beta = norm
    weight = np.float64(total[0])
    for k in range(len(gamma)):
        average, spread = 0.0, 1.0  # before the first step
        if weight != 0:
            average, spread = np.float64(mean[k]) / weight, np.float64(variance[k]) / weight
        both[0, k] = np.float64(gamma[k]) * (1.0 / np.sqrt(spread + epsilon))
        both[1, k] = np.float64(beta[k]) - average * np.float64(both[0, k])


@kernel
def standardised(x, running, epsilon, inverse, out):
    """Fill out (F, B) with (x - mean) / sqrt(variance + epsilon), from running averages and their total weight.

    `inverse` (F,) becomes 1 / sqrt(variance + epsilon). It is in float64, in which everything is computed.
    """
    mean, variance, total = running
    weight = np.float64(total[0])
    for f in range(len(x)):
        average, spread = 0.0, 1.0  # before the first step
        if weight != 0:
            average, spread = np.float64(mean[f]) / weight, np.float64(variance[f]) / weight
        inverse[f] = 1.0 / np.sqrt(spread + epsilon)
        for b in range(x.shape[1]):
            out[f, b] = (np.float64(x[f, b]) - average) * inverse[f]


@kernel
def rectified(x, scale, shift, diffusion, frames, out):
    """Fill out with max(scale x + shift, 0) - max(shift, 0), diffused; before diffusion it is exactly 0 where x is."""
    times, layout = diffusion[0], diffusion[1]
    height, row, beside, rim = layout
    run, first = row - 2 * beside, rim * row + beside
    for k in range(len(x)):
        if times == 0:
            rectify(x[k], scale[k], shift[k], out[k])
            continue
        for i in range(height):
            start = first + i * row
            rectify(x[k, i * run : (i + 1) * run], scale[k], shift[k], frames[0, start : start + run])
        out_of_frame(diffused(frames, diffusion), layout, out[k])


@kernel
def rectify(x, scale, shift, to):
    """Fill to with max(scale x + shift, 0) - max(shift, 0)."""
    zero = x.dtype.type(0)
    floor = max(shift, zero)
    for q in range(x.size):
        to[q] = max(scale * x[q] + shift, zero) - floor


@kernel
def rectified_gradient(x, grad, scale, shift, diffusion, frames, lanes, out, sums):
    """Fill out with dE/d(scale x + shift) = g where the rectifier is open, and sums (3, K).

    g is grad, diffused: the adjoint of diffusion, since L is symmetric. The sums are those of out, of out * x, and of g
    where shift > 0 (through the term -max(shift, 0)), else 0.
    """
    zero, times, layout = x.dtype.type(0), diffusion[0], diffusion[1]
    for k in range(len(x)):
        s, h, row, g, to = scale[k], shift[k], x[k], grad[k], out[k]
        if times > 0:
            into_frame(g, layout, frames[0])
            out_of_frame(diffused(frames, diffusion), layout, to)
        else:
            for q in range(row.size):
                to[q] = g[q]
        sums[2, k] = _sum(to, lanes[0]) if h > zero else 0.0
        for q in range(row.size):
            to[q] = to[q] if s * row[q] + h > zero else zero
        sums[0, k], sums[1, k] = _two_sums(to, row, lanes)


@kernel
def through_moments(x, grad, scale, tilt, offset):
    """Replace grad by scale * grad + tilt * x + offset, row by row."""
    for k in range(len(x)):
        s, t, o, row, g = scale[k], tilt[k], offset[k], x[k], grad[k]
        for q in range(row.size):
            g[q] = s * g[q] + t * row[q] + o


@kernel
def _two_sums(a, b, lanes):
    """(sum of a, sum of a * b), in 128 lanes."""
    used = min(a.size, LANES)  # the other lanes would stay 0
    first, second = lanes[0], lanes[1]
    for q in range(used):
        first[q] = second[q] = 0
    whole = a.size // LANES * LANES
    for start in range(0, whole, LANES):
        x, y = a[start : start + LANES], b[start : start + LANES]
        for q in range(LANES):
            first[q] += x[q]
        for q in range(LANES):
            second[q] += x[q] * y[q]
    for q in range(whole, a.size):
        first[q - whole] += a[q]
        second[q - whole] += a[q] * b[q]
    total = product = 0.0
    for q in range(used):
        total += first[q]
        product += second[q]
    return total, product


@kernel
def _sum(a, lanes):
    """Sum of a, in 128 lanes."""
    used = min(a.size, LANES)
    for q in range(used):
        lanes[q] = 0
    whole = a.size // LANES * LANES
    for start in range(0, whole, LANES):
        x = a[start : start + LANES]
        for q in range(LANES):
            lanes[q] += x[q]
    for q in range(whole, a.size):
        lanes[q - whole] += a[q]
    total = 0.0
    for q in range(used):
        total += lanes[q]
    return total
