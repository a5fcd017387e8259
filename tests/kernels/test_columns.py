"""Stencils down columns of vectors, compiled and interpreted: the bits of the flat loops, and nothing beside them."""

import numpy as np
import pytest
from numba import njit

from tests.kernels.forms import BOTH
from tigra.kernels.oriented import columns, frames

PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
N_PARTS = pytest.mark.parametrize("n_parts", [1, 2])


@BOTH
@PRECISIONS
@N_PARTS
@pytest.mark.parametrize("height, beside", [(1, 1), (5, 1), (4, 3)])
def test_columns_have_the_bits_of_the_flat_loops(form, dtype, n_parts, height, beside, rng):
    lanes = columns.VECTOR_BYTES // np.dtype(dtype).itemsize // n_parts
    row = lanes + 3 + 2 * beside
    layout, start = (height, row, beside, 1), row + beside + 2  # the column is in the middle of the grid
    a, b = rng.standard_normal((2, (height + 2) * row)).astype(dtype)
    numbers = start, row, beside, height
    w, *weights = rng.standard_normal(4).astype(dtype)
    wanted, found = np.full((2, 3, a.size), np.nan, dtype)
    frames.flat_stencil(a, a, layout, *weights, dtype(0), wanted[0])
    frames.gradient_products(a, b, layout, w, weights[0], wanted[1], wanted[2])
    one, two = columns.stencil_column(n_parts), columns.gradient_column(n_parts)
    if form == "compiled":
        one, two = _compiled_stencil(one), _compiled_gradient(two)
    one(a, *numbers, *weights, found[0])
    two(a, b, *numbers, w, weights[0], found[1], found[2])
    inside = np.zeros(a.size, bool)
    for i in range(height):
        inside[start + i * row : start + i * row + lanes] = True
    np.testing.assert_array_equal(found[:, inside], wanted[:, inside])
    assert np.isnan(found[:, ~inside]).all()


def _compiled_stencil(column):
    @njit
    def call(x, first, row, beside, n_rows, times_x, straight, diagonal, out):
        column(x, first, row, beside, n_rows, times_x, straight, diagonal, out)

    return call


def _compiled_gradient(column):
    @njit
    def call(a, b, first, row, beside, n_rows, weight, unit, dots, crosses):
        column(a, b, first, row, beside, n_rows, weight, unit, dots, crosses)

    return call
