"""From an architecture text to a network: `build_network`.

The text is parsed and turned into a plan: the sequence of layers, the input of each, and the number of parameters. A
plan allocates nothing, so a network that is too large, or whose layers do not fit together, is rejected before it is
built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tigra.models.tigranet  # noqa: F401, registers TIGraNet's kinds of layers
from tigra.errors import ArchitectureError, UsageError
from tigra.graph import Graph, check_shape, grid_graph
from tigra.layers import Layer
from tigra.models.classifier import MODEL_KINDS
from tigra.models.costs import STENCIL, Cost
from tigra.models.effects import expanded
from tigra.models.kinds import FLOWS, LAYER_KINDS, Item, LayerKind, Site, misplaced
from tigra.models.network import Network
from tigra.models.notation import format_architecture, parse_architecture
from tigra.options import BuildOptions, GraphOptions, ImageOptions

LARGEST_NETWORK = 10**8  # parameters; a typing error should not exhaust the memory
SPARSE = 3  # times as long with a sparse matrix as with a stencil
PREPARED = 10  # numbers per pixel while an image is smoothed, in float64, and converted


def build_network(
    architecture: str,
    image_shape: tuple[int, ...],
    n_classes: int,
    seed: int = 0,
    dtype: str = "float32",
    graph: Any = None,
    **options: Any,
) -> Network:
    """Build a network from an architecture text.

    Parameters
    ----------
    architecture : str
        Layers in the paper's notation, see `tigra.models.tigranet` and docs/architectures.md. The linear layer to
        the classes is added automatically.
    image_shape : (int, int) or (int, int, 3)
        Height and width of the images; the third number is for colour images (n, height, width, 3).
    n_classes : int
        Number of classes.
    seed : int
        Seed of the random initial parameters.
    dtype : {"float32", "float64"}
        Precision of parameters and maps; float64 is for gradient checks.
    graph : Graph or array or sparse matrix (N, N), optional
        Custom graph, or its adjacency matrix, in place of the grid of pixels. Node v is pixel v of the image, row by
        row, so height times width must be N.
    **options
        Fields of `tigra.options.NetworkOptions`: neighbours, diagonal_weight, boundary, smoothing, margin,
        background, active_set, mixing, diffusion, standardise, batch_norm, deviation_floor, log_offset, dense_init,
        outside.

    Returns
    -------
    Network
        The untrained network.

    Raises
    ------
    ArchitectureError
        If the text cannot be parsed, the layers do not fit together, or the network is too large.
    UsageError
        If an option is unknown or out of range.

    Examples
    --------
    >>> network = build_network("SC[2, 1]-DP[3]-S[1]-FC[4]", image_shape=(2, 2), n_classes=2)
    >>> network.n_parameters  # alpha 4, beta 1, FC (8+1) * 4, classes (4+1) * 2
    51
    """
    given = {"architecture": architecture, "image_shape": image_shape, "n_classes": n_classes}
    chosen = BuildOptions.of(given | {"seed": seed, "dtype": dtype} | options)
    own = None if graph is None else graph if isinstance(graph, Graph) else Graph(graph)
    return Plan.of(chosen, own).network()


def count_parameters(architecture: str, image_shape: tuple[int, int], n_classes: int, mixing: str = "vector") -> int:
    """Count the parameters of a network without building it.

    Parameters
    ----------
    architecture : str
        Layers in the paper's notation.
    image_shape : (int, int)
        Height and width of the grid, that is, of the image with its margin.
    n_classes : int
        Number of classes.
    mixing : str
        How filters and input maps are combined, see `tigra.options.NetworkOptions`.

    Returns
    -------
    int
        Number of learned values.

    Examples
    --------
    >>> count_parameters("S[0]-FC[2]", image_shape=(2, 2), n_classes=3)  # (2+1) * 2 + (2+1) * 3
    15
    """
    shape = check_shape(image_shape)
    options = BuildOptions(architecture=architecture, image_shape=shape, n_classes=n_classes, mixing=mixing)
    return Plan.of(options).n_parameters


@dataclass(frozen=True)
class Plan:
    """A network before it is built: the sequence of layers, including implicit ones, and the input of each.

    Attributes
    ----------
    options : BuildOptions
        Everything the network is built from.
    steps : list of (LayerKind, Item, Site)
        One entry per layer.
    graph : Graph or None
        The custom graph, or None for the grid.
    is_loading : bool
        Whether a model file will overwrite all parameters (`Site.is_loading`).
    """

    options: BuildOptions
    steps: list[tuple[LayerKind, Item, Site]]
    graph: Graph | None = None
    is_loading: bool = False

    @classmethod
    def of(cls, options: BuildOptions, graph: Graph | None = None) -> Plan:
        """Plan a network; raises ArchitectureError if its layers do not fit together or are too large."""
        if graph is not None:
            _check_own_graph(graph, options)
        items = parse_architecture(options.architecture)
        shape = options.grid_shape
        n_nodes = graph.n_nodes if graph else shape[0] * shape[1]
        site = Site(options, shape, n_nodes, size=options.n_channels, graph=graph)
        steps, n_parameters = [], 0
        for kind, item in _with_unwritten(items, site, options.n_classes):
            kind.check(item, site)
            n_parameters += _n_numbers(kind.shapes(item.numbers, site) or {})
            if n_parameters > LARGEST_NETWORK:
                raise ArchitectureError(
                    f"{item} at position {item.position} takes the network past {LARGEST_NETWORK:,} parameters;"
                    " use smaller layers."
                )
            steps.append((kind, item, replace(site)))
            size, shape = kind.size(item.numbers, site), kind.shape(item.numbers, site)
            if shape != site.shape:
                site.shape, site.n_nodes = shape, shape[0] * shape[1]
            site.gives, site.size, site.dilation = kind.gives, size, kind.dilation(item.numbers, site)
        if graph is not None and not any(kind.takes == "maps" for kind, _, _ in steps):
            raise UsageError(
                "A custom graph has no effect here: no layer of this architecture works on a graph; leave it out."
            )
        return cls(replace(options, architecture=format_architecture(items)), steps, graph)

    @property
    def n_parameters(self) -> int:
        """Number of parameters, as far as the layer kinds can tell before building."""
        return sum(_n_numbers(kind.shapes(item.numbers, site) or {}) for kind, item, site in self.steps)

    @property
    def n_bytes(self) -> int:
        """Memory of the parameters in bytes."""
        return self.n_parameters * np.dtype(self.options.dtype).itemsize

    @property
    def n_pixels(self) -> int:
        """Number of pixels of an image, including its margin."""
        return math.prod(self.options.grid_shape)

    @property
    def cost(self) -> Cost:
        """Estimate of memory and work for one image."""
        n_numbers = PREPARED * self.n_pixels * self.options.n_channels
        total = Cost(n_numbers, n_numbers)
        for kind, item, site in self.steps:
            total = total.plus(kind.cost(item.numbers, site))
        return total._replace(operations=total.operations * self._slowness)

    @property
    def _slowness(self) -> float:
        """How much longer than on a padded grid, which has compiled stencils, a product with the Laplacian takes."""
        if self.graph is None:
            return 1 if self.options.boundary == "padded" else SPARSE
        return SPARSE * max(1, self.graph.adjacency.nnz / self.graph.n_nodes / STENCIL)

    def network(self) -> Network:
        """Build the network, with initial parameters drawn from the options' seed."""
        options, rng = self.options, np.random.default_rng(self.options.seed)
        pixels = options.grid_shape, 1
        graphs = {} if self.graph is None else {pixels: self.graph}
        grid = options.neighbours, options.diagonal_weight, options.boundary
        for shape, dilation in [pixels, *((site.shape, site.dilation) for _, _, site in self.steps)]:
            if (shape, dilation) not in graphs:  # coarsened and dilated grids are graphs of their own
                graphs[shape, dilation] = grid_graph(shape, *grid, dilation)
        graph = graphs[pixels]
        layers: list[Layer] = []
        for kind, item, site in self.steps:
            place = replace(site, graph=graphs[site.shape, site.dilation], rng=rng, is_loading=self.is_loading)
            built = kind.build(item.numbers, place)
            _check_built(kind, item, site, built)
            layers += built
        network = Network(layers, graph, options)
        network.is_by_hand, network.own_graph, network.cost = False, self.graph, self.cost
        return network


MODEL_KINDS[Network.kind] = lambda options, graph: replace(
    Plan.of(BuildOptions.from_json(options), graph), is_loading=True
)


def _with_unwritten(items: list[Item], site: Site, n_classes: int) -> Iterator[tuple[LayerKind, Item]]:
    """(kind, item) of all layers, written or implicit; the caller updates `site` between them."""
    for item in expanded(items):
        kind = LAYER_KINDS[item.name]
        yield from ((bridge, item) for bridge in [_bridge(site.gives, kind)] if bridge is not None)
        if site.gives not in (kind.takes, *kind.also):
            raise misplaced(item, kind.takes, site.gives)
        yield kind, item
    last = Item("The last layer", (n_classes,), len(format_architecture(items)))
    flow = FLOWS.get(site.gives)
    if flow and flow.to_features:
        yield flow.to_features, last
        flow = FLOWS["features"]
    if flow is None or flow.last is None:
        raise ArchitectureError("The architecture ends in maps; add a statistics layer such as S[10].")
    yield flow.last, last


def _bridge(gives: str, kind: LayerKind) -> LayerKind | None:
    """The implicit layer between the current output and a layer of this kind, if one is needed."""
    if gives == "image" and kind.takes in FLOWS:
        return FLOWS[kind.takes].begin
    if kind.takes == "features" and gives in FLOWS:
        return FLOWS[gives].to_features
    return None


def _n_numbers(shapes: Mapping[str, tuple[int, ...]]) -> int:
    return sum(math.prod(shape) for shape in shapes.values())


def _check_built(kind: LayerKind, item: Item, site: Site, built: list[Layer]) -> None:
    """Check that a kind builds the shapes it announced, on which the size limit relies."""
    if not (isinstance(built, list) and all(isinstance(layer, Layer) for layer in built)):
        raise ArchitectureError(f"{type(kind).__name__}.build must return a list of layers, got {built!r} for {item}.")
    promised = kind.shapes(item.numbers, site)
    found = [array.shape for layer in built for array in layer.params.values()]
    if promised is not None and sorted(promised.values()) != sorted(found):
        raise ArchitectureError(
            f"{type(kind).__name__}.shapes says that {item} has parameters of shapes {sorted(promised.values())}, but"
            f" build made {sorted(found)}; make the two agree."
        )


def _check_own_graph(graph: Graph, options: BuildOptions) -> None:
    """Check that a custom graph has one node per pixel, and that no option of the grid is set."""
    height, width = options.image_shape[:2]
    if graph.n_nodes != height * width:
        raise UsageError(
            f"The graph has {graph.n_nodes} nodes, but images of {height}x{width} have {height * width} pixels; give"
            f" an image_shape with as many, for instance (1, {graph.n_nodes})."
        )
    for name in (*GraphOptions.specs(), *ImageOptions.specs()):
        if getattr(options, name) != getattr(type(options), name):  # a dataclass keeps defaults as class attributes
            raise UsageError(f"{name} is for the grid of pixels and has no effect on a custom graph; leave it out.")
