"""Layer: the contract that every layer keeps (style: one forward, one backward, one cache)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tigra.errors import ShapeError, TigraError
from tigra.graph import GraphSignal
from tigra.kernels.workspace import Workspace

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # those for which kernels are compiled


class Layer:
    """One step of a network, with its own derivative.

    forward(x) returns the output and keeps what backward needs in `self._cache`;
    backward(grad) takes dE/d(output), fills `grads` and returns dE/d(input).

    params : name -> array, learned; written in place, never rebound by a layer
    grads : name -> array of the same shape, overwritten by every backward
    state : name -> array, saved with the model but not learned
    is_training : whether forward may use the batch's own statistics, as batch normalisation does in training

    What a layer answers for itself, so that nobody else needs to know its class:

    label : its name in the paper's notation, where it has one
    gives_features : True if its output is the network's feature vector (`Network.features`)
    uses_batch_statistics : True for batch normalisation: forward needs sums over the whole batch
        (`tigra.models.batch_statistics.BatchStatistics`)
    calibration_images : how many training images `calibrate` wants to see before training; 0 none, None all
    needs_calibration : whether `calibrate` was not called yet
    positive_state, nonnegative_state : names of state arrays whose values must be > 0, or >= 0; a model file is refused
        where they are not
    """

    is_training = False
    gives_features = False
    uses_batch_statistics = False
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
        self._cache: Any = None  # each layer keeps what its own backward needs
        self._space = Workspace()

    def forward(self, x):
        """Output for input x."""
        raise NotImplementedError

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/d(input) from dE/d(output), after one forward; fills grads."""
        raise NotImplementedError

    @property
    def needs_calibration(self) -> bool:
        """Whether `calibrate` was not called yet; the base layer has nothing to set."""
        return False

    def calibrate(self, x) -> None:
        """Set constants from what arrives here for training images, before training; the base layer has none."""

    def decisions(self, x, y) -> list[np.ndarray]:
        """After y = forward(x): every yes-or-no decision, such as signs and active sets, as arrays.

        Where they change with a small step the layer has a kink, and a difference quotient is meaningless.
        """
        return []

    @classmethod
    def image_input(cls, values: np.ndarray, image_shape: tuple[int, int]):
        """What a network that begins with this layer gives it for images (1, N, B): y_0, active on all nodes."""
        return GraphSignal(values, np.ones(values.shape, bool))

    @property
    def label(self) -> str:
        """The layer in the paper's notation, where it has one; else the name of its class."""
        return type(self).__name__

    def _take_cache(self):
        """What forward kept; it can be taken once."""
        if self._cache is None:
            raise TigraError(
                f"{type(self).__name__}.backward needs a forward of its own before it;"
                " each forward allows one backward."
            )
        cache, self._cache = self._cache, None
        return cache

    def forget(self) -> None:
        """Drop what forward kept, where no backward will follow."""
        self._cache = None

    def __getstate__(self) -> dict:
        """What is pickled or copied: all but what a forward kept for its backward."""
        return vars(self) | {"_cache": None}

    def replica(self, keeps_results: bool = True) -> Layer:
        """The same layer for another thread: shared params and state, own grads, cache and workspace.

        keeps_results : False if its results may be overwritten by the next call (`tigra.kernels.workspace`)
        """
        twin = self.working_in(Workspace(keeps_results))
        twin.grads = {name: np.zeros_like(array) for name, array in self.params.items()}
        return twin

    def working_in(self, space: Workspace) -> Layer:
        """The same layer, as it is now, with a cache of its own and another workspace; for forwards alone.

        Its gradients are those of the layer itself: it must not go backward beside it.
        """
        twin = object.__new__(type(self))  # as copy.copy, in a tenth of the time: predictions do this all along
        vars(twin).update(vars(self), _cache=None, _space=space)
        return twin

    def _check_signal(self, signal, n_maps: int | None, n_nodes: int | None) -> GraphSignal:
        """The signal, if it has the given numbers of maps and nodes (None: any) and sets that fit."""
        name = type(self).__name__
        if not isinstance(signal, GraphSignal):
            raise ShapeError(f"{name} expects a GraphSignal, got {type(signal).__name__}.")
        values, active = signal
        wanted = f"({n_maps or 'K'}, {n_nodes or 'N'}, B)"
        fits = values.ndim == 3 and n_maps in (None, len(values)) and n_nodes in (None, values.shape[1])
        if not fits or values.dtype not in DTYPES:
            raise ShapeError(
                f"{name} expects real maps, float32 or float64, of shape {wanted} (maps, nodes, batch), got"
                f" {values.dtype} {values.shape}. Was the graph built for another image size?"
            )
        if values.size == 0:
            raise ShapeError(f"{name} expects at least one map, node and image, got maps of shape {values.shape}.")
        if active.dtype != bool or active.shape not in (values.shape, (1, *values.shape[1:])):
            raise ShapeError(
                f"{name} expects active sets as booleans of shape {values.shape}, or (1, ...) for one set for all"
                f" maps, got {active.dtype} {active.shape}."
            )
        return signal

    @property
    def n_parameters(self) -> int:
        """How many numbers the layer learns."""
        return sum(array.size for array in self.params.values())
