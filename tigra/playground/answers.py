"""From a request of the page to its answer. Requests are not trusted: every field is checked."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tigra.datasets.loading import load_dataset
from tigra.errors import UsageError
from tigra.experiments.report.heat import heat_maps
from tigra.graph import GridGraph
from tigra.images.pictures import decode_image
from tigra.images.transforms import INTERPOLATIONS, resize, rotate, translate
from tigra.layers import DynamicPool, OrientedConv
from tigra.models.classifier import Classifier
from tigra.models.network import Network
from tigra.playground.changes import MOST_SMOOTHING, Changes, changed, filter_terms, first_filters, statistics_of
from tigra.playground.tracing import Trace, has_graph, picture, pictures, prediction
from tigra.theory.fourier import polynomial_response

N_EXAMPLES, N_FREQUENCIES = 10, 41
LARGEST_SHIFT = 200.0  # pixels


class Answers:
    """What the page can ask: `start`, `answer` and `pixels`.

    Parameters
    ----------
    models : dict of str to Classifier
        TIGraNets by name, the first one is shown first. All have images of one size and the same classes.
    beside : Network or None
        Another network for the same images, to compare with.
    beside_name : str
        What the page calls it.
    """

    def __init__(self, models: dict[str, Classifier], beside: Classifier | None = None, beside_name: str = "ConvNet"):
        self.models = {name: _checked(network) for name, network in models.items()}
        if beside is not None and not isinstance(beside, Network):
            raise UsageError(f"The playground compares with networks only, got {type(beside).__name__}; leave it out.")
        self.beside, self.beside_name = beside, beside_name
        first = next(iter(self.models.values()))
        self.shape, self.class_names = first.image_shape, first.class_names
        self._changed = lru_cache(maxsize=8)(lambda name, changes: changed(self.models[name], changes))

    # --- what the page needs at first -------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Models with what can be changed in them, classes, and example images."""
        return {
            "shape": list(self.shape),
            "class_names": self.class_names,
            "models": {name: _described(network) for name, network in self.models.items()},
            "beside": self.beside_name if self.beside else None,
            "examples": [_as_bytes(image) for image in self._examples()],
        }

    def _examples(self) -> list[np.ndarray]:
        """Upright test digits, if the networks are for digits, and a filled shape, whose pixels tie."""
        splits = load_dataset("mnist-012")
        (height, width), filled = self.shape, np.zeros(self.shape)
        filled[height // 4 : 3 * height // 4, width // 3 : 3 * width // 5] = 1
        filled[height // 4 : 3 * height // 7, width // 3 : 6 * width // 7] = 1
        if height != width or not set(splits.class_names) <= set(self.class_names):
            return [filled]
        digits = splits.test_upright.images[:N_EXAMPLES]
        return [*(digits if self.shape == splits.image_shape else resize(digits, (height, width))), filled]

    # --- the answer to a request ------------------------------------------------------------------------------

    def answer(self, request: Any) -> dict[str, Any]:
        """Everything the page shows for a picture, a motion and changes; UsageError if a field is wrong."""
        fields = _Fields(request)
        name = fields.choice("model", tuple(self.models))
        upright = self._image(fields)
        moved = _moved(upright, fields)
        changes = _changes(fields.part("changes"))
        trained, network = self.models[name], self._changed(name, changes)
        trace = Trace(network, upright, moved)
        beside = Trace(self.beside, upright, moved) if self.beside else None
        found: dict[str, Any] = {
            "image": picture(moved, 1.0),
            "tigranet": prediction(trace),
            "gap_trained": Trace(trained, upright, moved).gap if network is not trained else None,
            "beside": prediction(beside) if beside else None,
        }
        if fields.flag("maps"):
            found["layers"], found["beside_layers"] = pictures(trace), pictures(beside) if beside else None
        if fields.flag("filters"):
            found["filters"] = _filters(network)
        if fields.flag("heat"):
            found["heat"] = picture(heat_maps(network, moved[None])[0])
        return found

    def pixels(self, content: bytes, invert: bool) -> dict[str, Any]:
        """An uploaded picture as pixels; ImageError if it is none."""
        image = decode_image(content, "The picture", self.shape, invert)
        return {"pixels": _as_bytes(image)}

    def _image(self, fields: _Fields) -> np.ndarray:
        """The upright picture, with pixels in [0, 1]."""
        height, width = self.shape
        pixels = fields.numbers("pixels", height * width, 0, 255)
        return (np.array(pixels) / 255).reshape(self.shape)


def _checked(network: Classifier) -> Network:
    if not isinstance(network, Network) or not has_graph(network) or not isinstance(network.graph, GridGraph):
        raise UsageError("The playground is for TIGraNets on the grid of pixels; give a model of 'tigra train'.")
    if network.options.n_channels > 1:
        raise UsageError("The playground draws in grey, but this network is for colour images; give another model.")
    return network


def _described(network: Network) -> dict[str, Any]:
    """What can be changed in a network, and the values it was trained with."""
    filters, (_, statistics) = first_filters(network), statistics_of(network)
    pools = [layer for layer in network.layers if isinstance(layer, DynamicPool)]
    is_oriented = any(isinstance(layer, OrientedConv) for layer in network.layers)
    return {
        "architecture": network.options.architecture,
        "smoothing": network.options.smoothing,
        "most_smoothing": MOST_SMOOTHING,
        "boundary": network.options.boundary,
        "can_be_free": not is_oriented,
        "nodes": [layer.n_active for layer in pools],
        "n_nodes": network.graph.n_nodes,
        "order": statistics.max_order,
        "terms": filter_terms(network) if filters is not None else [],
        "alpha": filters.astype(float).tolist() if filters is not None else [],
    }


def _filters(network: Network) -> dict[str, Any] | None:
    """Responses of the filters of the first layer over the spectrum."""
    layer = network.layers[0]
    if first_filters(network) is None:
        return None
    frequencies = np.linspace(0, 2, N_FREQUENCIES)
    responses = polynomial_response(layer.filter_coefficients(layer.params), frequencies)
    return {"frequencies": frequencies.tolist(), "responses": np.asarray(responses, float).round(4).tolist()}


def _moved(image: np.ndarray, fields: _Fields) -> np.ndarray:
    """The picture, mirrored, rotated and shifted."""
    interpolation = fields.choice("interpolation", INTERPOLATIONS)
    angle = fields.number("angle", -360, 360)
    shift = fields.number("down", -LARGEST_SHIFT, LARGEST_SHIFT), fields.number("right", -LARGEST_SHIFT, LARGEST_SHIFT)
    batch = (image[:, ::-1] if fields.flag("mirror") else image)[None]
    return translate(rotate(batch, angle, interpolation), shift, interpolation)[0]


def _changes(fields: _Fields) -> Changes:
    number = fields.optional("filter", lambda name: fields.whole(name, 0, 10_000))
    return Changes(
        smoothing=fields.optional("smoothing", lambda name: fields.number(name, 0, MOST_SMOOTHING)),
        boundary=fields.optional("boundary", lambda name: fields.choice(name, ("padded", "free"))),
        ties=fields.choice("ties", ("together", "first")),
        nodes=tuple(fields.optional("nodes", lambda name: fields.whole_numbers(name, 100, 1, 10**8)) or ()),
        order=fields.optional("order", lambda name: fields.whole(name, 0, 10_000)),
        filter=number,
        alpha=tuple(fields.numbers("alpha", 1000, -1e6, 1e6)) if number is not None else (),
    )


def _as_bytes(image: np.ndarray) -> list[int]:
    return np.rint(255 * image).astype(int).ravel().tolist()


class _Fields:
    """Fields of a JSON object, checked one by one."""

    def __init__(self, content: Any):
        if not isinstance(content, dict):
            raise UsageError("A request must be a JSON object.")
        self.content = content

    def part(self, name: str) -> _Fields:
        """A nested object; an empty one if it is missing."""
        return _Fields(self.content.get(name, {}))

    def optional(self, name: str, read) -> Any:
        """None if the field is missing or null, else read(name)."""
        return None if self.content.get(name) is None else read(name)

    def number(self, name: str, least: float, most: float) -> float:
        """A finite number, by default 0."""
        value = self.content.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
            raise UsageError(f"{name} must be a number from {least:g} to {most:g}.")
        return float(value)

    def whole(self, name: str, least: int, most: int) -> int:
        """A whole number."""
        value = self.number(name, least, most)
        if value != int(value):
            raise UsageError(f"{name} must be a whole number.")
        return int(value)

    def numbers(self, name: str, most_numbers: int, least: float, most: float) -> list[float]:
        """A list of finite numbers; `pixels` must have exactly as many."""
        values = self.content.get(name)
        if not isinstance(values, list) or len(values) > most_numbers:
            raise UsageError(f"{name} must be a list of at most {most_numbers} numbers.")
        if name == "pixels" and len(values) != most_numbers:
            raise UsageError(f"pixels must be {most_numbers} numbers, got {len(values)}.")
        return [_Fields({name: value}).number(name, least, most) for value in values]

    def whole_numbers(self, name: str, most_numbers: int, least: int, most: int) -> list[int]:
        """A list of whole numbers."""
        return [
            _Fields({name: value}).whole(name, least, most) for value in self.numbers(name, most_numbers, least, most)
        ]

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of some texts, by default the first."""
        value = self.content.get(name, allowed[0])
        if value not in allowed:
            raise UsageError(f"{name} must be one of {', '.join(allowed)}.")
        return value

    def flag(self, name: str) -> bool:
        """True or false, by default false."""
        return self.content.get(name) is True
