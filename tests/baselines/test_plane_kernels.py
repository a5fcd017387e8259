"""Loops over planes, compiled and interpreted, in both precisions, against plain loops; out starts as NaN."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.forms import BOTH, DTYPES, blank, every_kernel, form_of
from tigra.baselines.planes import kernels as plane_kernels

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


def plain_sample(plane, x, y, clamped):
    """One value at column x and row y by the definition: the sum over all pixels of max(0, 1 - distance)."""
    height, width = plane.shape
    if clamped:
        x, y = np.clip(x, 0, width - 1), np.clip(y, 0, height - 1)
    across, down = np.maximum(0, 1 - abs(np.arange(width) - x)), np.maximum(0, 1 - abs(np.arange(height) - y))
    return down @ plane @ across


def sampled(form, planes, places, clamped, dtype):
    """(out, corners, weights, slopes) of planes (C, H, W, B) at places (2, T, B)."""
    n_maps, height, width, n_batch = planes.shape
    n_places = places.shape[1]
    corners = np.full((n_places, 4, n_batch), -1, np.int32)
    weights, slopes = blank(n_places, 4, n_batch, dtype=dtype), blank(2, n_places, 4, n_batch, dtype=dtype)
    form_of(plane_kernels.bilinear, form)(places, height, width, clamped, corners, weights, slopes)
    out = blank(n_maps, n_places, n_batch, dtype=dtype)
    form_of(plane_kernels.gather, form)(planes.reshape(n_maps, -1, n_batch), corners, weights, out)
    return out, corners, weights, slopes


@BOTH
@DTYPES
@pytest.mark.parametrize("clamped", [False, True])
def test_places_between_pixels_are_interpolated(form, dtype, rtol, clamped, rng):
    planes = rng.standard_normal((2, 4, 5, 3)).astype(dtype)
    places = rng.uniform(-3, 8, (2, 20, 3)).astype(dtype)
    places[:, :3] = [[[0], [4], [2]], [[0], [3], [1]]]  # on pixels, at corners
    places[:, 3] = 1e30
    out = sampled(form, planes, places, clamped, dtype)[0]
    for c, t, b in np.ndindex(out.shape):
        x, y = places[:, t, b].astype(float)
        assert out[c, t, b] == pytest.approx(plain_sample(planes[c, ..., b], x, y, clamped), rel=rtol, abs=30 * rtol)


@BOTH
@pytest.mark.parametrize("clamped", [False, True])
def test_gradients_of_interpolation_are_slopes_and_the_adjoint(form, clamped, rng):
    planes, places = rng.standard_normal((2, 4, 5, 3)), rng.uniform(-2, 6, (2, 20, 3))
    out, corners, weights, slopes = sampled(form, planes, places, clamped, float)
    grad, grad_x, grad_places = (
        rng.standard_normal(out.shape),
        blank(2, 20, 3, dtype=float),
        blank(2, 20, 3, dtype=float),
    )
    flat = planes.reshape(2, -1, 3)
    form_of(plane_kernels.gather_gradient, form)(flat, corners, weights, slopes, grad, grad_x, grad_places)
    assert np.sum(grad_x * flat) == pytest.approx(np.sum(grad * out), rel=1e-12)  # <A^T g, x> = <g, A x>
    step = 1e-6
    for axis in range(2):
        moved = [places.copy(), places.copy()]
        moved[0][axis] += step
        moved[1][axis] -= step
        above, below = (sampled(form, planes, place, clamped, float)[0] for place in moved)
        slope = (grad * (above - below) / (2 * step)).sum(axis=0)
        np.testing.assert_allclose(grad_places[axis], slope, atol=1e-8)


@BOTH
def test_places_that_are_no_numbers_give_values_that_are_none(form, rng):
    places = np.full((2, 1, 1), np.nan)
    for clamped in (False, True):
        assert np.isnan(sampled(form, rng.uniform(size=(1, 3, 3, 1)), places, clamped, float)[0]).all()
