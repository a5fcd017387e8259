"""Kinds of layers: what a name in an architecture text stands for. One registry, with one door: `layer_kind`.

TIGraNet's kinds are registered in `tigra.models.tigranet`, those of other networks in `tigra.baselines.kinds`, a
user's own anywhere (docs/extending.md). What flows between layers has a name, too: "maps" on the graph, "features", or
another that `register_flow` makes known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tigra.errors import ArchitectureError, UsageError
from tigra.graph import Graph
from tigra.layers import Layer
from tigra.options import BuildOptions

Number = int | float
Shapes = dict[str, tuple[int, ...]]


class Argument(NamedTuple):
    """One number in the brackets of a layer: its name and limits; see `whole` and `real`."""

    name: str
    least: float
    most: float
    is_real: bool

    @property
    def demand(self) -> str:
        """The allowed values in words.

        >>> real("slope", 0, 1).demand, whole("filters", 1).demand
        ('a number from 0 to 1', 'a whole number of at least 1')
        """
        what = "a number" if self.is_real else "a whole number"
        if math.isfinite(self.most):
            return f"{what} from {self.least:g} to {self.most:g}" if math.isfinite(self.least) else f"{what}"
        return f"{what} of at least {self.least:g}" if math.isfinite(self.least) else what


def whole(name: str, least: int = 0) -> Argument:
    """A whole number in a layer's brackets."""
    return Argument(name, least, math.inf, is_real=False)


def real(name: str, least: float = -math.inf, most: float = math.inf) -> Argument:
    """A real number in a layer's brackets."""
    return Argument(name, least, most, is_real=True)


class Item(NamedTuple):
    """One layer as written: its name, its numbers, and where it stands in the text (from 1)."""

    name: str
    numbers: tuple[Number, ...]
    position: int

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(repr, self.numbers))}]"


@dataclass
class Site:
    """Where a layer is to be built: what arrives there, and the options of the whole network.

    gives : what the layer below gives: "image" (at the start), "maps" (`size` maps on the graph), "features" (`size`
        numbers), or another flow (`register_flow`)
    shape : (height, width) of the pixels of a map
    n_nodes : of the graph
    graph, rng : None while the network is only planned
    """

    options: BuildOptions
    shape: tuple[int, int]
    n_nodes: int
    gives: str = "image"
    size: int = 1
    graph: Graph | None = None
    rng: np.random.Generator | None = None

    @property
    def dtype(self) -> str:
        """float32 or float64."""
        return self.options.dtype


class LayerKind:
    """What the parser and the builder must know of a kind of layer.

    arguments : the numbers in its brackets, made by `whole` and `real`
    takes, gives : "maps", "features", or another flow; maps can also begin with the image
    also : what else it can take
    uses : names of options that it has a use for, beyond those whose field names it (`tigra.options`)
    example : a small architecture with the layer in it, for images of 4x5 pixels; `tigra gradcheck` then checks it
    """

    arguments: tuple[Argument, ...] = ()
    takes = "features"
    gives = "features"
    also: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    example = ""

    def check(self, item: Item, site: Site) -> None:
        """Raise ArchitectureError if the item cannot stand at this site."""

    def expanded(self, item: Item, following: Item | None) -> list[Item]:
        """The item, and what goes without saying behind it, given the item that follows."""
        return [item]

    def size(self, numbers: tuple, site: Site) -> int:
        """How many maps or features come out."""
        return site.size

    def shape(self, numbers: tuple, site: Site) -> tuple[int, int]:
        """How many rows and columns of pixels come out."""
        return site.shape

    def shapes(self, numbers: tuple, site: Site) -> Shapes | None:
        """Name -> shape of the parameters that `build` will make; None: they are counted when they are built.

        With shapes, a network that is too large is refused before anything is built.
        """
        return None

    def build(self, numbers: tuple, site: Site) -> list[Layer]:
        """The layers, with start values from site.rng."""
        raise NotImplementedError


class PlainKind(LayerKind):
    """A kind without parameters."""

    def shapes(self, numbers: tuple, site: Site) -> Shapes:
        """None are learned."""
        return {}


# --- the registry ---------------------------------------------------------------------------------------


class Flow(NamedTuple):
    """What can flow between layers, and what the builder adds by itself.

    hint : which layers go with it, for messages
    begin : kind that makes it of the image, where a network may begin with it
    to_features : kind that makes features of it, before FC layers
    last, last_name : kind that makes class scores of it, and its name in the options' `layers`
    """

    hint: str
    begin: LayerKind | None = None
    begin_name: str = ""
    to_features: LayerKind | None = None
    last: LayerKind | None = None
    last_name: str = ""


LAYER_KINDS: dict[str, LayerKind] = {}
FLOWS: dict[str, Flow] = {}


def layer_kind(name: str) -> Callable[[type[LayerKind]], type[LayerKind]]:
    """Class decorator: make a LayerKind known under `name`, to texts, training, gradient checks and model files."""
    if not (name.isascii() and name.isalpha()):
        raise UsageError(f"The name of a layer is made of plain letters, got {name!r}.")

    def register(kind: type[LayerKind]) -> type[LayerKind]:
        known = LAYER_KINDS.get(name)
        if known is not None and type(known).__qualname__ != kind.__qualname__:
            raise UsageError(f"There is a layer {name} already, {type(known).__qualname__}; choose another name.")
        LAYER_KINDS[name] = kind()
        return kind

    return register


def register_flow(name: str, flow: Flow) -> None:
    """Make known what can flow between layers."""
    FLOWS[name] = flow


def misplaced(item: Item, takes: str, gives: str) -> ArchitectureError:
    """The error for a layer that cannot take what arrives."""
    hint = FLOWS[gives if gives in FLOWS and FLOWS[gives].hint else "maps"].hint
    return ArchitectureError(
        f"{item} at position {item.position} takes {takes}, but what stands before it gives {gives}; {hint}."
    )
