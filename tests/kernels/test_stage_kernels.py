"""Kernels of prediction, compiled and interpreted: bit for bit those of the layers; scratch starts as NaN."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.forms import BOTH, DTYPES, blank, every_kernel, form_of
from tigra.graph import GraphSignal, grid_graph
from tigra.kernels.oriented import head, stage, tiles
from tigra.layers import Coarsen, Dense, MapNorm, OrientedConv, ReLU, Statistics
from tigra.layers.coarsen import coarse_shape
from tigra.layers.frames import frames_of, grid_frames
from tigra.layers.map_norm import EPSILON

SHAPES = pytest.mark.parametrize("shape, dilation", [((1, 1), 1), ((4, 16), 1), ((6, 8), 2), ((5, 4), 1)])
SIZES = pytest.mark.parametrize("size", [1, 2, 3])
N_TILES, NONE = 2, (0, 0, 0, 0)


def test_every_kernel_is_tested_here():
    text = Path(__file__).read_text(encoding="utf-8")
    for module in (head, stage, tiles):  # tests/kernels/test_columns.py has what they are made of
        for name in every_kernel(module):
            own = getattr(module, name).py_func.__module__ == module.__name__
            assert not own or name.startswith("_") or f".{name}" in text, name


def in_tiles(maps, frames, size):
    """Maps (K, N, n) as frames (n / size, K, pitch), by slices."""
    n_maps, _, n = maps.shape
    height, row, beside, rim = frames.layout
    whole = np.zeros((n // size, n_maps, frames.stack // row, row), maps.dtype)
    parts = maps.reshape(n_maps, height, -1, n // size, size).transpose(3, 0, 1, 2, 4)
    whole[:, :, rim : rim + height, beside : row - beside] = parts.reshape(n // size, n_maps, height, -1)
    return whole.reshape(n // size, n_maps, frames.stack)


def stage_layers(graph, n_in, n_out, diffusion, dtype, rng):
    convolution = OrientedConv.init(graph, n_in, n_out, 2, rng, dtype)
    norm = MapNorm(graph, *rng.standard_normal((2, n_out)).astype(dtype), diffusion)
    norm.state["running_mean"][:], norm.state["running_variance"][:] = rng.uniform(0.1, 1, (2, n_out))
    norm.state["total"][:] = 0.7
    return convolution, norm


@BOTH
@DTYPES
@SHAPES
@SIZES
@pytest.mark.parametrize("diffusion, is_coarse", [(0, False), (1, True), (2, False)])
def test_a_stage_has_the_bits_of_its_layers(form, dtype, rtol, shape, dilation, size, diffusion, is_coarse, rng):
    graph, n_in, n_out = grid_graph(shape, diagonal_weight=0.25, dilation=dilation), 3, 9
    convolution, norm = stage_layers(graph, n_in, n_out, diffusion, dtype, rng)
    y = rng.standard_normal((n_in, graph.n_nodes, N_TILES * size)).astype(dtype)
    wanted = norm.forward(convolution.forward(GraphSignal(y, np.ones((1, *y.shape[1:]), bool))))
    inside, is_coarse = frames_of(graph, size, dtype), is_coarse and dilation == 1
    after = grid_frames(graph, coarse_shape(shape), size, dtype) if is_coarse else inside
    wanted = Coarsen(graph).forward(wanted) if is_coarse else wanted
    out = in_tiles(blank(n_out, wanted.values.shape[1], N_TILES * size, dtype=dtype), after, size)
    (scratch,) = in_tiles(blank(7 * n_in + 2 * n_out, graph.n_nodes, size, dtype=dtype), inside, size)
    arrays = convolution.params["alpha"], convolution.mixing, (*norm.state.values(), *norm.params.values())
    numbers = EPSILON, inside.grid, inside.smoothing, diffusion, after.layout if is_coarse else NONE
    source = in_tiles(y, inside, size)
    form_of(stage.oriented_stage, form)(source, inside.layout, *arrays, *numbers, scratch, out)
    np.testing.assert_array_equal(out, in_tiles(wanted.values, after, size))


@pytest.mark.parametrize("shape", [(4, 16), (5, 4)])
@pytest.mark.parametrize("name, value", [("gamma", np.inf), ("beta", np.nan), ("running_mean", np.nan)])
def test_rims_stay_zero_where_scales_are_not_finite(shape, name, value, rng):
    """0 times infinity is NaN, which stencils of the next call would read."""
    graph, n_in, n_out = grid_graph(shape, diagonal_weight=0.25), 3, 9
    convolution, norm = stage_layers(graph, n_in, n_out, 2, np.float32, rng)
    (norm.params | norm.state)[name][4] = value
    frames = frames_of(graph, 1, np.float32)
    source = in_tiles(rng.standard_normal((n_in, graph.n_nodes, 1)).astype(np.float32), frames, 1)
    (scratch,) = in_tiles(np.ones((7 * n_in + 2 * n_out, graph.n_nodes, 1), np.float32), frames, 1)
    rims, out = scratch == 0, np.zeros((1, n_out, frames.stack), np.float32)
    arrays = convolution.params["alpha"], convolution.mixing, (*norm.state.values(), *norm.params.values())
    numbers = EPSILON, frames.grid, frames.smoothing, 2, NONE
    stage.oriented_stage(source, frames.layout, *arrays, *numbers, scratch, out)
    assert np.isnan(out).any() and not scratch[rims].any()


@BOTH
@DTYPES
@SIZES
def test_frames_with_another_rim_are_copied(form, dtype, rtol, size, rng):
    maps = rng.standard_normal((2, 12, size)).astype(dtype)
    near, far = (frames_of(grid_graph((3, 4), dilation=d), size, dtype) for d in (1, 2))
    for one, other in ((near, far), (far, near), (near, near)):
        out = blank(2, other.stack, dtype=dtype)
        form_of(stage.reframe, form)(in_tiles(maps, one, size)[0], one.layout, other.layout, out)
        np.testing.assert_array_equal(out, in_tiles(maps, other, size)[0])
        out = blank(2, other.stack, dtype=dtype)
        form_of(stage.clear, form)(out, other.layout)
        np.testing.assert_array_equal(np.isnan(out), in_tiles(np.ones_like(maps), other, size)[0] == 1)


@BOTH
@DTYPES
@SHAPES
@SIZES
def test_images_go_into_tiles_and_maps_out_of_them(form, dtype, rtol, shape, dilation, size, rng):
    graph, n = grid_graph(shape, dilation=dilation), N_TILES * size
    images = rng.standard_normal((n, 3 * graph.n_nodes)).astype(dtype)
    maps, frames = images.T.reshape(3, graph.n_nodes, n), frames_of(graph, size, dtype)
    found = blank(N_TILES, 3, frames.stack, dtype=dtype)
    form_of(tiles.into_tiles, form)(images, frames.layout, found)
    np.testing.assert_array_equal(found, in_tiles(maps, frames, size))
    out = blank(3, graph.n_nodes, n + 2, dtype=dtype)
    form_of(tiles.out_of_tiles, form)(found, frames.layout, 1, out)
    np.testing.assert_array_equal(out[..., 1:-1], maps)
    assert np.isnan(out[..., [0, -1]]).all()


@BOTH
@DTYPES
@SIZES
@pytest.mark.parametrize("shape, dilation", [((1, 1), 1), ((5, 4), 1), ((4, 6), 2)])
def test_moments_of_tiles_have_the_bits_of_statistics(form, dtype, rtol, size, shape, dilation, rng):
    """The frames may have a wider rim, as the convolution before the statistics has."""
    graph, n_maps, orders, n = grid_graph(shape, diagonal_weight=0.25), 3, 3, N_TILES * size
    frames = grid_frames(grid_graph(shape, dilation=dilation), shape, size, dtype)
    maps = rng.standard_normal((n_maps, graph.n_nodes, n)).astype(dtype)
    wanted = Statistics(graph, orders - 1).forward(GraphSignal(maps, np.ones(maps.shape, bool)))
    (height, width), straight, diagonal, _ = graph.stencil
    beside, features = n_maps * size, blank(len(wanted), n + 1, dtype=dtype)
    framed = np.zeros((3, height + 2, (width + 2) * beside), dtype)
    scratch = [blank(1, graph.n_nodes, beside, dtype=dtype), framed, blank(3, width * beside, dtype=dtype)]
    moments = blank(1, orders, 2, beside, dtype=dtype)
    weights = dtype(straight), dtype(diagonal)
    form_of(tiles.tile_moments, form)(
        in_tiles(maps, frames, size), frames.layout, *weights, *scratch, moments, 1, features
    )
    np.testing.assert_array_equal(features[:, 1:], wanted)
    assert np.isnan(features[:, 0]).all()


@BOTH
@DTYPES
@pytest.mark.parametrize("n", [1, 2, 37])
def test_a_dense_layer_has_the_bits_of_its_layers(form, dtype, rtol, n, rng):
    weight, bias, x = (rng.standard_normal(shape).astype(dtype) for shape in ((14, 30), 14, (30, n)))
    x[3, 0], bias[:3] = np.inf, (np.nan, np.inf, -np.inf)
    for rectify in (False, True):
        with np.errstate(invalid="ignore"):
            wanted = Dense(weight, bias).forward(x)
            wanted = ReLU().forward(wanted) if rectify else wanted
            out = blank(14, n, dtype=dtype)
            form_of(head.dense, form)(weight, bias, rectify, x, out)
        np.testing.assert_array_equal(out, wanted)
        is_number = ~np.isnan(wanted)  # NaN has no sign
        np.testing.assert_array_equal(np.signbit(out[is_number]), np.signbit(wanted[is_number]))
