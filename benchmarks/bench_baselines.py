"""Layers of the networks that TIGraNet is compared with, forward and backward of a whole batch, against PyTorch.

One thread on both sides: tigra's parallelism is over micro-batches, and belongs to the network. tigra takes the
batch in micro-batches, as in training; torch takes it as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.contenders import NO_TORCH
from benchmarks.harness import Contestant, assert_same, take_turns
from benchmarks.machine import set_threads, torch_or_none
from benchmarks.problems import Settings
from benchmarks.report import Report
from tigra.baselines import Conv, HarmonicConv, MaxPool, SpatialTransformer
from tigra.models.workers import micro_batches

TOLERANCE = 1e-3  # float32, relative error of the norm


@dataclass(frozen=True)
class Case:
    """A layer of a network of the paper's Table 1: maps in and out, side of its planes, images in a batch."""

    name: str
    n_in: int
    n_out: int
    side: int
    batch: int

    def layer(self, rng):
        """The layer with start values; theta of a spatial transformer is moved away from the identity."""
        kind = self.name.split(",")[0]
        if kind == "MaxPool":
            return MaxPool(2)
        if kind == "Conv":
            return Conv.init(self.n_in, self.n_out, 3, rng, "float32")
        if kind == "HarmonicConv":
            return HarmonicConv.init(self.n_in, self.n_out, rng, "float32")
        layer = SpatialTransformer.init((self.n_in, self.side, self.side), 32, rng, "float32")
        layer.params["theta_weight"][:] = 0.02 * rng.standard_normal(layer.params["theta_weight"].shape)
        layer.params["theta_bias"][:] += [-0.1, 0.1, 0.03, -0.1, -0.1, 0.02]
        return layer

    def planes(self, rng) -> np.ndarray:
        """Random planes that come in."""
        orders_and_parts = (2, 2) if self.name.startswith("HarmonicConv") else ()
        shape = *orders_and_parts, self.n_in, self.side, self.side, self.batch
        return rng.standard_normal(shape, np.float32)


CASES = (
    Case("Conv, MNIST-rot, 1st", 1, 10, 26, 100),
    Case("Conv, MNIST-rot, 2nd", 10, 20, 12, 100),
    Case("Conv, ETH-80, 1st", 1, 10, 50, 100),
    Case("Conv, ETH-80, 2nd", 10, 20, 24, 100),
    Case("MaxPool, ETH-80, 1st", 10, 10, 48, 100),
    Case("SpatialTransformer, ETH-80, 1st", 10, 10, 48, 100),
    Case("HarmonicConv, ETH-80, 10 to 10", 10, 10, 50, 46),
    Case("HarmonicConv, ETH-80, 20 to 20", 20, 20, 25, 46),
)
TINY_CASES = (
    Case("Conv, tiny", 2, 3, 6, 10),
    Case("MaxPool, tiny", 2, 2, 6, 10),
    Case("SpatialTransformer, tiny", 2, 2, 6, 10),
    Case("HarmonicConv, tiny", 2, 2, 6, 10),
)


class Pass:
    """tigra's layer over micro-batches; `results` puts the batch together, gradients summed."""

    def __init__(self, layer, x, grad):
        parts = micro_batches(x.shape[-1])
        self.layer = layer.replica(keeps_results=False)
        self.inputs, self.grads = ([np.ascontiguousarray(a[..., part]) for part in parts] for a in (x, grad))

    def __call__(self):
        for x, grad in zip(self.inputs, self.grads, strict=True):
            self.layer.forward(x)
            self.layer.backward(grad)

    def results(self) -> list[np.ndarray]:
        """Output, gradient of the input, gradients of the parameters."""
        outputs, backs, grads = [], [], []
        for x, grad in zip(self.inputs, self.grads, strict=True):
            outputs.append(self.layer.forward(x).copy())
            backs.append(self.layer.backward(grad).copy())
            grads.append([array.copy() for array in self.layer.grads.values()])
        sums = [sum(arrays) for arrays in zip(*grads, strict=True)]
        return [np.concatenate(outputs, axis=-1), np.concatenate(backs, axis=-1), *sums]


def run(settings: Settings, report: Report) -> None:
    """Every case against torch, or alone where torch is not installed."""
    torch = torch_or_none()
    if torch is None:
        report.write(NO_TORCH)
    for case in TINY_CASES if settings.scale == 0 else CASES:
        set_threads(1)
        rng = np.random.default_rng(0)
        layer, x = case.layer(rng), case.planes(rng)
        grad = rng.standard_normal((*layer.forward(x[..., :1]).shape[:-1], case.batch), np.float32)
        calls = {"tigra": Pass(layer, x, grad)}
        if torch is not None:
            from benchmarks.peers.torch_planes import TorchPlanes

            peer = TorchPlanes(layer, x, grad)
            for number, (got, wanted) in enumerate(zip(calls["tigra"].results(), peer.results(), strict=True)):
                assert_same(f"{case.name}, array {number}", got, wanted, TOLERANCE)
            calls["PyTorch"] = TorchPlanes(layer, x, grad, needs_input=case.n_in > 1)  # an image needs no gradient
        contestants = [Contestant(who, call) for who, call in calls.items()]
        times = take_turns(contestants, settings.rounds, settings.shortest_turn, settings.rest)
        title = f"{case.name}, forward and backward, {case.side}x{case.side}, batch {case.batch}, 1 thread"
        report.race(title, f"baselines/{case.name}", times)
