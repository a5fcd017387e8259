"""Matrix products with a fixed order of additions: the same bits on every processor, whatever the size of the blocks.

Other kernel files may import these functions. Numba's on-disk cache looks only at the file of the function itself;
`tigra.kernels.decorator` adds the files that this one imports, so a change here has the callers compiled anew.
"""

import numpy as np

from tigra.kernels.compiling.registers import HAS_AVX512, VECTOR_BYTES, dot_block, sum_block
from tigra.kernels.decorator import kernel

ROWS, FEW, VECTORS = (6, 3, 4) if HAS_AVX512 else (6, 3, 2)  # of 32 or 16 registers
DOT_ROWS, DOT_TERMS = (4, 6) if HAS_AVX512 else (3, 2)
MANY = 12  # sums of one place: enough that none waits for its own last addition
TERMS = 256  # added before the next places, so that they stay in the L1 cache
SOME_ROWS = 60  # whose runs stay in the L2 cache together; a multiple of DOT_ROWS
RUN = 1024  # places summed before they are added to `out`; part of the definition of `outer`
FEW_PLACES = 256  # up to here, a transposed copy is cheaper than the sums over lanes of `outer`

_tall_wide, _tall_single = (sum_block(ROWS, n_vectors) for n_vectors in (VECTORS, 1))
_flat_wide, _flat_single = (sum_block(FEW, n_vectors) for n_vectors in (VECTORS, 1))
_column = sum_block(MANY, 1, lanes=1)
_dots = dot_block(DOT_ROWS, DOT_TERMS)


def times(w: np.ndarray, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Fill the contiguous array `out` (I, P) with W X, and return it; w (I, R) and x (R, P)."""
    (n_rows, n_terms), n = w.shape, x.shape[1]
    w, x = _flat(w, out), _flat(x, out)
    product(w, n_terms, 1, n_rows, n_terms, x, 0, n, out.reshape(-1), 0, n, n, True)
    return out


def transposed_times(w: np.ndarray, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Fill the contiguous array `out` (R, P) with W^T X, and return it; w (I, R) and x (I, P)."""
    (n_terms, n_rows), n = w.shape, x.shape[1]
    w, x = _flat(w, out), _flat(x, out)
    product(w, 1, n_rows, n_rows, n_terms, x, 0, n, out.reshape(-1), 0, n, n, True)
    return out


def times_transposed(g: np.ndarray, x: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Fill the contiguous array `out` (I, R) with G X^T, and return it; g (I, P) and x (R, P).

    Up to 256 places are added one after the other, as in `product`; more of them as in `outer`.
    """
    (n_rows, n), n_terms = g.shape, len(x)
    if n <= FEW_PLACES:
        return times(g, x.T, out)
    g, x = _flat(g, out), _flat(x, out)
    outer(g, 0, n, n_rows, x, 0, n, n_terms, out.reshape(-1), n, True)
    return out


def dot(a: np.ndarray, b: np.ndarray) -> np.floating:
    """Sum of the products of all entries of two arrays of one shape, added as in `times_transposed`."""
    return times_transposed(a.reshape(1, -1), b.reshape(1, -1), np.empty((1, 1), a.dtype))[0, 0]


def _flat(array, like):
    return np.ascontiguousarray(array, like.dtype).reshape(-1)


@kernel
def product(w, row, term, n_rows, n_terms, x, x0, x_pitch, out, out0, out_pitch, n, fresh):
    """Add W X to `out`: out[i, q] (+)= sum_r W[i, r] X[r, q], in the order of r, each a fused multiply-add.

    Parameters
    ----------
    w : array
        Flat; W[i, r] is w[i * row + r * term]. For the transpose, swap `row` and `term`.
    row, term, n_rows, n_terms : int
        Steps in `w`, and the shape of W.
    x : array
        Flat; X[r, q] is x[x0 + r * x_pitch + q].
    x0, x_pitch : int
        Start and distance of rows.
    out : array
        Flat; out[i, q] is out[out0 + i * out_pitch + q]. It must not overlap with `w` or `x`.
    out0, out_pitch : int
        Start and distance of rows.
    n : int
        Number of places q.
    fresh : bool
        Start from 0 instead of what `out` contains.
    """
    if n == 1:  # as for one image
        for i in range(0, n_rows, MANY):
            rows, f, o = min(MANY, n_rows - i), i * row, out0 + i * out_pitch
            _column(w, f, row, term, n_terms, x, x0, x_pitch, out, o, out_pitch, rows, 1, fresh)
        return
    lanes = VECTOR_BYTES // x.itemsize
    wide = VECTORS * lanes
    for r in range(0, max(n_terms, 1), TERMS):
        terms, new = min(TERMS, n_terms - r), fresh and r == 0
        a, b = r * term, x0 + r * x_pitch
        q = 0
        while q < n:
            places = wide if n - q >= wide else min(lanes, n - q)
            for i in range(0, n_rows, ROWS):
                rows = min(ROWS, n_rows - i)
                f, o = a + i * row, out0 + i * out_pitch + q
                if rows > FEW:
                    if places == wide:
                        _tall_wide(w, f, row, term, terms, x, b + q, x_pitch, out, o, out_pitch, rows, places, new)
                    else:
                        _tall_single(w, f, row, term, terms, x, b + q, x_pitch, out, o, out_pitch, rows, places, new)
                elif places == wide:
                    _flat_wide(w, f, row, term, terms, x, b + q, x_pitch, out, o, out_pitch, rows, places, new)
                else:
                    _flat_single(w, f, row, term, terms, x, b + q, x_pitch, out, o, out_pitch, rows, places, new)
            q += places


@kernel
def outer(g, g0, g_pitch, n_rows, x, x0, x_pitch, n_terms, out, n, fresh):
    """Add G X^T to `out`: out[i, r] (+)= sum_q G[i, q] X[r, q].

    The order of additions: places are taken in runs of 1024. In a run, lane l of 16 (8 for float64) adds the places l,
    l + 16, l + 32, ... by fused multiply-adds, with zeros beyond the end. The upper half of the lanes is then added to
    the lower half, until one number is left. The sums of the runs are added to `out` one after the other.

    Parameters
    ----------
    g : array
        Flat; G[i, q] is g[g0 + i * g_pitch + q].
    g0, g_pitch, n_rows : int
        Start, distance and number of rows.
    x : array
        Flat; X[r, q] is x[x0 + r * x_pitch + q].
    x0, x_pitch, n_terms : int
        Start, distance and number of rows.
    out : array (n_rows * n_terms)
        Flat and contiguous. It must not overlap with `g` or `x`.
    n : int
        Number of places q.
    fresh : bool
        Start from 0 instead of what `out` contains.
    """
    for q in range(0, max(n, 1), RUN):
        places, new = min(RUN, n - q), fresh and q == 0
        for start in range(0, n_rows, SOME_ROWS):
            stop = min(start + SOME_ROWS, n_rows)
            for r in range(0, n_terms, DOT_TERMS):  # their runs stay in the L1 cache
                terms, b = min(DOT_TERMS, n_terms - r), x0 + r * x_pitch + q
                for i in range(start, stop, DOT_ROWS):
                    rows, a = min(DOT_ROWS, stop - i), g0 + i * g_pitch + q
                    _dots(g, a, g_pitch, rows, x, b, x_pitch, terms, places, out, i * n_terms + r, n_terms, new)
