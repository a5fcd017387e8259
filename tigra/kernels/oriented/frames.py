"""Kernels of the oriented layers, on flat frames of a padded grid.

A frame holds one map of a micro-batch with a rim of zeros: H + 2 d rows of (W + 2 d) B numbers, where d is the distance
between neighbours (1, or more on a dilated grid). The neighbours of place q are at q +- d B and q +- d (W + 2 d) B.
Kernels write nodes only, so the rims stay zero. `tigra.kernels.stencils` has the formulas.

`layout` is (H, row, beside, rim): the height of the grid, the length of a frame's row, the distance d B of a neighbour
in the same row, and d.
"""

from tigra.kernels.compiling.columns import columns
from tigra.kernels.decorator import kernel
from tigra.kernels.stencils import fill_filtered, filtered, horner, minus_divergence, products, products_adjoint

AHEAD = 3  # columns; in training, the frames of all maps are too large for the L2 cache

_fill_filtered, _fill_horner = columns(filtered, ahead=AHEAD), columns(horner, points=1, ahead=AHEAD)
_fill_products = columns(products, windows=2, results=2, ahead=AHEAD)
_fill_products_adjoint = columns(products_adjoint, points=2, results=2, ahead=AHEAD)
_fill_minus_divergence = columns(minus_divergence, windows=2, ahead=AHEAD)


@kernel
def into_frames(y, layout, frames):
    """Copy maps y (K, N, B) into frames (K, pitch), and set their rims to zero."""
    for k in range(len(y)):
        into_frame(y[k].reshape(y[k].size), layout, frames[k])


@kernel
def out_of_frames(frames, layout, y):
    """Copy maps y (K, N, B) out of frames (K, pitch)."""
    for k in range(len(y)):
        out_of_frame(frames[k], layout, y[k].reshape(y[k].size))


@kernel
def diffused(frames, diffusion):
    """(I - L/2)^times x for the map x in frames[0], inside the cache; returns the frame that holds it.

    Parameters
    ----------
    frames : array (2, pitch)
        The map, and scratch; the rims must be zero.
    diffusion : (int, layout, float, float, float)
        The number of steps, the layout, and the weights of a node, its straight and its diagonal neighbours in I - L/2.
    """
    times, layout, node, straight, diagonal = diffusion
    for step in range(times):
        fill_filtered(layout, frames[step % 2], frames[(step + 1) % 2], node, straight, diagonal)
    return frames[times % 2]


@kernel
def frame_powers(y, layout, straight, diagonal, powers):
    """Fill powers[m, k] with the frame of L^m y_k, where L x = x - straight * S x - diagonal * D x.

    Parameters
    ----------
    y : array (K, N, B)
        Maps.
    layout : (int, int, int, int)
        See the head of this file.
    straight, diagonal : float
        Edge weights.
    powers : array (M+1, K, pitch)
        Result; the rims must be zero. All powers of a map are computed before the next map, while it is in the cache.
    """
    one = y.dtype.type(1)
    for k in range(len(y)):
        into_frame(y[k].reshape(y[k].size), layout, powers[0, k])
        for m in range(1, len(powers)):
            _fill_filtered(layout, powers[m - 1, k], powers[m, k], one, -straight, -diagonal)


@kernel
def frame_powers_adjoint(terms, layout, straight, diagonal, scratch, out):
    """Fill out[k] with the map sum_m L^m g_m, by Horner's rule, for the frames g_m = terms[m, k].

    Parameters
    ----------
    terms : array (M+1, K, pitch)
        Frames with a rim of zeros.
    layout : (int, int, int, int)
        See the head of this file.
    straight, diagonal : float
        Edge weights.
    scratch : array (2, pitch)
        Scratch frames with a rim of zeros.
    out : array (K, N, B)
        Result.
    """
    last = len(terms) - 1
    for k in range(terms.shape[1]):
        for m in range(last - 1, -1, -1):
            past = terms[last, k] if m == last - 1 else scratch[(m + 1) % 2]
            _fill_horner(layout, past, terms[m, k], scratch[m % 2], -straight, -diagonal)
        out_of_frame(scratch[0] if last else terms[0, k], layout, out[k].reshape(out[k].size))


@kernel
def pair_products(pairs, layout, weight, unit, dots, crosses):
    """Fill dots[r] and crosses[r] with dot(a_r, b_r) and cross(a_r, b_r), the products of discrete gradients.

    Parameters
    ----------
    pairs : array (2, R, pitch)
        Frames a_r and b_r.
    layout : (int, int, int, int)
        See the head of this file.
    weight : float
        Weight of a diagonal edge; a straight one weighs 1.
    unit : float
        Square of the factor that makes D of a linear function its slope.
    dots, crosses : array (R, pitch)
        Results, as frames; the rims are not written.
    """
    for r in range(pairs.shape[1]):
        _fill_products(layout, pairs[0, r], pairs[1, r], dots[r], crosses[r], weight, unit)


@kernel
def pair_products_adjoint(pairs, layout, weight, unit, scratch, dots, crosses, out):
    """Fill out (2, R, pitch) with dE/da and dE/db, given dE/ddot and dE/dcross as `dots` and `crosses`.

    The gradient of dot . g_d + cross . g_c with respect to D a is g_d D b + g_c (D_y b, -D_x b), and the adjoint of D
    is -D, because D is antisymmetric. For b, the roles are exchanged, and cross has the opposite sign. `scratch` are
    two frames with a rim of zeros. The rims of `out` are not written.
    """
    to_x, to_y = scratch[0], scratch[1]
    for r in range(pairs.shape[1]):
        for side in range(2):
            sign = pairs.dtype.type(1 - 2 * side)
            _fill_products_adjoint(layout, pairs[1 - side, r], dots[r], crosses[r], to_x, to_y, weight, unit, sign)
            _fill_minus_divergence(layout, to_x, to_y, out[side, r], weight)


# --- one frame ---


@kernel
def into_frame(y, layout, frame):
    """Copy a map y (N B) into a frame, and set its rim to zero."""
    height, row, beside, rim = layout
    run, first, zero = row - 2 * beside, rim * row + beside, y.dtype.type(0)
    for q in range(rim * row):
        frame[q] = zero
    for i in range(height):
        source, to = y[i * run : (i + 1) * run], frame[first + i * row : first + i * row + run]
        for q in range(run):
            to[q] = source[q]
    clear_rim(frame, layout)
    last = frame[(rim + height) * row : (2 * rim + height) * row]
    for q in range(rim * row):
        last[q] = zero


@kernel
def out_of_frame(frame, layout, y):
    """Copy a map y (N B) out of a frame."""
    height, row, beside, rim = layout
    run, first = row - 2 * beside, rim * row + beside
    for i in range(height):
        to, source = y[i * run : (i + 1) * run], frame[first + i * row : first + i * row + run]
        for q in range(run):
            to[q] = source[q]


@kernel
def clear_rim(frame, layout):
    """Set the rim left of, right of and between the rows of a frame to zero."""
    height, row, beside, rim = layout
    zero = frame.dtype.type(0)
    for i in range(rim, rim + height + 1):
        gap = frame[i * row - beside : i * row + beside]
        for q in range(2 * beside):
            gap[q] = zero
