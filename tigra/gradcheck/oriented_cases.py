"""Cases of the gradient checks for layers with an orientation, batch normalisation of maps, and coarsening."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tigra.gradcheck.inputs import BATCH, GRID, MARGIN, random_signal
from tigra.graph import Graph, GraphSignal, grid_graph
from tigra.layers import Coarsen, DynamicPool, FeatureNorm, MapNorm, OrientedConv


def wheel(n_rim: int = 5) -> Graph:
    """A hub, node 0, with a rim around it; the rotation system is that of the drawing, clockwise."""
    rim = np.arange(1, n_rim + 1)
    after, before = np.roll(rim, -1), np.roll(rim, 1)
    adjacency = np.zeros((n_rim + 1, n_rim + 1))
    adjacency[0, rim] = adjacency[rim, 0] = adjacency[rim, after] = adjacency[rim, before] = 1
    around_rim = [[here, 0, there] for here, there in zip(before.tolist(), after.tolist(), strict=True)]
    return Graph(adjacency).with_rotation([rim.tolist(), *around_rim])


def _oriented_conv(make_graph: Callable[[], Graph], degree: int = 2):
    def make(rng):
        graph = make_graph()
        alpha, pairs = rng.standard_normal((3, 2 * (degree + 1) + 2 * 3)), rng.standard_normal((2, 3, 4))
        return OrientedConv(graph, alpha, pairs), random_signal(rng, 2, 1, graph.n_nodes)

    return make


def _map_norm(is_training: bool, diffusion: int = 0):
    """One map with h > 0 and one with h < 0; sums s x + h and h are away from 0, the kink of the rectifier."""

    def make(rng):
        layer = MapNorm(grid_graph(GRID), rng.uniform(0.5, 1.5, 2), np.array([0.6, -0.6]), diffusion)
        _set_averages(layer, rng)
        layer.is_training = is_training
        while True:
            signal = random_signal(rng, 2, 1)
            layer.forward(signal)
            values, _, _, _, scale, shift, _ = layer._cache
            layer.forget()
            sums = scale[:, None] * values + shift[:, None]
            if shift[0] > MARGIN and shift[1] < -MARGIN and np.abs(sums).min() > 10 * MARGIN:
                return layer, signal

    return make


def _feature_norm(is_training: bool):
    def make(rng):
        layer = FeatureNorm(3, "float64")
        _set_averages(layer, rng)
        layer.is_training = is_training
        return layer, rng.standard_normal((3, 5))  # with two images, all would become -1 and 1

    return make


def _set_averages(layer, rng) -> None:
    layer.state["running_mean"][:] = rng.uniform(-0.1, 0.1, len(layer.state["running_mean"]))
    layer.state["running_variance"][:] = rng.uniform(0.2, 0.8, len(layer.state["running_mean"]))
    layer.state["total"][:] = 0.5


def _coarsen(shape, boundary="padded"):
    def make(rng):
        graph = grid_graph(shape, diagonal_weight=0.25, boundary=boundary)
        return Coarsen(graph), random_signal(rng, 2, 1, graph.n_nodes)

    return make


def _pool_by_size(rng):
    """Values of both signs, whose sizes are more than MARGIN apart."""
    shape = 3, GRID[0] * GRID[1], BATCH
    sizes = 10 * MARGIN * (1.0 + rng.permutation(np.prod(shape)).reshape(shape))
    values = np.where(rng.uniform(size=shape) < 0.5, sizes, -sizes)
    return DynamicPool(5, by_size=True), GraphSignal(values, rng.uniform(size=(1, *shape[1:])) < 0.8)


ORIENTED_CASES = {
    "OrientedConv": _oriented_conv(partial(grid_graph, GRID, diagonal_weight=0.25)),
    "OrientedConv, degree 1": _oriented_conv(partial(grid_graph, (3, 5), neighbours=4), degree=1),
    "OrientedConv, dilated grid": _oriented_conv(partial(grid_graph, (4, 5), diagonal_weight=0.25, dilation=2)),
    "OrientedConv, rotation system": _oriented_conv(wheel),
    "MapNorm": _map_norm(is_training=False),
    "MapNorm, in training": _map_norm(is_training=True),
    "MapNorm, in training, diffusion": _map_norm(is_training=True, diffusion=2),
    "FeatureNorm": _feature_norm(is_training=False),
    "FeatureNorm, in training": _feature_norm(is_training=True),
    "Coarsen": _coarsen((4, 4)),
    "Coarsen, odd sides": _coarsen((3, 5)),
    "Coarsen, one odd side, free boundary": _coarsen((4, 3), "free"),
    "DynamicPool, by size": _pool_by_size,
}
