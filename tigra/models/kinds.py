"""Layer kinds: what the names in an architecture text stand for. `layer_kind` registers a kind.

TIGraNet's kinds are registered in `tigra.models.tigranet`, those of the baselines in `tigra.baselines.kinds`. Users
can register their own anywhere (docs/extending.md). The data that flows between layers is named, too: "maps" on the
graph, "features", or another flow added by `register_flow`.
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
from tigra.models.costs import Cost
from tigra.option_fields import is_same_object
from tigra.options import BuildOptions

Number = int | float
Shapes = dict[str, tuple[int, ...]]


class Argument(NamedTuple):
    """One number in the brackets of a layer; made by `whole` and `real`.

    Attributes
    ----------
    name : str
        What the number means.
    least, most : float
        Smallest and largest allowed value.
    is_real : bool
        Whether the number may have a fractional part.
    """

    name: str
    least: float
    most: float
    is_real: bool

    @property
    def demand(self) -> str:
        """The allowed values in words.

        Examples
        --------
        >>> real("slope", 0, 1).demand, whole("filters", 1).demand
        ('a number from 0 to 1', 'a whole number of at least 1')
        """
        what = "a number" if self.is_real else "a whole number"
        if math.isfinite(self.most):
            return f"{what} from {self.least:g} to {self.most:g}" if math.isfinite(self.least) else f"{what}"
        return f"{what} of at least {self.least:g}" if math.isfinite(self.least) else what


def whole(name: str, least: int = 0) -> Argument:
    """Declare an integer argument of a layer kind.

    Parameters
    ----------
    name : str
        What the number means, for error messages.
    least : int
        Smallest allowed value.

    Returns
    -------
    Argument
        An entry of `LayerKind.arguments`.
    """
    return Argument(name, least, math.inf, is_real=False)


def real(name: str, least: float = -math.inf, most: float = math.inf) -> Argument:
    """Declare a real-valued argument of a layer kind.

    Parameters
    ----------
    name : str
        What the number means, for error messages.
    least, most : float
        Smallest and largest allowed value.

    Returns
    -------
    Argument
        An entry of `LayerKind.arguments`.
    """
    return Argument(name, least, most, is_real=True)


class Item(NamedTuple):
    """One layer of a parsed architecture.

    Attributes
    ----------
    name : str
        Name of the layer kind.
    numbers : tuple
        Numbers in the brackets.
    position : int
        Position in the text, counted from 1.
    """

    name: str
    numbers: tuple[Number, ...]
    position: int

    def __str__(self) -> str:
        return f"{self.name}[{', '.join(map(repr, self.numbers))}]"


@dataclass
class Site:
    """The place of a layer in a network: its input, and the options of the whole network.

    Attributes
    ----------
    options : BuildOptions
        Options of the whole network.
    shape : (int, int)
        Height and width of a map in pixels.
    n_nodes : int
        Number of nodes of the graph.
    dilation : int
        Distance of neighbours on the grid.
    gives : str
        Output of the layer before: "image" (at the start), "maps" (`size` maps on the graph), "features" (`size`
        numbers), or another flow (`register_flow`).
    size : int
        Number of maps or features.
    graph : Graph or None
        The graph of the layer's input. While the network is only planned, the user's custom graph or None.
    rng : Generator or None
        For the initial parameters; None while the network is only planned.
    is_loading : bool
        Whether a model file will overwrite all parameters, so that initial values that take long may be left out.
    """

    options: BuildOptions
    shape: tuple[int, int]
    n_nodes: int
    dilation: int = 1
    gives: str = "image"
    size: int = 1
    graph: Graph | None = None
    rng: np.random.Generator | None = None
    is_loading: bool = False

    @property
    def dtype(self) -> str:
        """float32 or float64."""
        return self.options.dtype

    def places(self, gives: str, shape: tuple[int, int]) -> int:
        """How many numbers a map or feature has: the nodes of the graph, the pixels of a plane, or 1."""
        return {"maps": self.n_nodes, "image": self.n_nodes, "features": 1, "scores": 1}.get(gives, math.prod(shape))


class LayerKind:
    """Base class of layer kinds: what the parser and the builder need to know.

    Subclasses set the attributes, implement `build`, and override the other methods where needed.

    Attributes
    ----------
    arguments : tuple of Argument
        The numbers in the brackets, made by `whole` and `real`.
    takes, gives : str
        Input and output: "maps", "features", or another flow. A kind that takes maps can also come first and get
        the image.
    also : tuple of str
        Further inputs that are accepted.
    uses : tuple of str
        Options that the kind uses, in addition to those whose field names the kind (`tigra.options`).
    example : str
        A small architecture with this layer for images of 4x5 pixels. If given, `tigra gradcheck` checks it.
    """

    arguments: tuple[Argument, ...] = ()
    takes = "features"
    gives = "features"
    also: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    example = ""

    def check(self, item: Item, site: Site) -> None:
        """Raise ArchitectureError if the layer is not possible at this site."""

    def expanded(self, item: Item, following: Item | None) -> list[Item]:
        """The item and any implicit items after it; `following` is the next written item."""
        return [item]

    def size(self, numbers: tuple, site: Site) -> int:
        """Number of output maps or features."""
        return site.size

    def shape(self, numbers: tuple, site: Site) -> tuple[int, int]:
        """Height and width of the output maps."""
        return site.shape

    def dilation(self, numbers: tuple, site: Site) -> int:
        """Distance of neighbours on the grid of the output maps."""
        return site.dilation

    def shapes(self, numbers: tuple, site: Site) -> Shapes | None:
        """Name -> shape of the parameters that `build` will make, or None if not known in advance.

        If known, a network that is too large is rejected before anything is built.
        """
        return None

    def cost(self, numbers: tuple, site: Site) -> Cost:
        """Estimate for one image; by default input, output twice, and one operation per parameter and place."""
        places = site.places(self.gives, self.shape(numbers, site))
        held = site.size * site.places(site.gives, site.shape) + 2 * self.size(numbers, site) * places
        n_parameters = sum(math.prod(shape) for shape in (self.shapes(numbers, site) or {}).values())
        return Cost(held, held + n_parameters * places)

    def build(self, numbers: tuple, site: Site) -> list[Layer]:
        """Build the layers, with initial parameters drawn from site.rng."""
        raise NotImplementedError


class PlainKind(LayerKind):
    """A kind without parameters."""

    def shapes(self, numbers: tuple, site: Site) -> Shapes:
        """No parameters."""
        return {}


# --- the registry ---------------------------------------------------------------------------------------


class Flow(NamedTuple):
    """A type of data between layers, and the implicit layers that go with it.

    Attributes
    ----------
    hint : str
        Which layers fit, for error messages.
    begin : LayerKind or None
        Kind that converts the image, if a network may begin with this flow.
    begin_name : str
        Name of `begin` in the `layers` of an option.
    to_features : LayerKind or None
        Kind that converts the flow to features, before FC layers.
    last : LayerKind or None
        Kind that computes the class scores.
    last_name : str
        Name of `last` in the `layers` of an option.
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
    """Class decorator that registers a layer kind.

    A registered kind can be used in architectures, training, gradient checks and model files.

    Parameters
    ----------
    name : str
        Name in the notation, ASCII letters only.

    Returns
    -------
    callable
        Decorator for a subclass of `LayerKind`.

    Raises
    ------
    UsageError
        If the name is not made of letters, or is taken by another kind.
    """
    if not (isinstance(name, str) and name.isascii() and name.isalpha()):
        raise UsageError(f'The name of a layer is made of plain letters, got {name!r}; write @layer_kind("NAME").')

    def register(kind: type[LayerKind]) -> type[LayerKind]:
        if not (isinstance(kind, type) and issubclass(kind, LayerKind)):
            raise UsageError(f"@layer_kind is for subclasses of LayerKind, got {kind!r}.")
        if not (isinstance(kind.arguments, tuple) and all(isinstance(entry, Argument) for entry in kind.arguments)):
            raise UsageError(
                f"{kind.__name__}.arguments must be a tuple of whole(...) and real(...); one of them alone needs a"
                " comma, as in (whole('n'),)."
            )
        known = LAYER_KINDS.get(name)
        if known is not None and not is_same_object(type(known), kind):
            raise UsageError(f"There is a layer {name} already, {type(known).__qualname__}; choose another name.")
        LAYER_KINDS[name] = kind()
        return kind

    return register


def register_flow(name: str, flow: Flow) -> None:
    """Register a type of data that flows between layers.

    Parameters
    ----------
    name : str
        Name for `LayerKind.takes` and `LayerKind.gives`.
    flow : Flow
        The implicit layers that go with it.
    """
    FLOWS[name] = flow


def misplaced(item: Item, takes: str, gives: str) -> ArchitectureError:
    """The error for a layer that does not accept its input."""
    hint = FLOWS[gives if gives in FLOWS and FLOWS[gives].hint else "maps"].hint
    gets = "an image" if gives == "image" else gives
    return ArchitectureError(f"{item} at position {item.position} takes {takes}, but gets {gets}; {hint}.")
