"""Top-J selection against np.partition in the layout that is best for it: nodes last and contiguous.

np.partition gets its layout for nothing, and gives thresholds only (its copy of the input is timed: it sorts
in place otherwise). `top_nodes` of tigra does more: it reads the batch-last layout,
respects Omega, treats ties, and returns the sets.
"""

from __future__ import annotations

import numpy as np

from benchmarks.bench_kernels import numbers_of
from benchmarks.harness import Contestant, take_turns
from benchmarks.machine import set_threads
from benchmarks.peers import scipy_path
from benchmarks.problems import Settings
from benchmarks.report import Report
from tigra.layers.dynamic_pool import top_nodes
from tigra.models.workers import micro_batches


def run(settings: Settings, report: Report) -> None:
    """One pooling of a whole batch; tigra in micro-batches, as in training."""
    for size in settings.sizes:
        numbers = numbers_of(size)
        n_maps, n_active, n_nodes = numbers["maps"], numbers["n_active"], size.n_nodes
        z = np.random.default_rng(0).standard_normal((n_maps, n_nodes, size.batch)).astype(np.float32)
        rows = np.ascontiguousarray(z.transpose(0, 2, 1)).reshape(-1, n_nodes)
        parts = [np.ascontiguousarray(z[..., part]) for part in micro_batches(size.batch)]
        omegas = [np.ones((1, *part.shape[1:]), bool) for part in parts]

        def ours(parts=parts, omegas=omegas, n_active=n_active):
            return [top_nodes(part, omega, n_active) for part, omega in zip(parts, omegas, strict=True)]

        def peer(parts=parts, omegas=omegas, n_active=n_active):
            return [scipy_path.top_nodes(part, omega, n_active) for part, omega in zip(parts, omegas, strict=True)]

        def bare(rows=rows, place=n_nodes - 1 - n_active):
            return np.partition(rows, place, axis=-1)[:, place]

        _check(np.concatenate(ours(), axis=2), np.concatenate(peer(), axis=2), bare(), z)
        contestants = [
            Contestant("tigra", ours),
            Contestant("np.partition, nodes last, thresholds only", bare),
            Contestant("np.partition from batch last, with the sets", peer),
        ]
        set_threads(1)
        report.race(
            f"top {n_active} of {n_nodes} nodes, {size.name}, {len(rows)} columns, 1 thread",
            f"selection/{size.name}",
            take_turns(contestants, settings.rounds, settings.shortest_turn),
        )


def _check(ours, peer, thresholds, z) -> None:
    """The same sets, exactly, by all three."""
    np.testing.assert_array_equal(ours, peer)
    np.testing.assert_array_equal(ours, z > thresholds.reshape(len(z), 1, -1))
