"""Kernels of the oriented layers, on flat frames of a padded grid.

A frame holds one map of a micro-batch with a rim of zeros: H + 2 d rows of (W + 2 d) B numbers, where d is the distance
between neighbours (1, or more on a dilated grid). The rows stand one behind the other in memory, so a stencil is one
long loop over the frame instead of many short ones: the neighbours of place q are at q +- d B and q +- d (W + 2 d) B.
Such a loop also fills the rim between two rows, which is set to zero afterwards.

Neighbours are added in pairs that a quarter turn of the image only swaps, and no product is contracted to a fused
multiply-add. Results therefore turn with the image to the last bit.

`layout` is (H, row, beside, rim): the height of the grid, the length of a frame's row, the distance d B of a neighbour
in the same row, and d.
"""

from tigra.kernels.decorator import kernel
from tigra.kernels.oriented.columns import stencil_column
from tigra.kernels.registers import VECTOR_BYTES

_stencil_column = stencil_column(1)


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
        The map, and scratch; the first and last rows must be zero. Left and right, the rim of the result is undefined.
    diffusion : (int, layout, float, float, float)
        The number of steps, the layout, and the weights of a node, its straight and its diagonal neighbours in I - L/2.
    """
    times, layout, node, straight, diagonal = diffusion
    for step in range(times):
        now, then = frames[step % 2], frames[(step + 1) % 2]
        clear_rim(now, layout)
        stencil(now, now, layout, node, straight, diagonal, frames.dtype.type(0), then)
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
        Result; the rims become zero. All powers of a map are computed before the next map, while it is in the cache.
    """
    one, zero = y.dtype.type(1), y.dtype.type(0)
    for k in range(len(y)):
        into_frame(y[k].reshape(y[k].size), layout, powers[0, k])
        for m in range(1, len(powers)):
            past = powers[m - 1, k]
            stencil(past, past, layout, one, -straight, -diagonal, zero, powers[m, k])
            clear_rim(powers[m, k], layout)


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
        Scratch frames whose first and last rows are zero.
    out : array (K, N, B)
        Result.
    """
    one, last = terms.dtype.type(1), len(terms) - 1
    for k in range(terms.shape[1]):
        for m in range(last - 1, -1, -1):
            past = terms[last, k] if m == last - 1 else scratch[(m + 1) % 2]
            stencil(past, terms[m, k], layout, one, -straight, -diagonal, one, scratch[m % 2])
            if m > 0:
                clear_rim(scratch[m % 2], layout)
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
        Results, as frames with a rim of zeros (the first and last rows are not written).
    """
    for r in range(pairs.shape[1]):
        gradient_products(pairs[0, r], pairs[1, r], layout, weight, unit, dots[r], crosses[r])
        clear_rim(dots[r], layout)
        clear_rim(crosses[r], layout)


@kernel
def pair_products_adjoint(pairs, layout, weight, unit, scratch, dots, crosses, out):
    """Fill out (2, R, pitch) with dE/da and dE/db, given dE/ddot and dE/dcross as `dots` and `crosses`.

    The gradient of dot . g_d + cross . g_c with respect to D a is g_d D b + g_c (D_y b, -D_x b), and the adjoint of D
    is -D, because D is antisymmetric. For b, the roles are exchanged, and cross has the opposite sign. `scratch` are
    two frames whose first and last rows are zero.
    """
    here, n = _inside(layout)
    to_x, to_y = scratch[0, here : here + n], scratch[1, here : here + n]
    for r in range(pairs.shape[1]):
        d, c = dots[r, here : here + n], crosses[r, here : here + n]
        for side in range(2):
            nw, north, ne, west, east, sw, south, se = _around(pairs[1 - side, r], layout)
            sign = pairs.dtype.type(1 - 2 * side)
            for q in range(n):
                x = (east[q] + weight * (ne[q] + se[q])) - (west[q] + weight * (nw[q] + sw[q]))
                y = (south[q] + weight * (sw[q] + se[q])) - (north[q] + weight * (nw[q] + ne[q]))
                turned = sign * c[q]
                to_x[q] = unit * (d[q] * x + turned * y)
                to_y[q] = unit * (d[q] * y - turned * x)
            clear_rim(scratch[0], layout)
            clear_rim(scratch[1], layout)
            _minus_divergence(scratch[0], scratch[1], layout, weight, out[side, r])


# --- one frame ---------------------------------------------------------------------------------------------
# All nodes of a frame are one run of n numbers, with the rims between its rows. nw, north, ne, west, ... are the same
# run, shifted to a neighbour.


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
def stencil(x, y, layout, times_x, straight, diagonal, times_y, out):
    """Fill a frame with times_x * x + straight * S x + diagonal * D x + times_y * y; out must not be x.

    The rim of out is undefined left and right of the rows.
    """
    height, row, beside, rim = layout
    lanes, run = VECTOR_BYTES // x.itemsize, row - 2 * beside
    if times_y == 0 and rim == 1 and run >= lanes:  # faster, and the same bits
        for q in range(0, run, lanes):  # the last column may overlap with the one before
            start = row + beside + min(q, run - lanes)
            _stencil_column(x, start, row, beside, height, times_x, straight, diagonal, out)
        return
    flat_stencil(x, y, layout, times_x, straight, diagonal, times_y, out)


@kernel
def flat_stencil(x, y, layout, times_x, straight, diagonal, times_y, out):
    """`stencil` in one long loop, for any grid."""
    here, n = _inside(layout)
    nw, north, ne, west, east, sw, south, se = _around(x, layout)
    node, add, to = x[here : here + n], y[here : here + n], out[here : here + n]
    if times_y == 0:
        for q in range(n):
            s = (north[q] + south[q]) + (west[q] + east[q])
            d = (nw[q] + se[q]) + (ne[q] + sw[q])
            to[q] = times_x * node[q] + straight * s + diagonal * d
    else:
        for q in range(n):
            s = (north[q] + south[q]) + (west[q] + east[q])
            d = (nw[q] + se[q]) + (ne[q] + sw[q])
            to[q] = times_x * node[q] + straight * s + diagonal * d + times_y * add[q]


@kernel
def gradient_products(a, b, layout, weight, unit, dots, crosses):
    """Fill frames with dot(a, b) and cross(a, b); left and right, their rims are undefined."""
    here, n = _inside(layout)
    a_nw, a_n, a_ne, a_w, a_e, a_sw, a_s, a_se = _around(a, layout)
    b_nw, b_n, b_ne, b_w, b_e, b_sw, b_s, b_se = _around(b, layout)
    dot, cross = dots[here : here + n], crosses[here : here + n]
    for q in range(n):
        ax = (a_e[q] + weight * (a_ne[q] + a_se[q])) - (a_w[q] + weight * (a_nw[q] + a_sw[q]))
        ay = (a_s[q] + weight * (a_sw[q] + a_se[q])) - (a_n[q] + weight * (a_nw[q] + a_ne[q]))
        bx = (b_e[q] + weight * (b_ne[q] + b_se[q])) - (b_w[q] + weight * (b_nw[q] + b_sw[q]))
        by = (b_s[q] + weight * (b_sw[q] + b_se[q])) - (b_n[q] + weight * (b_nw[q] + b_ne[q]))
        dot[q] = unit * (ax * bx + ay * by)
        cross[q] = unit * (ax * by - ay * bx)


@kernel
def _inside(layout):
    """Where all nodes of a frame begin, and how many numbers they are."""
    height, row, beside, rim = layout
    return rim * row + beside, height * row - 2 * beside


@kernel
def _around(x, layout):
    """The eight neighbours of all nodes: northwest, north, northeast, west, east, southwest, south, southeast."""
    _, row, beside, rim = layout
    _, n = _inside(layout)
    here, down, beyond = rim * row, 2 * rim * row, 2 * beside
    nw, north, ne = x[:n], x[beside : beside + n], x[beyond : beyond + n]
    west, east = x[here : here + n], x[here + beyond : here + beyond + n]
    sw, south, se = x[down : down + n], x[down + beside :][:n], x[down + beyond :][:n]
    return nw, north, ne, west, east, sw, south, se


@kernel
def _minus_divergence(x, y, layout, weight, out):
    """Fill a frame with -(D_x x + D_y y), the adjoint of the gradient."""
    here, n = _inside(layout)
    nw, _, ne, west, east, sw, _, se = _around(x, layout)
    y_nw, north, y_ne, _, _, y_sw, south, y_se = _around(y, layout)
    to = out[here : here + n]
    for q in range(n):
        along = (west[q] + weight * (nw[q] + sw[q])) - (east[q] + weight * (ne[q] + se[q]))
        to[q] = along + ((north[q] + weight * (y_nw[q] + y_ne[q])) - (south[q] + weight * (y_sw[q] + y_se[q])))
    clear_rim(out, layout)


@kernel
def clear_rim(frame, layout):
    """Set the rim left of, right of and between the rows of a frame to zero."""
    height, row, beside, rim = layout
    zero = frame.dtype.type(0)
    for i in range(rim, rim + height + 1):
        gap = frame[i * row - beside : i * row + beside]
        for q in range(2 * beside):
            gap[q] = zero
