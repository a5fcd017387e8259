"""`fit`: train a network from Python, epoch by epoch."""

from __future__ import annotations

import warnings
from collections.abc import Generator

from tigra.models.network import Network
from tigra.options import FitOptions
from tigra.training.epochs import Epoch
from tigra.training.training import Training


def fit(network: Network, splits, threads: int = 1, weights=None, **options) -> Generator[Epoch, None, None]:
    """Train a network and leave it with the parameters of its best epoch.

    This is a generator: training starts when the first epoch is requested. Write `for epoch in fit(...)` or
    `list(fit(...))`. If the loop ends early, the network keeps the best parameters so far.

    Parameters
    ----------
    network : Network
        Trained in place.
    splits : Splits, or (train, valid)
        Any object with .train and .valid, or the pair of them. Each has .images (n, H, W) and .labels (n,), or is
        the pair (images, labels).
    threads : int
        Worker threads; the result does not depend on their number.
    weights : (array, array), optional
        Weights of the training and the validation images in the loss; only their ratios matter. The validation
        weights also count in the choice of the best epoch.
    **options
        Fields of `FitOptions`: epochs, batch_size, learning_rate, schedule, weight_decay, label_smoothing, jitter,
        patience, class_weights, seed.

    Yields
    ------
    Epoch
        Loss and accuracy after each pass over the training images.

    Raises
    ------
    TrainingError
        If training diverges: the loss is no longer finite, or far above that of the start.

    Notes
    -----
    The best epoch is the last one whose validation loss is within one standard error of the lowest. With few
    validation images, smaller differences are due to chance, and later epochs were trained longer and at a lower
    learning rate. Test images are never used.
    """
    return _Epochs(Training(network, splits, FitOptions.of(options), threads, weights=weights).run())


class _Epochs(Generator):
    """A generator that warns if it is discarded before its first epoch, when nothing was trained."""

    def __init__(self, epochs: Generator[Epoch, None, None]):
        self.epochs, self.has_begun = epochs, False

    def send(self, value: None) -> Epoch:
        """The next epoch."""
        self.has_begun = True
        return self.epochs.send(value)

    def throw(self, *error) -> Epoch:
        """Raise an error inside the generator; the best parameters so far are kept."""
        self.has_begun = True
        return self.epochs.throw(*error)

    def close(self) -> None:
        """End the training; the best parameters so far are kept."""
        self.has_begun = True
        self.epochs.close()

    def __del__(self):
        if not getattr(self, "has_begun", True):
            warnings.warn(
                "fit was called, but no epoch was asked for, so nothing was trained; write `for epoch in fit(...)`.",
                RuntimeWarning,
                stacklevel=2,
            )
