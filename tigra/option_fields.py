"""What an option is: a field of a frozen dataclass with its allowed values, help text and old name in the metadata.

`tigra.options` holds the options themselves. Here is what is derived from their fields: checks, JSON, old names that
are still accepted, and the nearest right name for a wrong one. `tigra_cli.shared.field_options` makes command-line
options.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np

from tigra.errors import UsageError

AnyOptions = TypeVar("AnyOptions", bound="Options")


@dataclass(frozen=True)
class Spec:
    """What a field's metadata says of an option: its help text and the values it may have.

    least, most : limits of a number; `above` and `below` exclude the limit itself
    layers : names of the layer kinds that have a use for it, one of which a network must have, or, with `needs_all`,
        every one; empty if every network has a use for it
    formerly : an older name, still accepted
    """

    help: str
    type: str  # "whole", "real", "choice", "flag", "text" or "shape"
    heading: str = ""
    least: float = -math.inf
    most: float = math.inf
    above: bool = False
    below: bool = False
    choices: tuple = ()
    unit: str = ""
    layers: tuple[str, ...] = ()
    needs_all: bool = False
    formerly: str = ""

    @property
    def demand(self) -> str:
        """The allowed values in words.

        >>> Spec("", "real", least=0, most=1, below=True).demand
        'a number from 0 to below 1'
        """
        if self.type == "choice":
            return f"one of {', '.join(map(str, self.choices))}"
        if self.type in ("flag", "text", "shape"):
            return {"flag": "True or False", "text": "a text", "shape": "(height, width), two positive integers"}[
                self.type
            ]
        what = "a whole number" if self.type == "whole" else "a number"
        what += f" of {self.unit}" if self.unit else ""
        if math.isfinite(self.most):
            return f"{what} from {self.least:g} to {'below ' if self.below else ''}{self.most:g}"
        return f"{what} {'above' if self.above else 'of at least'} {self.least:g}"

    def checked(self, name: str, value: Any) -> Any:
        """The value as plain Python, which JSON knows, or UsageError."""
        converted = _CONVERT[self.type](value)
        if converted is None or not self._allows(converted):
            raise UsageError(f"{name} must be {self.demand}, got {_short(value)}.")
        return converted

    def _allows(self, value: Any) -> bool:
        if self.type == "choice":
            return value in self.choices
        if self.type not in ("whole", "real"):
            return True
        low = value > self.least if self.above else value >= self.least
        high = value < self.most if self.below else value <= self.most
        return bool(low and high and math.isfinite(value))


def _short(value: Any) -> str:
    """What was given, for a message; a file from outside may give anything."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def _real(value: Any) -> float | None:
    return float(value) if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) else None


def _shape(value: Any) -> tuple[int, int] | None:
    sizes = [_whole(size) or 0 for size in value] if isinstance(value, (tuple, list, np.ndarray)) else []
    return (sizes[0], sizes[1]) if len(sizes) == 2 and min(sizes) > 0 else None


_CONVERT: dict[str, Callable] = {
    "whole": _whole,
    "real": _real,
    "flag": lambda value: bool(value) if isinstance(value, (bool, np.bool_)) else None,
    "choice": lambda value: value if isinstance(value, str) else _whole(value),
    "text": lambda value: value if isinstance(value, str) else None,
    "shape": _shape,
}


def option(default: Any, help: str, type: str = "", **more: Any) -> Any:
    """A field of an options class; the type follows from the default, unless it is given. See `Spec` for the rest.

    A default of `dataclasses.MISSING` makes the option one that must be given.
    """
    if not type:
        kinds = {bool: "flag", int: "whole", float: "real"}
        type = "choice" if "choices" in more else kinds[default.__class__]
    return field(default=default, metadata={"spec": Spec(help, type, **more)})


@dataclass(frozen=True, kw_only=True)
class Options:
    """What all options classes do: check themselves, and go to JSON and back.

    They can be unpacked like a dictionary: `build_network(**network.options)`.
    """

    where: ClassVar[str] = "This"  # what takes these options, for messages

    def __post_init__(self) -> None:
        for name, spec in self.specs().items():
            object.__setattr__(self, name, spec.checked(name, getattr(self, name)))

    @classmethod
    def specs(cls) -> dict[str, Spec]:
        """Name -> Spec of every option."""
        return {entry.name: entry.metadata["spec"] for entry in dataclasses.fields(cls)}

    @classmethod
    def of(cls: type[AnyOptions], given: Mapping[str, Any]) -> AnyOptions:
        """The options from keywords: old names are accepted with a warning, unknown ones refused."""
        return cls(**cls.resolved(given))

    @classmethod
    def resolved(cls, given: Mapping[str, Any], warn: bool = True) -> dict[str, Any]:
        """The keywords with old names replaced; UsageError for one that is not known, with the nearest that is."""
        specs = cls.specs()
        renamed = {spec.formerly: name for name, spec in specs.items() if spec.formerly}
        resolved = {}
        for name, value in given.items():
            if name in renamed and name not in specs:
                if warn:
                    _warn_renamed(name, renamed[name])
                name = renamed[name]
            if name not in specs:
                raise unknown_option(cls.where, name, specs)
            if name in resolved:
                raise UsageError(f"{cls.where} got {name} twice, by its old and its new name; leave one out.")
            resolved[name] = value
        return resolved

    @classmethod
    def from_json(cls: type[AnyOptions], content: Mapping[str, Any]) -> AnyOptions:
        """The options that `to_json` wrote, by this version or an older one; what is missing has its default."""
        given = cls.resolved(content, warn=False)
        required = [entry.name for entry in dataclasses.fields(cls) if entry.default is dataclasses.MISSING]
        if missing := [name for name in required if name not in given]:
            raise UsageError(f"{cls.where} needs {', '.join(missing)}.")
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """All options by name, as JSON knows them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.items()}

    def with_changes(self: AnyOptions, changes: Mapping[str, Any]) -> AnyOptions:
        """The same options but for the changes."""
        return dataclasses.replace(self, **type(self).resolved(changes))

    def keys(self) -> Iterable[str]:
        """The names, so that options can be unpacked with `**`."""
        return self.specs().keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs())

    def items(self) -> list[tuple[str, Any]]:
        """(name, value) of every option."""
        return [(name, getattr(self, name)) for name in self.specs()]

    def __getitem__(self, name: str) -> Any:
        (new,) = type(self).resolved({name: None})
        return getattr(self, new)


def unknown_option(where: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for a keyword that nobody knows, with the nearest right one.

    >>> str(unknown_option("fit", "epoch", ["epochs", "seed"]))
    "fit has no option 'epoch'; did you mean 'epochs'? It has epochs, seed."
    """
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return UsageError(f"{where} has no option {_short(name)}{hint} It has {', '.join(known)}.")


def _warn_renamed(old: str, new: str) -> None:
    warnings.warn(
        f"{old!r} is called {new!r} now; the old name goes with version 0.3.", DeprecationWarning, stacklevel=4
    )


def renamed(**new_names: str) -> Callable:
    """Decorator: accept old keyword names of a function, with a warning.

    >>> @renamed(ground="background")
    ... def show(background):
    ...     return background
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     show(ground="black"), str(caught[0].message).split(";")[0]
    ('black', "'ground' is called 'background' now")
    """

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def with_old_names(*args: Any, **keywords: Any) -> Any:
            for old, new in new_names.items():
                if old in keywords:
                    _warn_renamed(old, new)
                    keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return with_old_names

    return decorate
