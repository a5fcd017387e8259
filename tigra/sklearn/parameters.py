"""Constructor parameters of the estimators: tigra's options, and those that scikit-learn expects.

scikit-learn reads the parameters of an estimator from the signature of its constructor. Here the signature is made
from the fields of `tigra.options`, so that a new option becomes a parameter by itself.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from tigra.errors import UsageError
from tigra.options import FitOptions, NetworkOptions


class Parameter(NamedTuple):
    """A constructor parameter: its default, its type in words, and its help text."""

    default: Any
    type: str
    help: str


OWN = "seed", "class_weights"  # scikit-learn has random_state and class_weight
OPTIONS = {  # tigra's options; None takes the value of the recipe
    name: spec for name, spec in {**NetworkOptions.specs(), **FitOptions.specs()}.items() if name not in OWN
}
IMAGE_SHAPE = Parameter(
    None,
    "(int, int) or (int, int, 3), optional",
    "Height and width of the images, for rows of pixels. By default images are square; other rows are taken as images"
    " with one row, with a warning.",
)
N_JOBS = Parameter(None, "int, optional", "Worker threads; -1 takes all cores. The result does not depend on it.")
PARAMETERS = {
    "recipe": Parameter("best", "str", "Recipe whose options are used where the parameters below are None."),
    "dataset": Parameter("folder", "str", "Data set that the recipe is for; `folder` suits any images."),
    "image_shape": IMAGE_SHAPE,
    "black": Parameter(
        None,
        "float, optional",
        "Pixel value that becomes 0, which is also what lies outside of the image. By default 0, or the smallest value"
        " of the training images if that is negative.",
    ),
    "white": Parameter(
        None, "float, optional", "Pixel value that becomes 1, by default the largest of the training images."
    ),
    "validation_fraction": Parameter(
        0.15,
        "float",
        "Fraction of the training images of each class that choose the best epoch and are not trained on. With 0, the"
        " training images choose it.",
    ),
    **{name: Parameter(None, f"{spec.demand}, optional", spec.help) for name, spec in OPTIONS.items()},
    "class_weight": Parameter(
        None,
        'dict, "balanced" or None',
        "Weights of the classes in the loss; `balanced` gives all classes the same total weight.",
    ),
    "seed": Parameter(None, "int, optional", "Seed of all random numbers, by default 0."),
    "random_state": Parameter(
        None,
        "int or RandomState, optional",
        "The seed, by the name of scikit-learn; a RandomState draws one. Give one of the two.",
    ),
    "warm_start": Parameter(False, "bool", "Whether `fit` goes on from the parameters of the last one."),
    "n_jobs": N_JOBS,
    "verbose": Parameter(0, "int", "Whether to print a line after each epoch."),
}


def constructor(parameters: Mapping[str, Parameter]) -> Callable[..., None]:
    """Make the `__init__` of an estimator, which stores its keyword parameters and does nothing else.

    Parameters
    ----------
    parameters : mapping
        Parameter by name.

    Returns
    -------
    callable
        The method, whose signature has all parameters by name.

    Examples
    --------
    >>> inspect.signature(constructor({"order": Parameter(2, "int", "")}))
    <Signature (self, *, order=2)>
    """
    make, by_name = inspect.Parameter, inspect.Parameter.KEYWORD_ONLY
    keywords = [make(name, by_name, default=parameter.default) for name, parameter in parameters.items()]
    signature = inspect.Signature([make("self", make.POSITIONAL_OR_KEYWORD), *keywords])

    def __init__(self, **given):
        bound = signature.bind(self, **given)  # TypeError for an unknown name
        bound.apply_defaults()
        for name in parameters:
            setattr(self, name, bound.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def documented(parameters: Mapping[str, Parameter]) -> Callable[[type], type]:
    """Make a class decorator that adds the parameters to a docstring, after its first paragraph."""

    def decorate(cls: type) -> type:
        lines = ["Parameters", "----------"]
        for name, p in parameters.items():
            default = "" if p.default is None else f", default {p.default!r}".replace("'", '"')
            lines += [f"{name} : {p.type}{default}", textwrap.indent(textwrap.fill(p.help, 100), "    ")]
        first, rest = inspect.cleandoc(cls.__doc__ or "").split("\n\n", 1)
        cls.__doc__ = "\n\n".join([first, "\n".join(lines), rest]) + "\n"
        return cls

    return decorate


def real(name: str, value) -> float:
    """Return a parameter as float; raise UsageError if it is no finite number."""
    if not isinstance(value, (int, float, np.number)) or not np.isfinite(value):
        raise UsageError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def whole(name: str, value, least: int) -> int:
    """Return a parameter as int; raise UsageError if it is no whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{name} must be a whole number of at least {least}, got {value!r}.")
    return int(value)


def seed_of(seed, random_state) -> int:
    """Return the seed that the two parameters give.

    Examples
    --------
    >>> seed_of(None, None), seed_of(3, None), seed_of(None, 3)
    (0, 3, 3)
    """
    if seed is not None and random_state is not None:
        raise UsageError(f"seed and random_state mean the same, got {seed!r} and {random_state!r}; give one of them.")
    if random_state is None:
        return 0 if seed is None else whole("seed", seed, 0)
    if isinstance(random_state, (int, np.integer)):
        return whole("random_state", random_state, 0)
    return int(check_random_state(random_state).randint(2**31 - 1))
