"""Base class of options: dataclass fields with allowed values, help text and old name in their metadata.

`tigra.options` defines the options themselves. This module derives from the fields: checks, JSON, old names that are
still accepted, and suggestions for misspelt names. `tigra_cli.shared.field_options` derives the command-line options.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import math
import re
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from numbers import Real
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from tigra.errors import UsageError

_DEMANDS = {
    "flag": "True or False",
    "text": "a string",
    "shape": "(height, width), two positive integers",
    "image": "(height, width), two positive integers, or (height, width, 3) for colour",
}
_TYPES = {
    "whole": "int",
    "real": "float",
    "flag": "bool",
    "text": "str",
    "shape": "(int, int)",
    "image": "(int, int) or (int, int, 3)",
}
AnyOptions = TypeVar("AnyOptions", bound="Options")
LARGEST_WHOLE = 2**53  # up to here floating-point numbers count every whole number


@dataclass(frozen=True)
class Spec:
    """Specification of an option, stored in the metadata of its field.

    Attributes
    ----------
    help : str
        Help text.
    type : str
        "whole", "real", "choice", "flag", "text", "shape" or "image".
    heading : str
        Group of the option in the help of the command line.
    least, most : float
        Limits of a number.
    above, below : bool
        Whether the lower or upper limit itself is excluded.
    choices : tuple
        Allowed values of a choice.
    unit : str
        Unit of a number.
    layers : tuple of str
        Layer kinds that use the option; empty if every network does. A network must have one of them.
    needs_all : bool
        Whether a network must have all of `layers`.
    formerly : str
        Old name that is still accepted.
    """

    help: str
    type: str
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

        Examples
        --------
        >>> Spec("", "real", least=0, most=1, below=True).demand
        'a number from 0 to below 1'
        """
        if self.type == "choice":
            return f"one of {', '.join(map(str, self.choices))}"
        if self.type in _DEMANDS:
            return _DEMANDS[self.type]
        what = "a whole number" if self.type == "whole" else "a number"
        what += f" of {self.unit}" if self.unit else ""
        if math.isfinite(self.most):
            return f"{what} from {self.least:g} to {'below ' if self.below else ''}{self.most:g}"
        return f"{what} {'above' if self.above else 'of at least'} {self.least:g}"

    def checked(self, name: str, value: Any) -> Any:
        """Check a value and convert it to a plain Python type; raises UsageError."""
        converted = _CONVERT[self.type](value)
        if converted is None or not self._allows(converted):
            raise UsageError(f"{name} must be {self.demand}, got {short(value)}.")
        return converted

    def _allows(self, value: Any) -> bool:
        if self.type == "choice":
            return value in self.choices
        if self.type not in ("whole", "real"):
            return True
        low = value > self.least if self.above else value >= self.least
        high = value < self.most if self.below else value <= self.most
        return bool(low and high and abs(value) <= (LARGEST_WHOLE if self.type == "whole" else sys.float_info.max))


def short(value: Any, most: int = 80) -> str:
    """A value for a message, shortened: files and users may give anything."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more than 4300 digits
        return "a huge number"
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _whole(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else None


def _real(value: Any) -> float | None:
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) else None
    except OverflowError:
        return None


def _shape(value: Any) -> tuple[int, int] | None:
    sizes = [_whole(size) or 0 for size in value] if isinstance(value, (tuple, list, np.ndarray)) else []
    return (sizes[0], sizes[1]) if len(sizes) == 2 and min(sizes) > 0 and max(sizes) <= 2**31 else None


def _image(value: Any) -> tuple[int, ...] | None:
    is_colour = isinstance(value, (tuple, list, np.ndarray)) and len(value) == 3 and _whole(value[2]) == 3
    sides = _shape(value[:2] if is_colour else value)
    return (*sides, 3) if sides and is_colour else sides


_CONVERT: dict[str, Callable] = {
    "whole": _whole,
    "real": _real,
    "flag": lambda value: bool(value) if isinstance(value, (bool, np.bool_)) else None,
    "choice": lambda value: value if isinstance(value, str) else _whole(value),
    "text": lambda value: value if isinstance(value, str) else None,
    "shape": _shape,
    "image": _image,
}


def option(default: Any, help: str, type: str = "", **more: Any) -> Any:
    """Define a field of an options class.

    Parameters
    ----------
    default : object
        Default value; `dataclasses.MISSING` makes the option required.
    help : str
        Help text.
    type : str
        Type as in `Spec`; by default, derived from the default value.
    **more
        Further fields of `Spec`.

    Returns
    -------
    dataclasses.Field
        The field.
    """
    if not type:
        kinds = {bool: "flag", int: "whole", float: "real", str: "text"}
        type = "choice" if "choices" in more else kinds[default.__class__]
    return field(default=default, metadata={"spec": Spec(help, type, **more)})


@dataclass(frozen=True, kw_only=True)
class Options(Mapping):
    """Base class of options, with checks and conversion to and from JSON.

    Instances can be read and unpacked like a dictionary: `build_network(**network.options)`.
    """

    where: ClassVar[str] = "This"  # the function that takes these options, for messages

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__doc__ = _with_parameters(cls)

    def __post_init__(self) -> None:
        for name, spec in self.specs().items():
            object.__setattr__(self, name, spec.checked(name, getattr(self, name)))

    @classmethod
    def specs(cls) -> dict[str, Spec]:
        """Name -> Spec of every option."""
        return {entry.name: entry.metadata["spec"] for entry in dataclasses.fields(cls)}

    @classmethod
    def of(cls: type[AnyOptions], given: Mapping[str, Any]) -> AnyOptions:
        """Create options from keywords; old names give a warning, unknown ones an error."""
        return cls(**cls.resolved(given))

    @classmethod
    def resolved(cls, given: Mapping[str, Any], warn: bool = True) -> dict[str, Any]:
        """Replace old names of keywords; raises UsageError with a suggestion for unknown ones."""
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
        """Read options written by `to_json` of this or an earlier version; missing ones get their defaults."""
        given = cls.resolved(content, warn=False)
        required = [entry.name for entry in dataclasses.fields(cls) if entry.default is dataclasses.MISSING]
        if missing := [name for name in required if name not in given]:
            raise UsageError(f"{cls.where} needs {', '.join(missing)}.")
        return cls(**given)

    def to_json(self) -> dict[str, Any]:
        """All options as a JSON-compatible dictionary."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.items()}

    def with_changes(self: AnyOptions, changes: Mapping[str, Any]) -> AnyOptions:
        """A copy of the options with some values changed."""
        return dataclasses.replace(self, **type(self).resolved(changes))

    def __iter__(self) -> Iterator[str]:
        return iter(self.specs())

    def __len__(self) -> int:
        return len(self.specs())

    def __getitem__(self, name: str) -> Any:
        try:
            (new,) = type(self).resolved({name: None})
        except UsageError as error:
            raise KeyError(str(error)) from error
        return getattr(self, new)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self) | dict(other)


def _with_parameters(cls: type[Options]) -> str:
    """The docstring of an options class, with a numpydoc section that lists all its fields."""
    members: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        members |= vars(base).get("__dataclass_fields__", {})
    members |= vars(cls)  # not yet a dataclass, so its own fields are still here
    lines = ["Parameters", "----------"]
    for name, entry in members.items():
        if isinstance(entry, dataclasses.Field) and "spec" in entry.metadata:
            spec = entry.metadata["spec"]
            kind = _TYPES.get(spec.type) or "{" + ", ".join(map(repr, spec.choices)) + "}"
            kind += "" if entry.default is dataclasses.MISSING else f", default {entry.default!r}"
            lines += [f"{name} : {kind}".replace("'", '"'), textwrap.indent(textwrap.fill(spec.help, 100), "    ")]
    text = inspect.cleandoc(cls.__doc__ or cls.__name__)
    parts = re.split(r"\n\n(?=\w+\n---)", text, maxsplit=1)
    return "\n\n".join([parts[0], "\n".join(lines), *parts[1:]]) + "\n"


def is_same_object(one: Any, other: Any) -> bool:
    """Whether two classes or functions come from the same line of a user's file, which may be imported twice."""
    places = [(getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)) for thing in (one, other)]
    return places[0] == places[1] and not str(places[0][0]).startswith("tigra.") and "<lambda>" not in str(places[0][1])


def unknown_option(where: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for an unknown option, with a suggestion.

    Parameters
    ----------
    where : str
        The function that takes the options.
    name : str
        The unknown option.
    known : iterable of str
        All options.

    Returns
    -------
    UsageError
        The error to raise.

    Examples
    --------
    >>> str(unknown_option("fit", "epoch", ["epochs", "seed"]))
    "fit has no option 'epoch'; did you mean 'epochs'? It has epochs, seed."
    """
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return UsageError(f"{where} has no option {short(name)}{hint} It has {', '.join(known)}.")


def _warn_renamed(old: str, new: str) -> None:
    warn_deprecated(f"{old!r} is called {new!r} now; the old name will be removed in version 0.3.")


def warn_deprecated(text: str) -> None:
    """Give a DeprecationWarning that points at the first line outside the package, so that its author sees it."""
    package, level, frame = str(Path(__file__).parent), 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, DeprecationWarning, stacklevel=level)


def renamed(**new_names: str) -> Callable:
    """Decorator that accepts old keyword names of a function, with a deprecation warning.

    Parameters
    ----------
    **new_names : str
        New name by old name.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
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
                    if new in keywords:
                        raise UsageError(f"Got {new} twice, by its old and its new name; leave one out.")
                    _warn_renamed(old, new)
                    keywords[new] = keywords.pop(old)
            return function(*args, **keywords)

        return with_old_names

    return decorate
