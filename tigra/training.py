"""Training: mini-batches, micro-batches on worker threads, and the best epoch by upright validation.

One seed decides everything. Nothing random is carried from step to step: the order of the images
in epoch e comes from the pair (seed, e), so a run can be taken up again at any step.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from tigra.datasets import Splits
from tigra.errors import ShapeError, TrainingError, UsageError
from tigra.layers import Standardise
from tigra.loss import negative_log_likelihood
from tigra.network import Network
from tigra.optim import SCHEDULES, Adam, learning_rate
from tigra.workers import Workers, micro_batches


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training images brought. Accuracies are fractions.

    loss, accuracy : means over the epoch's batches, each before the step it led to
    valid_loss, valid_accuracy : on the validation images, after the epoch
    best : whether this is the best epoch so far, the one with the lowest valid_loss
    """

    number: int
    loss: float
    accuracy: float
    valid_loss: float
    valid_accuracy: float
    best: bool


@dataclass(frozen=True)
class FitOptions:
    """How to train.

    learning_rate, schedule : peak of Adam's step size, and its course (`tigra.optim.learning_rate`)
    weight_decay : pull of the weights of Dense layers towards 0 (`tigra.optim.Adam`)
    label_smoothing : share of each label given to all classes alike (`tigra.loss`), training images only
    patience : stop after so many epochs without a better one; 0 never stops early
    """

    epochs: int = 60
    batch_size: int = 50
    learning_rate: float = 0.01
    schedule: str = "one-cycle"
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    patience: int = 0
    seed: int = 0

    def __post_init__(self):
        for name, smallest in {"epochs": 1, "batch_size": 1, "patience": 0, "seed": 0}.items():
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < smallest:
                raise UsageError(f"{name} must be a whole number of at least {smallest}, got {value!r}.")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise UsageError(f"learning_rate must be a positive number, got {self.learning_rate!r}.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise UsageError(f"weight_decay must be a number >= 0, got {self.weight_decay!r}.")
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(f"label_smoothing must be from 0 to below 1, got {self.label_smoothing!r}.")
        if self.schedule not in SCHEDULES:
            raise UsageError(f"schedule must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}.")


def fit(network: Network, splits: Splits, threads: int = 1, **options) -> Iterator[Epoch]:
    """Train, yielding an Epoch after each pass; afterwards the network has its best parameters.

    splits : anything with .train and .valid, pairs of images (n, H, W) and labels (n,)
    threads : worker threads; the result does not depend on them
    options : fields of FitOptions: epochs, batch_size, learning_rate, schedule, weight_decay,
        label_smoothing, patience, seed

    The best epoch is the one with the lowest validation loss, which says more than the accuracy
    when validation images are few; test images play no part. A loop that breaks off early keeps
    the best so far.
    """
    yield from Training(network, splits, FitOptions(**options), threads).run()


class Training:
    """A training run that can be stopped and taken up again.

    should_stop : asked after every step; once it says True, `run` ends, ready to be resumed
    on_step : called after every step with (step, number of steps in the epoch)
    """

    def __init__(
        self,
        network: Network,
        splits: Splits,
        options: FitOptions,
        threads: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
        on_step: Callable[[int, int], None] = lambda step, n_steps: None,
    ):
        self.network, self.options, self.threads = network, options, threads
        self.should_stop, self.on_step = should_stop, on_step
        self.train = _checked_split(network, splits.train, "training")
        self.valid = _checked_split(network, splits.valid, "validation")
        self.data_hash = _fingerprint(splits)
        decay = network.mask_of("weight") * network.dtype.type(options.weight_decay)
        self.optimizer = Adam(network.parameters, decay=decay)
        self.history: list[Epoch] = []
        self.step = 0  # steps done in the epoch under way
        self.loss_sum, self.n_correct = 0.0, 0  # over those steps
        self.best: np.ndarray | None = None  # parameters of the best epoch
        self.current: np.ndarray | None = None  # where to go on, once `run` has ended
        if any(isinstance(layer, Standardise) and not layer.is_calibrated for layer in network.layers):
            network.calibrate(splits.train.images, threads)

    @property
    def n_steps(self) -> int:
        """Steps in an epoch; the last one may have fewer images."""
        return -(-len(self.train[1]) // self.options.batch_size)

    @property
    def is_finished(self) -> bool:
        """Whether the last epoch is done, or patience has run out."""
        n_done, patience = len(self.history), self.options.patience
        stale = patience > 0 and self.best_epoch is not None and n_done - self.best_epoch.number >= patience
        return n_done >= self.options.epochs or stale

    @property
    def best_epoch(self) -> Epoch | None:
        """The record of the best epoch so far."""
        return next((epoch for epoch in reversed(self.history) if epoch.best), None)

    def best_network(self) -> Network:
        """A copy of the network with the best parameters so far."""
        return self.network.with_parameters(self.network.parameters if self.best is None else self.best)

    def run(self) -> Iterator[Epoch]:
        """Train on from where the run stands, yielding a record after each epoch."""
        if self.current is not None:
            self.network.parameters[:] = self.current
            self.current = None
        try:
            with Workers(self.threads) as workers:
                replicas = [self.network.replica() for _ in micro_batches(self.options.batch_size)]
                while not self.is_finished and self._run_epoch(workers, replicas):
                    yield self.history[-1]
        finally:
            self.current = self.network.parameters.copy()
            if self.best is not None:
                self.network.parameters[:] = self.best

    def _run_epoch(self, workers, replicas) -> bool:
        """The rest of an epoch; False when told to stop before its end."""
        options, n_done = self.options, len(self.history)
        order = np.random.default_rng([options.seed, n_done]).permutation(len(self.train[1]))
        while self.step < self.n_steps:
            if self.should_stop():
                return False
            batch = order[self.step * options.batch_size : (self.step + 1) * options.batch_size]
            loss, n_correct, gradient = self._gradient(batch, workers, replicas)
            if not math.isfinite(loss):
                raise TrainingError(
                    f"The loss is no longer finite in epoch {n_done + 1}: use a learning rate below"
                    f" {options.learning_rate:g}."
                )
            done, total = n_done * self.n_steps + self.step, options.epochs * self.n_steps
            self.optimizer.step(gradient, learning_rate(options.learning_rate, done, total, options.schedule))
            self.loss_sum += loss * len(batch)
            self.n_correct += n_correct
            self.step += 1
            self.on_step(self.step, self.n_steps)
        self._close_epoch(workers)
        return True

    def _gradient(self, batch, workers, replicas):
        """Loss, number of hits, and gradient of a batch: micro-batches in parallel, sums in their order."""
        prepared, labels = self.train

        def work(replica, part):
            rows = batch[part]
            scores = replica.forward(replica.signal(prepared[rows]))
            loss, grad = negative_log_likelihood(scores, labels[rows], len(batch), self.options.label_smoothing)
            replica.backward(grad)
            return float(loss), int((scores.argmax(axis=0) == labels[rows]).sum())

        parts = micro_batches(len(batch))
        results = list(workers.map(work, replicas[: len(parts)], parts))
        gradient = replicas[0].gradients
        for replica in replicas[1 : len(parts)]:
            gradient += replica.gradients
        losses, hits = zip(*results, strict=True)
        return math.fsum(losses), sum(hits), gradient

    def _close_epoch(self, workers) -> None:
        """Validate, write the record, keep the parameters if they are the best so far."""
        valid_loss, valid_accuracy = self._validate(workers)
        is_best = self.best_epoch is None or valid_loss < self.best_epoch.valid_loss
        n_images = len(self.train[1])
        self.history.append(
            Epoch(
                len(self.history) + 1,
                self.loss_sum / n_images,
                self.n_correct / n_images,
                valid_loss,
                valid_accuracy,
                is_best,
            )
        )
        if is_best:
            self.best = self.network.parameters.copy()
        self.step, self.loss_sum, self.n_correct = 0, 0.0, 0

    def _validate(self, workers) -> tuple[float, float]:
        prepared, labels = self.valid

        def work(part):
            return self.network.replica().forward(self.network.signal(prepared[part]))

        scores = np.concatenate(list(workers.map(work, micro_batches(len(labels)))), axis=1)
        loss, _ = negative_log_likelihood(scores, labels)
        return float(loss), float((scores.argmax(axis=0) == labels).mean())

    # --- to and from a model file -----------------------------------------------------------------

    def snapshot(self) -> tuple[dict, dict]:
        """(arrays, numbers) with which `restore` takes the run up again, to the same bits."""
        current = self.network.parameters if self.current is None else self.current
        best = current if self.best is None else self.best
        arrays = {
            "current": current,
            "best": best,
            "adam_mean": self.optimizer.mean,
            "adam_square": self.optimizer.square,
        }
        numbers = {
            "options": asdict(self.options),
            "data_hash": self.data_hash,
            "adam_steps": self.optimizer.n_steps,
            "step": self.step,
            "loss_sum": self.loss_sum,
            "n_correct": self.n_correct,
            "history": [asdict(epoch) for epoch in self.history],
        }
        return {name: array.copy() for name, array in arrays.items()}, numbers

    def restore(self, arrays: dict, numbers: dict) -> None:
        """Go back to a snapshot of the same network on the same data."""
        if numbers["data_hash"] != self.data_hash:
            raise TrainingError("The run to resume was trained on other images; resume with the data it started with.")
        self.history = [Epoch(**record) for record in numbers["history"]]
        self.step, self.loss_sum, self.n_correct = numbers["step"], numbers["loss_sum"], numbers["n_correct"]
        self.optimizer.n_steps = numbers["adam_steps"]
        self.optimizer.mean[:] = arrays["adam_mean"]
        self.optimizer.square[:] = arrays["adam_square"]
        self.best = arrays["best"].copy() if self.history else None
        self.current = arrays["current"].copy()
        self.network.parameters[:] = arrays["best"]


def accuracy(network: Network, split, threads: int = 1) -> float:
    """Fraction of a split's images that the network names rightly."""
    return float((network.predict(split.images, threads) == split.labels).mean())


def _checked_split(network: Network, split, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Prepared images and labels of a split that fits the network."""
    prepared, labels = network.prepare(split.images), np.asarray(split.labels)
    if labels.shape != (len(prepared),) or not np.issubdtype(labels.dtype, np.integer):
        raise ShapeError(
            f"The {what} set has {len(prepared)} images, so it needs as many integer labels,"
            f" got {labels.dtype} of shape {labels.shape}."
        )
    if labels.min() < 0 or labels.max() >= network.n_classes:
        raise ShapeError(
            f"Labels of the {what} set run from {labels.min()} to {labels.max()}, but the network has"
            f" {network.n_classes} classes, 0 to {network.n_classes - 1}."
        )
    return prepared, labels


def _fingerprint(splits) -> str:
    """SHA-256 of the training and validation images and labels."""
    digest = hashlib.sha256()
    for array in itertools.chain(splits.train, splits.valid):
        digest.update(np.ascontiguousarray(array, dtype="<f8" if np.ndim(array) == 3 else "<i8"))
    return digest.hexdigest()
