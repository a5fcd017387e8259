"""Layers, forward and backward of a whole batch, against SciPy CSR in the same layout; one thread.

tigra's parallelism is over micro-batches and belongs to the network, so a layer runs on one thread. It
takes the batch in micro-batches and uses its arrays again, as in training; the peer takes the batch both
so and as a whole, and the ratio that counts is that against the faster of the two.
"""

from __future__ import annotations

import numpy as np

from benchmarks.bench_kernels import numbers_of
from benchmarks.harness import Contestant, assert_same, take_turns
from benchmarks.machine import set_threads
from benchmarks.peers.scipy_path import ScipySpectralConv, ScipyStatistics, top_nodes
from benchmarks.problems import Settings
from benchmarks.report import Report
from tigra.graph import GraphSignal, grid_graph
from tigra.layers import DynamicPool, SpectralConv, Statistics
from tigra.models.workers import micro_batches

TOLERANCE = 1e-3  # float32, relative error of the norm; forward and backward together


class Pass:
    """A layer's forward and backward over parts of a batch."""

    def __init__(self, forward, backward, inputs, grads):
        self.forward, self.backward = forward, backward
        self.inputs, self.grads = inputs, grads

    def __call__(self):
        for x, grad in zip(self.inputs, self.grads, strict=True):
            self.forward(*x)
            self.backward(grad)

    def joined(self) -> tuple[np.ndarray, np.ndarray]:
        """Output and gradient of the whole batch; copies, because the next part may overwrite them."""
        pairs = [
            (self.forward(*x).copy(), self.backward(grad).copy())
            for x, grad in zip(self.inputs, self.grads, strict=True)
        ]
        outputs, grads = zip(*pairs, strict=True)
        return np.concatenate(outputs, axis=-1), np.concatenate(grads, axis=-1)


def cut(array, parts):
    """Contiguous parts of a batch-last array, as the layer before would hand them over."""
    return [np.ascontiguousarray(array[..., part]) for part in parts]


def passes(layer, peer, z, sets, grad) -> dict[str, Pass]:
    """tigra's layer on micro-batches, the peer on micro-batches and on all images at once."""
    n_batch, layer = z.shape[-1], layer.replica(keeps_results=False)

    def over(parts, forward, backward):
        return Pass(forward, backward, list(zip(cut(z, parts), cut(sets, parts), strict=True)), cut(grad, parts))

    def ours(z, sets):
        out = layer.forward(GraphSignal(z, sets))
        return out.values if isinstance(out, GraphSignal) else out

    return {
        "tigra": over(micro_batches(n_batch), ours, layer.backward),
        f"{peer.name}, micro-batches": over(micro_batches(n_batch), peer.forward, peer.backward),
        f"{peer.name}, whole batch": over([slice(0, n_batch)], peer.forward, peer.backward),
    }


class ScipyStatisticsLayer(ScipyStatistics):
    """Statistics that ignore the sets, which the values carry already."""

    name = "SciPy CSR"

    def forward(self, z, sets):
        return super().forward(z)


class ScipySpectralConvLayer(ScipySpectralConv):
    """Spectral convolution with its name for the table."""

    name = "SciPy CSR"


class NumpyPool:
    """Dynamic pooling by np.partition."""

    name = "np.partition"

    def __init__(self, n_active):
        self.n_active = n_active

    def forward(self, z, sets):
        self.active = top_nodes(z, sets.any(axis=0, keepdims=True), self.n_active)
        return z * self.active

    def backward(self, grad):
        return grad * self.active


def cases(size, rng):
    """(name, layer, peer, z, sets, grad) of the last layers of an architecture."""
    numbers, graph = numbers_of(size), grid_graph(size.shape)
    n_maps, n_inputs, n_nodes, n_batch = numbers["maps"], numbers["inputs"], size.n_nodes, size.batch

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    every = np.ones((n_maps, n_nodes, n_batch), bool)
    y = normal(n_inputs, n_nodes, n_batch)
    sets = y > -1
    alpha, beta = normal(n_maps, numbers["degree"] + 1), normal(n_inputs)
    convolution = SpectralConv(graph, alpha, beta), ScipySpectralConvLayer(graph, alpha, beta)
    yield "SpectralConv", *convolution, y * sets, sets, normal(n_maps, n_nodes, n_batch)
    z = normal(n_maps, n_nodes, n_batch)
    pool = DynamicPool(numbers["n_active"]), NumpyPool(numbers["n_active"])
    yield "DynamicPool", *pool, z, every, normal(*z.shape)
    max_order = numbers["max_order"]
    statistics = Statistics(graph, max_order), ScipyStatisticsLayer(graph, max_order, np.float32)
    active = top_nodes(z, every[:1], numbers["n_active"])
    yield "Statistics", *statistics, z * active, active, normal(n_maps * 2 * (max_order + 1), n_batch)


def run(settings: Settings, report: Report) -> None:
    """SpectralConv, DynamicPool and Statistics at every size."""
    for size in settings.sizes:
        for name, layer, peer, z, sets, grad in cases(size, np.random.default_rng(0)):
            set_threads(1)
            runs = passes(layer, peer, z, sets, grad)
            wanted = runs["tigra"].joined()
            for other in list(runs)[1:]:
                for what, got, want in zip(("output", "gradient"), runs[other].joined(), wanted, strict=True):
                    assert_same(f"{name}, {other}, {what}", got, want, TOLERANCE)
            times = take_turns(
                [Contestant(who, call) for who, call in runs.items()], settings.rounds, settings.shortest_turn
            )
            report.race(
                f"{name} forward and backward, {size.name}, {z.shape[0]} input maps, batch {size.batch}, 1 thread",
                f"layers/{name}/{size.name}",
                times,
            )
