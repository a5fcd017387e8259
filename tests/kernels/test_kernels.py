"""Each kernel, compiled and interpreted, in both precisions, against dense NumPy; out starts as NaN."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from tests.kernels.forms import BOTH, DTYPES, blank, every_kernel, form_of
from tigra.graph import Graph, grid_graph
from tigra.images import sampling
from tigra.kernels import adam, grid, moments, pooling, steps

MODULES = adam, moments, pooling, sampling, steps


def test_every_kernel_is_tested_here():
    """stencil_step and sample_moved cover what they call."""
    text = Path(__file__).read_text(encoding="utf-8")
    missing = {name for module in MODULES for name in every_kernel(module) if f".{name}" not in text}
    assert missing <= {"_load_row", "_spline_weights"}


@pytest.mark.parametrize("module", [*MODULES, grid])
def test_every_kernel_lets_other_threads_run_and_drops_no_nan(module):
    for name in every_kernel(module):
        options = getattr(module, name).targetoptions
        assert options["nogil"] is True and options["error_model"] == "numpy", name
        assert not options.get("fastmath") and not options.get("parallel"), name


def test_nodes_that_are_dropped_are_zero_whatever_stood_there():
    z = np.array([np.nan, -np.inf, np.inf, -2.0, 3.0, 1.0]).reshape(1, 6, 1)
    omega = np.array([True, True, False, True, True, True]).reshape(1, 6, 1)
    for function in (pooling.keep_above, pooling.keep_above.py_func):
        active, y = np.ones(z.shape, bool), blank(*z.shape, dtype=np.float64)
        function(z, omega, np.array([[1.0]]), active, y)
        np.testing.assert_array_equal(active.ravel(), [0, 0, 0, 0, 1, 0])
        np.testing.assert_array_equal(y.ravel(), [0, 0, 0, 0, 3, 0])
        assert not np.signbit(y).any()


@pytest.mark.slow
def test_kernels_work_where_no_cache_can_be_written():
    code = (
        "from numba.core import caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "import numpy as np\n"
        "from tigra.kernels.steps import add_masked\n"
        "out = np.zeros((1, 2))\n"
        "add_masked(1.0, np.ones(2, bool), np.ones((1, 2)), out)\n"
        "print(out.sum())\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.stdout == "2.0\n", result.stderr


@BOTH
@DTYPES
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (3, 4)])
def test_stencil_step_is_the_dense_product(form, dtype, rtol, shape, rng):
    height, width = shape
    n_batch = 3
    straight, diagonal, times_x, times_y = 0.3, -0.2, 1.5, -0.5
    x, y = rng.standard_normal((2, 2, height * width, n_batch)).astype(dtype)
    neighbours = grid_graph(shape, neighbours=4).adjacency.toarray()
    corners = grid_graph(shape, neighbours=8).adjacency.toarray() - neighbours
    expected = times_x * x + straight * neighbours @ x + diagonal * corners @ x + times_y * y
    out = blank(2, height * width, n_batch, dtype=dtype)
    weights = (dtype(value) for value in (straight, diagonal, times_x, times_y))
    form_of(steps.stencil_step, form)(height, x, y, *weights, out)
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)


@BOTH
@DTYPES
def test_csr_step_is_the_dense_product(form, dtype, rtol, rng):
    adjacency = np.triu(rng.uniform(size=(7, 7)) * (rng.uniform(size=(7, 7)) < 0.5), 1)
    adjacency[2] = adjacency[:, 2] = 0  # an isolated node: an empty row
    graph = Graph(adjacency + adjacency.T)
    x, y = rng.standard_normal((2, 3, 7, 2)).astype(dtype)
    expected = 1.5 * (graph.laplacian.toarray() @ x) + 0.5 * x - 2 * y
    out = blank(3, 7, 2, dtype=dtype)
    form_of(steps.csr_step, form)(*graph.csr_arrays(dtype), x, y, dtype(1.5), dtype(0.5), dtype(-2), out)
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)


@BOTH
@DTYPES
def test_add_masked_adds_where_the_mask_is_true(form, dtype, rtol, rng):
    mask, x, out = rng.uniform(size=9) < 0.5, *rng.standard_normal((2, 3, 9)).astype(dtype)
    expected = out + 0.7 * x * mask
    form_of(steps.add_masked, form)(dtype(0.7), mask, x, out)
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)


@BOTH
@DTYPES
def test_absolute_moments_are_mean_and_variance_of_the_magnitude(form, dtype, rtol, rng):
    t = rng.standard_normal((50, 4)).astype(dtype)
    mean, variance = blank(4, dtype=dtype), blank(4, dtype=dtype)
    form_of(moments.absolute_moments, form)(t, mean, variance)
    np.testing.assert_allclose(mean, np.abs(t).mean(axis=0), rtol=rtol)
    np.testing.assert_allclose(variance, np.abs(t).var(axis=0), rtol=rtol)


@BOTH
@DTYPES
def test_absolute_moments_gradient_is_the_corrected_formula(form, dtype, rtol, rng):
    t, out = rng.standard_normal((6, 2)).astype(dtype), blank(6, 2, dtype=dtype)
    t[2] = 0  # sign(0) = 0
    mean, grad_mean, grad_variance = rng.standard_normal((3, 2)).astype(dtype)
    expected = np.sign(t) * (grad_mean / 6 + 2 / 6 * (np.abs(t) - mean) * grad_variance)
    form_of(moments.absolute_moments_gradient, form)(t, mean, grad_mean, grad_variance, out)
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)
    assert np.all(out[2] == 0)


@BOTH
@pytest.mark.parametrize("cubic", [True, False])
def test_sample_moved_is_map_coordinates(form, cubic, rng):
    """Turned and shifted at the same time, on images that are not square, against SciPy."""
    images, motions = rng.uniform(size=(2, 5, 7)), np.array([[0.8, 0.6, 0.3, -1.2], [0.0, -1.0, 0.0, 0.5]])
    order, frame = (3 if cubic else 1), 2
    filtered = np.array([ndimage.spline_filter(image, 3, mode="mirror") if cubic else image for image in images])
    out = blank(2, 5, 7, dtype=np.float64)
    framed = np.pad(filtered, ((0, 0), (frame, frame), (frame, frame)), mode="reflect")
    form_of(sampling.sample_moved, form)(framed, frame, motions, cubic, out)
    rows, columns = np.mgrid[:5, :7] - np.array([2.0, 3.0])[:, None, None]
    for image, (cosine, sine, down, right), sampled in zip(images, motions, out, strict=True):
        places = cosine * rows + sine * columns + 2 - down, -sine * rows + cosine * columns + 3 - right
        expected = ndimage.map_coordinates(image, places, order=order, mode="constant")
        np.testing.assert_allclose(sampled, expected, rtol=1e-12, atol=1e-14)


@BOTH
@DTYPES
def test_signs_are_counted_on_omega(form, dtype, rtol, rng):
    z = rng.integers(-1, 2, (3, 7, 5)).astype(dtype)
    z[0, 0, 0], z[1] = np.nan, -0.0
    omega = rng.random((1, 7, 5)) < 0.6
    positive, zero = np.full((2, 3, 5), 9, np.int32)
    form_of(pooling.count_signs, form)(z, omega, positive, zero)
    assert (positive == ((z > 0) & omega).sum(axis=1)).all() and (zero == ((z == 0) & omega).sum(axis=1)).all()


@BOTH
@DTYPES
def test_candidates_have_the_nodes_last_and_minus_infinity_outside_omega(form, dtype, rtol, rng):
    z, omega = rng.standard_normal((2, 5, 3)).astype(dtype), rng.uniform(size=(1, 5, 3)) > 0.4
    out = blank(2, 3, 5, dtype=dtype)
    form_of(pooling.candidates, form)(z, omega, dtype(-np.inf), out)
    np.testing.assert_array_equal(out, np.where(omega, z, -np.inf).transpose(0, 2, 1))


@BOTH
@DTYPES
@pytest.mark.parametrize("n_nodes", [5, 37])  # the kernel takes 16 at a time
def test_keep_above_keeps_what_is_in_omega_and_above_the_threshold(form, dtype, rtol, n_nodes, rng):
    shape = 2, n_nodes, 3
    z, omega = rng.standard_normal(shape).astype(dtype), rng.uniform(size=(1, *shape[1:])) > 0.4
    threshold = z[:, 2].copy()
    active, y = np.ones(shape, bool), blank(*shape, dtype=dtype)
    form_of(pooling.keep_above, form)(z, omega, threshold, active, y)
    np.testing.assert_array_equal(active, omega & (z > threshold[:, None]))
    np.testing.assert_array_equal(y, z * active)


@BOTH
@DTYPES
@pytest.mark.parametrize("size", [1, 7, 1024, 2500])
def test_adam_step_is_its_formula(form, dtype, rtol, size, rng):
    p, m, g, d = rng.standard_normal((4, size)).astype(dtype)
    v = rng.uniform(size=size).astype(dtype)
    rate, b1, b2, n, epsilon = 0.05, 0.9, 0.999, 3, 1e-8
    wide = [array.astype(np.float64) for array in (p, m, v, g, d)]
    mean, square = b1 * wide[1] + (1 - b1) * wide[3], b2 * wide[2] + (1 - b2) * wide[3] ** 2
    step = (mean / (1 - b1**n)) / (np.sqrt(square / (1 - b2**n)) + epsilon) + wide[4] * wide[0]
    rates = tuple(map(dtype, (rate, 1 - b1, 1 - b2, 1 - b1**n, 1 - b2**n)))
    form_of(adam.adam_step, form)(p, m, v, g, d, rates, dtype(epsilon))
    np.testing.assert_allclose(m, mean, rtol=10 * rtol, atol=rtol)  # sums of numbers near 1
    np.testing.assert_allclose(v, square, rtol=10 * rtol, atol=rtol)
    np.testing.assert_allclose(p, wide[0] - rate * step, rtol=10 * rtol, atol=10 * rtol)
