"""Which layers of an oriented network predict in one call: a convolution, its normalisation, and a coarsening."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tigra.graph import Graph, GridGraph
from tigra.graph.operators import is_padded_grid
from tigra.graph.orientation import has_gradient
from tigra.layers import Coarsen, Layer, MapNorm, OrientedConv, Statistics
from tigra.layers.coarsen import coarse_shape
from tigra.layers.frames import Frames, frames_of, grid_frames


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
