"""Kernels of the oriented layers, compiled and interpreted, against plain loops; results start as NaN."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.forms import BOTH, DTYPES, blank, every_kernel, form_of
from tests.layers import oriented_loops as loops
from tigra.graph import grid_graph
from tigra.kernels.oriented import coarsening, convolution, frames, normalising
from tigra.kernels.workspace import Workspace
from tigra.layers.frames import frames_of
from tigra.layers.oriented_chain import chain_backward, chain_forward

SHAPES = pytest.mark.parametrize("shape, dilation", [((1, 1), 1), ((1, 5), 2), ((4, 1), 1), ((4, 5), 1), ((5, 4), 2)])
WEIGHT, N_BATCH, N_MAPS = 0.25, 3, 2
CALLED = {
    "into_frame",
    "out_of_frame",
    "clear_rim",
    "multiply",
    "means",
    "rectify",
}
CALLED |= {"product", "outer", "includes_rims"}


def test_every_kernel_is_tested_here():
    """The names that begin with _, and CALLED, are called by the others."""
    text = Path(__file__).read_text(encoding="utf-8")
    for module in (frames, normalising, coarsening, convolution):
        for name in every_kernel(module):
            assert name.startswith("_") or name in CALLED or f".{name}" in text, name


class Case:
    """Random maps, and frames that hold them; scratch frames are NaN inside."""

    def __init__(self, shape, dilation, dtype, rng):
        self.shape, self.dilation, self.dtype = shape, dilation, dtype
        graph = grid_graph(shape, diagonal_weight=WEIGHT, dilation=dilation)
        found = frames_of(graph, N_BATCH, dtype)
        self.layout, self.pitch, self.grid = found.layout, found.pitch, found.grid
        self.edges, self.smoothing, self.slope = found.edges, found.smoothing, found.slope
        self.rng = rng

    def maps(self, *n):
        return self.rng.standard_normal((*n, self.shape[0] * self.shape[1], N_BATCH)).astype(self.dtype)

    def frames_of(self, maps):
        """By slices: H + 2 d rows of W + 2 d nodes, zero at the rim; what lies behind a frame is NaN."""
        (height, width), d = self.shape, self.dilation
        whole = np.zeros((*maps.shape[:-2], height + 2 * d, width + 2 * d, N_BATCH), self.dtype)
        whole[..., d : d + height, d : d + width, :] = maps.reshape(*maps.shape[:-2], height, width, N_BATCH)
        rows = blank(*maps.shape[:-2], self.pitch, dtype=self.dtype)
        used = whole.reshape(*maps.shape[:-2], -1)
        rows[..., : used.shape[-1]] = used
        return rows

    def scratch(self, n):
        return self.frames_of(np.full_like(self.maps(n), np.nan))

    def inside(self, rows):
        """Maps (..., H, W, B) of frames whose rim is zero."""
        (height, width), d = self.shape, self.dilation
        size = (height + 2 * d) * (width + 2 * d) * N_BATCH
        whole = rows[..., :size].reshape(*rows.shape[:-1], height + 2 * d, width + 2 * d, N_BATCH)
        found = whole[..., d : d + height, d : d + width, :]
        assert np.count_nonzero(whole) == np.count_nonzero(found), "the rim is not zero"
        return found

    def by_loops(self, operation, *maps):
        """Results of a function of single maps (H, W), for maps (..., N, B); (..., H, W, B) each."""
        lead = maps[0].shape[:-2]
        found = {}
        for place in (*np.ndindex(*lead),):
            for b in range(N_BATCH):
                one = operation(*(m[place][:, b].reshape(self.shape).astype(np.float64) for m in maps))
                for number, result in enumerate(one if isinstance(one, tuple) else (one,)):
                    shape = (*lead, *result.shape, N_BATCH)
                    found.setdefault(number, np.empty(shape))[(*place, ..., b)] = result
        return [found[number] for number in sorted(found)]


@BOTH
@DTYPES
@SHAPES
def test_maps_go_into_frames_and_out_of_them(form, dtype, rtol, shape, dilation, rng):
    case = Case(shape, dilation, dtype, rng)
    y = case.maps(N_MAPS)
    rows, back = blank(N_MAPS, case.pitch, dtype=dtype), blank(*y.shape, dtype=dtype)
    form_of(frames.into_frames, form)(y, case.layout, rows)
    np.testing.assert_array_equal(rows, case.frames_of(y))
    form_of(frames.out_of_frames, form)(rows, case.layout, back)
    np.testing.assert_array_equal(back, y)


@BOTH
@DTYPES
@SHAPES
def test_powers_of_the_laplacian_and_their_adjoint_are_those_of_the_loops(form, dtype, rtol, shape, dilation, rng):
    case = Case(shape, dilation, dtype, rng)
    y, out = case.maps(N_MAPS), case.scratch(3 * N_MAPS).reshape(3, N_MAPS, -1)
    form_of(frames.frame_powers, form)(y, case.layout, *case.edges, out)

    def filtered(x):
        return loops.laplacian(x, WEIGHT, dilation)

    expected = y
    for power in out:
        np.testing.assert_allclose(case.inside(power).reshape(y.shape), expected, rtol=rtol, atol=10 * rtol)
        expected = case.by_loops(filtered, expected)[0].reshape(y.shape)
    for n_powers in (1, 2, 3):  # L is symmetric, so the adjoint is the sum of L^m g_m
        g, grad = case.maps(n_powers, N_MAPS), blank(*y.shape, dtype=dtype)
        form_of(frames.frame_powers_adjoint, form)(case.frames_of(g), case.layout, *case.edges, case.scratch(2), grad)
        expected = 0
        for term in g[::-1]:
            expected = case.by_loops(filtered, np.zeros_like(y) + expected)[0].reshape(y.shape) + term
        np.testing.assert_allclose(grad, expected, rtol=rtol, atol=10 * rtol)


@BOTH
@DTYPES
@SHAPES
def test_products_of_gradients_and_their_adjoint_are_those_of_the_loops(form, dtype, rtol, shape, dilation, rng):
    case = Case(shape, dilation, dtype, rng)
    pairs, g_dot, g_cross = case.maps(2, N_MAPS), case.maps(N_MAPS), case.maps(N_MAPS)
    dots, crosses, out = case.scratch(N_MAPS), case.scratch(N_MAPS), case.frames_of(np.full_like(pairs, np.nan))
    arguments = case.frames_of(pairs), case.layout, *case.slope
    form_of(frames.pair_products, form)(*arguments, dots, crosses)

    def energy(a, b, g_d, g_c):
        dot, cross = loops.products(a, b, WEIGHT, dilation)
        return float((dot * g_d + cross * g_c).sum())

    expected = case.by_loops(lambda a, b: loops.products(a, b, WEIGHT, dilation), *pairs)
    for found, wanted in zip((dots, crosses), expected, strict=True):
        np.testing.assert_allclose(case.inside(found), wanted, rtol=rtol, atol=rtol)
    upstream = case.frames_of(g_dot), case.frames_of(g_cross)
    form_of(frames.pair_products_adjoint, form)(*arguments, case.scratch(2), *upstream, out)
    grads = case.inside(out)
    for side, r, b in np.ndindex(2, N_MAPS, N_BATCH):  # the products are bilinear: <u, grad_a> = energy(u, b)
        maps = [m[r, :, b].reshape(shape).astype(np.float64) for m in (*pairs, g_dot, g_cross)]
        maps[side] = rng.standard_normal(shape)
        found = np.vdot(maps[side], grads[side, r, ..., b])
        assert found == pytest.approx(energy(*maps), rel=100 * rtol, abs=100 * rtol)


@BOTH
@DTYPES
@pytest.mark.parametrize("shape, dilation", [((4, 5), 1), ((3, 16), 1), ((5, 4), 2)])  # rows of 48 numbers are whole
def test_an_oriented_convolution_in_one_call_is_the_chain(form, dtype, rtol, shape, dilation, rng):
    case, n_out, n_pairs = Case(shape, dilation, dtype, rng), 3, 2
    graph = grid_graph(shape, diagonal_weight=WEIGHT, dilation=dilation)
    y, grad_x = case.maps(N_MAPS), case.maps(n_out)
    alpha, mixing = (rng.standard_normal(n).astype(dtype) for n in ((n_out, 3 * N_MAPS + 2 * n_pairs), (4, 2 * N_MAPS)))
    terms, pairs = case.scratch(alpha.shape[1]), case.scratch(len(mixing))
    found, grads = blank(*grad_x.shape, dtype=dtype), [blank(*a.shape, dtype=dtype) for a in (alpha, mixing, y)]
    weights = alpha, mixing, case.grid
    form_of(convolution.oriented_forward, form)(y, *weights, terms, pairs, case.scratch(n_out), found)
    scratch = [case.scratch(n) for n in (n_out, len(terms), len(pairs), 2)]
    form_of(convolution.oriented_backward, form)(grad_x, y, *weights, case.scratch(len(terms)), pairs, *scratch, *grads)
    x, space, wanted = np.empty_like(found), Workspace(), [np.empty_like(grad) for grad in grads[:2]]
    kept = chain_forward(graph, y, alpha, mixing, space, x)
    grad_y = chain_backward(graph, grad_x, alpha, mixing, space, *kept, wanted)
    for one, other in zip((found, *grads), (x, *wanted, grad_y), strict=True):
        np.testing.assert_allclose(one, other, rtol=10 * rtol, atol=100 * rtol)


@BOTH
@DTYPES
@SHAPES
def test_diffusion_coarsening_and_its_adjoint_in_frames_are_those_of_the_loops(form, dtype, rtol, shape, dilation, rng):
    case = Case(shape, dilation, dtype, rng)
    y = case.maps(N_MAPS)

    def smooth(x):
        return x - loops.laplacian(x, WEIGHT, dilation) / 2

    for times in range(3):
        found, expected = blank(*y.shape, dtype=dtype), y
        for k in range(N_MAPS):
            both = case.scratch(2)
            both[:1] = case.frames_of(y[k : k + 1])
            row = form_of(frames.diffused, form)(both, (times, case.layout, *case.smoothing))
            frames.out_of_frames(row.reshape(1, -1), case.layout, found[k : k + 1])
        for _ in range(times):
            expected = case.by_loops(smooth, expected)[0].reshape(y.shape)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    (expected,) = case.by_loops(lambda x: loops.coarse(smooth(x)), y)
    arguments = shape[1], (case.layout, *case.smoothing), case.scratch(2)
    out, back = blank(N_MAPS, expected[0, ..., 0].size, N_BATCH, dtype=dtype), blank(*y.shape, dtype=dtype)
    form_of(coarsening.smooth_block_means, form)(y, *arguments, out)
    np.testing.assert_allclose(out, expected.reshape(out.shape), rtol=rtol, atol=rtol)
    g = rng.standard_normal(out.shape).astype(dtype)
    form_of(coarsening.smooth_block_means_adjoint, form)(g, *arguments, back)
    left = np.vdot(out.astype(np.float64), g)  # <C (I - L/2) y, g> = <y, (I - L/2) C^T g>
    assert np.vdot(y.astype(np.float64), back) == pytest.approx(left, rel=100 * rtol, abs=100 * rtol)


@BOTH
@DTYPES
@pytest.mark.parametrize("size", [1, 127, 128, 300])
def test_kernels_of_batch_normalisation_are_those_of_the_loops(form, dtype, rtol, size, rng):
    x, grad = rng.standard_normal((2, 3, size)).astype(dtype)
    x[:, ::3] = 0
    scale, shift = np.array([1.5, -0.5, 2.0], dtype), np.array([0.4, 0.6, -0.3], dtype)
    lanes, sums, out = np.full((2, 128), np.nan, dtype), np.full((2, 3), np.nan), blank(3, size, dtype=dtype)
    form_of(normalising.row_sums, form)(x, grad, lanes, sums)
    wide, wide_grad = x.astype(np.float64), grad.astype(np.float64)
    np.testing.assert_allclose(sums, [wide.sum(1), (wide * wide_grad).sum(1)], rtol=rtol, atol=size * rtol)
    inverse, (factor, offset) = np.empty(3), blank(2, 3, dtype=dtype)
    form_of(normalising.scales, form)(sums[0], sums[1] ** 2, 1e-10, scale, shift, inverse, factor, offset)
    np.testing.assert_allclose(inverse, (sums[1] ** 2 + 1e-10) ** -0.5, rtol=1e-12)
    np.testing.assert_allclose(factor, scale * inverse, rtol=rtol)
    np.testing.assert_allclose(offset, shift - sums[0] * factor, rtol=rtol, atol=rtol)
    both, total = blank(2, 3, dtype=dtype), np.array([0.5], dtype)
    for weight, mean, variance in ((total, sums[0] / 0.5, sums[1] ** 2 / 0.5), (0 * total, np.zeros(3), np.ones(3))):
        form_of(normalising.running_scales, form)((sums[0], sums[1] ** 2, weight, scale, shift), 1e-10, both)
        normalising.scales(mean, variance, 1e-10, scale, shift, inverse, factor, offset)
        np.testing.assert_array_equal(both, [factor, offset])
        found, factors = blank(*x.shape, dtype=dtype), np.full(3, np.nan)
        form_of(normalising.standardised, form)(x, (sums[0], sums[1] ** 2, weight), 1e-5, factors, found)
        np.testing.assert_array_equal(factors, 1 / np.sqrt(variance + 1e-5))
        np.testing.assert_array_equal(found, ((x - mean[:, None]) * factors[:, None]).astype(dtype))
    undiffused = (0, (0, 0, 0, 0), dtype(0), dtype(0), dtype(0)), blank(2, 0, dtype=dtype)
    form_of(normalising.rectified, form)(x, scale, shift, *undiffused, out)
    for k, q in np.ndindex(x.shape):
        wanted = loops.rectifier(scale[k] * wide[k, q] + shift[k]) - loops.rectifier(shift[k])
        assert out[k, q] == pytest.approx(wanted, rel=rtol, abs=rtol)
        assert x[k, q] != 0 or out[k, q] == 0
    sums = np.full((3, 3), np.nan)
    form_of(normalising.rectified_gradient, form)(x, grad, scale, shift, *undiffused, lanes, out, sums)
    opened = scale[:, None] * x + shift[:, None] > 0
    np.testing.assert_array_equal(out, np.where(opened, grad, 0))
    through = np.where(opened, wide_grad, 0)
    wanted = [through.sum(1), (through * wide).sum(1), np.where(shift > 0, wide_grad.sum(1), 0)]
    np.testing.assert_allclose(sums, wanted, rtol=rtol, atol=size * rtol)
    tilt, offset = np.array([0.3, 0.0, -2.0], dtype), np.array([0.1, -0.2, 0.0], dtype)
    wanted = scale[:, None] * wide_grad + tilt[:, None] * wide + offset[:, None]
    form_of(normalising.through_moments, form)(x, grad, scale, tilt, offset)
    np.testing.assert_allclose(grad, wanted, rtol=rtol, atol=rtol)


@BOTH
@DTYPES
@pytest.mark.parametrize("shape", [(2, 2), (4, 6), (3, 5), (4, 3), (1, 2), (5, 1)])
def test_block_means_and_their_adjoint_are_those_of_the_loops(form, dtype, rtol, shape, rng):
    y = rng.standard_normal((N_MAPS, shape[0] * shape[1], N_BATCH)).astype(dtype)
    coarse = [loops.coarse(one.reshape(shape)) for one in y.transpose(0, 2, 1).reshape(-1, *shape)]
    expected = np.array(coarse).reshape(N_MAPS, N_BATCH, -1).transpose(0, 2, 1)
    out, back = blank(*expected.shape, dtype=dtype), blank(*y.shape, dtype=dtype)
    form_of(coarsening.block_means, form)(y, *shape, out)
    np.testing.assert_allclose(out, expected, rtol=rtol, atol=rtol)
    g = rng.standard_normal(out.shape).astype(dtype)
    form_of(coarsening.block_means_adjoint, form)(g, *shape, back)
    for n in range(y.shape[1]):  # <C e_n, g> for every node n
        unit = np.zeros(shape)
        unit.flat[n] = 1
        wanted = (loops.coarse(unit).ravel()[None, :, None] * g).sum(axis=1)
        np.testing.assert_allclose(back[:, n], wanted, rtol=rtol, atol=rtol)
