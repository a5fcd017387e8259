"""Loops over planes, compiled and interpreted, in both precisions, against plain loops; out starts as NaN."""

from pathlib import Path

import numpy as np
import pytest

from tests.test_kernels import BOTH, DTYPES, blank, every_kernel, form_of
from tigra import plane_kernels

SHAPES = pytest.mark.parametrize("shape", [(2, 3, 3, 1), (1, 5, 7, 3), (3, 4, 6, 2)])
SIZES = pytest.mark.parametrize("size", [1, 2, 3])


def test_every_kernel_for_planes_is_tested_here():
    text = Path(__file__).read_text(encoding="utf-8")
    missing = {name for name in every_kernel(plane_kernels) if f"plane_kernels.{name}" not in text}
    assert {name for name in missing if not name.startswith("_")} == set()


def windows_of(x, size):
    """Every window, one after the other: {(c, i, j): (size, size, B)}."""
    n_maps, height, width, _ = x.shape
    places = np.ndindex(n_maps, height - size + 1, width - size + 1)
    return {(c, i, j): x[c, i : i + size, j : j + size] for c, i, j in places}


@BOTH
@DTYPES
@SHAPES
@SIZES
def test_unfold_lists_the_pixels_of_all_windows(form, dtype, rtol, shape, size, rng):
    x = rng.standard_normal(shape).astype(dtype)
    n_maps, height, width, n_batch = shape
    n_rows, n_columns = height - size + 1, width - size + 1
    out = blank(n_maps * size * size, n_rows * n_columns * n_batch, dtype=dtype)
    form_of(plane_kernels.unfold, form)(x, size, out)
    listed = out.reshape(n_maps, size, size, n_rows, n_columns, n_batch)
    for (c, i, j), window in windows_of(x, size).items():
        np.testing.assert_array_equal(listed[c, :, :, i, j], window)


@BOTH
@DTYPES
@SHAPES
@SIZES
def test_fold_is_the_adjoint_of_unfold(form, dtype, rtol, shape, size, rng):
    """<fold(g), x> = <g, unfold(x)> for unit images x: each pixel collects what its windows hold."""
    n_maps, height, width, n_batch = shape
    n_rows, n_columns = height - size + 1, width - size + 1
    g = rng.standard_normal((n_maps * size * size, n_rows * n_columns * n_batch)).astype(dtype)
    out, expected = blank(*shape, dtype=dtype), np.zeros(shape)
    form_of(plane_kernels.fold, form)(g, size, out)
    listed = g.reshape(n_maps, size, size, n_rows, n_columns, n_batch)
    for c, u, v, i, j in np.ndindex(listed.shape[:-1]):
        expected[c, i + u, j + v] += listed[c, u, v, i, j]
    np.testing.assert_allclose(out, expected, rtol=10 * rtol, atol=10 * rtol)  # up to nine terms


@BOTH
@DTYPES
@SHAPES
@SIZES
def test_max_pool_finds_the_first_largest_value_and_its_gradient_goes_there(form, dtype, rtol, shape, size, rng):
    x = np.round(rng.standard_normal(shape)).astype(dtype)  # many equal values
    n_maps, height, width, n_batch = shape
    pooled = n_maps, height // size, width // size, n_batch
    out, place, grad_x = blank(*pooled, dtype=dtype), np.full(pooled, -1, np.int32), blank(*shape, dtype=dtype)
    grad = rng.standard_normal(pooled).astype(dtype)
    form_of(plane_kernels.max_pool, form)(x, size, out, place)
    form_of(plane_kernels.max_pool_gradient, form)(grad, place, size, grad_x)
    expected_grad = np.zeros(shape, dtype)
    for c, i, j, b in np.ndindex(pooled):
        window = x[c, i * size : (i + 1) * size, j * size : (j + 1) * size, b]
        first = int(window.argmax())  # NumPy, too, names the first
        assert out[c, i, j, b] == window.max() and place[c, i, j, b] == first
        expected_grad[c, i * size + first // size, j * size + first % size, b] = grad[c, i, j, b]
    np.testing.assert_array_equal(grad_x, expected_grad)


def test_max_pool_does_not_hide_a_nan():
    for number in range(4):
        x = np.arange(4.0).reshape(1, 2, 2, 1)
        x[0, number // 2, number % 2] = np.nan
        out, place = blank(1, 1, 1, 1, dtype=float), np.empty((1, 1, 1, 1), np.int32)
        plane_kernels.max_pool(x, 2, out, place)
        assert np.isnan(out).all()


@BOTH
@DTYPES
@SHAPES
@SIZES
def test_mean_pool_is_the_mean_and_its_gradient_is_spread(form, dtype, rtol, shape, size, rng):
    x = rng.standard_normal(shape).astype(dtype)
    n_maps, height, width, n_batch = shape
    pooled = n_maps, height // size, width // size, n_batch
    out, grad_x, grad = blank(*pooled, dtype=dtype), blank(*shape, dtype=dtype), rng.standard_normal(pooled)
    form_of(plane_kernels.mean_pool, form)(x, size, out)
    form_of(plane_kernels.mean_pool_gradient, form)(grad.astype(dtype), size, grad_x)
    expected_grad = np.zeros(shape)
    for c, i, j in np.ndindex(pooled[:3]):
        window = np.s_[c, i * size : (i + 1) * size, j * size : (j + 1) * size]
        np.testing.assert_allclose(out[c, i, j], x[window].mean(axis=(0, 1)), rtol=10 * rtol, atol=rtol)
        expected_grad[window] = grad[c, i, j] / size**2
    np.testing.assert_allclose(grad_x, expected_grad, rtol=rtol, atol=rtol)
