"""tigra itself, behind the peers' interface; only what users call is used."""

from __future__ import annotations

import time

import numpy as np

from tigra.models.network import Network
from tigra.options import FitOptions
from tigra.training.training import Training


class TigraPeer:
    """Training steps and scores of a network, on a given number of threads.

    An epoch here is one step, because the training set is one batch. `Training` asks should_stop ahead of a
    step and calls on_progress after it, so `timed_step` takes the time between the two: the step
    as it runs in any training, without the validation that ends an epoch.
    """

    name = "tigra"

    def __init__(self, network: Network, images, labels, threads: int, rate: float, clock=time.perf_counter):
        self.network, self.images, self.threads, self.clock = network, images, threads, clock
        data = type("Data", (), {"train": (images, labels), "valid": (images[:1], labels[:1])})
        options = FitOptions(epochs=10**9, batch_size=len(images), learning_rate=rate, schedule="constant")
        self.training = Training(network, data, options, threads, self._start, self._end)
        self._epochs = self.training.run()

    def _start(self) -> bool:
        self.started = self.clock()
        return False

    def _end(self, what: str, done: int, total: int) -> None:
        self.seconds = self.clock() - self.started

    def timed_step(self) -> float:
        """One step; the seconds it took."""
        next(self._epochs)
        return self.seconds

    def loss_and_gradient(self, rows, labels) -> tuple[float, np.ndarray]:
        """Of the first step, before which the network is as it started: Adam's mean is then (1 - beta1) times it."""
        if self.training.history:
            raise ValueError("Only the first step shows its gradient.")
        self.timed_step()
        adam = self.training.optimizer
        return self.training.history[-1].loss, adam.mean / (1 - adam.beta1)

    def scores(self, rows=None) -> np.ndarray:
        """(B, n_classes) of the images."""
        return self.network.scores(self.images, self.threads)

    def close(self) -> None:
        """End the worker threads."""
        self._epochs.close()
