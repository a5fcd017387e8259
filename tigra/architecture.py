"""Architectures as text, in the notation of the paper's Table 1, and the networks they stand for.

    SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]

SC[K, M]: K spectral filters of degree M. DP[J]: dynamic pooling to J nodes. S[K_max]: statistics
up to Chebyshev order K_max, standardised. FC[n]: n hidden units with ReLU. A last linear layer to
the classes follows by itself. A further kind of layer is one more class with `@layer_kind`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tigra.errors import ArchitectureError, UsageError
from tigra.graph import Graph, check_shape, grid_graph
from tigra.layers import Dense, DynamicPool, Layer, ReLU, SpectralConv, Standardise, Statistics
from tigra.network import Network

LAST_GAIN = 0.1  # of the start values of the last layer
LARGEST_NETWORK = 10**8  # parameters; a slip of the finger should not fill the memory


class Item(NamedTuple):
    """One layer as written: its name, its numbers, and where it stands in the text (from 1)."""

    name: str
    numbers: tuple[int, ...]
    position: int

    def __str__(self):
        return f"{self.name}[{', '.join(map(str, self.numbers))}]"


@dataclass
class Site:
    """Where a layer is to be built: what arrives there, and the options of the whole network.

    gives : "maps" (size maps on the graph) or "features" (size numbers), what the layer below gives
    """

    n_nodes: int
    gives: str = "maps"
    size: int = 1
    mixing: str = "vector"
    active: str = "map"
    init: str = "default"
    standardise: bool = True
    dtype: str = "float32"
    graph: Graph | None = None
    rng: np.random.Generator | None = None


class LayerKind:
    """What the parser and the builder must know of a kind of layer; see the classes below.

    arguments : the names of its numbers; smallest : the least value of each
    takes, gives : "maps" or "features"
    """

    arguments: tuple[str, ...] = ()
    smallest: tuple[int, ...] = ()
    takes = "features"
    gives = "features"

    def check(self, item: Item, site: Site) -> None:
        """Raise ArchitectureError if the item cannot stand at this site."""

    def size(self, numbers, site: Site) -> int:
        """How many maps or features come out."""
        return site.size

    def n_parameters(self, numbers, site: Site) -> int:
        """How many numbers are learned."""
        return 0

    def build(self, numbers, site: Site) -> list[Layer]:
        """The layers, with start values from site.rng."""
        raise NotImplementedError


LAYER_KINDS: dict[str, LayerKind] = {}


def layer_kind(name: str):
    """Class decorator: make a LayerKind known to the parser under `name`."""

    def register(kind):
        LAYER_KINDS[name] = kind()
        return kind

    return register


@layer_kind("SC")
class SpectralConvKind(LayerKind):
    """SC[filters, degree]"""

    arguments, smallest = ("filters", "degree"), (1, 0)
    takes = gives = "maps"

    def size(self, numbers, site):
        return numbers[0]

    def n_parameters(self, numbers, site):
        n_filters, degree = numbers
        return n_filters * (degree + 1) + site.size * (n_filters if site.mixing == "full" else 1)

    def build(self, numbers, site):
        return [
            SpectralConv.init(site.graph, site.size, *numbers, site.rng, site.dtype, site.mixing, site.active)
        ]


@layer_kind("DP")
class DynamicPoolKind(LayerKind):
    """DP[nodes]"""

    arguments, smallest = ("nodes",), (1,)
    takes = gives = "maps"

    def check(self, item, site):
        if item.numbers[0] > site.n_nodes:
            raise ArchitectureError(
                f"{item} at position {item.position} keeps more nodes than the graph has:"
                f" use at most {site.n_nodes}, the number of pixels."
            )

    def build(self, numbers, site):
        return [DynamicPool(*numbers)]


@layer_kind("S")
class StatisticsKind(LayerKind):
    """S[order]"""

    arguments, smallest = ("order",), (0,)
    takes, gives = "maps", "features"

    def size(self, numbers, site):
        return site.size * 2 * (numbers[0] + 1)

    def build(self, numbers, site):
        statistics = Statistics(site.graph, *numbers)
        if not site.standardise:
            return [statistics]
        return [statistics, Standardise.init(self.size(numbers, site), site.dtype)]


@layer_kind("FC")
class DenseKind(LayerKind):
    """FC[units]"""

    arguments, smallest = ("units",), (1,)

    def size(self, numbers, site):
        return numbers[0]

    def n_parameters(self, numbers, site):
        return (site.size + 1) * numbers[0]

    def build(self, numbers, site):
        return [Dense.init(site.size, *numbers, site.rng, site.dtype, site.init), ReLU()]


def parse_architecture(text: str) -> list[Item]:
    """The items of an architecture text; spaces are optional, errors name the position.

    >>> [str(item) for item in parse_architecture("SC[3,3] - DP[300]-S[10]")]
    ['SC[3, 3]', 'DP[300]', 'S[10]']
    >>> parse_architecture("SC[3, 3")
    Traceback (most recent call last):
    tigra.errors.ArchitectureError: Architecture 'SC[3, 3', position 8: expected ']', got the end.
    """
    reader = _Reader(text)
    items = [reader.item()]
    while reader.peek():
        reader.take("-", "'-' and a further layer, or the end")
        items.append(reader.item())
    return items


def format_architecture(items: list[Item]) -> str:
    """The text of parsed items, spaced as in the paper.

    >>> format_architecture(parse_architecture("S[10]-FC[ 50 ]"))
    'S[10]-FC[50]'
    """
    return "-".join(map(str, items))


class _Reader:
    """Reads the text from left to right and knows where it is."""

    def __init__(self, text: str):
        if not isinstance(text, str):
            raise ArchitectureError(f"An architecture is a text such as 'S[10]-FC[50]', got {text!r}.")
        self.text = text
        self.place = 0

    def peek(self) -> str:
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1
        return self.text[self.place : self.place + 1]

    def fail(self, expected: str):
        got = repr(self.peek()) if self.peek() else "the end"
        raise ArchitectureError(
            f"Architecture {self.text!r}, position {self.place + 1}: expected {expected}, got {got}."
        )

    def take(self, symbol: str, expected: str) -> None:
        if self.peek() != symbol:
            self.fail(expected)
        self.place += 1

    def match(self, pattern: str, expected: str) -> str:
        self.peek()
        found = re.compile(pattern).match(self.text, self.place)
        if found is None:
            self.fail(expected)
        self.place = found.end()
        return found.group()

    def item(self) -> Item:
        self.peek()
        start, known = self.place, ", ".join(LAYER_KINDS)
        name = self.match("[A-Za-z]+", f"the name of a layer ({known})")
        if name not in LAYER_KINDS:
            self.place = start
            raise ArchitectureError(
                f"Architecture {self.text!r}, position {start + 1}: expected the name of a layer ({known}),"
                f" got {name!r}."
            )
        kind = LAYER_KINDS[name]
        self.take("[", f"'[' after {name}")
        numbers = []
        for number, (argument, smallest) in enumerate(zip(kind.arguments, kind.smallest, strict=True)):
            if number:
                self.take(",", f"',' and {name}'s {argument}")
            numbers.append(self.number(name, argument, smallest))
        self.take("]", "']'")
        return Item(name, tuple(numbers), start + 1)

    def number(self, name, argument, smallest) -> int:
        expected = f"a whole number of at least {smallest} ({name}'s {argument})"
        self.peek()
        start = self.place
        value = int(self.match("[0-9]{1,9}(?![0-9])", expected))
        if value < smallest:
            self.place = start
            self.fail(expected)
        return value


def _walk(items: list[Item], site: Site, n_classes: int):
    """Yield (kind, item) with `site` set to what arrives there; at the end it is what FC leaves."""
    n_parameters = 0
    for item in items:
        kind = LAYER_KINDS[item.name]
        if kind.takes != site.gives:
            raise ArchitectureError(
                f"{item} at position {item.position} takes {kind.takes}, but what stands before it gives"
                f" {site.gives}; graph layers come first, then one S[K_max], then FC layers."
            )
        kind.check(item, site)
        n_parameters += kind.n_parameters(item.numbers, site)
        if n_parameters > LARGEST_NETWORK:
            raise ArchitectureError(
                f"{item} at position {item.position} takes the network past {LARGEST_NETWORK:,} parameters;"
                " use smaller layers."
            )
        yield kind, item
        site.gives, site.size = kind.gives, kind.size(item.numbers, site)
    if site.gives != "features":
        raise ArchitectureError("The architecture ends in maps; add a statistics layer such as S[10].")
    if n_parameters + (site.size + 1) * n_classes > LARGEST_NETWORK:
        raise ArchitectureError(f"The network would have more than {LARGEST_NETWORK:,} parameters.")


def count_parameters(architecture: str, image_shape, n_classes: int, mixing: str = "vector") -> int:
    """How many numbers the network learns, found without building it.

    >>> count_parameters("S[0]-FC[2]", image_shape=(2, 2), n_classes=3)  # (2+1) * 2 + (2+1) * 3
    15
    """
    site = Site(int(np.prod(image_shape)), mixing=mixing)
    items = parse_architecture(architecture)
    total = sum(kind.n_parameters(item.numbers, site) for kind, item in _walk(items, site, n_classes))
    return total + (site.size + 1) * n_classes


def build_network(
    architecture: str,
    image_shape: tuple[int, int],
    n_classes: int,
    seed: int = 0,
    dtype: str = "float32",
    neighbours: int = 8,
    diagonal_weight: float = 1.0,
    boundary: str = "padded",
    active: str = "map",
    mixing: str = "vector",
    init: str = "default",
    smoothing: float = 0.0,
    standardise: bool = True,
) -> Network:
    """A network with start values drawn from `seed`.

    architecture : text, see the top of this module
    image_shape, n_classes : (height, width) of the images, number of classes
    dtype : "float32", or "float64" for checks
    neighbours, diagonal_weight, boundary : the grid, see `grid_graph`
    active, mixing : which sets limit a filter, and how maps are mixed, see `SpectralConv`
    init : start values of the FC layers, "default" or "paper", see `Dense.init`
    smoothing : standard deviation in pixels of a Gaussian blur of the input
    standardise : bring the statistics to mean 0 and deviation 1 (set when training starts)

    >>> network = build_network("SC[2, 1]-DP[3]-S[1]-FC[4]", image_shape=(2, 2), n_classes=2)
    >>> network.n_parameters  # alpha 4, beta 1, FC (8+1) * 4, classes (4+1) * 2
    51
    """
    options = dict(locals())
    _check_options(options)
    items = parse_architecture(architecture)
    count_parameters(architecture, image_shape, n_classes, mixing)  # complains before anything large is built
    graph = grid_graph(image_shape, neighbours, diagonal_weight, boundary)
    site = Site(
        graph.n_nodes, "maps", 1, mixing, active, init, standardise, dtype, graph, np.random.default_rng(seed)
    )
    layers = []
    for kind, item in _walk(items, site, n_classes):
        layers += kind.build(item.numbers, site)
    layers.append(Dense.init(site.size, n_classes, site.rng, dtype, init, gain=LAST_GAIN))
    options |= {"architecture": format_architecture(items), "image_shape": tuple(map(int, image_shape))}
    return Network(layers, graph, options)


def _check_options(options: dict) -> None:
    """Complain about what neither the grid nor the layers would complain about in time."""
    check_shape(options["image_shape"])
    whole = {"n_classes": ("A classifier needs at least 2 classes", 2), "seed": ("seed must be a whole number >= 0", 0)}
    for name, (demand, smallest) in whole.items():
        value = options[name]
        if not isinstance(value, (int, np.integer)) or value < smallest:
            raise UsageError(f"{demand}, got {name}={value!r}.")
        options[name] = int(value)
    if str(options["dtype"]) not in ("float32", "float64"):
        raise UsageError(f"dtype must be 'float32' or 'float64', got {options['dtype']!r}.")
    largest = max(options["image_shape"])
    if not 0 <= options["smoothing"] <= largest:
        raise UsageError(f"smoothing must be from 0 to the image's {largest} pixels, got {options['smoothing']!r}.")
