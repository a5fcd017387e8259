"""Oriented networks for a single image: its maps take the place of images, side by side at every node.

Loops over the nodes of one small map are short. With all K maps of an image side by side, as numbers (N, K), the
kernels for frames run over K times as many. Only matrix products change their form: a row of numbers is now a node,
and the matrix stands on the other side. Each sum has the same terms in the same order, so the bits are those of the
same image in a batch.
"""

from tigra.kernels.decorator import kernel
from tigra.kernels.oriented.frames import diffused, frame_powers, out_of_frame, pair_products
from tigra.kernels.products import product


@kernel
def oriented_single(y, alpha, mixing, grid, layouts, powers, pairs, products, sums, x):
    """`tigra.kernels.oriented.convolution.oriented_forward` for one image.

    Parameters
    ----------
    y : array (1, N, K_in)
        Maps.
    alpha : array ((M+1) K_in + 2 R, K_out)
        Weights of the terms, transposed.
    mixing : array (2 K_in, 2 R)
        Weights of the pairs, transposed.
    grid : (layout, float, float, float, float)
        As there, for frames of K_in maps.
    layouts : (layout, layout)
        Of frames of R and of K_out maps.
    powers, pairs, products, sums : array (M+1 or 2 or 2 or 1, 1, pitch)
        Scratch frames of K_in, R, R and K_out maps; the rims must be zero.
    x : array (N, K_out)
        Result.
    """
    (layout, straight, diagonal, weight, unit), (of_pairs, of_sums) = grid, layouts
    n_in, n_pairs, degree = y.shape[2], mixing.shape[1] // 2, len(powers) - 1
    frame_powers(y, layout, straight, diagonal, powers)
    for m in range(2):
        for side in range(2):
            start = m * n_in * mixing.shape[1] + side * n_pairs
            _mix(powers[m, 0], layout, n_in, mixing, start, n_pairs, m == 0, pairs[side, 0], of_pairs)
    pair_products(pairs, of_pairs, weight, unit, products[0], products[1])
    size = alpha.shape[1]
    for m in range(degree + 1):
        _mix(powers[m, 0], layout, n_in, alpha, m * n_in * size, size, m == 0, sums[0, 0], of_sums)
    for kind in range(2):
        start = ((degree + 1) * n_in + kind * n_pairs) * size
        _mix(products[kind, 0], of_pairs, n_pairs, alpha, start, size, False, sums[0, 0], of_sums)
    out_of_frame(sums[0, 0], of_sums, x.reshape(x.size))


@kernel
def _mix(frame, layout, n_maps, weights, start, n_sums, fresh, out, of_out):
    """Add the maps of a frame, times the weights from number `start` on, to the n_sums maps of the frame `out`."""
    height, row, _, rim = layout
    first, to = frame[rim * row :], of_out[3] * of_out[1]
    flat, pitch = weights.reshape(weights.size), weights.shape[1]
    product(first, n_maps, 1, height * row // n_maps, n_maps, flat, start, pitch, out, to, n_sums, n_sums, fresh)


@kernel
def rectified_single(x, scale, shift, width, diffusion, frames, line, out):
    """`tigra.kernels.oriented.normalising.rectified` for one image, x and out (N K); line (3, width K) is scratch."""
    times, layout, zero = diffusion[0], diffusion[1], x.dtype.type(0)
    _, row, beside, rim = layout
    run, first, n_maps = line.shape[1], rim * row + beside, len(scale)
    s, h, floor = line[0], line[1], line[2]
    for j in range(width):
        for k in range(n_maps):
            s[j * n_maps + k], h[j * n_maps + k], floor[j * n_maps + k] = scale[k], shift[k], max(shift[k], zero)
    for i in range(x.size // run):
        source, start = x[i * run : (i + 1) * run], first + i * row if times else i * run
        to = frames[0, start : start + run] if times else out[start : start + run]
        for q in range(run):
            to[q] = max(s[q] * source[q] + h[q], zero) - floor[q]
    if times:
        out_of_frame(diffused(frames, diffusion), layout, out)
