"""Parser and formatter for the architecture notation of the paper's Table 1.

    SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]

Each layer has a name and numbers in brackets; layers are joined by "-". Spaces are optional. The parser accepts the
names in the registry, see `tigra.models.kinds.layer_kind`.
"""

from __future__ import annotations

import math
import re
from typing import NoReturn

from tigra.errors import ArchitectureError, UnknownLayerError
from tigra.models.kinds import LAYER_KINDS, Argument, Item, Number
from tigra.option_fields import short

LARGEST_TEXT = 10_000  # characters
MOST_LAYERS = 100  # the paper's networks have 8
REAL = r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?"


def parse_architecture(text: str) -> list[Item]:
    """Parse an architecture text.

    Parameters
    ----------
    text : str
        Layers in the paper's notation; spaces are optional.

    Returns
    -------
    list of Item
        Name, numbers and position of each layer.

    Raises
    ------
    ArchitectureError
        If the text does not parse; the message names the position.

    Examples
    --------
    >>> import tigra.models  # which registers TIGraNet's kinds of layers
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
        if len(items) > MOST_LAYERS:
            raise ArchitectureError(
                f"Architecture {short(text)} has more than {MOST_LAYERS} layers; use at most {MOST_LAYERS}."
            )
    return items


def format_architecture(items: list[Item]) -> str:
    """Format parsed layers as text, spaced as in the paper.

    Parameters
    ----------
    items : list of Item
        Layers, as returned by `parse_architecture`.

    Returns
    -------
    str
        The architecture text.

    Examples
    --------
    >>> import tigra.models
    >>> format_architecture(parse_architecture("S[10]-FC[ 50 ]"))
    'S[10]-FC[50]'
    """
    return "-".join(map(str, items))


class _Reader:
    """Reads the text from left to right and keeps track of the position."""

    def __init__(self, text: str):
        if not isinstance(text, str):
            raise ArchitectureError(f"An architecture is a string such as 'S[10]-FC[50]', got {text!r}.")
        if len(text) > LARGEST_TEXT:
            raise ArchitectureError(
                f"An architecture has at most {LARGEST_TEXT:,} characters, got {len(text):,}: {text[:40]!r}...;"
                " use fewer layers."
            )
        self.text = text
        self.place = 0

    def peek(self) -> str:
        """The next character that is no space, or "" at the end."""
        while self.place < len(self.text) and self.text[self.place].isspace():
            self.place += 1
        return self.text[self.place : self.place + 1]

    def fail(self, expected: str) -> NoReturn:
        """Raise an error about the current position."""
        got = repr(self.peek()) if self.peek() else "the end"
        raise ArchitectureError(
            f"Architecture {short(self.text, 300)}, position {self.place + 1}: expected {expected}, got {got}."
        )

    def take(self, symbol: str, expected: str) -> None:
        """Step over one character, which must be `symbol`."""
        if self.peek() != symbol:
            self.fail(expected)
        self.place += 1

    def match(self, pattern: str, expected: str) -> str:
        """Return what the regular expression matches, and step over it."""
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
            raise UnknownLayerError(
                f"Architecture {short(self.text, 300)}, position {start + 1}: expected the name of a layer ({known}),"
                f" got {short(name)}.",
                name,
            )
        self.take("[", f"'[' after {name}")
        numbers: list[Number] = []
        for argument in LAYER_KINDS[name].arguments:
            if numbers:
                self.take(",", f"',' and {name}'s {argument.name}")
            numbers.append(self.number(name, argument))
        self.take("]", "']'")
        return Item(name, tuple(numbers), start + 1)

    def number(self, name: str, argument: Argument) -> Number:
        """Read one number of layer `name`."""
        expected = f"{argument.demand} ({name}'s {argument.name})"
        self.peek()
        start = self.place
        if argument.is_real:
            value: Number = float(
                self.match(r"[+-]?([0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?", expected)
            )
        else:
            value = int(self.match("[0-9]{1,9}", expected))
        if not (argument.least <= value <= argument.most and math.isfinite(value)):
            self.place = start
            self.fail(expected)
        if self.peek().isdigit():
            self.fail("fewer digits")
        return value
