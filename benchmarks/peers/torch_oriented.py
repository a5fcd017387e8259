"""Oriented networks in PyTorch, the default networks of tigra: idiomatic, channels last, by hand, compiled."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from tigra.layers import Coarsen, Dense, FeatureNorm, Logarithm, MapNorm, OrientedConv, ReLU, Statistics
from tigra.layers.map_norm import EPSILON, FEATURE_EPSILON
from tigra.models.network import Network


class Stencil(torch.autograd.Function):
    """The same 3x3 stencils for all maps; backward is a forward with the turned stencils, which autograd does not know.

    sign : 1 for symmetric stencils, -1 for antisymmetric ones
    """

    @staticmethod
    def forward(ctx, x, weight, sign):
        """x (B, K, H, W)  ->  x filtered."""
        ctx.save_for_backward(weight)
        ctx.sign = sign
        return functional.conv2d(x, weight, padding=1, groups=len(weight))

    @staticmethod
    def backward(ctx, grad):
        """The adjoint; stencils are constants."""
        (weight,) = ctx.saved_tensors
        grad = grad.contiguous(memory_format=torch.channels_last)
        return ctx.sign * functional.conv2d(grad, weight, padding=1, groups=len(weight)), None, None


class IdiomaticOriented:
    """Maps (B, K, H, W), autograd, depthwise convolutions for L and D, 1x1 convolutions for the weights.

    It keeps no running averages while it trains, which saves it a little.
    """

    name = "PyTorch, idiomatic"
    layout = torch.contiguous_format
    fused = by_hand = compiled = False

    def __init__(self, network: Network, rate: float):
        self.layers = network.layers
        self.params = [
            {name: torch.tensor(array, requires_grad=True) for name, array in layer.params.items()}
            for layer in network.layers
        ]
        self.tensors = [tensor for params in self.params for tensor in params.values()]
        self.dtype = torch.tensor(np.zeros(0, network.dtype)).dtype
        self.shape = network.options.grid_shape
        self.is_training = True
        self.stencils: dict = {}
        self.adam = torch.optim.Adam(self.tensors, lr=rate, fused=self.fused)
        self.run = torch.compile(self.forward) if self.compiled else self.forward

    # --- what is raced --------------------------------------------------------------------------------------

    def loss_and_gradient(self, rows, labels):
        """Loss, and its gradient as one vector."""
        loss = self._backward(rows, labels)
        return loss, np.concatenate([tensor.grad.numpy().ravel() for tensor in self.tensors])

    def step(self, rows, labels) -> float:
        """One training step; returns the loss before it."""
        loss = self._backward(rows, labels)
        self.adam.step()
        return loss

    def scores(self, rows) -> np.ndarray:
        """(B, N) -> (B, n_classes), with running averages."""
        self.is_training = False
        with torch.inference_mode():
            found = self.run(self._maps(rows)).numpy()
        self.is_training = True
        return found

    def _backward(self, rows, labels) -> float:
        self.adam.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.run(self._maps(rows)), torch.from_numpy(labels))
        loss.backward()
        return loss.item()

    def _maps(self, rows):
        return torch.from_numpy(rows).reshape(len(rows), 1, *self.shape).contiguous(memory_format=self.layout)

    # --- the layers -----------------------------------------------------------------------------------------

    def forward(self, x):
        """Images (B, 1, H, W) -> scores (B, n_classes)."""
        steps = {
            OrientedConv: self._oriented_conv,
            MapNorm: self._map_norm,
            Coarsen: lambda layer, params, x: functional.avg_pool2d(self._smooth(layer, x), 2),
            Statistics: self._statistics,
            Logarithm: lambda layer, params, x: torch.log(x + torch.as_tensor(layer.state["offset"])),
            FeatureNorm: self._feature_norm,
            Dense: lambda layer, params, x: functional.linear(x, params["weight"], params["bias"]),
            ReLU: lambda layer, params, x: functional.relu(x),
        }
        for layer, params in zip(self.layers, self.params, strict=True):
            x = steps[type(layer)](layer, params, x)
        return x

    def _oriented_conv(self, layer, params, y):
        powers = [y]
        for _ in range(layer.degree):
            powers.append(self._laplacian(layer, powers[-1]))
        pairs = functional.conv2d(torch.cat(powers[:2], 1), params["pairs"].reshape(2 * layer.n_pairs, -1, 1, 1))
        across, down = self._gradient(layer, pairs)
        (a_x, b_x), (a_y, b_y) = across.chunk(2, 1), down.chunk(2, 1)
        terms = torch.cat([*powers, a_x * b_x + a_y * b_y, a_x * b_y - a_y * b_x], 1)
        return functional.conv2d(terms, params["alpha"][:, :, None, None])

    def _map_norm(self, layer, params, x):
        if self.is_training:
            variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        else:
            mean, variance = self._running(layer)
        scale = params["gamma"] * torch.rsqrt(variance + EPSILON)
        shift = params["beta"] - mean * scale
        z = functional.relu(x * scale[:, None, None] + shift[:, None, None])
        z = z - functional.relu(shift)[:, None, None]
        for _ in range(layer.diffusion):
            z = self._smooth(layer, z)
        return z

    def _statistics(self, layer, params, z):
        before, now, found = None, z, []
        for order in range(layer.max_order + 1):
            if order:
                step = self._laplacian(layer, now) - now
                before, now = now, step if before is None else 2 * step - before
            size = now.abs()
            found.append(torch.stack([size.mean((2, 3)), size.var((2, 3), correction=0)], 2))
        return torch.stack(found, 2).flatten(1)

    def _feature_norm(self, layer, params, x):
        if self.is_training:
            variance, mean = torch.var_mean(x, 0, correction=0)
        else:
            mean, variance = self._running(layer)
        return (x - mean) * torch.rsqrt(variance + FEATURE_EPSILON)

    def _running(self, layer):
        return (torch.as_tensor(layer.state[f"running_{name}"] / layer.state["total"]) for name in ("mean", "variance"))

    # --- stencils -------------------------------------------------------------------------------------------

    def _laplacian(self, layer, x):
        return self._filtered(x, "L", layer.graph, 1)

    def _smooth(self, layer, x):
        return self._filtered(x, "I - L/2", layer.graph, 1)

    def _gradient(self, layer, x):
        return self._filtered(x, "D_x", layer.graph, -1), self._filtered(x, "D_y", layer.graph, -1)

    def _filtered(self, x, name, graph, sign):
        key = name, graph.diagonal_weight, x.shape[1]
        if key not in self.stencils:
            stencil = torch.tensor(_stencils(graph.diagonal_weight)[name], dtype=self.dtype)
            self.stencils[key] = stencil.expand(x.shape[1], 1, 3, 3).contiguous()
        if self.by_hand:
            return Stencil.apply(x, self.stencils[key], sign)
        return functional.conv2d(x, self.stencils[key], padding=1, groups=x.shape[1])


class ChannelsLastOriented(IdiomaticOriented):
    """The same with the maps innermost, which oneDNN's convolutions prefer."""

    name = "PyTorch, channels last"
    layout = torch.channels_last


class ByHandOriented(ChannelsLastOriented):
    """Channels last, the stencils' gradients by hand, fused Adam: the fastest that we found."""

    name = "PyTorch, channels last, gradients of stencils by hand"
    fused = by_hand = True


class CompiledOriented(ChannelsLastOriented):
    """`torch.compile` of the whole forward, and of the backward that it derives."""

    name = "PyTorch, channels last, compiled"
    fused = compiled = may_not_run = True


def _stencils(weight: float) -> dict[str, list]:
    """3x3 stencils of L, I - L/2, and the two components of D."""
    straight, diagonal, slope = 1 / (4 + 4 * weight), weight / (4 + 4 * weight), 1 / (2 + 4 * weight)
    laplacian = -np.array([[diagonal, straight, diagonal], [straight, -1, straight], [diagonal, straight, diagonal]])
    across = slope * np.array([[-weight, 0, weight], [-1, 0, 1], [-weight, 0, weight]])
    identity = np.zeros((3, 3))
    identity[1, 1] = 1
    return {"L": laplacian.tolist(), "I - L/2": (identity - laplacian / 2).tolist()} | {
        "D_x": across.tolist(),
        "D_y": across.T.tolist(),
    }
