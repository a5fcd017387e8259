"""The gradient of a batch: micro-batches on threads and processes, added in their order."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from tigra.images.prepared import Ahead
from tigra.kernels.workspace import Workspace
from tigra.models.batch_statistics import backward_together, forward_together, meeting_places
from tigra.models.loss import negative_log_likelihood
from tigra.models.network import Network
from tigra.models.workers import Workers, micro_batches
from tigra.processes.team import Team

PARTS_AHEAD = 8  # micro-batches that are prepared ahead
PARTS_AT_ONCE = 64  # micro-batches whose gradients are in memory at the same time


class BatchGradient:
    """Loss and gradient of batches of training images.

    Parameters
    ----------
    network : Network
        The network in training.
    train : (PreparedImages or JitteredImages, array)
        Training images and their labels.
    weights : array (n,), optional
        Weights of the images in the loss.
    label_smoothing : float
        Fraction of each label that is spread over all classes.
    team : Team
        Processes that share the micro-batches.
    """

    def __init__(self, network: Network, train, weights, label_smoothing: float, team: Team):
        self.network, self.weights, self.label_smoothing, self.team = network, weights, label_smoothing, team
        self.images, self.labels = train
        self._images, self._space = Ahead(self.images, is_used=False), Workspace()

    @contextlib.contextmanager
    def ahead(self, threads: int) -> Iterator[None]:
        """Prepare announced images ahead of their batch, if that takes time and there are several threads."""
        self._images = Ahead(self.images, threads > 1 and self.images.takes_time)
        try:
            yield
        finally:
            self._images.close()

    def announce(self, batch: np.ndarray) -> None:
        """Begin to prepare the first images of the next batch, which may be empty."""
        parts = [part for some in self._groups(len(batch)) for part in self._mine(some)]
        for part in parts[:PARTS_AHEAD]:
            self._images.announce(batch[part])

    def __call__(self, batch: np.ndarray, workers: Workers, replicas: list[Network]):
        """Loss, number of correct predictions, and gradient of the training images with the numbers in `batch`.

        Each thread takes a replica of the network from `replicas` and puts it back.
        """
        results: list[tuple[float, int]] = []
        total, meet = None, bool(meeting_places(self.network))
        for some in self._groups(len(batch)):
            total = None if total is None else total.copy()  # it may be a row of the last ones
            mine = self._mine(some)
            rows = self._space.array("gradients", (len(mine), self.network.n_parameters), self.network.dtype)
            if meet:
                results += self._together(batch, mine, rows, workers, replicas)
            else:
                results += self.team.gather(partial(self._apart, batch, mine, rows, workers, replicas))
            total = self.team.add_rows(rows, len(some), total)
        losses, hits = zip(*results, strict=True)
        return math.fsum(losses), sum(hits), total

    def _groups(self, n_images: int) -> list[list[slice]]:
        """The micro-batches of a batch, in groups whose gradients are in memory at the same time."""
        parts = micro_batches(n_images, self.network.micro_batch) if n_images else []
        at_once = len(parts) if meeting_places(self.network) else PARTS_AT_ONCE * self.team.size
        return [parts[start : start + at_once] for start in range(0, len(parts), max(at_once, 1))]

    def _mine(self, parts: list[slice]) -> list[slice]:
        """Those of the micro-batches that this process computes."""
        return parts[self.team.share(len(parts))]

    def _apart(self, batch, parts, gradients, workers, replicas) -> list[tuple[float, int]]:
        """Fill the gradients of the parts, each on its own; returns (loss, correct predictions) of each part."""
        prepared, labels = self._images, self.labels

        @np.errstate(all="ignore")  # check_batch detects overflows
        def work(gradient, part):
            replica, rows = replicas.pop(), batch[part]
            try:
                scores = replica.forward(replica.signal(prepared[rows]))
                loss, grad = self._loss(scores, rows, len(batch))
                replica.backward(grad)
                gradient[:] = replica.gradients
            finally:  # return the replica even on error, or the next pop would hide the cause
                replicas.append(replica)
            return float(loss), int((scores.argmax(axis=0) == labels[rows]).sum())

        return list(workers.map(work, gradients, parts))

    def _together(self, batch, parts, gradients, workers, replicas) -> list[tuple[float, int]]:
        """As `_apart`, with statistics of the whole batch; returns the results of all processes."""
        prepared, labels = self._images, self.labels
        at_work: list[Network] = []
        grads: list[np.ndarray] = []

        def begin() -> list:
            replicas.extend(self.network.replica(False, training=True) for _ in parts[len(replicas) :])
            at_work[:] = replicas[: len(parts)]
            return [replica.signal(prepared[batch[part]]) for replica, part in zip(at_work, parts, strict=True)]

        @np.errstate(all="ignore")
        def compare() -> list[tuple[float, int]]:
            results = []
            for part_scores, part in zip(scores, parts, strict=True):
                loss, grad = self._loss(part_scores, batch[part], len(batch))
                results.append((float(loss), int((part_scores.argmax(axis=0) == labels[batch[part]]).sum())))
                grads.append(grad)
            return results

        scores, totals = forward_together(self.network, at_work, begin, workers, self.team)
        results = self.team.gather(compare)
        with np.errstate(all="ignore"):
            backward_together(self.network, at_work, grads, workers, self.team)
            for gradient, replica in zip(gradients, at_work, strict=True):
                gradient[:] = replica.gradients
            for place, total in zip(meeting_places(self.network), totals, strict=True):
                self.network.layers[place].observe(total)
        return results

    def _loss(self, scores: np.ndarray, rows: np.ndarray, n_images: int):
        """Loss of some training images of a batch of `n_images`, and dE/dscores."""
        weights = None if self.weights is None else self.weights[rows]
        return negative_log_likelihood(scores, self.labels[rows], n_images, self.label_smoothing, weights)
