"""Gradient checks: comparison of every backward with central differences, in float64.

Layers are listed in LAYER_CASES (`tigra.gradcheck.cases`); a test fails if a public layer is missing. The upstream
gradient is random, because a gradient of ones would hide swapped filters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tigra.errors import ShapeError, TigraError, UsageError
from tigra.gradcheck.cases import LAYER_CASES, NETWORK_CASES, SECTIONS
from tigra.gradcheck.inputs import MARGIN
from tigra.graph import GraphSignal
from tigra.layers import Layer
from tigra.layers.base import in_place_advice
from tigra.models import build_network
from tigra.models.kinds import LAYER_KINDS
from tigra.models.loss import negative_log_likelihood
from tigra.option_fields import short
from tigra.seeding import generator

STEP = 1e-6
MOST_DRAWS = 1000  # of inputs, to find one away from kinks
LAYER_TOLERANCE, NETWORK_TOLERANCE = 1e-7, 1e-6
assert MARGIN >= 1000 * STEP


class Check(NamedTuple):
    """Result of a gradient check for one array.

    Attributes
    ----------
    case : str
        Name of the case.
    what : str
        The array: "input", or the name of a parameter.
    size : int
        Number of entries.
    error : float
        Relative error of the gradient.
    tolerance : float
        Largest error that passes.
    where : str
        The function that computes the gradient, its file, and the section of the derivations.
    """

    case: str
    what: str
    size: int
    error: float
    tolerance: float = LAYER_TOLERANCE
    where: str = ""

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance; False for NaN."""
        return self.error < self.tolerance


def numerical_gradient(energy: Callable[[], float], array: np.ndarray, step: float = STEP) -> np.ndarray:
    """Gradient by central differences, (E(+step) - E(-step)) / (2 step), entry by entry.

    Parameters
    ----------
    energy : callable
        Returns E, as a function of the current content of `array`.
    array : array
        Changed in place and restored.
    step : float
        Step of the differences.

    Returns
    -------
    array
        dE/darray.

    Examples
    --------
    >>> x = np.array([3.0])
    >>> numerical_gradient(lambda: float(x[0] ** 2), x).round(6)
    array([6.])
    """
    gradient = np.empty_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + step
        above = energy()
        array[place] = kept - step
        below = energy()
        array[place] = kept
        gradient[place] = (above - below) / (2 * step)
    return gradient


def relative_error(analytic: np.ndarray, numeric: np.ndarray) -> float:
    """Largest difference of two gradients, divided by their largest entry.

    Parameters
    ----------
    analytic, numeric : array
        Gradients to compare.

    Returns
    -------
    float
        The error; infinite if the shapes differ or `analytic` is not finite.

    Examples
    --------
    >>> round(float(relative_error(np.array([1.0, 100.0]), np.array([1.0, 101.0]))), 4)
    0.0099
    """
    if analytic.shape != numeric.shape or not np.isfinite(analytic).all():
        return np.inf
    scale = max(np.abs(analytic).max(), np.abs(numeric).max())
    return np.abs(analytic - numeric).max() / scale if scale > 0 else 0.0


def place_of(function: Callable, name: str) -> str:
    """Where a gradient is computed: function, file, and section of the derivations.

    Parameters
    ----------
    function : callable
        The backward function.
    name : str
        Name of the layer in SECTIONS.

    Returns
    -------
    str
        Text for the report.

    Examples
    --------
    >>> from tigra.layers import Dense
    >>> place_of(Dense.backward, "Dense")
    'Dense.backward in tigra/layers/dense.py, derived in docs/derivations.md, section 2'
    """
    file = Path(inspect.getfile(function))
    root = Path(__file__).parents[2]
    shown = file.relative_to(root) if file.is_relative_to(root) else file
    derived = f", derived in docs/derivations.md, section {SECTIONS[name]}" if name in SECTIONS else ""
    return f"{function.__qualname__} in {shown.as_posix()}{derived}"


def values_of(x) -> np.ndarray:
    """Return the values of a layer's input or output.

    Parameters
    ----------
    x : GraphSignal or array
        Input or output of a layer.

    Returns
    -------
    array
        Values of the signal, or the array itself.
    """
    return x.values if isinstance(x, GraphSignal) else x


def check_gradients(layer: Layer, x: Any, seed: int = 0, name: str = "") -> list[Check]:
    """Compare the backward of a layer with central differences, for its input and every parameter.

    Parameters
    ----------
    layer : Layer
        Layer with float64 parameters; rounding in float32 would hide errors.
    x : GraphSignal or array
        Input in float64, away from kinks of the layer (`Layer.decisions`).
    seed : int
        Seed of the random upstream gradient.
    name : str
        Name for the report, by default the class name.

    Returns
    -------
    list of Check
        One result for the input and one for each parameter.

    Raises
    ------
    ShapeError
        If an array is not float64.

    Examples
    --------
    >>> from tigra.layers import Dense
    >>> [check.passed for check in check_gradients(Dense(np.eye(2), np.zeros(2)), np.ones((2, 3)))]
    [True, True, True]
    """
    if not isinstance(layer, Layer):
        raise ShapeError(f"check_gradients takes a layer and its input, got {type(layer).__name__} as the layer.")
    for what, array in {"the input": values_of(x), **layer.params}.items():
        if not isinstance(array, np.ndarray) or array.size == 0 or not array.flags.writeable:
            raise ShapeError(f"Gradients are checked on arrays that can be changed, but {what} is {short(array)}.")
        if np.asarray(array).dtype != np.float64:
            raise ShapeError(f"Gradients are checked in float64, but {what} is {np.asarray(array).dtype}; convert it.")
    upstream = generator(seed, "upstream").standard_normal(values_of(layer.forward(x)).shape)
    before = dict(layer.grads)
    analytic = {"input": layer.backward(upstream), **layer.grads}
    _check_returned(layer, analytic["input"], before)

    def energy():
        return float(np.sum(upstream * values_of(layer.forward(x))))

    name, where = name or type(layer).__name__, place_of(type(layer).backward, type(layer).__name__)
    checks = []
    for what, array in {"input": values_of(x), **layer.params}.items():
        error = float(relative_error(analytic[what], numerical_gradient(energy, array)))
        checks.append(Check(name, what, array.size, error, where=where))
    return checks


def _check_returned(layer: Layer, grad: Any, before: dict[str, np.ndarray]) -> None:
    """Check that backward returned an array, and wrote into the arrays of `grads`, which training reads."""
    if not isinstance(grad, np.ndarray):
        raise ShapeError(f"{type(layer).__name__}.backward must return dE/d(input) as an array, got {short(grad)}.")
    for name, array in before.items():
        if layer.grads.get(name) is not array:
            raise TigraError(in_place_advice(layer, name))


def check_layer(name: str, seed: int = 0) -> list[Check]:
    """Check one case of LAYER_CASES, for the input and every parameter.

    Parameters
    ----------
    name : str
        Name of the case.
    seed : int
        Seed of the inputs.

    Returns
    -------
    list of Check
        One check per array.
    """
    layer, x = LAYER_CASES[name](np.random.default_rng(seed))
    return check_gradients(layer, x, seed, name)


def check_loss(seed: int = 0) -> Iterator[Check]:
    """Check the gradient of the loss, softmax with negative log-likelihood, with and without label smoothing."""
    rng = np.random.default_rng(seed)
    scores, labels = rng.standard_normal((4, 3)), np.array([0, 3, 1])
    for name, smoothing in {"Loss": 0.0, "Loss, smoothed labels": 0.2}.items():

        def energy(smoothing=smoothing):
            return float(negative_log_likelihood(scores, labels, label_smoothing=smoothing)[0])

        _, analytic = negative_log_likelihood(scores, labels, label_smoothing=smoothing)
        error = relative_error(analytic, numerical_gradient(energy, scores))
        where = place_of(negative_log_likelihood, "Loss")
        yield Check(name, "scores", scores.size, float(error), where=where)


def check_network(case: str = "Network", seed: int = 0) -> Iterator[Check]:
    """Check every parameter of a small network of NETWORK_CASES, through its loss.

    Finite differences are meaningless near a kink, where a value crosses a pooling threshold or changes its sign.
    Inputs are drawn until no kink is within reach of the step.
    """
    rng = np.random.default_rng(seed)
    architecture, shape, options = network_cases()[case]
    network = build_network(architecture, shape, 3, seed=seed, dtype="float64", **options).replica(training=True)
    labels, start = _labels(network), network.parameters.copy()
    noise = 0.1 + network.mask_of("pairs")  # products of small pairs have gradients that drown in rounding errors
    for _ in range(MOST_DRAWS):
        network.parameters[:] = start + noise * rng.standard_normal(start.size)  # the initial theta of ST is on a kink
        images = rng.uniform(size=(len(labels), *shape)) * rng.uniform(0.2, 1, (len(labels), 1, 1))  # contrasts differ
        network.calibrate(rng.uniform(size=(20, *shape)))
        signal = network.signal(network.prepare(images))
        if _smooth_within(network, signal):
            break
    else:
        raise TigraError(f"{architecture} has a kink near every input that was tried; check its layers one by one.")
    _, grad = negative_log_likelihood(network.forward(signal), labels)
    network.backward(grad)
    network.check_gradient_views()
    analytic = [{name: grad.copy() for name, grad in layer.grads.items()} for layer in network.layers]

    def energy():
        return float(negative_log_likelihood(network.forward(signal), labels)[0])

    for number, layer in enumerate(network.layers):
        for name, array in layer.params.items():
            error = relative_error(analytic[number][name], numerical_gradient(energy, array))
            what = f"{number}.{type(layer).__name__}.{name}"
            where = place_of(type(layer).backward, type(layer).__name__)
            yield Check(case, what, array.size, float(error), NETWORK_TOLERANCE, where)


def _labels(network) -> np.ndarray:
    """Labels of a small batch; two images, normalised by their own mean and deviation, would become -1 and 1."""
    batch_statistics = any(layer.uses_batch_statistics for layer in network.layers)
    return np.array([0, 2, 1, 1, 0] if batch_statistics else [0, 2])


def _smooth_within(network, signal) -> bool:
    """Whether all decisions, such as active sets and signs, stay the same for small changes of the parameters."""
    reach = 50 * STEP
    patterns, kept = [], network.parameters.copy()
    for sign in (0, 1, -1):
        network.parameters[:] = kept + sign * reach
        patterns.append(_pattern(network, signal))
    for place in range(kept.size):
        for sign in (1, -1):
            network.parameters[:] = kept
            network.parameters[place] += sign * 2 * STEP
            patterns.append(_pattern(network, signal))
    network.parameters[:] = kept
    return all(pattern == patterns[0] for pattern in patterns)


def _pattern(network, signal) -> bytes:
    """All yes-or-no decisions of a forward pass."""
    pattern: list[np.ndarray] = []
    for layer in network.layers:
        after = layer.forward(signal)
        pattern += layer.decisions(signal, after)
        signal = after
    return b"".join(array.tobytes() for array in pattern)


def network_cases() -> dict[str, tuple[str, tuple[int, int], dict]]:
    """NETWORK_CASES, and the examples of registered layer kinds, by name."""
    examples: dict[str, tuple[str, tuple[int, int], dict]]
    examples = {name: (kind.example, (4, 5), {}) for name, kind in LAYER_KINDS.items() if kind.example}
    return NETWORK_CASES | examples


def run_checks(
    only: str | None = None,
    seed: int = 0,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Iterator[Check]:
    """Run all gradient checks, or those of one layer.

    Parameters
    ----------
    only : str, optional
        Class name of a layer, or Loss, Network, ConvNet, ...; case is ignored.
    seed : int
        Seed of inputs and upstream gradients.
    on_progress : callable
        Called with (what, done, total), counted in cases.

    Yields
    ------
    Check
        One result per array.

    Raises
    ------
    UsageError
        If there is no case called `only`.
    """
    cases: dict[str, Callable[[], Iterable[Check]]] = {name: partial(check_layer, name, seed) for name in LAYER_CASES}
    cases |= {"Loss": partial(check_loss, seed)}
    cases |= {name: partial(check_network, name, seed) for name in network_cases()}
    chosen = [name for name in cases if only is None or name.split(",")[0].lower() == only.lower()]
    if not chosen:
        known = ", ".join(dict.fromkeys(name.split(",")[0] for name in cases))
        raise UsageError(f"There is no layer {only!r} to check; choose one of {known}.")
    for done, name in enumerate(chosen):
        on_progress(f"checking {name}", done, len(chosen))
        yield from cases[name]()
