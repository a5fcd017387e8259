"""The gradient of a batch in micro-batches, for networks with batch normalisation.

Most layers treat each image on its own, so the parts of a batch go through the whole network independently. Batch
normalisation needs the mean and variance of the whole batch. All parts therefore run up to such a layer and report
their sums. The sums are added in the order of the parts, and every part continues with the totals. The backward pass
does the same with the two sums that the gradient needs. The result is the gradient of the whole batch, identical to
the last bit for any number of threads and processes. Each part needs its own replica of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from tigra.layers import Dense, FeatureNorm, ReLU
from tigra.models.network import Network
from tigra.models.workers import Workers
from tigra.processes.team import Team

SHORT_WORK = 2**22  # multiplications of weights; they take about as long as two threads need to meet


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


def forward_together(
    network: Network, replicas: list[Network], begin: Callable[[], list], workers: Workers, team: Team
) -> tuple[list, list[np.ndarray]]:
    """Forward pass of all parts of a batch.

    Parameters
    ----------
    network : Network
        The network in training.
    replicas : list of Network
        One replica for each part of this process.
    begin : callable
        Fills `replicas`, and returns the input of each part, as `Network.signal` does.
    workers : Workers
        Threads that process the parts.
    team : Team
        Processes that have the other parts.

    Returns
    -------
    outputs : list of array (n_classes, B)
        Scores of each part.
    totals : list of array
        Sums over the whole batch, for each layer with batch statistics.
    """
    places, start = meeting_places(network), 0
    outputs: list = []
    totals: list[np.ndarray] = []

    @np.errstate(all="ignore")
    def run(replica, x, start, stop):
        for layer in replica.layers[start:stop]:
            x = layer.forward(x)
        return x, replica.layers[stop].measure(x) if stop in places else None

    def advance(stop) -> list:
        if start == 0:
            outputs[:] = begin()
        n, measured = len(replicas), []
        apply = _map_for(network.layers[start : stop + 1], outputs, workers)
        for place, (x, sums) in enumerate(apply(run, replicas, outputs, [start] * n, [stop] * n)):
            outputs[place] = x
            measured.append(sums)
        return measured

    for stop in [*places, len(network.layers)]:
        measured = team.gather(partial(advance, stop))
        if stop in places:
            totals.append(_sum(measured))
            for replica in replicas:
                replica.layers[stop].given = totals[-1]
        start = stop
    return outputs, totals


def backward_together(
    network: Network, replicas: list[Network], grads: list[np.ndarray], workers: Workers, team: Team
) -> None:
    """Backward pass of all parts of a batch; fills the gradients of every replica.

    The sum of these gradients is the gradient of the batch.

    Parameters
    ----------
    network : Network
        The network in training.
    replicas : list of Network
        One replica for each part of this process, after `forward_together`.
    grads : list of array (n_classes, B)
        dE/dscores of each part; overwritten.
    workers : Workers
        Threads that process the parts.
    team : Team
        Processes that have the other parts.
    """
    places, stop = meeting_places(network), len(network.layers)

    @np.errstate(all="ignore")
    def run(replica, grad, start, stop):
        for layer in reversed(replica.layers[start:stop]):
            grad = layer.backward(grad)
        return grad, replica.layers[start - 1].measure_back(grad) if start else None

    def retreat(start) -> list:
        n, measured = len(replicas), []
        apply = _map_for(network.layers[max(start - 1, 0) : stop], grads, workers)
        for place, (grad, sums) in enumerate(apply(run, replicas, grads, [start] * n, [stop] * n)):
            grads[place] = grad
            measured.append(sums)
        return measured

    for start in [place + 1 for place in reversed(places)] + [0]:
        measured = team.gather(partial(retreat, start))
        if start:
            total = _sum(measured)
            for replica in replicas:
                replica.layers[start - 1].given_back = total
        stop = start


def _map_for(layers: list, parts: list, workers: Workers) -> Callable:
    """The `map` to go through layers with: on the threads or, where meeting takes longer than the work, on this one."""
    is_head = all(type(layer) in (Dense, FeatureNorm, ReLU) for layer in layers)
    if is_head and sum(layer.n_parameters for layer in layers) * sum(x.shape[1] for x in parts) <= SHORT_WORK:
        return map
    return workers.map


def _sum(arrays) -> np.ndarray:
    """Sum of the arrays, added in their order."""
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total
