"""Prediction with oriented networks: several layers in one call, a few images at a time.

The stages at the start of a network, and statistics after them, run in tiles of a few images, whose maps fit into the
cache (`tigra.kernels.oriented.stage`). The results have the same bits as those of the layers one by one, which training
and all other networks use. Weights are read anew in every call, so they may change between calls.
"""

from __future__ import annotations

import math

import numpy as np

from tigra.graph import GraphSignal
from tigra.kernels.oriented.stage import oriented_stage
from tigra.kernels.oriented.tiles import into_tiles, out_of_tiles, tile_moments
from tigra.kernels.workspace import Workspace, aligned_empty
from tigra.layers import Layer, Statistics
from tigra.layers.map_norm import EPSILON
from tigra.models.prediction.stages import Stage, stages_of, statistics_after

TILE_BYTES = 2**20  # of a stage's frames: about the L2 cache of a core
TILE_SIZE = 2  # images, if they fit
NO_LAYOUT = 0, 0, 0, 0


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
    stages, dtype = stages_of(layers, n_maps, prepared.dtype), prepared.dtype
    if not stages or stages[0].graph.n_nodes * n_maps != prepared.shape[1]:
        return None, 0
    n_layers, n, n_out = sum(stage.n_layers for stage in stages), len(prepared), len(stages[-1].norm.params["gamma"])
    statistics = statistics_after(layers[n_layers:], stages[-1])
    if statistics:
        out = np.empty((2 * (statistics.max_order + 1) * n_out, n), dtype)
    else:
        out = aligned_empty((n_out, math.prod(stages[-1].out_shape), n), dtype)
    size = TILE_SIZE if n >= TILE_SIZE and _fits(stages, TILE_SIZE, dtype) else 1
    for part, tile in ((slice(0, n - n % size), size), (slice(n - n % size, n), 1)):
        if part.start == part.stop:
            continue
        tiles, layout = _run(stages, prepared[part], tile, space)
        if statistics:
            _moments(statistics, tiles, layout, space, part.start, out)
        else:
            out_of_tiles(tiles, layout, part.start, out)
    if statistics:
        return out, n_layers + 1
    return GraphSignal(out, space.all_true((1, *out.shape[1:]))), n_layers


def _fits(stages: list[Stage], size: int, dtype) -> bool:
    """Whether the frames of `size` images fit into the cache."""
    return all(stage.n_frames * stage.frames(size, dtype).stack * dtype.itemsize <= TILE_BYTES for stage in stages)


def _run(stages: list[Stage], prepared: np.ndarray, size: int, space: Workspace):
    """The frames of all images after the stages, (tiles, K, pitch), and their layout."""
    n_tiles, dtype = len(prepared) // size, prepared.dtype
    now = stages[0].frames(size, dtype)
    n_maps = stages[0].convolution.n_in
    tiles = space.array("images", (n_tiles, n_maps, now.stack), dtype)
    into_tiles(prepared, now.layout, tiles)
    for number, stage in enumerate(stages):
        (convolution, norm, is_coarse), inside = stage, stage.frames(size, dtype)
        then, alpha = stage.out_frames(size, dtype), convolution.params["alpha"]
        name = f"{number}, tiles of {size}"
        out = space.zeroed(f"out {name}", (n_tiles, len(alpha), then.stack), dtype, then.layout)
        scratch = space.zeroed(f"frames {name}", (stage.n_frames, inside.stack), dtype, inside.layout)
        constants = [norm.state[name] for name in ("running_mean", "running_variance", "total")]
        weights = (*constants, norm.params["gamma"], norm.params["beta"])
        oriented_stage(
            tiles,
            now.layout,
            alpha,
            convolution.mixing,
            weights,
            EPSILON,
            inside.grid,
            inside.smoothing,
            norm.diffusion,
            then.layout if is_coarse else NO_LAYOUT,
            scratch,
            out,
        )
        tiles, now = out, then
    return tiles, now.layout


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
