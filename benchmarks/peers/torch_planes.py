"""Layers of the networks to compare with, in PyTorch: batch first, torch's own operations, autograd."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from tigra.baselines import Conv, HarmonicConv, MaxPool, SpatialTransformer
from tigra.baselines.harmonic.harmonic_conv import ring_basis


class TorchPlanes:
    """Forward and backward of one layer on a whole batch; `results` has batch-last arrays like tigra's layer."""

    def __init__(self, layer, x: np.ndarray, grad: np.ndarray, needs_input: bool = True):
        self.layer = layer
        self.x = _batch_first(x).requires_grad_(needs_input)
        self.grad = _batch_first(grad)
        self.leaves = [torch.tensor(array, requires_grad=True) for array in layer.params.values()]

    def __call__(self):
        for leaf in (self.x, *self.leaves):
            leaf.grad = None
        self.y = OPERATIONS[type(self.layer)](self.layer, self.x, *self.leaves)
        self.y.backward(self.grad)

    def results(self) -> list[np.ndarray]:
        """Output, gradient of the input, gradients of the parameters."""
        self()
        arrays = [_batch_last(self.y), _batch_last(self.x.grad)]
        return arrays + [leaf.grad.numpy() for leaf in self.leaves]


def _batch_first(array: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.moveaxis(array, -1, 0).copy())


def _batch_last(tensor: torch.Tensor) -> np.ndarray:
    return np.moveaxis(tensor.detach().numpy(), 0, -1)


def _spatial_transformer(layer, x, hidden_weight, hidden_bias, theta_weight, theta_bias):
    hidden = functional.relu(functional.linear(functional.avg_pool2d(x, 2).flatten(1), hidden_weight, hidden_bias))
    theta = functional.linear(hidden, theta_weight, theta_bias).reshape(-1, 2, 3)
    grid = functional.affine_grid(theta, (*x.shape[:2], *layer.size), align_corners=True)
    return functional.grid_sample(x, grid, mode="bilinear", padding_mode=layer.outside, align_corners=True)


def _harmonic_conv(layer, x, radial, phase):
    """One real convolution of all orders and parts at once, which is faster here than four for each complex one.

    x : (B, 2 orders, 2 parts, C, H, W); a complex filter W is the real matrix [[Re, -Im], [Im, Re]].
    """
    rings = [torch.tensor(ring_basis(m)).to(torch.complex64) for m in (0, 1)]
    filters = {}
    for m in (0, 1):
        amplitude = layer.unit * radial[m] * torch.exp(-1j * phase[m])
        filters[m] = torch.einsum("aij,aco->ocij", rings[m], amplitude)
    filters[-1] = filters[1].conj()
    rows = []
    for order_out in (0, 1):
        of = [filters[order_out - n] for n in (0, 1)]
        rows.append(torch.cat([torch.cat([w.real, -w.imag], dim=1) for w in of], dim=1))
        rows.append(torch.cat([torch.cat([w.imag, w.real], dim=1) for w in of], dim=1))
    y = functional.conv2d(x.flatten(1, 3), torch.cat(rows), padding=2)
    return y.reshape(len(x), 2, 2, -1, *x.shape[-2:])


OPERATIONS = {
    Conv: lambda layer, x, weight, bias: functional.conv2d(x, weight, bias),
    MaxPool: lambda layer, x: functional.max_pool2d(x, layer.size),
    SpatialTransformer: _spatial_transformer,
    HarmonicConv: _harmonic_conv,
}
