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
    for k in range(len(y)):
        into_frame(y[k].reshape(y[k].size), layout, frames[k])


@kernel
def out_of_frames(frames, layout, y):
    """Copy maps y (K, N, B) out of frames (K, pitch)."""
    for k in range(len(y)):
        out_of_frame(frames[k], layout, y[k].reshape(y[k].size))


@kernel
def diffuse(y, diffusion, scratch):
    """Replace a map y (N B) by (I - L/2)^times y, inside the cache.

    Parameters
    ----------
    y : array (N B)
        Changed in place.
    diffusion : (int, layout, float, float, float)
        The number of steps, and the weights of a node, its straight and its diagonal neighbours in I - L/2.
    scratch : array (2, pitch)
        Scratch frames whose first and last rows are zero.
    """
    times, layout, node, straight, diagonal = diffusion
    if times == 0:
        return
    into_frame(y, layout, scratch[0])
    for step in range(times):
        now, then = scratch[step % 2], scratch[(step + 1) % 2]
        stencil(now, now, layout, node, straight, diagonal, y.dtype.type(0), then)
        if step < times - 1:
            _clear_rim(then, layout)
    out_of_frame(scratch[times % 2], layout, y)


@kernel
def frame_laplacians(frames, layout, straight, diagonal, out):
    """Fill out[k] with L x = x - straight * S x - diagonal * D x for the map x in frames[k]; the rims become zero."""
    one, zero = frames.dtype.type(1), frames.dtype.type(0)
    for k in range(len(frames)):
        stencil(frames[k], frames[k], layout, one, -straight, -diagonal, zero, out[k])
        _clear_rim(out[k], layout)


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
            stencil(past, terms[m, k], layout, one, -straight, -diagonal, one, scratch[m % 2])
            if m > 0:
                _clear_rim(scratch[m % 2], layout)
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
    height, row, beside, rim = layout
    here, n = rim * row, height * row - 2 * beside
    for r in range(pairs.shape[1]):
        _side_sums(pairs[0, r], layout, weight, scratch[0], scratch[1])
        _side_sums(pairs[1, r], layout, weight, scratch[2], scratch[3])
        a_west, a_east, a_north, a_south = _sides(scratch[0], scratch[1], layout)
        b_west, b_east, b_north, b_south = _sides(scratch[2], scratch[3], layout)
        dot, cross = dots[r, here + beside :][:n], crosses[r, here + beside :][:n]
        for q in range(n):
            ax, ay = a_east[q] - a_west[q], a_south[q] - a_north[q]
            bx, by = b_east[q] - b_west[q], b_south[q] - b_north[q]
            dot[q] = unit * (ax * bx + ay * by)
            cross[q] = unit * (ax * by - ay * bx)
        _clear_rim(dots[r], layout)
        _clear_rim(crosses[r], layout)


@kernel
def pair_products_adjoint(pairs, layout, weight, unit, scratch, dots, crosses, out):
    """Fill out (2, R, pitch) with dE/da and dE/db, given dE/ddot and dE/dcross as `dots` and `crosses`.

    The gradient of dot . g_d + cross . g_c with respect to D a is g_d D b + g_c (D_y b, -D_x b), and the adjoint of D
    is -D, because D is antisymmetric.
    """
    height, row, beside, rim = layout
    here, n = rim * row, height * row - 2 * beside
    for r in range(pairs.shape[1]):
        _side_sums(pairs[0, r], layout, weight, scratch[0], scratch[1])
        _side_sums(pairs[1, r], layout, weight, scratch[2], scratch[3])
        a_west, a_east, a_north, a_south = _sides(scratch[0], scratch[1], layout)
        b_west, b_east, b_north, b_south = _sides(scratch[2], scratch[3], layout)
        to_ax, to_ay = scratch[4, here + beside :][:n], scratch[5, here + beside :][:n]
        to_bx, to_by = scratch[6, here + beside :][:n], scratch[7, here + beside :][:n]
        dot, cross = dots[r, here + beside :][:n], crosses[r, here + beside :][:n]
        for q in range(n):
            d, c, bx, by = dot[q], cross[q], b_east[q] - b_west[q], b_south[q] - b_north[q]
            to_ax[q] = unit * (d * bx + c * by)
            to_ay[q] = unit * (d * by - c * bx)
        for q in range(n):
            d, c, ax, ay = dot[q], cross[q], a_east[q] - a_west[q], a_south[q] - a_north[q]
            to_bx[q] = unit * (d * ax - c * ay)
            to_by[q] = unit * (d * ay + c * ax)
        for k in range(4, 8):
            _clear_rim(scratch[k], layout)
        _minus_divergence(scratch[4], scratch[5], layout, weight, scratch[0], scratch[1], out[0, r])
        _minus_divergence(scratch[6], scratch[7], layout, weight, scratch[0], scratch[1], out[1, r])


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
    _clear_rim(frame, layout)
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


@kernel
def _side_sums(x, layout, weight, column, row_of):
    """Fill two frames with the sums that a gradient is made of: x + weight (north + south), x + weight (west + east).

    D x along the columns is then the difference of the first one east and west of a node, and along the rows that of
    the second one south and north. Each sum serves two nodes, and is the same for both.
    """
    _column_sums(x, layout, weight, column)
    _row_sums(x, layout, weight, row_of)


@kernel
def _column_sums(x, layout, weight, out):
    height, row, _, rim = layout
    here, down, n = rim * row, 2 * rim * row, height * row
    north, node, south, to = x[:n], x[here : here + n], x[down : down + n], out[here : here + n]
    for q in range(n):
        to[q] = node[q] + weight * (north[q] + south[q])


@kernel
def _row_sums(x, layout, weight, out):
    height, row, beside, rim = layout
    n = (height + 2 * rim) * row - 2 * beside
    west, node, east, to = x[:n], x[beside : beside + n], x[2 * beside : 2 * beside + n], out[beside : beside + n]
    for q in range(n):
        to[q] = node[q] + weight * (west[q] + east[q])


@kernel
def _sides(column, row_of, layout):
    """The first of `_side_sums` west and east of all nodes, the second one north and south of them."""
    height, row, beside, rim = layout
    here, down, n = rim * row, 2 * rim * row, height * row - 2 * beside
    west, east = column[here : here + n], column[here + 2 * beside : here + 2 * beside + n]
    return west, east, row_of[beside : beside + n], row_of[down + beside : down + beside + n]


@kernel
def _minus_divergence(x, y, layout, weight, column, row_of, out):
    """Fill a frame with -(D_x x + D_y y), the adjoint of the gradient; column and row_of are scratch frames."""
    height, row, beside, rim = layout
    here, n = rim * row, height * row - 2 * beside
    _column_sums(x, layout, weight, column)
    _row_sums(y, layout, weight, row_of)
    west, east, north, south = _sides(column, row_of, layout)
    to = out[here + beside : here + beside + n]
    for q in range(n):
        to[q] = (west[q] - east[q]) + (north[q] - south[q])
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
