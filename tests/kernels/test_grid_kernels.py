"""Whole layers in one kernel, compiled and interpreted, against the chains of steps; out starts as NaN."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.forms import BOTH, DTYPES, blank, every_kernel, form_of
from tigra.graph import grid_graph
from tigra.graph import operators as fused
from tigra.graph.polynomials import (
    chebyshev,
    chebyshev_adjoint,
    laplacian_powers,
    laplacian_powers_adjoint,
)
from tigra.kernels import grid as grid_kernels
from tigra.kernels.moments import absolute_moments, absolute_moments_gradient
from tigra.kernels.workspace import Workspace

SHAPES = pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (3, 4), (9, 2)])  # moments take 4 rows at a time
N_BATCH, N_MAPS, DEGREE, MAX_ORDER = 3, 2, 4, 5


@pytest.fixture(params=[1.0, 0.25])
def diagonal_weight(request):
    return request.param


class Case:
    """Random signals on a small grid, and frames whose inside is full of NaN."""

    def __init__(self, shape, diagonal_weight, dtype, rng):
        self.graph = grid_graph(shape, diagonal_weight=diagonal_weight)
        self.height, (_, straight, diagonal, _) = shape[0], self.graph.stencil
        self.weights = dtype(straight), dtype(diagonal)
        n_nodes = shape[0] * shape[1]
        self.y = rng.standard_normal((N_MAPS, n_nodes, N_BATCH)).astype(dtype)
        self.y[rng.uniform(size=self.y.shape) < 0.3] = 0
        self.sets = rng.uniform(size=self.y.shape) < 0.6
        self.beta = rng.standard_normal(N_MAPS).astype(dtype)
        self.terms = rng.standard_normal((DEGREE + 1, n_nodes, N_BATCH)).astype(dtype)
        self.shape, self.dtype = shape, dtype

    def frames(self, n_frames):
        height, width = self.shape
        framed = np.zeros((n_frames, height + 2, width + 2, N_BATCH), self.dtype)
        framed[:, 1:-1, 1:-1] = np.nan
        return framed.reshape(n_frames, height + 2, -1)

    def rows(self):
        return blank(3, self.shape[1] * N_BATCH, dtype=self.dtype)


@pytest.fixture
def case(rng, diagonal_weight):
    return lambda shape, dtype: Case(shape, diagonal_weight, dtype, rng)


def test_every_kernel_for_whole_layers_is_tested_here():
    """The names that begin with _ are called by the others, in every test."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert {name for name in every_kernel(grid_kernels) if f"grid_kernels.{name}" not in text} <= {
        name for name in every_kernel(grid_kernels) if name.startswith("_")
    }


@BOTH
@DTYPES
@SHAPES
def test_masked_powers_are_those_of_the_chain_to_the_last_bit(form, dtype, rtol, shape, case):
    """To the last bit, because pooling decides by them."""
    c = case(shape, dtype)
    out = blank(DEGREE + 1, *c.y.shape[1:], dtype=dtype)
    form_of(grid_kernels.grid_powers, form)(c.height, c.y, c.sets, c.beta, *c.weights, c.frames(2), out)
    powers = laplacian_powers(c.graph, c.y, DEGREE)
    expected = np.zeros_like(out)
    for k in range(N_MAPS):
        expected += c.beta[k] * (c.sets[k] * powers[:, k])
    np.testing.assert_array_equal(out, expected)


@BOTH
@DTYPES
@SHAPES
def test_the_adjoint_of_masked_powers_is_that_of_the_chain(form, dtype, rtol, shape, case):
    c = case(shape, dtype)
    out = blank(*c.y.shape, dtype=dtype)
    form_of(grid_kernels.grid_powers_adjoint, form)(c.height, c.terms, c.sets, *c.weights, c.frames(3), out)
    for k in range(N_MAPS):
        expected = laplacian_powers_adjoint(c.graph, (c.terms * c.sets[k])[:, None])[0]
        np.testing.assert_allclose(out[k], expected, rtol=rtol, atol=rtol)


def moments_by_the_chain(c):
    moments = np.empty((N_MAPS, MAX_ORDER + 1, 2, N_BATCH), c.dtype)
    for i in range(N_MAPS):
        for k, t in enumerate(chebyshev(c.graph, c.y[i : i + 1], MAX_ORDER)):
            absolute_moments(t[0], moments[i, k, 0], moments[i, k, 1])
    return moments


@BOTH
@DTYPES
@SHAPES
def test_chebyshev_moments_are_those_of_the_chain(form, dtype, rtol, shape, case):
    c = case(shape, dtype)
    moments = blank(N_MAPS, MAX_ORDER + 1, 2, N_BATCH, dtype=dtype)
    form_of(grid_kernels.grid_moments, form)(c.height, c.y, *c.weights, c.frames(3), c.rows(), moments)
    np.testing.assert_allclose(moments, moments_by_the_chain(c), rtol=rtol, atol=rtol)


@BOTH
@DTYPES
@SHAPES
@pytest.mark.parametrize("max_order", [0, 1, 2, MAX_ORDER])
def test_the_adjoint_of_chebyshev_moments_is_that_of_the_chain(form, dtype, rtol, shape, max_order, case, rng):
    c = case(shape, dtype)
    moments = np.ascontiguousarray(moments_by_the_chain(c)[:, : max_order + 1])
    grads = rng.standard_normal(moments.shape).astype(dtype)
    out = blank(*c.y.shape, dtype=dtype)
    form_of(grid_kernels.grid_moments_adjoint, form)(
        c.height, c.y, *c.weights, moments, grads, c.frames(max_order + 1), c.frames(3), c.rows()[:2], out
    )
    for i in range(N_MAPS):
        grad_t = []
        for k, t in enumerate(chebyshev(c.graph, c.y[i : i + 1], max_order)):
            grad_t.append(np.empty_like(t))
            absolute_moments_gradient(t[0], moments[i, k, 0], grads[i, k, 0], grads[i, k, 1], grad_t[k][0])
        np.testing.assert_allclose(out[i], chebyshev_adjoint(c.graph, grad_t)[0], rtol=rtol, atol=rtol)


def test_a_graph_without_a_common_stencil_gives_the_same_numbers(case, rng):
    """The same Laplacian as a CSR matrix, and as a stencil: every function of `tigra.graph.operators`."""
    c = case((4, 5), np.float64)
    plain = grid_graph((4, 5), diagonal_weight=c.graph.diagonal_weight)
    plain.stencil = None
    assert fused.is_padded_grid(c.graph) and not fused.is_padded_grid(plain)
    grads = rng.standard_normal((N_MAPS, MAX_ORDER + 1, 2, N_BATCH))

    def numbers(graph):
        moments = fused.chebyshev_moments(graph, c.y, MAX_ORDER, Workspace())
        yield moments
        yield fused.chebyshev_moments_adjoint(graph, c.y, moments, grads, Workspace())
        yield fused.masked_powers(graph, c.y, c.sets, c.beta, DEGREE, Workspace())
        yield fused.masked_powers_adjoint(graph, c.terms, c.sets, Workspace())

    for first, second in zip(numbers(c.graph), numbers(plain), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-11, atol=1e-12)


def test_work_arrays_are_used_again_and_nothing_of_the_last_call_is_left_in_the_result(case):
    c, space = case((3, 4), np.float64), Workspace()
    first = fused.chebyshev_moments(c.graph, c.y, MAX_ORDER, space)
    fused.chebyshev_moments(c.graph, 7 * c.y, MAX_ORDER, space)
    arrays = dict(space._arrays)
    np.testing.assert_array_equal(fused.chebyshev_moments(c.graph, c.y, MAX_ORDER, space), first)
    assert all(space._arrays[name] is array for name, array in arrays.items())
