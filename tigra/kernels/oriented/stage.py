"""Prediction: an oriented convolution with its batch normalisation, diffusion and coarsening, in one call.

A few images at a time go through all these steps, as a tile. Its numbers stay in the L2 cache, where the layers, one
by one, write those of a whole micro-batch to memory and read them again. Nothing is kept for backward.

Maps stay in their frames (`tigra.kernels.oriented.frames`) from one stage to the next.

Every number comes from the same operations in the same order as in the layers, and so has the same bits.
"""

import numpy as np

from tigra.kernels.decorator import kernel
from tigra.kernels.oriented.coarsening import means
from tigra.kernels.oriented.convolution import includes_rims, multiply
from tigra.kernels.oriented.normalising import rectify, running_scales
from tigra.kernels.stencils import fill_filtered, fill_products


@kernel
def oriented_stage(y, of_y, alpha, mixing, norm, epsilon, grid, smoothing, n_steps, coarse, frames, out):
    """Fill out with the maps after OrientedConv, MapNorm and, if there is a coarse grid, Coarsen.

    Parameters
    ----------
    y : array (tiles, K_in, pitch)
        Frames of maps. All pitches are multiples of the length of a frame's row.
    of_y : (int, int, int, int)
        Their layout; the rim may differ from that of `grid`.
    alpha, mixing : array (K_out, (M+1) K_in + 2 R), array (2 R, 2 K_in)
        Weights of the terms, and of the pairs.
    norm : tuple of five arrays
        Running mean and variance, their total weight, gamma and beta.
    epsilon : float
        Added to the variance.
    grid : (layout, float, float, float, float)
        As of `tigra.kernels.oriented.convolution.oriented_forward`.
    smoothing : (float, float, float)
        Weights of a node, its straight and its diagonal neighbours in I - L/2.
    n_steps : int
        Number of diffusion steps.
    coarse : (int, int, int, int)
        Layout of the coarse grid, or zeros.
    frames : array (max((M+1) K_in + 2 R, K_out) + max(2 R, K_out) or more, pitch)
        Scratch frames; the rims must be zero, and are so afterwards. Maps take the places of terms and pairs that have
        been used: what fits into the cache is fast.
    out : array (tiles, K_out, pitch)
        Result, in frames of `grid` or of the coarse grid; the rims must be zero, and stay so.
    """
    layout, straight, diagonal, weight, unit = grid
    (n_out, n_terms), n_pairs = alpha.shape, len(mixing) // 2
    terms, other = frames[:n_terms], frames[:n_out]
    behind = frames[max(n_terms, n_out) :][: max(2 * n_pairs, n_out)]
    pairs, sums = behind[: 2 * n_pairs], behind[:n_out]
    scales = np.empty((2, n_out), y.dtype)
    running_scales(norm, epsilon, scales)
    is_finite = _all_finite(_flat(scales))
    keeps_zeros = not includes_rims(layout) or (_all_finite(_flat(alpha)) and _all_finite(_flat(mixing)))
    for tile in range(len(y)):
        _powers(y[tile], of_y, layout, straight, diagonal, terms[: n_terms - 2 * n_pairs])
        multiply(mixing, False, terms, layout, True, pairs)
        products = terms[n_terms - 2 * n_pairs :]
        for r in range(n_pairs):
            a, b = pairs[r], pairs[n_pairs + r]
            fill_products(layout, a, b, products[r], products[n_pairs + r], weight, unit)
        multiply(alpha, False, terms, layout, True, sums)
        if not keeps_zeros:
            clear(behind, layout)
        _normalise(sums, layout, scales, is_finite, smoothing, n_steps, coarse, other, out[tile])


@kernel
def _powers(y, of_y, layout, straight, diagonal, powers):
    """Fill powers ((M+1) K, pitch) with the frames of L^m y_k."""
    n_maps, one = len(y), y.dtype.type(1)
    reframe(y, of_y, layout, powers[:n_maps])
    for past in range(0, len(powers) - n_maps, n_maps):
        _stencils(powers[past:][:n_maps], layout, one, -straight, -diagonal, powers[past + n_maps :][:n_maps])


@kernel
def _normalise(sums, layout, scales, is_finite, smoothing, n_steps, coarse, other, out):
    """Rectify and diffuse the maps; coarsening smooths them once more and takes means of blocks."""
    height, row, beside, rim = layout
    node, straight, diagonal = smoothing
    n_batch, is_coarse = beside // rim, coarse[0] > 0
    n_stencils, now, then = n_steps + is_coarse, other, sums
    rectified = other if n_stencils else out
    for k in range(len(sums)):
        rectify(sums[k], scales[0, k], scales[1, k], rectified[k])
    if not is_finite:
        clear(rectified, layout)  # elsewhere 0 is rectified to 0
    for step in range(n_stencils):
        is_last = step == n_stencils - 1 and not is_coarse
        _stencils(now, layout, node, straight, diagonal, out if is_last else then)
        now, then = then, now
    if is_coarse:
        shape, goal = (height, row // n_batch - 2 * rim, n_batch), coarse[3] * coarse[1] + coarse[2]
        line = np.empty(row, sums.dtype)
        for k in range(len(sums)):
            means(now[k], rim * row + beside, row, shape, line, out[k], goal, coarse[1])


@kernel
def _stencils(x, layout, times_x, straight, diagonal, out):
    """(times_x + straight S + diagonal D) x for frames x (K, pitch)."""
    for k in range(len(x)):
        fill_filtered(layout, x[k], out[k], times_x, straight, diagonal)


@kernel
def _all_finite(x):
    """Whether weights are finite: 0 times them is then 0, so that rims stay as they are."""
    count = 0
    for q in range(x.size):
        count += x[q] - x[q] != 0  # NaN if x is infinite or NaN
    return count == 0


@kernel
def _flat(frames):
    return frames.reshape(frames.size)


@kernel
def reframe(x, of_x, layout, out):
    """Copy maps from frames x (K, pitch) into frames of the same grid whose rim may be wider or narrower."""
    height, row, beside, rim = layout
    run = row - 2 * beside
    if of_x == layout and x.shape[1] == out.shape[1]:
        source, to = _flat(x), _flat(out)
        for q in range(source.size):
            to[q] = source[q]
        return
    for k in range(len(x)):
        for i in range(height):
            source, to = x[k, (of_x[3] + i) * of_x[1] + of_x[2] :], out[k, (rim + i) * row + beside :]
            for q in range(run):
                to[q] = source[q]
    clear(out, layout)


@kernel
def clear(frames, layout):
    """Set the rims of frames to zero on all sides."""
    height, row, beside, rim = layout
    first, last, zero = rim * row, (rim + height) * row, frames.dtype.type(0)
    for k in range(len(frames)):
        frame = frames[k]
        for q in range(first):
            frame[q] = zero
        for q in range(-beside, beside):  # across the rows: loops along the narrow rim would be calls of memset
            for i in range(first, last + 1, row):
                frame[i + q] = zero
        for q in range(last, frame.size):
            frame[q] = zero
