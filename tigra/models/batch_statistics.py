"""The gradient of a batch in micro-batches, for networks with batch normalisation.

Most layers treat each image on its own, so the parts of a batch go through the whole network independently. Batch
normalisation needs the mean and variance of the whole batch. All parts therefore run up to such a layer and report
their sums. The sums are added in the order of the parts, and every part continues with the totals. The backward pass
does the same with the two sums that the gradient needs. The result is the gradient of the whole batch, identical to
the last bit for any number of threads. Each part needs its own replica of the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from tigra.models.network import Network
from tigra.models.workers import Workers


class BatchStatistics(Protocol):
    """What a layer with `uses_batch_statistics` provides besides forward and backward.

    Attributes
    ----------
    given : array or None
        Sums over the whole batch, set before forward. If None, forward uses the sums of its own input.
    given_back : array or None
        Sums over the whole batch that the gradient needs, set before backward. If None, backward uses its own.
    """

    given: np.ndarray | None
    given_back: np.ndarray | None

    def measure(self, x) -> np.ndarray:
        """Return the sums of one part of a batch, from its input."""

    def measure_back(self, grad: np.ndarray) -> np.ndarray:
        """Return the sums that the gradient needs, for one part of a batch, from dE/d(output)."""

    def observe(self, totals: np.ndarray) -> None:
        """Update the running statistics with the sums of a batch, once per step."""


def meeting_places(network: Network) -> list[int]:
    """Indices of the layers that need sums over the whole batch."""
    return [place for place, layer in enumerate(network.layers) if layer.uses_batch_statistics]


def forward_together(replicas: list[Network], signals: list, workers: Workers) -> tuple[list, list[np.ndarray]]:
    """Forward pass of all parts of a batch.

    Parameters
    ----------
    replicas : list of Network
        One replica per part.
    signals : list
        Input of each part, as returned by `Network.signal`.
    workers : Workers
        Threads that process the parts.

    Returns
    -------
    outputs : list of array (n_classes, B)
        Scores of each part.
    totals : list of array
        Sums over the whole batch, for each layer with batch statistics.
    """
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
    """Backward pass of all parts of a batch; fills the gradients of every replica.

    The sum of these gradients is the gradient of the batch.

    Parameters
    ----------
    replicas : list of Network
        One replica per part, after `forward_together`.
    grads : sequence of array (n_classes, B)
        dE/dscores of each part.
    workers : Workers
        Threads that process the parts.
    """
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
    """Sum of the arrays, added in their order."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total
