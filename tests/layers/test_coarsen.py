"""Coarsening against plain loops, and what it keeps: quarter turns, and shifts by multiples of 2."""

import numpy as np
import pytest

from tests.layers import oriented_loops as loops
from tests.layers.test_oriented_conv import REFLECTIONS, TURNS, signal
from tigra.errors import UsageError
from tigra.graph import Graph, grid_graph
from tigra.layers import Coarsen
from tigra.layers.coarsen import coarse_shape


def coarsened(maps, times=1):
    for _ in range(times):
        layer = Coarsen(grid_graph(maps.shape[1:3], diagonal_weight=0.25))
        values = layer.forward(signal(maps)).values
        maps = values.reshape(len(maps), *layer.coarse_shape, maps.shape[-1])
    return maps


@pytest.mark.parametrize("shape", [(4, 6), (3, 5), (4, 3), (1, 4), (2, 1)])
def test_forward_equals_the_loops(shape):
    maps = np.random.default_rng(0).standard_normal((2, *shape, 3))
    found = coarsened(maps)
    assert found.shape[1:3] == coarse_shape(shape) == ((shape[0] + 1) // 2, (shape[1] + 1) // 2)
    for k, b in np.ndindex(2, 3):
        y = maps[k, ..., b]
        np.testing.assert_allclose(found[k, ..., b], loops.coarse(y - loops.laplacian(y, 0.25) / 2), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("side", [8, 9, 7])
def test_turned_maps_are_turned_coarse_maps_to_the_last_bit(dtype, side):
    maps = np.random.default_rng(1).standard_normal((2, side, side, 3)).astype(dtype)
    for times in (1, 2):
        straight = coarsened(maps, times)
        for name, turn in (TURNS | REFLECTIONS).items():
            np.testing.assert_array_equal(coarsened(turn(maps), times), turn(straight), err_msg=name)


@pytest.mark.parametrize("side", [24, 25])
def test_shifts_by_multiples_of_2_are_exact_of_4_after_two_and_others_are_not(side):
    maps = np.zeros((1, side, side, 2), np.float32)
    maps[:, 10:13, 9:13] = np.random.default_rng(2).standard_normal((1, 3, 4, 2))
    for times in (1, 2):
        unit, straight = 2**times, coarsened(maps, times)
        for down, right in ((1, 0), (0, -1), (-1, 1)):
            moved = coarsened(np.roll(maps, (unit * down, unit * right), axis=(1, 2)), times)
            np.testing.assert_array_equal(moved, np.roll(straight, (down, right), axis=(1, 2)))
        halfway = coarsened(np.roll(maps, unit // 2, axis=1), times)
        assert all(np.abs(halfway - np.roll(straight, step, axis=1)).max() > 1e-3 for step in (0, 1))


def test_other_graphs_are_refused():
    for graph in (Graph([[0, 1], [1, 0]]), grid_graph((4, 4), dilation=2)):
        with pytest.raises(UsageError, match="Coarsening needs the grid of an image's pixels"):
            Coarsen(graph)
