"""One picture, upright and moved, on its way through a network: maps, features and gap for the page."""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

import numpy as np

from tigra.errors import UsageError
from tigra.figures.inspection import in_training_units
from tigra.graph import GraphSignal
from tigra.layers import Layer
from tigra.models.classifier import Classifier
from tigra.models.network import Network

MOST_MAPS = 4  # of a layer
MOST_BARS = 256  # features
UNIT = 3.0  # height of the largest bar of a network whose features are not scaled


def has_graph(network: Classifier) -> bool:
    """Whether it is a TIGraNet, whose maps live on a graph and which has features."""
    return any(getattr(layer, "gives_features", False) for layer in network.layers)


class Step(NamedTuple):
    """Maps of the moved image after one layer.

    Attributes
    ----------
    name : str
        The layer in the paper's notation, or its class.
    values : array (K, height, width)
        All maps.
    active : bool array (K, height, width) or None
        Active sets; None if all nodes are active.
    """

    name: str
    values: np.ndarray
    active: np.ndarray | None


class Trace:
    """One forward pass of an upright image and the moved one.

    Parameters
    ----------
    network : Network
        A trained network.
    upright, moved : array (height, width)
        Pixels in [0, 1].

    Attributes
    ----------
    steps : list of Step
        Maps of the moved image, layer by layer, the image first.
    features : array (2, F)
        Statistics of both images; in a network without statistics, the input of the last layer.
    probabilities : array (2, n_classes)
        Of both images.
    """

    def __init__(self, network: Network, upright: np.ndarray, moved: np.ndarray):
        self.network, twin = network, network.replica()
        signal: Any = twin.signal(twin.prepare(np.stack([upright, moved])))
        shape = network.options.grid_shape
        self.steps = [_step("image", signal, shape)]
        features = None
        for layer in twin.layers:
            before, signal = signal, layer.forward(signal)
            shape = getattr(layer, "coarse_shape", shape)
            if isinstance(signal, GraphSignal) or np.ndim(signal) == 4:
                self._note(layer, _step(layer.label, signal, shape))
            if layer.gives_features or (features is None and layer is twin.layers[-1]):
                features = signal if layer.gives_features else before
        assert features is not None
        if not (np.isfinite(features).all() and np.isfinite(signal).all()):
            raise UsageError("The numbers in the network become too large; choose smaller coefficients of the filter.")
        self.features, self.probabilities = np.array(features).T, network.probabilities(signal.T)

    def _note(self, layer: Layer, step: Step) -> None:
        if layer.uses_batch_statistics or type(layer).__name__ == "ReLU":  # belongs to the layer before
            step = step._replace(name=self.steps.pop().name)
        self.steps.append(step)

    @property
    def label(self) -> str:
        """Class of the moved image."""
        return self.network.class_names[int(self.probabilities[1].argmax())]

    @property
    def gap(self) -> float:
        """Change of the features by the motion, as a fraction of their size."""
        upright, moved = self.features.astype(np.float64)  # squares of float32 can overflow
        size = float(np.linalg.norm(upright))
        return float(np.linalg.norm(moved - upright)) / size if size else 0.0

    def bars(self) -> np.ndarray:
        """Features of both images, (2, F), in units of their deviation in training where the network has them."""
        if has_graph(self.network):
            return in_training_units(self.network, self.features)[0]
        return UNIT * self.features / max(float(np.abs(self.features).max()), 1e-30)


def _step(name: str, signal: Any, shape: tuple[int, int]) -> Step:
    if not isinstance(signal, GraphSignal):
        return Step(name, signal[..., 1].copy(), None)
    values, active = signal.values[:, :, 1], np.broadcast_to(signal.active, signal.values.shape)[:, :, 1]
    maps = values.reshape(-1, *shape).copy()
    return Step(name, maps, None if active.all() else active.reshape(maps.shape).copy())


# --- as JSON allows -----------------------------------------------------------------------------------------


def picture(values: np.ndarray, largest: float | None = None) -> dict[str, Any]:
    """Values of both signs as bytes around 128 in base64; `largest` is the size that becomes 127."""
    most = float(np.abs(values).max()) if largest is None else largest
    levels = np.clip(np.rint(values * (127 / most if most > 0 else 0)), -127, 127) + 128
    return {"height": values.shape[0], "width": values.shape[1], "data": _encoded(levels)}


def prediction(trace: Trace) -> dict[str, Any]:
    """Label, probabilities, bars of both images, and the gap."""
    upright, moved = np.clip(trace.bars()[:, :MOST_BARS], -9, 9).astype(float).round(3).tolist()
    return {
        "label": trace.label,
        "probabilities": [round(float(p), 4) for p in trace.probabilities[1]],
        "bars": moved,
        "bars_upright": upright,
        "gap": round(trace.gap, 6),
    }


def pictures(trace: Trace) -> list[dict[str, Any]]:
    """Some maps of every layer, with their active sets."""
    found = []
    for step in trace.steps:
        shown = step.values[:MOST_MAPS]
        largest = float(np.abs(shown).max())
        entry: dict[str, Any] = {"name": step.name, "n_maps": len(step.values), "active": None}
        entry["maps"] = [picture(part, largest) for part in shown]
        if step.active is not None:
            entry["active"] = [_encoded(part) for part in step.active[:MOST_MAPS]]
        found.append(entry)
    return found


def _encoded(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.astype(np.uint8).tobytes()).decode()
