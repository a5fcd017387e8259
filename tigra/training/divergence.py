"""Divergence: notice that a training has gone astray, and say what caused it."""

from __future__ import annotations

import math

import numpy as np

from tigra.errors import TrainingError
from tigra.models.network import Network
from tigra.options import FitOptions
from tigra.training.epochs import Epoch

HOPELESS = 100  # times the loss at the start; sound runs stay below 2 times
RAISED = 1.5  # times the loss at the start, in an epoch of a run that ends with nothing learned
USUAL_RATE = 0.1  # Adam's steps are of this size at most in sound runs


def guessing_loss(labels: np.ndarray, weights: np.ndarray | None = None) -> float:
    """Lowest loss of a network that gives the same answer for every image: the entropy of the labels.

    Parameters
    ----------
    labels : integer array (n,)
        Class numbers of the images.
    weights : array (n,), optional
        Weights of the images, with mean 1.

    Returns
    -------
    float
        Mean of -log frequency.

    Examples
    --------
    >>> round(guessing_loss(np.array([0, 0, 0, 1])), 3)  # frequencies 3/4 and 1/4
    0.562
    """
    counts = np.bincount(labels, weights)
    losses = -np.log(counts / len(labels), where=counts > 0, out=np.zeros(len(counts)))[labels]
    return float((losses if weights is None else losses * weights).mean())


class Divergence:
    """Raises TrainingError for a training that has diverged.

    Parameters
    ----------
    network : Network
        The network in training.
    options : FitOptions
        How it is trained.
    valid_labels : integer array
        Class numbers of the validation images.
    valid_weights : array, optional
        Weights of the validation images, with mean 1.

    Attributes
    ----------
    first_loss : float or None
        Loss of the first batch, before any step; None before that, and in runs of older versions.
    """

    def __init__(self, network: Network, options: FitOptions, valid_labels: np.ndarray, valid_weights=None):
        self.network, self.options = network, options
        self.guessing = guessing_loss(valid_labels, valid_weights)
        self.first_loss: float | None = None

    @property
    def start(self) -> float:
        """Loss that a sound run hardly exceeds: that of the first batch, and at least that of chance."""
        return math.inf if self.first_loss is None else max(self.first_loss, math.log(self.network.n_classes))

    def check_batch(self, loss: float, n_epochs: int, step: int) -> None:
        """Check the loss of a batch, after `n_epochs` epochs and `step` steps."""
        if n_epochs == step == 0:
            self._check_start(loss)
            self.first_loss = loss
        self.check_finite("The loss", loss, n_epochs + 1)
        if loss > HOPELESS * self.start:
            raise TrainingError(
                f"Training diverged in epoch {n_epochs + 1}: the loss rose from {self.first_loss:.3g} to {loss:.3g};"
                f" {self.remedy}."
            )

    def check_finite(self, what: str, numbers: float | np.ndarray, epoch: int) -> None:
        """Raise TrainingError if a number is not finite."""
        if not np.isfinite(numbers).all():
            verb = "is" if what.startswith("The ") else "are"
            raise TrainingError(f"{what} {verb} no longer finite in epoch {epoch}: {self.remedy}.")

    def check_end(self, history: list[Epoch]) -> None:
        """Check a whole run: a loss that rose, and no epoch better than guessing."""
        worst = max(history, key=lambda epoch: epoch.loss)
        lowest = min(epoch.valid_loss for epoch in history)
        if worst.loss > RAISED * self.start and lowest >= self.guessing:
            raise TrainingError(
                f"Training diverged: the loss rose from {self.first_loss:.3g} to {worst.loss:.3g} in epoch"
                f" {worst.number}, and nothing was learned; {self.remedy}."
            )

    def _check_start(self, loss: float) -> None:
        """Check the loss before the first step, which no option of the training can have caused."""
        if not math.isfinite(loss):
            largest = float(np.abs(self.network.learned).max())
            raise TrainingError(
                f"The loss is not finite before the first step: the images or the network's parameters (up to"
                f" {largest:.3g}) are too large; build the network anew, or scale the images to 0...1."
            )

    @property
    def remedy(self) -> str:
        """What to change: whatever made the steps too large."""
        rate, decay = self.options.learning_rate, self.options.weight_decay
        if rate <= USUAL_RATE and rate * decay > 1:  # a step subtracts rate * decay * p from p
            return f"use a weight decay below {1 / rate:.3g}, the reciprocal of the learning rate, instead of {decay:g}"
        return f"use a learning rate below {rate:g}"

    def restore(self, first_loss: float | None) -> None:
        """Continue with the first loss of the run; None if its version did not save it."""
        if first_loss is not None and type(first_loss) is not float:
            raise TrainingError("The record of the first loss is malformed.")
        self.first_loss = first_loss
