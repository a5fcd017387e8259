"""The gradient of a batch in micro-batches, for networks in which images touch each other.

Most layers treat every image by itself, so parts of a batch go through the whole network independently. Batch
normalisation does not: its mean and variance are those of the batch. So all parts go up to such a layer and tell
their sums; these are added in the order of the parts, and every part goes on with the sums of the whole batch. On the
way back it is the same with the two sums that its gradient needs. The result is the gradient of the whole batch at
once, and the same to the last bit for any number of threads. Every part needs a replica of the network of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tigra.models.network import Network
from tigra.models.workers import Workers


class BatchStatistics(Protocol):
    """What a layer with `uses_batch_statistics` has, beside forward and backward.

    given : sums over the whole batch, set before forward; None: forward takes those of its own input
    given_back : sums over the whole batch that the gradient needs, set before backward; None: backward's own
    """

    given: np.ndarray | None
    given_back: np.ndarray | None

    def measure(self, x) -> np.ndarray:
        """The sums of a part of a batch, from its input."""

    def measure_back(self, grad: np.ndarray) -> np.ndarray:
        """The sums that the gradient needs, of a part of a batch, from dE/d(output)."""

    def observe(self, totals: np.ndarray) -> None:
        """Take the sums of a batch into the running statistics, once a step."""


def meeting_places(network: Network) -> list[int]:
    """Numbers of the layers at which the parts of a batch meet."""
    return [place for place, layer in enumerate(network.layers) if layer.uses_batch_statistics]


def forward_together(replicas: list[Network], signals: list, workers: Workers) -> tuple[list, list[np.ndarray]]:
    """Scores of all parts, and for each meeting place the totals over all parts."""
    places, start = meeting_places(replicas[0]), 0
    outputs: Sequence = signals
    totals: list[np.ndarray] = []

    @np.errstate(all="ignore")
    def run(replica, x, start, stop):
        for layer in replica.layers[start:stop]:
            x = layer.forward(x)
        return x, replica.layers[stop].measure(x) if stop in places else None

    for stop in [*places, len(replicas[0].layers)]:
        n = len(replicas)
        outputs, measured = zip(*workers.map(run, replicas, outputs, [start] * n, [stop] * n), strict=True)
        if stop in places:
            totals.append(_sum(measured))
            for replica in replicas:
                replica.layers[stop].given = totals[-1]
        start = stop
    return list(outputs), totals


def backward_together(replicas: list[Network], grads: Sequence[np.ndarray], workers: Workers) -> None:
    """Fill the gradients of every replica, of which the batch's is the sum."""
    places, stop = meeting_places(replicas[0]), len(replicas[0].layers)

    @np.errstate(all="ignore")
    def run(replica, grad, start, stop):
        for layer in reversed(replica.layers[start:stop]):
            grad = layer.backward(grad)
        return grad, replica.layers[start - 1].measure_back(grad) if start else None

    for start in [place + 1 for place in reversed(places)] + [0]:
        n = len(replicas)
        grads, measured = zip(*workers.map(run, replicas, grads, [start] * n, [stop] * n), strict=True)
        if start:
            total = _sum(measured)
            for replica in replicas:
                replica.layers[start - 1].given_back = total
        stop = start


def _sum(arrays) -> np.ndarray:
    """The sum in the order of the arrays."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total
