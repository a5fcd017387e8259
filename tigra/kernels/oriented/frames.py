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


@kernel
def into_frames(y, layout, frames):
    """Copy maps y (K, N, B) into frames (K, pitch), and set their rims to zero."""
    height, row, beside, rim = layout
    run, first, zero = row - 2 * beside, rim * row + beside, y.dtype.type(0)
    for k in range(len(y)):
        flat, frame = y[k].reshape(y[k].size), frames[k]
        for q in range(rim * row):
            frame[q] = zero
        for i in range(height):
            source, to = flat[i * run : (i + 1) * run], frame[first + i * row : first + i * row + run]
            for q in range(run):
                to[q] = source[q]
        _clear_rim(frame, layout)
        for q in range((rim + height) * row, (2 * rim + height) * row):
            frame[q] = zero


@kernel
def out_of_frames(frames, layout, y):
    """Copy maps y (K, N, B) out of frames (K, pitch)."""
    height, row, beside, rim = layout
    run, first = row - 2 * beside, rim * row + beside
    for k in range(len(y)):
        flat, frame = y[k].reshape(y[k].size), frames[k]
        for i in range(height):
            to, source = flat[i * run : (i + 1) * run], frame[first + i * row : first + i * row + run]
            for q in range(run):
                to[q] = source[q]


@kernel
def frame_laplacians(frames, layout, straight, diagonal, out):
    """Fill out[k] with L x = x - straight * S x - diagonal * D x for the map x in frames[k]; the rims become zero."""
    one, zero = frames.dtype.type(1), frames.dtype.type(0)
    for k in range(len(frames)):
        _stencil(frames[k], frames[k], layout, one, -straight, -diagonal, zero, out[k])


@kernel
def frame_laplacians_adjoint(terms, layout, straight, diagonal, scratch, out):
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
            _stencil(past, terms[m, k], layout, one, -straight, -diagonal, one, scratch[m % 2])
        result = scratch[0] if last else terms[0, k]
        out_of_frames(result.reshape(1, result.size), layout, out[k : k + 1])


@kernel
def pair_products(pairs, layout, weight, unit, scratch, dots, crosses):
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
    scratch : array (8, pitch)
        Scratch frames.
    dots, crosses : array (R, pitch)
        Results, as frames with a rim of zeros (the first and last rows are not written).
    """
    height, row, _, rim = layout
    start, stop = rim * row, (rim + height) * row
    for r in range(pairs.shape[1]):
        _gradient(pairs[0, r], layout, weight, scratch[0], scratch[1])
        _gradient(pairs[1, r], layout, weight, scratch[2], scratch[3])
        ax, ay, bx, by = scratch[0], scratch[1], scratch[2], scratch[3]
        dot, cross = dots[r], crosses[r]
        for q in range(start, stop):
            dot[q] = unit * (ax[q] * bx[q] + ay[q] * by[q])
        for q in range(start, stop):
            cross[q] = unit * (ax[q] * by[q] - ay[q] * bx[q])


@kernel
def pair_products_adjoint(pairs, layout, weight, unit, scratch, dots, crosses, out):
    """Fill out (2, R, pitch) with dE/da and dE/db, given dE/ddot and dE/dcross as `dots` and `crosses`.

    The gradient of dot . g_d + cross . g_c with respect to D a is g_d D b + g_c (D_y b, -D_x b), and the adjoint of D
    is -D, because D is antisymmetric.
    """
    height, row, _, rim = layout
    start, stop = rim * row, (rim + height) * row
    for r in range(pairs.shape[1]):
        _gradient(pairs[0, r], layout, weight, scratch[0], scratch[1])
        _gradient(pairs[1, r], layout, weight, scratch[2], scratch[3])
        ax, ay, bx, by = scratch[0], scratch[1], scratch[2], scratch[3]
        to_ax, to_ay, to_bx, to_by = scratch[4], scratch[5], scratch[6], scratch[7]
        dot, cross = dots[r], crosses[r]
        for q in range(start, stop):
            to_ax[q] = unit * (dot[q] * bx[q] + cross[q] * by[q])
        for q in range(start, stop):
            to_ay[q] = unit * (dot[q] * by[q] - cross[q] * bx[q])
        for q in range(start, stop):
            to_bx[q] = unit * (dot[q] * ax[q] - cross[q] * ay[q])
        for q in range(start, stop):
            to_by[q] = unit * (dot[q] * ay[q] + cross[q] * ax[q])
        _minus_divergence(to_ax, to_ay, layout, weight, out[0, r])
        _minus_divergence(to_bx, to_by, layout, weight, out[1, r])


# --- one frame ---------------------------------------------------------------------------------------------
# All nodes of a frame are one run of n numbers, with the rims between its rows. nw, north, ne, west, ... are the same
# run, shifted to a neighbour.


@kernel
def _stencil(x, y, layout, times_x, straight, diagonal, times_y, out):
    """Fill a frame with times_x * x + straight * S x + diagonal * D x + times_y * y; out must not be x."""
    height, row, beside, rim = layout
    here, down, n = rim * row, 2 * rim * row, height * row - 2 * beside
    x_mid, x_right = x[beside:], x[2 * beside :]
    nw, north, ne = x[:n], x_mid[:n], x_right[:n]
    west, node, east = x[here : here + n], x_mid[here : here + n], x_right[here : here + n]
    sw, south, se = x[down : down + n], x_mid[down : down + n], x_right[down : down + n]
    add, to = y[here + beside : here + beside + n], out[here + beside : here + beside + n]
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
    _clear_rim(out, layout)


@kernel
def _gradient(x, layout, weight, along_x, along_y):
    """Fill two frames with D x, but for its factor: x along the columns, y along the rows, downwards."""
    height, row, beside, rim = layout
    here, down, n = rim * row, 2 * rim * row, height * row - 2 * beside
    x_mid, x_right = x[beside:], x[2 * beside :]
    nw, north, ne = x[:n], x_mid[:n], x_right[:n]
    west, east = x[here : here + n], x_right[here : here + n]
    sw, south, se = x[down : down + n], x_mid[down : down + n], x_right[down : down + n]
    to_x, to_y = along_x[here + beside : here + beside + n], along_y[here + beside : here + beside + n]
    for q in range(n):
        to_x[q] = (east[q] + weight * (ne[q] + se[q])) - (west[q] + weight * (nw[q] + sw[q]))
    for q in range(n):
        to_y[q] = (south[q] + weight * (sw[q] + se[q])) - (north[q] + weight * (nw[q] + ne[q]))
    _clear_rim(along_x, layout)
    _clear_rim(along_y, layout)


@kernel
def _minus_divergence(x, y, layout, weight, out):
    """Fill a frame with -(D_x x + D_y y), the adjoint of `_gradient`; the first and last rows of x and y are zero."""
    height, row, beside, rim = layout
    here, down, n = rim * row, 2 * rim * row, height * row - 2 * beside
    to = out[here + beside : here + beside + n]
    x_right, y_mid, y_right = x[2 * beside :], y[beside:], y[2 * beside :]
    nw, west, sw = x[:n], x[here : here + n], x[down : down + n]
    ne, east, se = x_right[:n], x_right[here : here + n], x_right[down : down + n]
    for q in range(n):
        to[q] = (west[q] + weight * (nw[q] + sw[q])) - (east[q] + weight * (ne[q] + se[q]))
    nw, north, ne = y[:n], y_mid[:n], y_right[:n]
    sw, south, se = y[down : down + n], y_mid[down : down + n], y_right[down : down + n]
    for q in range(n):
        to[q] += (north[q] + weight * (nw[q] + ne[q])) - (south[q] + weight * (sw[q] + se[q]))
    _clear_rim(out, layout)


@kernel
def _clear_rim(frame, layout):
    """Set the rim left of, right of and between the rows of a frame to zero."""
    height, row, beside, rim = layout
    zero = frame.dtype.type(0)
    for i in range(rim, rim + height + 1):
        gap = frame[i * row - beside : i * row + beside]
        for q in range(2 * beside):
            gap[q] = zero
