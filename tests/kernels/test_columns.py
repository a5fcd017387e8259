"""Formulas over frames, compiled and interpreted: the bits of plain loops over the nodes, and nothing beside them."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from tests.kernels.forms import BOTH
from tigra.kernels import stencils
from tigra.kernels.compiling import columns

PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
LAYOUTS = pytest.mark.parametrize(  # rows of one number, of less and of more than a vector, and distant neighbours
    "height, width, n_batch, rim",
    [(1, 1, 1, 1), (5, 4, 1, 1), (4, 7, 3, 1), (9, 13, 2, 1), (3, 5, 9, 2), (2, 17, 1, 3)],
)


def everything(x, y, point, line, weight):
    """Uses all that formulas may use."""
    s, d = stencils.around(x)
    along, down = stencils.slopes(y, weight)
    value = s * point - d * line + np.sign(along) * abs(down)
    return value, x.node + value, value * value, abs(y.node)


@njit
def compiled(layout, x, y, point, line, one, other, squares, sizes, weight):
    _fill(layout, x, y, point, line, one, other, squares, sizes, weight)


_fill = columns.columns(everything, windows=2, points=1, lines=1, results=2, sums=2)
_fill_ahead = columns.columns(everything, windows=2, points=1, lines=1, results=2, sums=2, ahead=2)


@njit
def compiled_ahead(layout, x, y, point, line, one, other, squares, sizes, weight):
    _fill_ahead(layout, x, y, point, line, one, other, squares, sizes, weight)


@pytest.mark.parametrize("call", [_fill, compiled, compiled_ahead])
@PRECISIONS
@LAYOUTS
def test_formulas_have_the_bits_of_a_loop_over_nodes(call, dtype, height, width, n_batch, rim, rng):
    shape = height + 2 * rim, (width + 2 * rim) * n_batch
    layout, run = (height, shape[1], rim * n_batch, rim), width * n_batch
    x, y, point = rng.standard_normal((3, *shape)).astype(dtype)
    y[rng.uniform(size=shape) < 0.4] = 0
    y[rng.uniform(size=shape) < 0.02] = np.nan
    line, weight = rng.standard_normal(run).astype(dtype), dtype(0.3)
    found, sums = np.full((2, *shape), 7, dtype), np.full((2, run), 7, dtype)
    flat = [a.ravel() for a in (x, y, point, line, *found, *sums)]
    call(layout, *flat, weight)
    wanted = np.full_like(found, 7)
    summands = np.empty((2, height, run), dtype)
    for i in range(rim, rim + height):
        for q in range(rim * n_batch, rim * n_batch + run):
            windows = (
                columns.Window(*(a[i + v, q + h] for v in (-rim, 0, rim) for h in (-rim * n_batch, 0, rim * n_batch)))
                for a in (x, y)
            )
            here = everything(*windows, point[i, q], line[q - rim * n_batch], weight)
            wanted[:, i, q], summands[:, i - rim, q - rim * n_batch] = here[:2], here[2:]
    np.testing.assert_array_equal(found, wanted)
    if rim == 1:
        for total, rows in zip(sums, summands, strict=True):
            np.testing.assert_array_equal(total, by_fours(rows))


def by_fours(rows):
    """(a + b) + (c + d) and so on, and then those that are left."""
    total, whole = np.zeros_like(rows[0]), len(rows) // 4 * 4
    for a, b, c, d in rows[:whole].reshape(-1, 4, len(total)):
        total = total + ((a + b) + (c + d))
    for row in rows[whole:]:
        total = total + row
    return total


@BOTH
@PRECISIONS
def test_the_sign_of_a_number_is_that_of_numpy(form, dtype):
    x, out = np.array([0, -2, -0.0, 0, 3, np.inf, -np.inf, np.nan, 1e-30, 0], dtype), np.zeros((3, 10), dtype)
    fill = columns.columns(lambda x: (np.sign(x),), windows=0, points=1)

    @njit
    def call(layout, x, out):
        fill(layout, x, out)

    (call if form == "compiled" else fill)((1, 10, 1, 1), np.tile(x, 3), out.ravel())
    assert out[1].tobytes() == np.sign(x).tobytes()  # 0 has no sign, either


def test_arrays_of_two_precisions_are_refused():
    @njit
    def call(layout, x, out):
        stencils.fill_filtered(layout, x, out, x[0], x[0], x[0])

    with pytest.raises(TypingError, match="over_frames"):
        call((1, 3, 1, 1), np.zeros(9, np.float32), np.zeros(9))
