"""Which layers of an oriented network predict in one call: a convolution, its normalisation, and a coarsening.

Behind the last of these stages, statistics and the head follow: normalisation of features, and dense layers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tigra.graph import Graph, GridGraph
from tigra.graph.operators import is_padded_grid
from tigra.graph.orientation import has_gradient
from tigra.layers import Coarsen, Dense, FeatureNorm, Layer, MapNorm, OrientedConv, ReLU, Statistics
from tigra.layers.coarsen import coarse_shape
from tigra.layers.frames import Frames, frames_of, grid_frames

STATE = "running_mean", "running_variance", "total"


class Head(NamedTuple):
    """What follows the statistics; without a norm, nothing."""

    norm: FeatureNorm | None = None
    dense: tuple[tuple[Dense, bool], ...] = ()  # and whether a rectifier follows

    @property
    def n_layers(self) -> int:
        """The norm, dense layers and rectifiers."""
        return (self.norm is not None) + sum(1 + is_rectified for _, is_rectified in self.dense)


class Stage(NamedTuple):
    """Layers that run in one call."""

    convolution: OrientedConv
    norm: MapNorm
    is_coarse: bool

    @property
    def graph(self) -> GridGraph:
        """The padded grid of the maps."""
        return self.convolution.graph  # type: ignore[return-value]  # `stages_of` looks at it

    @property
    def out_shape(self) -> tuple[int, int]:
        """Height and width of the result."""
        return coarse_shape(self.graph.shape) if self.is_coarse else self.graph.shape

    @property
    def n_layers(self) -> int:
        """Two or three."""
        return 2 + self.is_coarse

    @property
    def n_frames(self) -> int:
        """Scratch frames: the larger number of terms and sums, and the larger number of pairs and sums."""
        n_out, n_terms = self.convolution.params["alpha"].shape
        return max(n_terms, n_out) + max(2 * self.convolution.n_pairs, n_out)

    def frames(self, size: int, dtype) -> Frames:
        """Frames for `size` images."""
        return grid_frames(self.graph, self.graph.shape, size, dtype)

    def out_frames(self, size: int, dtype) -> Frames:
        """Frames of the result."""
        return grid_frames(self.graph, self.out_shape, size, dtype)


def stages_of(layers: list[Layer], n_maps: int, dtype) -> list[Stage]:
    """The stages at the start of a network; none if it begins with other layers, or with layers of a user's own class.

    Parameters
    ----------
    layers : list of Layer
        Layers of a network.
    n_maps : int
        Number of maps of an image.
    dtype : dtype
        Precision of the maps.

    Returns
    -------
    list of Stage
        Each with the maps that the next one expects; layers that do not fit are left to tell so.
    """
    stages: list[Stage] = []
    shape, rest = None, layers
    while (stage := _first_stage(rest, n_maps, dtype)) and shape in (None, stage.graph.shape):
        stages.append(stage)
        n_maps, shape, rest = len(stage.convolution.params["alpha"]), stage.out_shape, rest[stage.n_layers :]
    return stages


def _first_stage(layers: list[Layer], n_maps: int, dtype) -> Stage | None:
    """The stage of the first layers, if they are one."""
    if [type(layer) for layer in layers[:2]] != [OrientedConv, MapNorm]:
        return None
    convolution, norm, after = layers[0], layers[1], layers[2] if len(layers) > 2 else None
    assert isinstance(convolution, OrientedConv) and isinstance(norm, MapNorm)
    graph = convolution.graph
    if convolution.n_in != n_maps or not _are_whole(convolution, norm):
        return None
    if norm.is_training or not has_gradient(graph) or not _same_grid(norm.graph, graph):
        return None
    if any(array.dtype != dtype for layer in layers[:2] for array in layer.params.values()):
        return None
    is_coarse = type(after) is Coarsen and "forward" not in vars(after) and _same_grid(after.graph, graph)
    return Stage(convolution, norm, is_coarse)


def _are_whole(convolution: OrientedConv, norm: MapNorm) -> bool:
    """Whether the arrays have the shapes that the kernel reads, and nobody has given a layer another `forward`."""
    if "forward" in vars(convolution) or "forward" in vars(norm) or type(norm.diffusion) is not int:
        return False
    n_out, n_terms = convolution.params["alpha"].shape
    of_maps = norm.params["gamma"], norm.params["beta"], norm.state["running_mean"], norm.state["running_variance"]
    if norm.state["total"].shape != (1,):
        return False
    fits = n_terms == (convolution.degree + 1) * convolution.n_in + 2 * convolution.n_pairs
    return fits and norm.diffusion >= 0 and all(array.shape == (n_out,) for array in of_maps)


def _same_grid(graph: Graph, other: Graph) -> bool:
    return graph is other or frames_of(graph, 1, np.float32) == frames_of(other, 1, np.float32)


def statistics_after(layers: list[Layer], last: Stage) -> Statistics | None:
    """The first of the layers, if it takes statistics on the grid of the last stage's maps."""
    for layer in layers[:1]:
        if type(layer) is Statistics and "forward" not in vars(layer) and is_padded_grid(layer.graph):
            return layer if layer.graph.stencil.shape == last.out_shape else None  # type: ignore[union-attr]
    return None


def head_after(layers: list[Layer], n_features: int, dtype) -> Head:
    """The head that the layers begin with, for so many features; layers that do not fit are left to tell so."""
    norm = layers[0] if layers else None
    if type(norm) is not FeatureNorm or "forward" in vars(norm) or norm.is_training:
        return Head()
    if [norm.state[name].shape for name in STATE] != [(n_features,), (n_features,), (1,)]:
        return Head()
    found: list[tuple[Dense, bool]] = []
    rest = layers[1:]
    while rest and _is_dense(rest[0], n_features, dtype):
        layer, after = rest[0], rest[1] if len(rest) > 1 else None
        assert isinstance(layer, Dense)
        is_rectified = type(after) is ReLU and "forward" not in vars(after)
        found.append((layer, is_rectified))
        n_features, rest = len(layer.params["weight"]), rest[1 + is_rectified :]
    return Head(norm, tuple(found))


def _is_dense(layer: Layer, n_in: int, dtype) -> bool:
    """Whether the kernel can take the place of a layer."""
    if type(layer) is not Dense or "forward" in vars(layer):
        return False
    weight, bias = layer.params["weight"], layer.params["bias"]
    fits = weight.shape[1:] == (n_in,) and bias.shape == weight.shape[:1] and len(weight) > 0
    return fits and all(array.dtype == dtype and array.flags.c_contiguous for array in (weight, bias))
