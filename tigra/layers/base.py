"""Layer: the interface of all layers (one forward, one backward, one cache)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tigra.errors import ShapeError, TigraError, UsageError
from tigra.graph import GraphSignal
from tigra.kernels.workspace import Workspace

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # the kernels are compiled for these
BOOL = np.dtype(bool)


class Layer:
    """Base class of layers: one step of a network, with a hand-derived backward.

    `forward` returns the output and stores what `backward` needs, which may be the input itself: it must not change in
    between. `backward` takes dE/d(output), fills `grads` and returns dE/d(input). The class attributes describe a layer
    to the rest of the package, so that no other code depends on its class.

    Parameters
    ----------
    **params : array
        Learned parameters by name, in float32 or float64.

    Attributes
    ----------
    params : dict of arrays
        Learned parameters. They are updated in place; a layer never rebinds them.
    grads : dict of arrays
        Gradients with the same names and shapes, overwritten by every backward.
    state : dict of arrays
        Constants that are saved with the model but not learned.
    is_training : bool
        Whether forward may use statistics of the batch, as batch normalisation does in training.
    micro_batch : int
        Most images that the layer should get at once; fewer are faster if it stores many numbers per image.
    gives_features : bool
        True if the output is the feature vector of the network (`Network.features`).
    uses_batch_statistics : bool
        True for batch normalisation; forward needs sums over the whole batch
        (`tigra.models.batch_statistics.BatchStatistics`).
    least_batch : int
        Fewest images of a batch that the layer can learn from.
    calibration_images : int or None
        Number of training images that `calibrate` needs before training. 0 means none, None means all.
    positive_state, nonnegative_state : tuple of str
        Names of state arrays whose values must be > 0, or >= 0. A model file that violates this is rejected.
    """

    is_training = False
    micro_batch = 32
    gives_features = False
    uses_batch_statistics = False
    least_batch = 1
    calibration_images: int | None = 0
    positive_state: tuple[str, ...] = ()
    nonnegative_state: tuple[str, ...] = ()

    def __init__(self, **params: np.ndarray):
        for name, array in params.items():
            if not (isinstance(array, np.ndarray) and array.dtype in DTYPES):
                raise ShapeError(
                    f"{type(self).__name__} needs {name} as an array of float32 or float64, got {array!r}."
                )
        self.params = params
        self.grads = {name: np.zeros_like(array) for name, array in params.items()}
        self.state: dict[str, np.ndarray] = {}
        self._cache: Any = None  # what backward needs, set by forward
        self._space = Workspace()

    def forward(self, x):
        """Return the output for input x."""
        raise NotImplementedError

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """Return dE/d(input) for dE/d(output), after one forward; fills grads."""
        raise NotImplementedError

    @property
    def needs_calibration(self) -> bool:
        """Whether `calibrate` must still be called; False for layers without constants to set."""
        return False

    def calibrate(self, x) -> None:
        """Set constants from this layer's input for training images; does nothing by default."""

    def decisions(self, x, y) -> list[np.ndarray]:
        """All yes-or-no decisions of y = forward(x), such as signs and active sets, as arrays.

        If a small step changes a decision, the layer has a kink there, and finite differences are meaningless.
        """
        return []

    def feature_names(self, n_features: int) -> list[str]:
        """Names of the outputs of a layer with `gives_features`, in order."""
        return [f"feature{number}" for number in range(n_features)]

    def to_onnx(self, to, signal):
        """Write this layer, as it predicts, into an ONNX graph.

        Parameters
        ----------
        to : tigra.onnx.graph_writer.GraphWriter
            Takes the nodes.
        signal : tigra.onnx.writer.Signal
            Input of the layer.

        Returns
        -------
        tigra.onnx.writer.Signal
            Output of the layer.
        """
        raise UsageError(
            f"{type(self).__name__} cannot be exported to ONNX, because it has no method to_onnx; write one"
            " (docs/extending.md), or leave the layer out."
        )

    @classmethod
    def image_input(cls, values: np.ndarray, image_shape: tuple[int, int]):
        """Input for images (1 or 3, N, B) if this is the first layer of a network: y_0, active on all nodes."""
        return GraphSignal(values, np.ones(values.shape, bool))

    @property
    def label(self) -> str:
        """Name in the paper's notation, or the class name if there is none."""
        return type(self).__name__

    def _take_cache(self):
        """Return what forward stored; possible once per forward."""
        if self._cache is None:
            raise TigraError(
                f"{type(self).__name__}.backward needs a forward of its own before it;"
                " each forward allows one backward."
            )
        cache, self._cache = self._cache, None
        return cache

    def forget(self) -> None:
        """Discard what forward stored, if no backward will follow."""
        self._cache = None

    def __getstate__(self) -> dict:
        """State for pickling and copying, without the cache of the last forward."""
        return vars(self) | {"_cache": None}

    def replica(self, keeps_results: bool = True) -> Layer:
        """The same layer for another thread: shared params and state, separate grads, cache and workspace.

        Parameters
        ----------
        keeps_results : bool
            False if the next call may overwrite the results (`tigra.kernels.workspace`).

        Returns
        -------
        Layer
            The replica.
        """
        twin = self.working_in(Workspace(keeps_results))
        twin.grads = {name: np.zeros_like(array) for name, array in self.params.items()}
        return twin

    def working_in(self, space: Workspace) -> Layer:
        """The same layer with a separate cache and the given workspace, for forward passes only.

        It shares `grads` with the original, so it must not run backward.
        """
        twin = object.__new__(type(self))  # like copy.copy but ten times faster; every prediction does this
        vars(twin).update(vars(self), _cache=None, _space=space)
        return twin

    def _check_signal(self, signal, n_maps: int | None, n_nodes: int | None) -> GraphSignal:
        """Check the numbers of maps and nodes (None: any) and the active sets; returns the signal."""
        name = type(self).__name__
        if not isinstance(signal, GraphSignal):
            raise ShapeError(f"{name} expects a GraphSignal, got {type(signal).__name__}.")
        values, active = signal
        fits = values.ndim == 3 and n_maps in (None, len(values)) and n_nodes in (None, values.shape[1])
        if not fits or values.dtype not in DTYPES:
            wanted = f"({n_maps or 'K'}, {n_nodes or 'N'}, B)"
            raise ShapeError(
                f"{name} expects real maps, float32 or float64, of shape {wanted} (maps, nodes, batch), got"
                f" {values.dtype} {values.shape}. Was the graph built for another image size?"
            )
        if values.size == 0:
            raise ShapeError(f"{name} expects at least one map, node and image, got maps of shape {values.shape}.")
        if active.dtype != BOOL or active.shape not in (values.shape, (1, *values.shape[1:])):
            raise ShapeError(
                f"{name} expects active sets as booleans of shape {values.shape}, or (1, ...) for one set for all"
                f" maps, got {active.dtype} {active.shape}."
            )
        return signal

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return sum(array.size for array in self.params.values())


def in_place_advice(layer: Layer, name: str) -> str:
    """The error message for a backward that replaces an array of `grads`, from which nothing would be learned."""
    layer_name = type(layer).__name__
    return f'{layer_name}.backward must write into grads[{name!r}]: self.grads["{name}"][:] = ..., not = ...'
