"""Oriented networks in PyTorch, the default networks of tigra: idiomatic, channels last, by hand, compiled.

A network is a `Sequential` of modules, one for each layer of tigra. Their weights are parameters; stencils, offsets and
running averages are constant buffers. A forward is therefore a function of tensors alone, as torch.compile wants it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tigra.layers import Coarsen, Dense, FeatureNorm, Logarithm, MapNorm, OrientedConv, ReLU, Statistics
from tigra.layers.map_norm import EPSILON, FEATURE_EPSILON
from tigra.models.network import Network

# --- stencils -----------------------------------------------------------------------------------------------


class Adjoint(torch.autograd.Function):
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


class Filter(nn.Module):
    """A 3x3 stencil, the same for all maps, as a depthwise convolution."""

    def __init__(self, stencil: np.ndarray, n_maps: int, dtype):
        super().__init__()
        weight = torch.tensor(stencil, dtype=dtype)
        self.register_buffer("weight", weight.expand(n_maps, 1, 3, 3).contiguous())

    def forward(self, x):
        """(B, K, H, W) -> (B, K, H, W)"""
        return functional.conv2d(x, self.weight, padding=1, groups=x.shape[1])


class FilterByHand(Filter):
    """The same with `Adjoint`."""

    def __init__(self, stencil: np.ndarray, n_maps: int, dtype):
        super().__init__(stencil, n_maps, dtype)
        self.sign = 1 if np.array_equal(stencil, stencil[::-1, ::-1]) else -1

    def forward(self, x):
        """(B, K, H, W) -> (B, K, H, W)"""
        return Adjoint.apply(x, self.weight, self.sign)


def stencils(weight: float) -> dict[str, np.ndarray]:
    """3x3 stencils of L, I - L/2, and the two components of D."""
    straight, diagonal, slope = 1 / (4 + 4 * weight), weight / (4 + 4 * weight), 1 / (2 + 4 * weight)
    laplacian = -np.array([[diagonal, straight, diagonal], [straight, -1, straight], [diagonal, straight, diagonal]])
    across = slope * np.array([[-weight, 0, weight], [-1, 0, 1], [-weight, 0, weight]])
    identity = np.zeros((3, 3))
    identity[1, 1] = 1
    return {"L": laplacian, "I - L/2": identity - laplacian / 2, "D_x": across, "D_y": across.T}


# --- layers -------------------------------------------------------------------------------------------------


class LayerModule(nn.Module):
    """A layer of tigra as a module: its parameters, its state as buffers, and the filters that it names."""

    filters: tuple[str, ...] = ()

    def __init__(self, layer, n_maps: int, filter_class: type[nn.Module], dtype):
        super().__init__()
        for name, array in layer.params.items():
            self.register_parameter(name, nn.Parameter(torch.tensor(array)))
        for name, array in layer.state.items():
            self.register_buffer(name, torch.tensor(array))
        found = stencils(layer.graph.diagonal_weight) if self.filters else {}
        n_filtered = {"D_x": 2 * n_maps, "D_y": 2 * n_maps}  # the pairs, as many as maps
        self.filtered = nn.ModuleList(
            filter_class(found[name], n_filtered.get(name, n_maps), dtype) for name in self.filters
        )
        self.prepare(layer)

    def prepare(self, layer) -> None:
        """Take over what else the layer has."""


class OrientedConvModule(LayerModule):
    """`tigra.layers.OrientedConv` with 1x1 convolutions."""

    filters = "L", "D_x", "D_y"

    def prepare(self, layer):
        """The degree of the filters."""
        self.degree, self.n_pairs = layer.degree, layer.n_pairs

    def forward(self, y):
        """(B, K_in, H, W) -> (B, K_out, H, W)"""
        laplacian, across, down = self.filtered
        powers = [y]
        for _ in range(self.degree):
            powers.append(laplacian(powers[-1]))
        pairs = functional.conv2d(torch.cat(powers[:2], 1), self.pairs.reshape(2 * self.n_pairs, -1, 1, 1))
        (a_x, b_x), (a_y, b_y) = across(pairs).chunk(2, 1), down(pairs).chunk(2, 1)
        terms = torch.cat([*powers, a_x * b_x + a_y * b_y, a_x * b_y - a_y * b_x], 1)
        return functional.conv2d(terms, self.alpha[:, :, None, None])


class MapNormModule(LayerModule):
    """`tigra.layers.MapNorm`, without keeping running averages."""

    filters = ("I - L/2",)

    def prepare(self, layer):
        """The steps of diffusion."""
        self.diffusion = layer.diffusion

    def forward(self, x):
        """(B, K, H, W) -> (B, K, H, W)"""
        if self.training:
            variance, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        else:
            mean, variance = self.running_mean / self.total, self.running_variance / self.total
        scale = self.gamma * torch.rsqrt(variance + EPSILON)
        shift = self.beta - mean * scale
        z = functional.relu(x * scale[:, None, None] + shift[:, None, None])
        z = z - functional.relu(shift)[:, None, None]
        for _ in range(self.diffusion):
            z = self.filtered[0](z)
        return z


class CoarsenModule(LayerModule):
    """`tigra.layers.Coarsen` of grids with even sides."""

    filters = ("I - L/2",)

    def forward(self, y):
        """(B, K, H, W) -> (B, K, H/2, W/2)"""
        return functional.avg_pool2d(self.filtered[0](y), 2)


class StatisticsModule(LayerModule):
    """`tigra.layers.Statistics`."""

    filters = ("L",)

    def prepare(self, layer):
        """The highest order."""
        self.max_order = layer.max_order

    def forward(self, z):
        """(B, K, H, W) -> (B, F)"""
        before, now, found = None, z, []
        for order in range(self.max_order + 1):
            if order:
                step = self.filtered[0](now) - now
                before, now = now, step if before is None else 2 * step - before
            size = now.abs()
            found.append(torch.stack([size.mean((2, 3)), size.var((2, 3), correction=0)], 2))
        return torch.stack(found, 2).flatten(1)


class LogarithmModule(LayerModule):
    """`tigra.layers.Logarithm`."""

    def forward(self, x):
        """(B, F) -> (B, F)"""
        return torch.log(x + self.offset)


class FeatureNormModule(LayerModule):
    """`tigra.layers.FeatureNorm`, without keeping running averages."""

    def forward(self, x):
        """(B, F) -> (B, F)"""
        if self.training:
            variance, mean = torch.var_mean(x, 0, correction=0)
        else:
            mean, variance = self.running_mean / self.total, self.running_variance / self.total
        return (x - mean) * torch.rsqrt(variance + FEATURE_EPSILON)


class DenseModule(LayerModule):
    """`tigra.layers.Dense`."""

    def forward(self, x):
        """(B, F) -> (B, G)"""
        return functional.linear(x, self.weight, self.bias)


class ReLUModule(LayerModule):
    """`tigra.layers.ReLU`."""

    def forward(self, x):
        """(B, F) -> (B, F)"""
        return functional.relu(x)


MODULES: dict[type, type[LayerModule]] = {
    OrientedConv: OrientedConvModule,
    MapNorm: MapNormModule,
    Coarsen: CoarsenModule,
    Statistics: StatisticsModule,
    Logarithm: LogarithmModule,
    FeatureNorm: FeatureNormModule,
    Dense: DenseModule,
    ReLU: ReLUModule,
}


def modules(network: Network, filter_class: type[nn.Module]) -> nn.Sequential:
    """The layers of a network."""
    found, n_maps = [], 1
    dtype = torch.from_numpy(np.empty(0, network.dtype)).dtype
    for layer in network.layers:
        found.append(MODULES[type(layer)](layer, n_maps, filter_class, dtype))
        n_maps = len(layer.params["alpha"]) if "alpha" in layer.params else n_maps
    return nn.Sequential(*found)


# --- what is raced ------------------------------------------------------------------------------------------


class IdiomaticOriented:
    """Maps (B, K, H, W), autograd, depthwise convolutions for L and D, 1x1 convolutions for the weights.

    It keeps no running averages while it trains, which saves it a little.
    """

    name = "PyTorch, idiomatic"
    layout = torch.contiguous_format
    filter_class: type[nn.Module] = Filter
    fused = False

    def __init__(self, network: Network, rate: float):
        self.shape = network.options.grid_shape
        self.network = modules(network, self.filter_class)
        self.adam = torch.optim.Adam(self.network.parameters(), lr=rate, fused=self.fused)
        self.run = self.network

    def loss_and_gradient(self, rows, labels):
        """Loss, and its gradient as one vector."""
        loss = self._backward(rows, labels)
        return loss, np.concatenate([tensor.grad.numpy().ravel() for tensor in self.network.parameters()])

    def step(self, rows, labels) -> float:
        """One training step; returns the loss before it."""
        loss = self._backward(rows, labels)
        self.adam.step()
        return loss

    def scores(self, rows) -> np.ndarray:
        """(B, N) -> (B, n_classes), with running averages."""
        self.network.eval()
        with torch.inference_mode():
            return self.run(self._maps(rows)).numpy()

    def _backward(self, rows, labels) -> float:
        self.network.train()
        self.adam.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self.run(self._maps(rows)), torch.from_numpy(labels))
        loss.backward()
        return loss.item()

    def _maps(self, rows):
        return torch.from_numpy(rows).reshape(len(rows), 1, *self.shape).contiguous(memory_format=self.layout)


class ChannelsLastOriented(IdiomaticOriented):
    """The same with the maps innermost, which oneDNN's convolutions prefer."""

    name = "PyTorch, channels last"
    layout = torch.channels_last


class ByHandOriented(ChannelsLastOriented):
    """Channels last, the stencils' gradients by hand, fused Adam: the fastest without compilation."""

    name = "PyTorch, channels last, gradients of stencils by hand"
    filter_class, fused = FilterByHand, True


class CompiledOriented(ByHandOriented):
    """`torch.compile` of that, forward and backward: it makes few loops of all that is no convolution."""

    name = "PyTorch, channels last, compiled"
    may_not_run = True

    def __init__(self, network: Network, rate: float):
        super().__init__(network, rate)
        torch._dynamo.config.recompile_limit = 256  # one for each shape, dtype and number of threads
        self.run = torch.compile(self.network, dynamic=False)
