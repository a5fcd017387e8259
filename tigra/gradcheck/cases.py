"""Cases of the gradient checks: small layers with inputs away from their kinks, and small networks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tigra.baselines import (
    Conv,
    Flatten,
    HarmonicConv,
    InvariantHead,
    MaxPool,
    MeanPool,
    ModulusNorm,
    ModulusReLU,
    SpatialTransformer,
    StandardisePixels,
)
from tigra.gradcheck.inputs import BATCH, GRID, MARGIN, random_signal, spaced
from tigra.gradcheck.oriented_cases import ORIENTED_CASES
from tigra.graph import GraphSignal, grid_graph
from tigra.graph.polynomials import chebyshev
from tigra.layers import (
    Dense,
    DynamicPool,
    Layer,
    Logarithm,
    PairedConv,
    ReLU,
    SpectralConv,
    Standardise,
    Statistics,
)

NETWORK_CASES: dict[str, tuple[str, tuple[int, int], dict]] = {  # architecture, image shape and options
    "Network": ("SC[2, 2]-DP[14]-SC[3, 2]-DP[10]-S[2]-FC[5]-FC[4]", (4, 5), {}),
    "Oriented": ("OC[2, 2]-GC[2]-OC[2, 1]-DP[5]-S[1]-FC[4]", (5, 6), {"batch_norm": True, "diffusion": 1}),
    "ConvNet": ("C[2]-P[2]-C[2]-FC[4]", (9, 8), {}),
    "STN": ("C[2]-ST[6]-C[2]-FC[4]", (9, 8), {}),
    "HarmNet": ("HRC[1, 2]-HCN[2]-HRC[2, 1]-HRC[1, 2]-HCN[2]-HRC[2, 1]", (4, 4), {}),
}

SECTIONS = {  # of docs/derivations.md
    "Loss": 1, "Dense": 2, "ReLU": 3, "Standardise": 4, "Logarithm": 4, "Statistics": 5, "DynamicPool": 6,
    "SpectralConv": 7, "Network": 8, "StandardisePixels": 11, "Flatten": 11, "MaxPool": 11, "Conv": 12,
    "SpatialTransformer": 13, "HarmonicConv": 14, "ModulusReLU": 15, "ModulusNorm": 16, "MeanPool": 17,
    "InvariantHead": 17, "PairedConv": 19, "OrientedConv": 20, "MapNorm": 21, "FeatureNorm": 21, "Coarsen": 22,
}  # fmt: skip


def _spectral_conv(active, mixing, n_sets):
    def make(rng):
        alpha = rng.standard_normal((3, 4))
        beta = rng.standard_normal(2 if mixing == "vector" else (3, 2))
        return SpectralConv(grid_graph(GRID), alpha, beta, active), random_signal(rng, 2, n_sets)

    return make


def _paired_conv(active, n_sets, gradients=0, diffusion=0, boundary="padded"):
    def make(rng):
        while True:  # redraw until no sum is within MARGIN of its threshold, the kink of the rectifier
            alpha, threshold = rng.standard_normal((3, 2 + max(1, gradients), 2)), rng.uniform(-0.5, 0.5, 3)
            graph = grid_graph(GRID, boundary=boundary)
            layer = PairedConv(graph, alpha, threshold, active, gradients, diffusion)
            layer.state["deviation"][:] = rng.uniform(0.5, 2, 3)
            signal = random_signal(rng, 2, n_sets)
            sums, threshold = layer.sums(signal), np.abs(layer.params["threshold"])[:, None]
            if np.abs(sums - threshold).min() > MARGIN:
                return layer, signal

    return make


def _dynamic_pool(rng):
    values, active = random_signal(rng, 3, 1)
    return DynamicPool(n_active=5), GraphSignal(spaced(values, rng), active)


def _statistics(boundary):
    def make(rng):
        graph = grid_graph((4, 4), boundary=boundary)
        while True:  # redraw until no abs(t) is in (0, MARGIN), near the kink of abs
            signal = random_signal(rng, 2, 2)
            t = np.abs([t.copy() for t in chebyshev(graph, signal.values, 4)])
            if not np.any((t > 0) & (t < MARGIN)):
                return Statistics(graph, max_order=4), signal

    return make


def _logarithm(rng):
    return Logarithm(rng.uniform(0.1, 1, 4)), rng.uniform(0, 2, (4, BATCH))


def _standardise(rng):
    return Standardise(rng.standard_normal(5), rng.uniform(0.5, 2, 5)), rng.standard_normal((5, BATCH))


def _dense(rng):
    return Dense(rng.standard_normal((3, 4)), rng.standard_normal(3)), rng.standard_normal((4, BATCH))


def _relu(rng):
    return ReLU(), spaced(np.empty((5, BATCH)), rng) + 5 * MARGIN


def _planes(rng, n_maps=2, shape=(5, 4)) -> np.ndarray:
    return rng.standard_normal((n_maps, *shape, BATCH))


def _conv(rng):
    return Conv(rng.standard_normal((3, 2, 3, 3)), rng.standard_normal(3)), _planes(rng)


def _max_pool(rng):
    return MaxPool(2), spaced(_planes(rng, shape=(5, 7)), rng)


def _spatial_transformer(outside):
    def make(rng):
        shape, n_hidden = (2, 6, 5), 3
        weights = rng.standard_normal((n_hidden, 2 * 3 * 2)), rng.standard_normal(n_hidden)
        to_theta = 0.1 * rng.standard_normal((6, n_hidden)), np.array([0.9, 0.4, 0.1, -0.4, 0.9, 0.2])
        layer = SpatialTransformer(shape, *weights, *to_theta, outside)
        while True:  # redraw until no position is near a pixel's row or column, and no hidden unit near 0
            x = _planes(rng, 2, shape[1:])
            _, hidden, theta = layer._localise(x)
            places = layer._places(theta)
            off = np.abs(places - np.round(places)).min() > MARGIN and (hidden > 0).any(axis=1).all()
            if off and not np.any((hidden > 0) & (hidden < 10 * MARGIN)):
                return layer, x

    return make


def _harmonic_conv(real, phases=True):
    def make(rng):
        phase = rng.uniform(0, 6, (2, 2, 3)) if phases else None
        layer = HarmonicConv(rng.standard_normal((2, 4, 2, 3)), phase, real, unit=0.1)
        return layer, _planes(rng, 2, (4, 3)) if real else _harmonics(rng, 2, (4, 3))

    return make


def _harmonics(rng, n_maps=2, shape=(3, 3)) -> np.ndarray:
    """Harmonic maps with moduli between 0.5 and 1.5, as real arrays (2, 2, C, H, W, B)."""
    size = (2, n_maps, *shape, BATCH)
    z = rng.uniform(0.5, 1.5, size) * np.exp(2j * np.pi * rng.uniform(size=size))
    return np.stack([z.real, z.imag], axis=1)


def _modulus_relu(rng):
    layer, z = ModulusReLU(np.array([[-0.9, 0.1], [-1.0, -0.8]])), _harmonics(rng)
    while np.abs(_moduli(z) + layer.params["bias"][:, :, None, None, None]).min() < MARGIN:
        z = _harmonics(rng)
    return layer, z


def _moduli(z) -> np.ndarray:
    return np.sqrt(np.square(z).sum(axis=1))


def _modulus_norm(is_training):
    def make(rng):
        gamma, beta = rng.uniform(0.5, 1.5, (2, 2)), rng.uniform(-0.3, 0.3, (2, 2))
        layer = ModulusNorm(gamma, beta, np.full((2, 2), 0.45), np.full((2, 2), 0.05), np.full(1, 0.5))
        layer.is_training = is_training
        while True:
            z = _harmonics(rng)
            layer.forward(z)
            _, _, _, _, scale, offset = layer._cache
            layer.forget()
            a = scale[:, :, None, None, None] * _moduli(z) + offset[:, :, None, None, None]
            if np.abs(a).min() > 10 * MARGIN:
                return layer, z

    return make


LAYER_CASES: dict[str, Callable[[np.random.Generator], tuple[Layer, object]]] = {
    "SpectralConv": _spectral_conv("map", "vector", 2),
    "SpectralConv, first layer": _spectral_conv("map", "vector", 1),
    "SpectralConv, union": _spectral_conv("union", "vector", 2),
    "SpectralConv, full mixing": _spectral_conv("map", "full", 2),
    "SpectralConv, full mixing, union": _spectral_conv("union", "full", 2),
    "PairedConv": _paired_conv("map", 2),
    "PairedConv, union": _paired_conv("union", 2),
    "PairedConv, all nodes": _paired_conv("all", 1),
    "PairedConv, gradients": _paired_conv("map", 2, gradients=1),
    "PairedConv, gradients, all nodes": _paired_conv("all", 1, gradients=1),
    "PairedConv, products of gradients": _paired_conv("map", 2, gradients=2),
    "PairedConv, products, all nodes": _paired_conv("all", 1, gradients=2),
    "PairedConv, products, diffusion": _paired_conv("union", 2, gradients=2, diffusion=2),
    "PairedConv, free boundary": _paired_conv("map", 2, gradients=2, diffusion=3, boundary="free"),
    **ORIENTED_CASES,
    "DynamicPool": _dynamic_pool,
    "Statistics": _statistics("padded"),
    "Statistics, free boundary": _statistics("free"),
    "Logarithm": _logarithm,
    "Standardise": _standardise,
    "Dense": _dense,
    "ReLU": _relu,
    "StandardisePixels": lambda rng: (StandardisePixels(np.array([0.3]), np.array([0.7])), _planes(rng)),
    "Conv": _conv,
    "MaxPool": _max_pool,
    "SpatialTransformer": _spatial_transformer("zeros"),
    "SpatialTransformer, border": _spatial_transformer("border"),
    "HarmonicConv": _harmonic_conv(real=False),
    "HarmonicConv, real planes": _harmonic_conv(real=True),
    "HarmonicConv, no phases": _harmonic_conv(real=False, phases=False),
    "ModulusReLU": _modulus_relu,
    "ModulusNorm": _modulus_norm(is_training=False),
    "ModulusNorm, in training": _modulus_norm(is_training=True),
    "MeanPool": lambda rng: (MeanPool(2), _harmonics(rng, shape=(5, 4))),
    "InvariantHead": lambda rng: (InvariantHead(rng.standard_normal(2)), _harmonics(rng)),
    "Flatten": lambda rng: (Flatten(), _planes(rng)),
}
