"""Writer: collects the nodes and constants of an ONNX graph. Layers write themselves with it, see `Layer.to_onnx`.

Tensors have the batch first. Maps and planes are (B, K, H, W), a map of a custom graph (B, K, height, width) like its
images, harmonic maps (B, orders * parts * C, H, W), and features (B, F). All numbers are float32, because onnxruntime
has no convolution in float64.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tigra.errors import UsageError


class Tensor(NamedTuple):
    """A tensor of the graph.

    Attributes
    ----------
    name : str
        Name in the ONNX file.
    shape : tuple of int
        Shape without the batch, which comes first.
    """

    name: str
    shape: tuple[int, ...]


class Signal(NamedTuple):
    """What flows from layer to layer, as `GraphSignal` does in tigra.

    Attributes
    ----------
    values : Tensor
        Maps, planes or features.
    active : Tensor or None
        Active sets of maps as booleans (K or 1, H, W); None if all nodes are active.
    """

    values: Tensor
    active: Tensor | None = None


Operand = Tensor | np.ndarray | float


class Writer:
    """Nodes and constants of an ONNX graph, in the order in which they are written.

    Parameters
    ----------
    opset : int
        Version of the operators.

    Attributes
    ----------
    nodes : list of (str, list, list, dict)
        Operator, inputs, outputs and attributes of each node.
    constants : dict of str to array
        Weights and other constants by name.

    Examples
    --------
    >>> writer = Writer(opset=17)
    >>> writer.relu(Tensor("x", (3,)))
    Tensor(name='Relu_1', shape=(3,))
    >>> writer.nodes
    [('Relu', ['x'], ['Relu_1'], {})]
    """

    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self.constants: dict[str, np.ndarray] = {}
        self._known: dict[tuple, str] = {}

    # --- the two things a graph is made of ----------------------------------------------------------------

    def constant(self, array, dtype: Any = np.float32) -> str:
        """Name of a constant; equal ones are stored once."""
        array = np.ascontiguousarray(np.asarray(array, dtype))
        key = array.dtype.str, np.shape(array), array.tobytes()
        if key not in self._known:
            self._known[key] = f"constant_{len(self.constants)}"
            self.constants[self._known[key]] = array
        return self._known[key]

    def node(self, operator: str, inputs: list, shape: tuple[int, ...], **attributes) -> Tensor:
        """Write a node with one output of this shape (without the batch); inputs are tensors or names."""
        (output,) = self.nodes_with(operator, inputs, [shape], **attributes)
        return output

    def nodes_with(self, operator: str, inputs: list, shapes: list, **attributes) -> list[Tensor]:
        """Write a node with several outputs."""
        number = len(self.nodes) + 1
        names = [f"{operator}_{number}" + (f"_{i}" if i else "") for i in range(len(shapes))]
        sources = [entry.name if isinstance(entry, Tensor) else entry for entry in inputs]
        self.nodes.append((operator, sources, names, attributes))
        return [Tensor(name, tuple(shape)) for name, shape in zip(names, shapes, strict=True)]

    def needs_opset(self, least: int, what: str) -> None:
        """Raise UsageError if the opset is too old for a layer."""
        if self.opset < least:
            raise UsageError(f"{what} needs ONNX operators of version {least}, got opset {self.opset}; raise it.")

    # --- element by element -------------------------------------------------------------------------------

    def _with(self, operator: str, a: Operand, b: Operand) -> Tensor:
        """Operator on two operands; arrays and numbers become constants, which are equal for all images."""
        shapes = [entry.shape if isinstance(entry, Tensor) else np.shape(entry) for entry in (a, b)]
        inputs = [entry if isinstance(entry, Tensor) else self.constant(entry) for entry in (a, b)]
        return self.node(operator, inputs, np.broadcast_shapes(*shapes))

    def add(self, a: Operand, b: Operand) -> Tensor:
        """a + b."""
        return self._with("Add", a, b)

    def subtract(self, a: Operand, b: Operand) -> Tensor:
        """a - b."""
        return self._with("Sub", a, b)

    def multiply(self, a: Operand, b: Operand) -> Tensor:
        """a b."""
        return self._with("Mul", a, b)

    def divide(self, a: Operand, b: Operand) -> Tensor:
        """a / b."""
        return self._with("Div", a, b)

    def maximum(self, a: Operand, b: Operand) -> Tensor:
        """max(a, b)."""
        return self._with("Max", a, b)

    def compare(self, operator: str, a: Operand, b: Operand) -> Tensor:
        """Booleans: "Greater", "Equal", and of booleans "And", "Or"."""
        return self._with(operator, a, b)

    def relu(self, x: Tensor) -> Tensor:
        """max(x, 0)."""
        return self.node("Relu", [x], x.shape)

    def apply(self, operator: str, x: Tensor) -> Tensor:
        """A function of each number: "Abs", "Log" or "Sqrt"."""
        return self.node(operator, [x], x.shape)

    def where(self, mask: Tensor | None, x: Tensor, otherwise: float = 0.0) -> Tensor:
        """x where the mask is true, and a number elsewhere; without a mask, x."""
        if mask is None:
            return x
        return self.node("Where", [mask, x, self.constant(otherwise)], np.broadcast_shapes(mask.shape, x.shape))

    # --- maps -------------------------------------------------------------------------------------------

    def convolve(self, x: Tensor, weight, bias=None, pads: int | tuple = 0, dilation: int = 1, each=False) -> Tensor:
        """Cross-correlate maps with filters (K_out, K_in, height, width), or each map with its own (K, 1, ...)."""
        rows, columns = (pads, pads) if isinstance(pads, int) else pads
        reach = [dilation * (size - 1) for size in weight.shape[2:]]
        size = x.shape[1] + 2 * rows - reach[0], x.shape[2] + 2 * columns - reach[1]
        inputs = [x, self.constant(weight), *([] if bias is None else [self.constant(bias)])]
        places = {"pads": [rows, columns] * 2, "dilations": [dilation] * 2, "kernel_shape": list(weight.shape[2:])}
        return self.node("Conv", inputs, (len(weight), *size), group=x.shape[0] if each else 1, **places)

    def mix(self, x: Tensor, matrix, bias=None) -> Tensor:
        """Sums of maps with a matrix of weights (K_out, K_in)."""
        return self.convolve(x, np.asarray(matrix)[:, :, None, None], bias)

    def concatenate(self, parts: list[Tensor]) -> Tensor:
        """All maps of all parts."""
        if len(parts) == 1:
            return parts[0]
        return self.node("Concat", parts, (sum(part.shape[0] for part in parts), *parts[0].shape[1:]), axis=1)

    def take(self, x: Tensor, places) -> Tensor:
        """Maps or features by their numbers."""
        places = np.asarray(places, np.int64)
        return self.node("Gather", [x, self.constant(places, np.int64)], (len(places), *x.shape[1:]), axis=1)

    def pool(self, operator: str, x: Tensor, window: tuple[int, int], stride: tuple[int, int]) -> Tensor:
        """Pool maps over windows, "MaxPool" or "AveragePool"; incomplete windows are left out."""
        sizes = [(n - w) // s + 1 for n, w, s in zip(x.shape[1:], window, stride, strict=True)]
        return self.node(operator, [x], (x.shape[0], *sizes), kernel_shape=list(window), strides=list(stride))

    def mean(self, x: Tensor) -> Tensor:
        """Mean of each map, (K, 1, 1)."""
        return self.node("GlobalAveragePool", [x], (x.shape[0], 1, 1))

    def union(self, sets: Tensor | None) -> Tensor | None:
        """The union of active sets as one set, (1, H, W)."""
        if sets is None or sets.shape[0] == 1:
            return sets
        numbers = self.node("Cast", [sets], sets.shape, to=1)  # 1 is float32
        return self.compare("Greater", self.sum(numbers, 1), 0.0)

    def largest(self, x: Tensor, n_largest: int) -> tuple[Tensor, Tensor]:
        """The largest number of each map and the `n_largest`-th, both (K, 1, 1)."""
        flat = self.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
        count = self.constant([n_largest], np.int64)
        values, _ = self.nodes_with("TopK", [flat, count], [(x.shape[0], n_largest)] * 2, axis=2)
        ends = [np.array([place], np.int64) for place in (0, n_largest - 1)]
        first, last = (
            self.node("Gather", [values, self.constant(place, np.int64)], (x.shape[0], 1), axis=2) for place in ends
        )
        return self.reshape(first, (x.shape[0], 1, 1)), self.reshape(last, (x.shape[0], 1, 1))

    # --- shapes, sums and features ------------------------------------------------------------------------

    def reshape(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """The same numbers of each image in another shape."""
        same = 0  # the batch as it is, also an empty one, for which -1 has no answer
        return self.node("Reshape", [x, self.constant([same, *shape], np.int64)], shape)

    def sum(self, x: Tensor, axis: int) -> Tensor:
        """Sum over an axis, counted with the batch; it stays with length 1."""
        shape = list(x.shape)
        shape[axis - 1] = 1
        return self.node("ReduceSum", [x, self.constant([axis], np.int64)], tuple(shape), keepdims=1)

    def dense(self, x: Tensor, weight, bias) -> Tensor:
        """W x + c of features, with W (F_out, F_in)."""
        return self.node("Gemm", [x, self.constant(weight), self.constant(bias)], (len(weight),), transB=1)

    def product(self, x: Tensor, matrix) -> Tensor:
        """x times a matrix, over the last axis of x."""
        matrix = np.asarray(matrix)
        return self.node("MatMul", [x, self.constant(matrix)], (*x.shape[:-1], matrix.shape[1]))
