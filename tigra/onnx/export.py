"""`export_onnx`: a trained network as an ONNX file, with the preparation of images inside."""

from __future__ import annotations

import importlib
import json
from typing import Any

import numpy as np

from tigra.errors import UsageError
from tigra.files.atomic import write_atomically
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

    The input is `images`, float32 (n, height, width) with pixels in [0, 1]. n may differ from call to call. Background,
    margin and smoothing are inside the file. The outputs are `label` (n,), the class numbers as int64;
    `probabilities` (n, n_classes); and `features` (n, n_features) as of `Network.features`, if the network has a
    statistics layer. The metadata of the file has `class_names` and `image_shape` as JSON, and `colour`,
    `architecture` and `tigra`, the version.

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
    if isinstance(network, Network) and network.options.n_channels == 3:
        raise UsageError("Networks for colour images cannot be exported to ONNX yet; train with --colour no.")
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
        "colour": "grey",
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
    to.nodes.append(("Softmax", [scores.name], ["probabilities"], {"axis": 1}))
    outputs = {Tensor("label", ()): "int64", Tensor("probabilities", scores.shape): "float32"}
    if features is not None:
        to.nodes.append(("Identity", [features.name], ["features"], {}))
        outputs[Tensor("features", features.shape)] = "float32"
    return outputs


def _prepared(network: Network, to: GraphWriter) -> Tensor:
    """Background, margin and smoothing, as in `Network.prepare`."""
    options = network.options
    pixels = to.reshape(Tensor(INPUT, network.image_shape), (1, *network.image_shape))
    if options.background == "border":
        pixels = to.subtract(pixels, _border_median(pixels, to))
    if options.margin:
        rim = [0, 0, options.margin, options.margin]
        pixels = to.node("Pad", [pixels, to.constant([*rim, *rim], np.int64)], (1, *options.grid_shape))
    weights = gaussian(options.smoothing)
    if len(weights) == 1:
        return pixels
    down, across = weights.reshape(1, 1, -1, 1), weights.reshape(1, 1, 1, -1)
    reach = len(weights) // 2

    def blurred(x, filters):
        return to.convolve(x, filters, pads=(reach, 0) if filters is down else (0, reach))

    both = to.add(blurred(blurred(pixels, down), across), blurred(blurred(pixels, across), down))
    return to.multiply(both, 0.5)  # as in `smooth`: rows and columns alike


def _border_median(pixels: Tensor, to: GraphWriter) -> Tensor:
    """Median of the border pixels of each image, (1, 1, 1)."""
    _, height, width = pixels.shape
    inner = np.zeros((height, width), bool)
    inner[1:-1, 1:-1] = True
    places = np.flatnonzero(~inner)
    border = to.take(to.reshape(pixels, (height * width,)), places)
    n_upper = len(places) // 2 + 1  # the middle is among the upper half, sorted from the largest down
    upper, _ = to.nodes_with("TopK", [border, to.constant([n_upper], np.int64)], [(n_upper,)] * 2, axis=1)
    middle = to.take(upper, [n_upper - 1] if len(places) % 2 else [n_upper - 2, n_upper - 1])
    return to.reshape(to.multiply(to.sum(middle, 1), 1 / middle.shape[0]), (1, 1, 1))
