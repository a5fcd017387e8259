"""Products in registers, bit by bit against their definition; everything around them stays as it was."""

import importlib.util
import sys
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from tests.kernels.forms import every_kernel, form_of
from tigra.kernels import decorator, products
from tigra.kernels.compiling import registers
from tigra.kernels.compiling.registers import fma
from tigra.kernels.workspace import aligned_empty

PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
# rows, terms, places
SHAPES = [(1, 1, 1), (3, 4, 5), (6, 5, 1), (4, 5, 16), (7, 1, 47), (9, 3, 100), (13, 258, 33), (2, 0, 3)]


def in_both_forms(*shapes):
    """Interpreted, fused multiply-adds are slow: small shapes only."""
    cases = [("compiled", *shape) for shape in shapes] + [("interpreted", *shape) for shape in shapes[:4]]
    return pytest.mark.parametrize("form, n_rows, n_terms, n", cases)


def strewn(rng, dtype, *shape):
    """A matrix within a larger one: (flat, start, pitch, view)."""
    whole = rng.standard_normal((shape[0] + 2, shape[1] + 3)).astype(dtype)
    start = whole.shape[1] + 2
    return whole.reshape(-1), start, whole.shape[1], whole[1 : 1 + shape[0], 2 : 2 + shape[1]]


@PRECISIONS
def test_fma_is_rounded_once(dtype, rng):
    a, b = rng.standard_normal((2, 2000)).astype(dtype)
    c = (-a * b * (1 + rng.integers(-2, 3, 2000) * np.finfo(dtype).eps)).astype(dtype)  # most digits cancel
    c[::4] = rng.standard_normal(500) * 10.0 ** rng.integers(-12, 12, 500)
    result = fma(a, b, c)
    assert result.dtype == dtype and not np.array_equal(result, a * b + c)
    for numbers in zip(*(array.astype(float).tolist() for array in (a, b, c, result)), strict=True):
        x, y, z, got = map(Fraction, numbers)
        exact, near = (
            x * y + z,
            [Fraction(float(np.nextafter(dtype(float(got)), dtype(way)))) for way in (-np.inf, np.inf)],
        )
        assert all(abs(exact - got) <= abs(exact - other) for other in near)


def test_fma_of_what_is_not_finite_and_of_zeros():
    with np.errstate(invalid="ignore"):
        got = fma(np.array([np.inf, np.inf, 1e300, 0.0]), np.array([2.0, 0.0, 1e300, -1.0]), np.zeros(4))
    np.testing.assert_array_equal(got, [np.inf, np.nan, np.inf, 0.0])


@PRECISIONS
@in_both_forms(*SHAPES)
@pytest.mark.parametrize("fresh, transposed", [(True, False), (False, True)])
def test_product_adds_in_the_order_of_the_terms(form, dtype, n_rows, n_terms, n, fresh, transposed, rng):
    w = rng.standard_normal((n_rows, n_terms)).astype(dtype)
    x, x0, x_pitch, terms = strewn(rng, dtype, n_terms, n)
    out, out0, out_pitch, target = strewn(rng, dtype, n_rows, n)
    whole, wanted = out.copy(), np.zeros_like(target) if fresh else target.copy()
    for r in range(n_terms):
        wanted = fma(w[:, r, None], terms[r], wanted)
    flat, (row, term) = (w.T.ravel(), (1, n_rows)) if transposed else (w.ravel(), (n_terms, 1))
    form_of(products.product, form)(flat, row, term, n_rows, n_terms, x, x0, x_pitch, out, out0, out_pitch, n, fresh)
    np.testing.assert_array_equal(target, wanted)
    target[:] = whole.reshape(-1, out_pitch)[1:-1, 2:-1]
    np.testing.assert_array_equal(out, whole)  # nothing beside the target was touched


@PRECISIONS
@in_both_forms(*SHAPES[:-1], (3, 2, 0), (2, 3, 1030))
@pytest.mark.parametrize("fresh", [True, False])
def test_outer_adds_by_lanes_then_by_halves_then_by_runs(form, dtype, n_rows, n_terms, n, fresh, rng):
    g, g0, g_pitch, rows = strewn(rng, dtype, n_rows, n)
    x, x0, x_pitch, terms = strewn(rng, dtype, n_terms, n)
    out = rng.standard_normal((n_rows, n_terms)).astype(dtype)
    wanted, lanes = np.zeros_like(out) if fresh else out.copy(), 64 // out.itemsize
    for start in range(0, max(n, 1), 1024):
        places = min(1024, n - start)
        a, b = (np.zeros((len(part), 1024), dtype) for part in (rows, terms))
        a[:, :places], b[:, :places] = rows[:, start : start + places], terms[:, start : start + places]
        sums = np.zeros((n_rows, n_terms, lanes), dtype)
        for q in range(0, places, lanes):
            sums = fma(a[:, None, q : q + lanes], b[None, :, q : q + lanes], sums)
        while sums.shape[2] > 1:
            sums = sums[:, :, : sums.shape[2] // 2] + sums[:, :, sums.shape[2] // 2 :]
        wanted += sums[:, :, 0]
    form_of(products.outer, form)(g, g0, g_pitch, n_rows, x, x0, x_pitch, n_terms, out.reshape(-1), n, fresh)
    np.testing.assert_array_equal(out, wanted)


@PRECISIONS
@pytest.mark.parametrize("n", [16, 48, 1024, 1040, 2064])
def test_rows_that_begin_in_the_middle_of_a_cache_line_have_the_same_sums(dtype, n, rng):
    """Halves of lines are read first and last there; what lies outside is NaN, and so would be the result."""
    g, x = rng.standard_normal((5, n)).astype(dtype), rng.standard_normal((7, n)).astype(dtype)
    pitch, outs = n + 48, []
    for start in (0, 32 // g.itemsize, 3):  # aligned, in the middle, anywhere
        flat = aligned_empty((13 * pitch,), dtype)
        flat[...] = np.nan
        rows = np.lib.stride_tricks.as_strided(flat[start:], (12, n), (pitch * flat.itemsize, flat.itemsize))
        rows[:5], rows[5:] = g, x
        outs.append(np.empty((5, 7), dtype))
        products.outer(flat, start, pitch, 5, flat, start + 5 * pitch, pitch, 7, outs[-1].reshape(-1), n, True)
    np.testing.assert_allclose(outs[0], g.astype(float) @ x.T, atol=1e-3 if dtype == np.float32 else 1e-11)
    np.testing.assert_array_equal(outs, [outs[0]] * 3)


def test_nothing_is_read_beyond_the_last_place(rng):
    """What lies outside is NaN, and so would be the result."""
    w, x = np.ones(2, np.float32), np.full(40, np.nan, np.float32)
    x[3:8], x[23:28] = 1, 2
    out = np.empty(5, np.float32)
    products.product(w, 2, 1, 1, 2, x, 3, 20, out, 0, 5, 5, True)
    assert (out == 3).all()
    products.outer(x, 3, 20, 2, x, 3, 20, 2, out, 5, True)
    np.testing.assert_array_equal(out[:4], [5, 10, 10, 20])


@pytest.mark.parametrize("n", [3, 300])  # few and many places: `times_transposed` adds them in two ways
def test_products_of_whole_matrices(n, rng):
    w, x, g = (rng.standard_normal(shape) for shape in ((4, 5), (5, n), (4, n)))
    np.testing.assert_allclose(products.times(w, x, np.empty((4, n))), w @ x, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(products.transposed_times(w, g, np.empty((5, n))), w.T @ g, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(products.times_transposed(g, x, np.empty((4, 5))), g @ x.T, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(products.dot(x, 2 * x), 2 * (x**2).sum(), rtol=1e-13)
    mixed = products.times(w.astype(np.float32), x[:, ::-1], np.empty((4, n)))  # other dtypes and orders are converted
    np.testing.assert_allclose(mixed, w.astype(np.float32) @ x[:, ::-1], rtol=1e-13, atol=1e-13)


def test_arrays_that_a_block_cannot_take_are_refused(rng):
    w, x = np.ones(4, np.float32), np.ones(8, np.float32)
    for arguments in ((w, x.astype(np.float64)), (w, x[::2]), (w[:, None], x)):
        with pytest.raises(Exception, match="No implementation of function"):
            products.outer(arguments[0], 0, 2, 2, arguments[1], 0, 2, 2, np.empty(4, np.float32), 2, True)


@pytest.mark.slow
def test_the_size_of_the_blocks_changes_no_bit(monkeypatch, rng):
    """The blocks for AVX2 where the processor has AVX-512, and the other way round: LLVM splits what is too wide."""
    monkeypatch.setattr(registers, "HAS_AVX512", not registers.HAS_AVX512)
    monkeypatch.setattr(registers, "VECTOR_BYTES", 64 if registers.HAS_AVX512 else 32)
    monkeypatch.setattr(decorator, "kernel", njit)  # nothing of this may get into the cache
    specification = importlib.util.spec_from_file_location("other_blocks", products.__file__)
    others = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(others)
    assert (others.ROWS, others.VECTORS) != (products.ROWS, products.VECTORS)
    w, x, g = (rng.standard_normal(shape).astype(np.float32) for shape in ((11, 300), (300, 270), (11, 270)))
    for name, arrays, room in (("times", (w, x), g), ("times_transposed", (g, x), w)):
        one, other = (getattr(module, name)(*arrays, np.empty_like(room)) for module in (products, others))
        np.testing.assert_array_equal(one, other)
    middle, outs = aligned_empty((7 * 272,), np.float32, 8), np.empty((2, 12), np.float32)
    middle[...] = rng.standard_normal(middle.size)
    for module, out in zip((products, others), outs, strict=True):
        module.outer(middle, 0, 272, 3, middle, 3 * 272, 272, 4, out, 256, True)
    np.testing.assert_array_equal(*outs)


def test_every_kernel_lets_other_threads_run():
    assert every_kernel(products) == {"product", "outer"}
    for name in every_kernel(products):
        options = getattr(products, name).targetoptions
        assert options["nogil"] is True and options["error_model"] == "numpy" and not options.get("fastmath")


def test_a_kernel_is_compiled_anew_when_a_file_that_it_imports_changes(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "kernels_of_mine"
    package.mkdir()
    (package / "__init__.py").touch()
    start = "from tigra.kernels.decorator import kernel\n"
    (package / "outer.py").write_text(
        f"{start}from kernels_of_mine.inner import factor\n\n@kernel\ndef times(x):\n    return factor() * x\n"
    )

    def result(factor):
        (package / "inner.py").write_text(f"{start}\n@kernel\ndef factor():\n    return {factor}\n")
        for name in [name for name in sys.modules if name.startswith("kernels_of_mine")]:
            monkeypatch.delitem(sys.modules, name)
        importlib.invalidate_caches()
        times = importlib.import_module("kernels_of_mine.outer").times
        return times(5), sum(times.stats.cache_hits.values())

    assert [result(2), result(2), result(31)] == [(10, 0), (10, 1), (155, 0)]
