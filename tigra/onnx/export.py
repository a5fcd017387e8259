"""`export_onnx`: a trained network as an ONNX file, with the preparation of images inside."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from tigra.errors import UsageError
from tigra.files.atomic import write_atomically
from tigra.images.background import WINDOWS, round_window, window_weights
from tigra.images.colour import OPPONENTS
from tigra.images.transforms import gaussian
from tigra.models.classifier import Classifier
from tigra.models.network import Network
from tigra.onnx.graph_writer import GraphWriter
from tigra.onnx.writer import Signal, Tensor
from tigra.version import __version__

OPSET, LEAST_OPSET = 17, 13  # 13 has the first Softmax over one axis, and sums whose axes are inputs
INPUT = "images"


def export_onnx(network: Classifier, path, opset: int = OPSET) -> None:
    """Write a trained network as an ONNX file, which other programs can run without tigra.

    The input is `images`, float32 (n, height, width) with pixels in [0, 1], or (n, height, width, 3) for a network of
    colour images. n may differ from call to call. Background, margin and smoothing are inside the file. The outputs
    are `label` (n,), the class numbers as int64; `probabilities` (n, n_classes); and `features` (n, n_features) as of
    `Network.features`, if the network has a statistics layer. The metadata of the file has `class_names` and
    `image_shape` as JSON, and `colour`, `architecture` and `tigra`, the version.

    Parameters
    ----------
    network : Network
        A trained network. Networks in float64 are exported in float32.
    path : str or Path
        Target file, replaced if it exists.
    opset : int
        Version of the ONNX operators, at least 13.

    Raises
    ------
    UsageError
        If the package onnx is missing, a layer has no `to_onnx`, or the opset is too old or too new.
    """
    write_atomically(path, onnx_model(network, opset).SerializeToString())


def onnx_model(network: Classifier, opset: int = OPSET) -> Any:
    """The ONNX model (`onnx.ModelProto`) of a network; arguments and errors as for `export_onnx`."""
    onnx = needed("onnx")
    newest = onnx.defs.onnx_opset_version()
    if not (isinstance(opset, (int, np.integer)) and LEAST_OPSET <= opset <= newest):
        raise UsageError(f"opset must be a whole number from {LEAST_OPSET} to {newest}, got {opset!r}.")
    if not isinstance(network, Network):
        raise UsageError(f"Only networks can be exported to ONNX, got {type(network).__name__}.")
    to = GraphWriter(int(opset))
    outputs = _written(network, to)
    model = assembled(to, {Tensor(INPUT, network.image_shape): "float32"}, outputs)
    onnx.helper.set_model_props(model, _metadata(network))
    return model


def assembled(to: GraphWriter, inputs: dict[Tensor, str], outputs: dict[Tensor, str]) -> Any:
    """The checked ONNX model of what was written, with the dtypes of its inputs and outputs."""
    onnx = needed("onnx")

    def declared(ends):
        kinds = [onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)) for dtype in ends.values()]
        shapes = [(end.name, ["n", *end.shape]) for end in ends]
        return [onnx.helper.make_tensor_value_info(x, kind, y) for (x, y), kind in zip(shapes, kinds, strict=True)]

    nodes = [onnx.helper.make_node(name, *ends, **attributes) for name, *ends, attributes in to.nodes]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in to.constants.items()]
    graph = onnx.helper.make_graph(nodes, "tigra", declared(inputs), declared(outputs), constants)
    versions = [onnx.helper.make_opsetid("", to.opset)]
    model = onnx.helper.make_model(graph, opset_imports=versions, producer_name="tigra", producer_version=__version__)
    model.ir_version = onnx.helper.find_min_ir_version_for(versions)  # a newer one would exclude older runtimes
    onnx.checker.check_model(model, full_check=True)
    return model


def needed(name: str) -> Any:
    """Import onnx or onnxruntime, which are optional."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"This needs the package {name}; install it with: pip install 'tigra[onnx]'.") from error


def _metadata(network: Network) -> dict[str, str]:
    return {
        "class_names": json.dumps(network.class_names),
        "image_shape": json.dumps(list(network.image_shape)),
        "colour": "grey" if network.options.n_channels == 1 else "rgb",
        "architecture": network.options.architecture,
        "tigra": __version__,
    }


def _written(network: Network, to: GraphWriter) -> dict[Tensor, str]:
    """Write the whole network; returns the outputs and their dtypes."""
    signal, features = Signal(_prepared(network, to)), None
    for layer in network.layers:
        signal = layer.to_onnx(to, signal)
        features = signal.values if layer.gives_features else features
    scores = signal.values
    to.nodes.append(("ArgMax", [scores.name], ["label"], {"axis": 1, "keepdims": 0}))
    cooled = scores if network.temperature == 1 else to.divide(scores, network.temperature)
    to.nodes.append(("Softmax", [cooled.name], ["probabilities"], {"axis": 1}))
    outputs = {Tensor("label", ()): "int64", Tensor("probabilities", scores.shape): "float32"}
    if features is not None:
        to.nodes.append(("Identity", [features.name], ["features"], {}))
        outputs[Tensor("features", features.shape)] = "float32"
    return outputs


def _prepared(network: Network, to: GraphWriter) -> Tensor:
    """Background or window, opponent colours, margin and smoothing, as in `Network.prepare`."""
    options, images = network.options, Tensor(INPUT, network.image_shape)
    height, width = network.image_shape[:2]
    if options.n_channels == 1:
        pixels = to.reshape(images, (1, height, width))
    else:
        pixels = to.node("Transpose", [images], (3, height, width), perm=[0, 3, 1, 2])
    if options.background == "border":
        pixels = to.subtract(pixels, _border_median(pixels, to))
    elif options.background in WINDOWS:
        pixels = _windowed(pixels, options.background == "window-mean", to)
    if options.n_channels > 1:
        pixels = to.mix(pixels, OPPONENTS)
    if options.margin:
        rim = [0, 0, options.margin, options.margin]
        framed = (pixels.shape[0], *options.grid_shape)
        pixels = to.node("Pad", [pixels, to.constant([*rim, *rim], np.int64)], framed)
    return _smoothed(pixels, options.smoothing, to)


def _smoothed(pixels: Tensor, sigma: float, to: GraphWriter) -> Tensor:
    """The mean of blurring rows first and columns first, as in `tigra.images.transforms.smooth`."""
    weights = gaussian(sigma)
    if len(weights) == 1:
        return pixels
    reach, each = len(weights) // 2, (pixels.shape[0], 1)
    down = np.broadcast_to(weights[:, None], (*each, len(weights), 1))
    across = np.broadcast_to(weights, (*each, 1, len(weights)))

    def blurred(x, filters):
        return to.convolve(x, filters, pads=(reach, 0) if filters is down else (0, reach), each=True)

    return to.multiply(to.add(blurred(blurred(pixels, down), across), blurred(blurred(pixels, across), down)), 0.5)


def _windowed(pixels: Tensor, subtracts_mean: bool, to: GraphWriter) -> Tensor:
    """The pixels under the round window, as in `tigra.images.background.windowed`."""
    n_channels, height, width = pixels.shape
    weights = round_window(height, width)
    if subtracts_mean:
        shares = window_weights(height, width) / window_weights(height, width).sum()
        weighed = to.reshape(to.multiply(pixels, shares[None]), (n_channels, height * width))
        pixels = to.subtract(pixels, to.reshape(to.sum(weighed, 2), (n_channels, 1, 1)))
    return to.multiply(pixels, weights[None])


def _border_median(pixels: Tensor, to: GraphWriter) -> Tensor:
    """Median of the border pixels of each channel, (channels, 1, 1)."""
    n_channels, height, width = pixels.shape
    inner = np.zeros((height, width), bool)
    inner[1:-1, 1:-1] = True
    places = np.flatnonzero(~inner)
    flat = to.reshape(pixels, (n_channels, height * width))
    border = to.node("Gather", [flat, to.constant(places, np.int64)], (n_channels, len(places)), axis=2)
    n_upper = len(places) // 2 + 1  # the middle is among the upper half, sorted from the largest down
    ends = [(n_channels, n_upper)] * 2
    upper, _ = to.nodes_with("TopK", [border, to.constant([n_upper], np.int64)], ends, axis=2)
    middle = [n_upper - 1] if len(places) % 2 else [n_upper - 2, n_upper - 1]
    chosen = to.node("Gather", [upper, to.constant(middle, np.int64)], (n_channels, len(middle)), axis=2)
    return to.reshape(to.multiply(to.sum(chosen, 2), 1 / len(middle)), (n_channels, 1, 1))
