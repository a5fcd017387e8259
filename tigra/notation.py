"""The notation of the paper's Table 1 for architectures: reading it, writing it, and what it can name.

    SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]

A name and its numbers for each layer, joined by "-"; spaces are optional. Which names there are
is not decided here: `layer_kind` registers a kind of layer, and the parser goes by that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tigra.errors import ArchitectureError
from tigra.graph import Graph
from tigra.layers import Layer


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

    gives : what the layer below gives: "image" (at the start), "maps" (size maps on the graph), "planes" (size
        maps of `shape` pixels), "harmonics" (complex planes of two orders) or "features" (size numbers)
    """

    shape: tuple[int, int]
    gives: str = "image"
    size: int = 1
    mixing: str = "vector"
    active: str = "map"
    init: str = "default"
    standardise: bool = True
    outside: str = "zeros"
    floor: float = 0.0
    log: float = 0.0
    diffusion: int = 0
    dtype: str = "float32"
    graph: Graph | None = None
    rng: np.random.Generator | None = None

    @property
    def n_nodes(self) -> int:
        """How many pixels a map has."""
        return self.shape[0] * self.shape[1]


class LayerKind:
    """What the parser and the builder must know of a kind of layer; see the classes below.

    arguments : the names of its numbers; smallest : the least value of each
    takes, gives : "maps", "planes", "harmonics" or "features"; all but features can also begin with the image
    also : what else it can take
    """

    arguments: tuple[str, ...] = ()
    smallest: tuple[int, ...] = ()
    takes = "features"
    gives = "features"
    also: tuple[str, ...] = ()

    def check(self, item: Item, site: Site) -> None:
        """Raise ArchitectureError if the item cannot stand at this site."""

    def size(self, numbers, site: Site) -> int:
        """How many maps or features come out."""
        return site.size

    def shape(self, numbers, site: Site) -> tuple[int, int]:
        """How many rows and columns of pixels come out."""
        return site.shape

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


def parse_architecture(text: str) -> list[Item]:
    """The items of an architecture text; spaces are optional, errors name the position.

    >>> import tigra.architecture  # which registers TIGraNet's kinds of layers
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

    >>> import tigra.architecture
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
        """The next character that is no space, or "" at the end."""
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1
        return self.text[self.place : self.place + 1]

    def fail(self, expected: str):
        """Complain about what stands here."""
        got = repr(self.peek()) if self.peek() else "the end"
        raise ArchitectureError(
            f"Architecture {self.text!r}, position {self.place + 1}: expected {expected}, got {got}."
        )

    def take(self, symbol: str, expected: str) -> None:
        """Step over one character, which must be `symbol`."""
        if self.peek() != symbol:
            self.fail(expected)
        self.place += 1

    def match(self, pattern: str, expected: str) -> str:
        """Step over what the regular expression matches, and return it."""
        self.peek()
        found = re.compile(pattern).match(self.text, self.place)
        if found is None:
            self.fail(expected)
        self.place = found.end()
        return found.group()

    def item(self) -> Item:
        """Read one layer, such as SC[3, 3]."""
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
        """Read one number of layer `name`."""
        expected = f"a whole number of at least {smallest} ({name}'s {argument})"
        self.peek()
        start = self.place
        value = int(self.match("[0-9]{1,9}", expected))
        if value < smallest:
            self.place = start
            self.fail(expected)
        if self.peek().isdigit():
            self.fail("at most nine digits")
        return value
