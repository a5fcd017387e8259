"""Oriented convolutions with a part left out, for `python -m benchmarks.ideas oriented`."""

from __future__ import annotations

import numpy as np

from tigra.layers import OrientedConv


class WithoutCross(OrientedConv):
    """An oriented convolution whose weights of cross products are 0 and stay 0."""

    def start(self) -> None:
        """Set the weights that are left out to 0."""
        self._left_out(self.params["alpha"])[:] = 0

    def backward(self, grad_x: np.ndarray) -> np.ndarray:
        """As in `OrientedConv`, but weights that are left out have gradient 0."""
        grad_y = super().backward(grad_x)
        self._left_out(self.grads["alpha"])[:] = 0
        return grad_y

    def _left_out(self, alpha: np.ndarray) -> np.ndarray:
        return alpha[:, -self.n_pairs :]


class WithoutProducts(WithoutCross):
    """The same for both products of gradients."""

    def _left_out(self, alpha: np.ndarray) -> np.ndarray:
        return alpha[:, -2 * self.n_pairs :]


class FixedPairs(WithoutCross):
    """An oriented convolution with pairs as they were drawn, which only the weights alpha learn to use."""

    def start(self) -> None:
        """All weights are used."""

    def backward(self, grad_x: np.ndarray) -> np.ndarray:
        """As in `OrientedConv`, but pairs have gradient 0."""
        grad_y = OrientedConv.backward(self, grad_x)
        self.grads["pairs"][:] = 0
        return grad_y


LAYERS: dict[str, type[WithoutCross]] = {  # ideas that are no options
    "no cross products": WithoutCross,
    "no products of gradients": WithoutProducts,
    "pairs not learned": FixedPairs,
}


def replace_layers(network, idea: str) -> None:
    """Make the oriented convolutions of a network such as the idea wants them."""
    for layer in network.layers if idea in LAYERS else []:
        if type(layer) is OrientedConv:
            layer.__class__ = LAYERS[idea]
            layer.start()
