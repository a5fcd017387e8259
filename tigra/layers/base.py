"""Layer: the contract that every layer keeps (style: one forward, one backward, one cache)."""

from __future__ import annotations

import copy

import numpy as np

from tigra.errors import TigraError


class Layer:
    """One step of a network, with its own derivative.

    forward(x) returns the output and keeps what backward needs in `self._cache`;
    backward(grad) takes dE/d(output), fills `grads` and returns dE/d(input).

    params : name -> array, learned; written in place, never rebound by a layer
    grads : name -> array of the same shape, overwritten by every backward
    state : name -> array, saved with the model but not learned
    """

    def __init__(self, **params: np.ndarray):
        self.params = params
        self.grads = {name: np.zeros_like(array) for name, array in params.items()}
        self.state: dict[str, np.ndarray] = {}
        self._cache = None

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

    def replica(self) -> Layer:
        """The same layer for another thread: shared params and state, own grads and cache."""
        twin = copy.copy(self)
        twin.grads = {name: np.zeros_like(array) for name, array in self.params.items()}
        twin._cache = None
        return twin

    @property
    def n_parameters(self) -> int:
        """How many numbers the layer learns."""
        return sum(array.size for array in self.params.values())
