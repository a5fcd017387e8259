"""Layer: the contract that every layer keeps (style: one forward, one backward, one cache)."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, TigraError
from tigra.graph import GraphSignal
from tigra.workspace import Workspace

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))  # those for which kernels are compiled


class Layer:
    """One step of a network, with its own derivative.

    forward(x) returns the output and keeps what backward needs in `self._cache`;
    backward(grad) takes dE/d(output), fills `grads` and returns dE/d(input).

    params : name -> array, learned; written in place, never rebound by a layer
    grads : name -> array of the same shape, overwritten by every backward
    state : name -> array, saved with the model but not learned
    takes : "signal", a GraphSignal or features, or "planes", arrays (C, H, W, B) of pixels
    is_training : whether forward may use the batch's own statistics, as batch normalisation does in training
    adapts : whether its state follows the images of the training, step by step, and parts of a batch must meet at it
        (`tigra.passes`)
    """

    takes = "signal"
    is_training = False
    adapts = False

    def __init__(self, **params: np.ndarray):
        for name, array in params.items():
            if not (isinstance(array, np.ndarray) and array.dtype in DTYPES):
                raise ShapeError(
                    f"{type(self).__name__} needs {name} as an array of float32 or float64, got {array!r}."
                )
        self.params = params
        self.grads = {name: np.zeros_like(array) for name, array in params.items()}
        self.state: dict[str, np.ndarray] = {}
        self._cache = None
        self._space = Workspace()

    def forward(self, x):
        """Output for input x."""
        raise NotImplementedError

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/d(input) from dE/d(output), after one forward; fills grads."""
        raise NotImplementedError

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

        keeps_results : False if its results may be overwritten by the next call (`tigra.workspace`)
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

    def _check_planes(self, x, n_maps: int | None = None, smallest: int = 1) -> np.ndarray:
        """x, if it holds planes (C, H, W, B) with the given number of maps (None: any) and at least that size."""
        name = type(self).__name__
        fits = isinstance(x, np.ndarray) and x.ndim == 4 and x.size > 0 and n_maps in (None, len(x))
        if not fits or x.dtype not in DTYPES or min(x.shape[1:3]) < smallest:
            size = f", H and W at least {smallest}" if smallest > 1 else ""
            wanted = f"real planes of shape ({n_maps or 'C'}, H, W, B){size}"
            raise ShapeError(f"{name} expects {wanted}, float32 or float64, got {_described(x)}.")
        return x

    def _check_harmonics(self, z, n_maps: int) -> np.ndarray:
        """z, if it holds harmonic maps (2, 2, C, H, W, B), as real and imaginary parts, with that number of maps."""
        fits = isinstance(z, np.ndarray) and z.ndim == 6 and z.shape[:3] == (2, 2, n_maps) and z.size > 0
        if not fits or z.dtype not in DTYPES:
            wanted = f"real planes of shape (2, 2, {n_maps}, H, W, B)"
            raise ShapeError(f"{type(self).__name__} expects {wanted}, float32 or float64, got {_described(z)}.")
        return z

    @property
    def n_parameters(self) -> int:
        """How many numbers the layer learns."""
        return sum(array.size for array in self.params.values())


def _described(x) -> str:
    return f"{x.dtype} {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
