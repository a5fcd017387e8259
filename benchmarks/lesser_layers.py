"""Layers with a part left out, for `python -m benchmarks.ideas`."""

from __future__ import annotations

import numpy as np

from tigra.layers import Dense, OrientedConv


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


class FixedPairs(WithoutCross):
    """An oriented convolution with pairs as they were drawn, which only the weights alpha learn to use."""

    def start(self) -> None:
        """All weights are used."""

    def backward(self, grad_x: np.ndarray) -> np.ndarray:
        """As in `OrientedConv`, but pairs have gradient 0."""
        grad_y = OrientedConv.backward(self, grad_x)
        self.grads["pairs"][:] = 0
        return grad_y


class Dropped(Dense):
    """A fully connected layer that sees half of its inputs in training, others for each image, and all in a test."""

    def start(self) -> None:
        """Seed what is left out; with one thread the same seed leaves out the same."""
        self.rng = np.random.default_rng(0)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """As in `Dense`; inputs that stay are doubled, so that their sum stays the same in the mean."""
        self.kept = 2 * (self.rng.random(x.shape) < 0.5).astype(x.dtype) if self.is_training else None
        return super().forward(x if self.kept is None else x * self.kept)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """As in `Dense`; what was left out has gradient 0."""
        grad_x = super().backward(grad)
        return grad_x if self.kept is None else grad_x * self.kept


DROPPED = "half of the last layer's inputs left out in training (dropout)"
LAYERS: dict[str, type[WithoutCross]] = {  # ideas that are no options
    "no cross products": WithoutCross,
    "pairs not learned": FixedPairs,
}


def replace_layers(network, idea: str) -> None:
    """Make the oriented convolutions, or the last layer, of a network such as the idea wants them."""
    if idea == DROPPED:
        network.layers[-1].__class__ = Dropped
        network.layers[-1].start()
    for layer in network.layers if idea in LAYERS else []:
        if type(layer) is OrientedConv:
            layer.__class__ = LAYERS[idea]
            layer.start()
