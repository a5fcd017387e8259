"""Prediction with oriented networks: several layers in one call, a few images at a time.

The stages at the start of a network, and statistics after them, run in tiles of a few images, whose maps fit into the
cache (`tigra.kernels.oriented.stage`). The results have the same bits as those of the layers one by one, which training
and all other networks use. Weights are read anew in every call, so they may change between calls. Which layers run
together is decided once, and again when a layer, its graph or one of its arrays has been replaced.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tigra.graph import GraphSignal
from tigra.kernels.oriented.stage import oriented_stage
from tigra.kernels.oriented.tiles import into_tiles, out_of_tiles, tile_moments
from tigra.kernels.workspace import Workspace, aligned_empty
from tigra.layers import Coarsen, Layer, MapNorm, OrientedConv, Statistics
from tigra.layers.map_norm import EPSILON
from tigra.models.prediction.stages import Stage, stages_of, statistics_after

TILE_BYTES = 2**20  # of a stage's frames: about the L2 cache of a core
TILE_SIZE = 2  # images, if they fit
NO_LAYOUT = 0, 0, 0, 0
STATE = "running_mean", "running_variance", "total"
READ: dict[type, tuple[str, ...]] = {  # attributes of layers
    OrientedConv: ("forward", "graph", "n_in", "n_pairs", "degree"),
    MapNorm: ("forward", "graph", "is_training", "diffusion"),
    Coarsen: ("forward", "graph"),
    Statistics: ("forward", "graph", "max_order"),
}


def through_stages(layers: list[Layer], prepared: np.ndarray, n_maps: int, space: Workspace):
    """The output of the first layers of a network, and how many they are.

    Parameters
    ----------
    layers : list of Layer
        Layers of a network.
    prepared : array (n, n_maps N)
        Images, one row each.
    n_maps : int
        Number of maps of an image.
    space : Workspace
        Scratch arrays.

    Returns
    -------
    (GraphSignal or array, int)
        Maps (K, N, n) of the last stage, or the features (F, n) if statistics follow; and the number of layers. Without
        a stage, None and 0.
    """
    n, dtype = len(prepared), prepared.dtype
    parts = [n_maps, dtype, *contents(layers)]
    plan = space.remembered(f"plan of {len(layers)}", parts, lambda: Plan(layers, n_maps, dtype))
    if plan.n_numbers != prepared.shape[1]:
        return None, 0
    statistics = plan.statistics
    out = np.empty((plan.n_features, n), dtype) if statistics else aligned_empty((*plan.shape, n), dtype)
    size = plan.size if n >= plan.size else 1
    for part, tile in ((slice(0, n - n % size), size), (slice(n - n % size, n), 1)):
        if part.start == part.stop:
            continue
        tiles, layout = _run(plan.calls(tile), prepared[part], tile, space)
        if statistics:
            _moments(statistics, tiles, layout, space, part.start, out)
        else:
            out_of_tiles(tiles, layout, part.start, out)
    if statistics:
        return out, plan.n_layers
    return GraphSignal(out, space.all_true((1, *out.shape[1:]))), plan.n_layers


def contents(layers: list[Layer]) -> list:
    """What a plan depends on: as long as these are the same objects, the plan holds."""
    parts: list = []
    for layer in layers:
        kind, kept = type(layer), vars(layer)
        parts += layer, kind
        if kind not in READ:  # no stage reaches farther
            break
        parts += (*map(kept.get, READ[kind]), *layer.params, *layer.params.values())
        parts += (*layer.state, *layer.state.values())
        if isinstance(layer, OrientedConv):
            parts += vars(layer.graph).values()
    return parts


class Call(NamedTuple):
    """What `oriented_stage` takes for one stage and tiles of one size, but for the maps."""

    name: str
    layouts: tuple  # of its input, its frames and its result
    shapes: tuple  # of its scratch frames and of its result
    convolution: OrientedConv
    arguments: tuple  # what follows its weights


class Plan:
    """The stages at the start of a network, and their calls.

    Attributes
    ----------
    n_numbers, n_layers : int
        Numbers of an image; layers that the stages and statistics take the place of. Without a stage, both are 0, and
        there are no other attributes.
    statistics : Statistics or None
        The layer of statistics behind the stages.
    n_features, shape : int, (int, int)
        Features of an image, if there are statistics; maps and nodes of the last stage.
    size : int
        Images in a tile.
    """

    def __init__(self, layers: list[Layer], n_maps: int, dtype):
        self.stages, self.dtype = stages_of(layers, n_maps, dtype), dtype
        self.n_numbers = self.n_layers = 0
        self._calls: dict[int, list[Call]] = {}
        if not self.stages:
            return
        first, last = self.stages[0], self.stages[-1]
        self.n_numbers, self.n_layers = first.graph.n_nodes * n_maps, sum(stage.n_layers for stage in self.stages)
        self.shape = len(last.norm.params["gamma"]), math.prod(last.out_shape)
        self.statistics = statistics_after(layers[self.n_layers :], last)
        if self.statistics:
            self.n_layers += 1
            self.n_features = 2 * (self.statistics.max_order + 1) * self.shape[0]
        self.size = TILE_SIZE if _fits(self.stages, TILE_SIZE, dtype) else 1

    def calls(self, size: int) -> list[Call]:
        """The calls for tiles of `size` images."""
        if size not in self._calls:
            self._calls[size] = [_call(number, self.stages, size, self.dtype) for number in range(len(self.stages))]
        return self._calls[size]


def _call(number: int, stages: list[Stage], size: int, dtype) -> Call:
    (convolution, norm, is_coarse), stage = stages[number], stages[number]
    before = stages[number - 1].out_frames(size, dtype) if number else stage.frames(size, dtype)
    inside, after, alpha = stage.frames(size, dtype), stage.out_frames(size, dtype), convolution.params["alpha"]
    alike = [other.n_frames for other in stages if other.graph.shape == stage.graph.shape]  # they share scratch frames
    weights = *(norm.state[key] for key in STATE), norm.params["gamma"], norm.params["beta"]
    coarse = after.layout if is_coarse else NO_LAYOUT
    return Call(
        name=f"out {number}, tiles of {size}",
        layouts=(before.layout, inside.layout, after.layout),
        shapes=((max(alike), inside.stack), (len(alpha), after.stack)),
        convolution=convolution,
        arguments=(weights, EPSILON, inside.grid, inside.smoothing, norm.diffusion, coarse),
    )


def _fits(stages: list[Stage], size: int, dtype) -> bool:
    """Whether the frames of `size` images fit into the cache."""
    return all(stage.n_frames * stage.frames(size, dtype).stack * dtype.itemsize <= TILE_BYTES for stage in stages)


def _run(calls: list[Call], prepared: np.ndarray, size: int, space: Workspace):
    """The frames of all images after the stages, (tiles, K, pitch), and their layout."""
    n_tiles, dtype, layout, stack = len(prepared) // size, prepared.dtype, calls[0].layouts[0], calls[0].shapes[0][1]
    height, row, beside, _ = layout
    n_maps = prepared.shape[1] * size // (height * (row - 2 * beside))
    tiles = space.array("images", (n_tiles, n_maps, stack), dtype)
    into_tiles(prepared, layout, tiles)
    for name, (of_tiles, inside, after), (of_scratch, of_out), convolution, arguments in calls:
        scratch = space.zeroed(f"frames {inside}", of_scratch, dtype, inside)
        out = space.zeroed(name, (n_tiles, *of_out), dtype, after)
        oriented_stage(tiles, of_tiles, convolution.params["alpha"], convolution.mixing, *arguments, scratch, out)
        tiles, layout = out, after
    return tiles, layout


def _moments(layer: Statistics, tiles, layout, space: Workspace, start: int, features: np.ndarray) -> None:
    """Fill the columns of features from number `start` on."""
    stencil, dtype = layer.graph.stencil, tiles.dtype
    assert stencil is not None  # see `statistics_after`
    (height, width), straight, diagonal, _ = stencil
    beside = tiles.shape[1] * layout[2] // layout[3]  # maps and images
    framed = space.frames("chebyshev", 3, (height, width), beside, dtype)
    arrays = {"signals": (1, height * width, beside), "rows": (2, width * beside)}
    signals, rows = (space.array(name, shape, dtype) for name, shape in arrays.items())
    moments = space.array("moments", (1, layer.max_order + 1, 2, beside), dtype)
    weights = dtype.type(straight), dtype.type(diagonal)
    tile_moments(tiles, layout, *weights, signals, framed, rows, moments, start, features)
