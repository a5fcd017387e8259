"""Prediction with oriented networks: several layers in one call, a few images at a time.

The stages at the start of a network, and statistics after them, run in tiles of a few images, whose maps fit into the
cache (`tigra.kernels.oriented.stage`). The head, with its dense layers, takes all images at once. The results have the
same bits as those of the layers one by one, which training and all other networks use. Weights are read anew in every
call, so they may change between calls. Which layers run together is decided once, and again when a layer, its graph or
one of its arrays has been replaced.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import numpy as np

from tigra.graph import Graph, GraphSignal
from tigra.kernels.oriented.head import dense
from tigra.kernels.oriented.normalising import standardised
from tigra.kernels.oriented.stage import oriented_stage
from tigra.kernels.oriented.tiles import into_tiles, out_of_tiles, tile_moments
from tigra.kernels.workspace import Workspace, aligned_empty
from tigra.layers import Coarsen, Dense, FeatureNorm, Layer, MapNorm, OrientedConv, ReLU, Statistics
from tigra.layers.map_norm import EPSILON, FEATURE_EPSILON
from tigra.models.prediction.stages import STATE, Head, Stage, head_after, stages_of, statistics_after

TILE_BYTES = 5 * 2**19  # of a stage's frames, which should fit into the L2 cache, or nearly so
TILE_SIZES = 8, 4, 2, 1  # images; more of them fill the registers better
NO_LAYOUT = 0, 0, 0, 0
END = (object(),)  # behind the parts of a plan, so that lists of different lengths differ
READ = OrientedConv, MapNorm, Coarsen, Statistics, FeatureNorm, Dense, ReLU  # layers that a plan takes the place of


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
        Maps (K, N, n) of the last stage, or the features (F, n) if statistics follow, or what the head makes of them;
        and the number of layers. Without a stage, None and 0.
    """
    n, dtype = len(prepared), prepared.dtype
    name, wanted = f"plan of {len(layers)}", (n_maps, dtype)
    plan: Plan = space.remembered(name, lambda plan: plan.holds(layers, wanted), lambda: Plan(layers, *wanted))
    if plan.n_numbers != prepared.shape[1]:
        return None, 0
    has_features = plan.statistics is not None
    out = np.empty((plan.n_features, n), dtype) if has_features else aligned_empty((*plan.shape, n), dtype)
    start = 0
    for size in plan.sizes:
        n_tiles = (n - start) // size
        if n_tiles == 0:
            continue
        into, stages, of_tiles = plan.arguments(n_tiles, size, space)
        into_tiles(prepared[start : start + n_tiles * size], *into)
        for arguments in stages:
            oriented_stage(*arguments)
        if has_features:
            tile_moments(*of_tiles, start, out)
        else:
            out_of_tiles(*of_tiles, start, out)
        start += n_tiles * size
    if has_features:
        return plan.through_head(out), plan.n_layers
    return GraphSignal(out, space.all_true((1, *out.shape[1:]))), plan.n_layers


class Parts:
    """What a plan depends on: as long as layers, their attributes and arrays are the same objects, it holds."""

    def __init__(self, layers: list[Layer]):
        last = next((place for place, layer in enumerate(layers) if type(layer) not in READ), len(layers))
        self.layers = layers[: last + 1]  # no plan reaches farther
        graphs = [getattr(layer, "graph", None) for layer in self.layers]
        own_graphs = {id(graph): vars(graph) for graph in graphs if isinstance(graph, Graph)}
        arrays = [entries for layer in self.layers for entries in (layer.params, layer.state)]
        self.own = list(map(vars, self.layers))
        self.views = [entries.values() for entries in (*self.own, *arrays, *own_graphs.values())]
        self.objects = list(self._objects(self.layers))

    def _objects(self, layers: list[Layer]) -> Iterable:
        return chain(layers, map(type, layers), map(vars, layers), chain.from_iterable(self.views), END)

    def are_in(self, layers: list[Layer]) -> bool:
        """Whether the layers still consist of the same objects."""
        return all(map(operator.is_, self._objects(layers[: len(self.layers)]), self.objects))


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
        Numbers of an image; layers that the plan takes the place of. Without a stage, both are 0, and there are no
        other attributes.
    statistics : Statistics or None
        The layer of statistics behind the stages.
    n_features, shape : int, (int, int)
        Features of an image, if there are statistics; maps and nodes of the last stage.
    sizes : tuple of int
        Images in a tile: as many as fit into the cache and, for those that are left, fewer.
    """

    def __init__(self, layers: list[Layer], n_maps: int, dtype):
        self.stages, self.wanted, self._parts = stages_of(layers, n_maps, dtype), (n_maps, dtype), Parts(layers)
        self.n_numbers = self.n_layers = 0
        self._made: dict[int, tuple] = {}  # size -> (most tiles so far, n_changes, arguments)
        if not self.stages:
            return
        first, last = self.stages[0], self.stages[-1]
        self.n_numbers, self.n_layers = first.graph.n_nodes * n_maps, sum(stage.n_layers for stage in self.stages)
        self.shape = len(last.norm.params["gamma"]), math.prod(last.out_shape)
        self.statistics = statistics_after(layers[self.n_layers :], last)
        if self.statistics:
            self.n_features = 2 * (self.statistics.max_order + 1) * self.shape[0]
            head = head_after(layers[self.n_layers + 1 :], self.n_features, dtype)
            self._head = _arguments_of(head)
            self.n_layers += 1 + head.n_layers
        self.sizes = tuple(size for size in TILE_SIZES if size == 1 or _fits(self.stages, size, dtype))

    def holds(self, layers: list[Layer], wanted: tuple) -> bool:
        """Whether the plan is still one for these layers, and for so many maps of this dtype."""
        return self.wanted == wanted and self._parts.are_in(layers)

    def arguments(self, n_tiles: int, size: int, space: Workspace) -> tuple:
        """Arguments of all kernels for tiles of `size` images, with arrays of the workspace, as in earlier calls.

        Returns
        -------
        (tuple, list, tuple)
            Those of `into_tiles`, of `oriented_stage` for each stage, and of what follows them.
        """
        most, n_changes, made = self._made.get(size, (0, None, None))
        if n_tiles > most or n_changes != space.n_changes:  # or it was others' turn to use the arrays
            most = max(most, n_tiles)
            made = self._arguments(most, size, space)
            if all(np.may_share_memory(call[0].mixing, call[0].params["pairs"]) for call in self.stages):
                self._made[size] = most, space.n_changes, made  # with other pairs, mixing is a copy of today's
        return made if n_tiles == most else _some_tiles(made, n_tiles)

    def _arguments(self, n_tiles: int, size: int, space: Workspace) -> tuple:
        n_maps, dtype = self.wanted
        calls = [_call(number, self.stages, size, dtype) for number in range(len(self.stages))]
        tiles, layout = (
            space.array(f"images, tiles of {size}", (n_tiles, n_maps, calls[0].shapes[0][1]), dtype),
            calls[0].layouts[0],
        )
        into, stages = (layout, tiles), []
        for name, (of_tiles, inside, after), (of_scratch, of_out), convolution, arguments in calls:
            scratch = space.zeroed(f"frames {inside}", of_scratch, dtype, inside)
            out = space.zeroed(name, (n_tiles, *of_out), dtype, after)
            weights = convolution.params["alpha"], convolution.mixing
            stages.append((tiles, of_tiles, *weights, *arguments, scratch, out))
            tiles, layout = out, after
        return into, stages, (tiles, layout, *_for_moments(self.statistics, tiles, layout, size, space))

    def through_head(self, features: np.ndarray) -> np.ndarray:
        """Outputs (F, n) of the head for features, which are overwritten."""
        running, layers = self._head
        if running:
            standardised(features, running, FEATURE_EPSILON, np.empty(len(features)), features)
        x = features
        for weight, bias, is_rectified in layers:
            out = np.empty((len(weight), x.shape[1]), x.dtype)
            dense(weight, bias, is_rectified, x, out)
            x = out
        return x


def _some_tiles(made: tuple, n_tiles: int) -> tuple:
    """The same arguments with the first tiles only."""
    (layout, images), stages, (last, *of_moments) = made
    stages = [(tiles[:n_tiles], *others, out[:n_tiles]) for tiles, *others, out in stages]
    return (layout, images[:n_tiles]), stages, (last[:n_tiles], *of_moments)


def _arguments_of(head: Head) -> tuple:
    """Running averages of the norm, and weight, bias and rectifier of the dense layers."""
    layers = [(layer.params["weight"], layer.params["bias"], is_rectified) for layer, is_rectified in head.dense]
    return head.norm and tuple(head.norm.state[name] for name in STATE), layers


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


def _for_moments(layer: Statistics | None, tiles, layout, size: int, space: Workspace) -> tuple:
    """Arguments of `tile_moments` from the weights on."""
    if layer is None:
        return ()
    stencil, dtype = layer.graph.stencil, tiles.dtype
    assert stencil is not None  # see `statistics_after`
    (height, width), straight, diagonal, _ = stencil
    beside = tiles.shape[1] * size  # maps and images
    framed = space.frames(f"chebyshev, tiles of {size}", 3, (height, width), beside, dtype)
    arrays = {"signals": (1, height * width, beside), "rows": (3, width * beside)}
    signals, rows = (space.array(f"{name}, tiles of {size}", shape, dtype) for name, shape in arrays.items())
    moments = space.array(f"moments, tiles of {size}", (1, layer.max_order + 1, 2, beside), dtype)
    return dtype.type(straight), dtype.type(diagonal), signals, framed, rows, moments
