"""What all peers in PyTorch share: parameters, fully connected layers, loss, Adam. Imports torch."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from benchmarks.peers.plan import Plan


class TorchPeer:
    """A network in PyTorch; subclasses say how images become features (B, F).

    fused : Adam as one kernel over all parameters
    """

    name = "PyTorch"
    fused = False

    def __init__(self, plan: Plan, rate: float):
        self.plan = plan
        self.tensors = [torch.tensor(array, requires_grad=True) for array in plan.arrays]
        n_filters = len(plan.filters)
        pairs = [tuple(self.tensors[i : i + 2]) for i in range(0, len(self.tensors), 2)]
        self.filters, self.dense = pairs[:n_filters], pairs[n_filters:]
        self.mean, self.deviation = torch.tensor(plan.mean), torch.tensor(plan.deviation)
        self.dtype = self.mean.dtype
        self.adam = torch.optim.Adam(self.tensors, lr=rate, fused=self.fused)

    def features(self, images):
        """Images (B, N) -> statistics (B, F), ordered by map, order, and mean before variance."""
        raise NotImplementedError

    def forward(self, images):
        """Images (B, N) -> scores (B, n_classes)."""
        x = (self.features(images) - self.mean) / self.deviation
        for number, (weight, bias) in enumerate(self.dense):
            x = functional.linear(functional.relu(x) if number else x, weight, bias)
        return x

    def _backward(self, images, labels):
        self.adam.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.forward(torch.from_numpy(images)), torch.from_numpy(labels))
        loss.backward()
        return loss.item()

    def loss_and_gradient(self, images, labels):
        """Loss, and its gradient as one vector."""
        loss = self._backward(images, labels)
        return loss, np.concatenate([tensor.grad.numpy().ravel() for tensor in self.tensors])

    def step(self, images, labels) -> float:
        """One training step; returns the loss before it."""
        loss = self._backward(images, labels)
        self.adam.step()
        return loss

    def scores(self, images) -> np.ndarray:
        """(B, N) -> (B, n_classes)."""
        with torch.inference_mode():
            return self.forward(torch.from_numpy(images)).numpy()

    @property
    def parameters(self) -> np.ndarray:
        """All parameters as one vector."""
        return np.concatenate([tensor.detach().numpy().ravel() for tensor in self.tensors])


def stencil(plan: Plan, dtype):
    """The 3x3 kernel of the normalised adjacency, L = I - it, as (1, 1, 3, 3)."""
    straight, diagonal = plan.stencil_weights
    row, middle = [diagonal, straight, diagonal], [straight, 0.0, straight]
    return torch.tensor([[[row, middle, row]]], dtype=dtype)
