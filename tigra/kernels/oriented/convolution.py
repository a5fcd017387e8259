"""An oriented convolution on the frames of a padded grid: forward and backward, each in one call.

One call for a whole layer means that threads seldom wait for each other at Python's lock, and that a single image
does not spend its time between kernels. Matrix products go row by row of the grid where rows are long and whole
vectors, and leave the rims out. `tigra.layers.oriented_chain` is the same layer step by step, for any graph.
"""

from tigra.kernels.compiling.registers import VECTOR_BYTES
from tigra.kernels.decorator import kernel
from tigra.kernels.oriented.frames import (
    frame_powers,
    frame_powers_adjoint,
    into_frames,
    out_of_frames,
    pair_products,
    pair_products_adjoint,
)
from tigra.kernels.products import VECTORS, outer, product

VECTOR = 16  # numbers in float32, as below; long rows of a multiple of it are computed without their rims
WIDE = VECTORS * VECTOR_BYTES // 4  # so many are computed at a time; shorter rows are not long


@kernel
def oriented_forward(y, alpha, mixing, grid, terms, pairs, sums, x):
    """Fill x with alpha times the terms L^m y, dot(a, b), cross(a, b), where the pairs a, b are mixing times y, L y.

    Parameters
    ----------
    y : array (K_in, N, B)
        Maps.
    alpha : array (K_out, (M+1) K_in + 2 R)
        Weights of the terms.
    mixing : array (2 R, 2 K_in)
        Weights of the pairs.
    grid : (layout, float, float, float, float)
        The layout (`tigra.kernels.oriented.frames`), the weights of straight and diagonal edges in L, the weight of a
        diagonal edge in D, and the square of D's unit.
    terms : array ((M+1) K_in + 2 R, pitch)
        Scratch frames for the terms; the rims must be zero, here and below.
    pairs : array (2 R, pitch)
        Filled with the frames of the pairs, for `oriented_backward`.
    sums : array (K_out, pitch)
        Scratch frames.
    x : array (K_out, N, B)
        Result.
    """
    layout, pitch = grid[0], terms.shape[1]
    _fill_powers(y, grid, terms[: len(terms) - len(pairs)])
    multiply(mixing, False, terms, layout, True, pairs)
    _fill_products(pairs, grid, terms[len(terms) - len(pairs) :])
    first, run, n_runs = _runs(layout)
    if n_runs == 1:
        multiply(alpha, False, terms, layout, True, sums)
        out_of_frames(sums, layout, x)
        return
    n_out, n_terms = alpha.shape
    w, source, to, step = alpha.reshape(alpha.size), terms.reshape(terms.size), x.reshape(x.size), layout[1]
    for i in range(n_runs):
        row = first + i * step
        product(w, n_terms, 1, n_out, n_terms, source, row, pitch, to, i * run, n_runs * run, run, True)


@kernel
def _fill_powers(y, grid, powers):
    """Fill powers ((M+1) K_in, pitch) with the frames of L^m y."""
    layout, straight, diagonal, _, _ = grid
    frame_powers(y, layout, straight, diagonal, powers.reshape(len(powers) // len(y), len(y), powers.shape[1]))


@kernel
def _fill_products(pairs, grid, products):
    """Fill products (2 R, pitch) with the frames of dot(a, b), then of cross(a, b)."""
    (layout, _, _, weight, unit), n_pairs = grid, len(pairs) // 2
    a_and_b = pairs.reshape(2, n_pairs, pairs.shape[1])
    pair_products(a_and_b, layout, weight, unit, products[:n_pairs], products[n_pairs:])


@kernel
def oriented_backward(
    grad_x, y, alpha, mixing, grid, terms, pairs, grad, grad_terms, grad_pairs, scratch, grad_alpha, grad_mixing, grad_y
):
    """Fill grad_alpha, grad_mixing and grad_y from grad_x, the maps y and the pairs of `oriented_forward`.

    The terms are computed again: stencils take less time than the memory that all terms of all layers would need.

    Parameters
    ----------
    grad_x : array (K_out, N, B)
        dE/dx.
    y, alpha, mixing, grid, pairs
        As of `oriented_forward`, and unchanged since.
    terms : array ((M+1) K_in + 2 R, pitch)
        Scratch frames.
    grad, grad_terms, grad_pairs : array
        Scratch frames like `sums`, `terms` and `pairs` there.
    scratch : array (2, pitch)
        Scratch frames; the rims must be zero, and those of `grad_pairs`, too.
    grad_alpha, grad_mixing, grad_y : array
        Results, like alpha, mixing and y.
    """
    (layout, straight, diagonal, weight, unit), n_in, pitch = grid, len(grad_y), terms.shape[1]
    n_pairs = len(pairs) // 2
    n_filtered = len(terms) - 2 * n_pairs
    _fill_powers(y, grid, terms[:n_filtered])
    _fill_products(pairs, grid, terms[n_filtered:])
    into_frames(grad_x, layout, grad)
    _correlate(grad, terms, layout, grad_alpha)
    multiply(alpha, True, grad, layout, True, grad_terms)
    dots, crosses = grad_terms[n_filtered : n_filtered + n_pairs], grad_terms[n_filtered + n_pairs :]
    a_and_b, to = pairs.reshape(2, n_pairs, pitch), grad_pairs.reshape(2, n_pairs, pitch)
    pair_products_adjoint(a_and_b, layout, weight, unit, scratch, dots, crosses, to)
    _correlate(grad_pairs, terms[: 2 * n_in], layout, grad_mixing)
    multiply(mixing, True, grad_pairs, layout, False, grad_terms)
    powers = grad_terms[:n_filtered].reshape(n_filtered // n_in, n_in, pitch)
    frame_powers_adjoint(powers, layout, straight, diagonal, scratch, grad_y)


@kernel
def includes_rims(layout):
    """Whether products run over the rims between the rows of a frame, too: see `_runs`."""
    _, row, beside, _ = layout
    run = row - 2 * beside
    return run % VECTOR != 0 or run < WIDE


@kernel
def _runs(layout):
    """(start, length, number) of the runs of numbers in a frame that products go through: rows without the rim.

    Rows that are no multiple of a vector would waste the rest of their last one, and short rows do not fill the
    registers: all of them are one run then, with the rims between them, whose products are zero.
    """
    height, row, beside, rim = layout
    if includes_rims(layout):
        return rim * row, height * row, 1
    return rim * row + beside, row - 2 * beside, height


@kernel
def multiply(w, is_transposed, x, layout, fresh, out):
    """out (+)= W x, or W^T x, for frames; each sum in the order of the terms. Frames beyond W's are not touched."""
    (n_rows, n_terms), row, term = w.shape, w.shape[1], 1
    if is_transposed:
        n_rows, n_terms, row, term = n_terms, n_rows, 1, n_terms
    flat, source, to, pitch = w.reshape(w.size), x.reshape(x.size), out.reshape(out.size), x.shape[1]
    first, run, n_runs = _runs(layout)
    for i in range(n_runs):
        start = first + i * layout[1]
        product(flat, row, term, n_rows, n_terms, source, start, pitch, to, start, pitch, run, fresh)


@kernel
def _correlate(grad, x, layout, out):
    """out = grad x^T, the sums over nodes and images; rims are zero and count as further nodes."""
    height, row, _, rim = layout
    pitch, start = x.shape[1], rim * row
    flat, source = grad.reshape(grad.size), x.reshape(x.size)
    outer(flat, start, pitch, len(grad), source, start, pitch, len(x), out.reshape(out.size), height * row, True)
