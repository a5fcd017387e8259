"""Training: mini-batches, micro-batches on worker threads and processes, and the choice of the best epoch.

One seed determines everything. No random state is carried from step to step: the order of the images in epoch e
depends only on (seed, e), so a run can be resumed at any step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict

import numpy as np

from tigra.datasets.splits import fingerprint, train_and_valid
from tigra.errors import TrainingError, UsageError
from tigra.images.prepared import PreparedImages
from tigra.models.batch_statistics import meeting_places
from tigra.models.costs import check_training_cost
from tigra.models.loss import image_losses
from tigra.models.network import Network
from tigra.models.workers import Workers, micro_batches
from tigra.options import FitOptions
from tigra.processes.team import SharedMap, Team
from tigra.seeding import generator
from tigra.training.adam import Adam, learning_rate
from tigra.training.divergence import Divergence
from tigra.training.epochs import Epoch, read_history
from tigra.training.gradient import PARTS_AT_ONCE, BatchGradient
from tigra.training.jitter import JitteredImages
from tigra.training.weights import with_class_weights, with_mean_one

CALIBRATION_IMAGES = 5000  # at most this many are used to standardise the statistics
VECTORS = 8  # as long as the parameters: they, their gradient, the decay, two moments, best, current, and a copy


class Training:
    """A training run that can be stopped and resumed.

    Parameters
    ----------
    network : Network
        Trained in place.
    splits : Splits, or (train, valid)
        As for `fit`.
    options : FitOptions
        How to train.
    threads : int
        Worker threads; the result does not depend on their number.
    should_stop : callable
        Called before every step. If it returns True, `run` ends and can be resumed later.
    on_progress : callable
        Called after every step with (what, done, total), counted in steps.
    weights : (array, array), optional
        Weights of the training and the validation images in the loss; by default all are equal. Only their ratios
        matter.
    team : Team
        Processes that share the work, by default this one alone; the result does not depend on their number. Each has
        a `Training` of the same network and data, and `should_stop` of process 0 decides for all.

    Attributes
    ----------
    history : list of Epoch
        Records of the finished epochs.
    gradient : BatchGradient
        Computes loss and gradient of a batch.
    """

    def __init__(
        self,
        network: Network,
        splits,
        options: FitOptions,
        threads: int = 1,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
        weights: tuple[np.ndarray, np.ndarray] | None = None,
        team: Team = Team(),  # noqa: B008
    ):
        self.network, self.options, self.threads = network, options, threads
        self.should_stop, self.on_progress = should_stop, on_progress
        train, valid = train_and_valid(splits)
        self.train = _checked_split(network, train, "training", options)
        self.valid = _checked_split(network, valid, "validation")
        labels = self.train[1], self.valid[1]
        weights = with_class_weights(weights, options.class_weights, network.class_names, *labels)
        self.weights, self.valid_weights = with_mean_one(weights, *labels)
        self._check_batch()
        self._check_memory()
        self.data_hash = fingerprint(splits)
        decay = network.mask_of("weight") * network.dtype.type(options.weight_decay)
        self.optimizer = Adam(network.parameters, decay=decay)
        self.history: list[Epoch] = []
        self.step = 0  # steps done in the current epoch
        self.loss_sum, self.n_correct = 0.0, 0  # over those steps
        self.best: np.ndarray | None = None  # parameters of the best epoch
        self.current: np.ndarray | None = None  # latest parameters, from which the next `run` continues
        self.divergence = Divergence(network, options, self.valid[1], self.valid_weights)
        self.gradient = BatchGradient(network, self.train, self.weights, options.label_smoothing, team)
        if network.needs_calibration:
            images, labels = _some(self.train[0].images, self.train[1], options.seed)
            network.calibrate(images, threads, labels, options.seed)

    @property
    def team(self) -> Team:
        """Processes that share the work."""
        return self.gradient.team

    @team.setter
    def team(self, team: Team) -> None:
        self.gradient.team = team

    @property
    def n_steps(self) -> int:
        """Number of steps per epoch; the last one may have fewer images."""
        return -(-len(self.train[1]) // self.options.batch_size)

    @property
    def _n_replicas(self) -> int:
        """Number of replicas: one per thread, but no more than there are micro-batches in a batch."""
        largest_batch = min(self.options.batch_size, len(self.train[1]))
        return min(self.threads, len(micro_batches(largest_batch, self.network.micro_batch)))

    def _check_batch(self) -> None:
        """Raise UsageError if batches are too small for a layer: batch normalisation makes one image all zeros."""
        least = max(layer.least_batch for layer in self.network.layers)
        n_images, batch_size = len(self.train[1]), self.options.batch_size
        if min(n_images, batch_size) < least:
            raise UsageError(
                f"Batch normalisation of features needs batches of at least {least} training images, got batch_size"
                f" {batch_size} and {n_images} training {'image' if n_images == 1 else 'images'}; use more, or build"
                " the network without batch_norm."
            )

    def _check_memory(self) -> None:
        """Raise UsageError if a step would need more memory than the limit."""
        network, batch = self.network, min(self.options.batch_size, len(self.train[1]))
        n_parts = len(micro_batches(batch, network.micro_batch))
        if meeting_places(network):  # all parts of a batch are in memory
            n_images, n_vectors = batch, 2 * n_parts
        else:
            n_images = min(batch, self._n_replicas * network.micro_batch)
            n_vectors = self._n_replicas + min(n_parts, PARTS_AT_ONCE)
        n_numbers = (n_vectors + VECTORS) * network.n_parameters
        check_training_cost(network.cost, n_images, n_numbers, network.dtype.itemsize)

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
        return self.network.with_parameters(self.network.learned if self.best is None else self.best)

    def run(self) -> Generator[Epoch, None, None]:
        """Start or resume training, yielding a record after each epoch."""
        with closing(self.steps()) as steps:
            for epoch in steps:
                if epoch is not None:
                    yield epoch

    def steps(self) -> Generator[Epoch | None, None, None]:
        """As `run`, but also yield None after each step; `snapshot` works at every yield."""
        workers = Workers(self.threads, leaves_threads=True)
        if self.current is not None:
            self.network.learned = self.current
            self.current = None
        try:
            replicas = [self.network.replica(keeps_results=False, training=True) for _ in range(self._n_replicas)]
            while not self.is_finished:
                with workers, self.gradient.ahead(self.threads):  # per epoch: the caller may use BLAS, or fork
                    is_whole = yield from self._run_epoch(workers, replicas)
                if not is_whole:
                    break
                yield self.history[-1]
        finally:
            self.current = self.network.learned
            if self.best is not None:
                self.network.learned = self.best
            workers.end_waiting()

    def _run_epoch(self, workers, replicas) -> Generator[None, None, bool]:
        """Run the rest of the current epoch, yielding after each step; return False if stopped before its end."""
        options, n_done, size = self.options, len(self.history), self.options.batch_size
        order = np.random.default_rng([options.seed, n_done]).permutation(len(self.train[1]))
        if options.jitter:
            self.train[0].begin(n_done)
        while self.step < self.n_steps:
            if self.team.agree(self.should_stop()):
                return False
            batch, following = (order[step * size : (step + 1) * size] for step in (self.step, self.step + 1))
            self.gradient.announce(following)
            loss, n_correct, gradient = self.gradient(batch, workers, replicas)
            if n_done == 0 and self.step == 0:
                replicas[-1].check_gradient_views()
            self.divergence.check_batch(loss, n_done, self.step)
            done, total = n_done * self.n_steps + self.step, options.epochs * self.n_steps
            with np.errstate(all="ignore"):
                self.optimizer.step(gradient, learning_rate(options.learning_rate, done, total, options.schedule))
            self.loss_sum += loss * len(batch)
            self.n_correct += n_correct
            self.step += 1
            self.on_progress(f"epoch {n_done + 1}/{options.epochs}", done + 1, total)
            self.team.rest()
            yield
        if self.team.agree(False):  # process 0 has ended at the last yield
            return False
        self._close_epoch(workers)
        self.team.rest(self.is_finished)
        return True

    def _close_epoch(self, workers) -> None:
        """Validate, append the record, and keep the parameters if they are the best so far."""
        number = len(self.history) + 1
        self.divergence.check_finite(
            "Parameters", self.network.learned, number
        )  # pooling drops NaN: the loss is finite
        valid_loss, valid_error, valid_accuracy = self._validate(workers)
        self.divergence.check_finite("The validation loss", valid_loss, number)
        lowest, error = min([(e.valid_loss, e.valid_error) for e in self.history] + [(valid_loss, valid_error)])
        is_best = valid_loss <= lowest + error
        n_images = len(self.train[1])
        self.history.append(
            Epoch(
                number,
                self.loss_sum / n_images,
                self.n_correct / n_images,
                valid_loss,
                valid_error,
                valid_accuracy,
                is_best,
            )
        )
        if is_best:
            self.best = self.network.learned
        self.step, self.loss_sum, self.n_correct = 0, 0.0, 0
        if self.is_finished:
            self.divergence.check_end(self.history)

    def _validate(self, workers) -> tuple[float, float, float]:
        """Mean loss over the validation images, its standard error, and the accuracy."""
        prepared, labels = self.valid
        scores = self.network.outputs(prepared, SharedMap(self.team, workers))
        hits = scores.argmax(axis=0) == labels
        with np.errstate(all="ignore"):
            losses = image_losses(scores, labels)
            if self.valid_weights is not None:
                losses, hits = losses * self.valid_weights, hits * self.valid_weights
            error = losses.std(ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0
        return float(losses.mean()), float(error), float(hits.mean())

    # --- to and from a model file -----------------------------------------------------------------

    def snapshot(self) -> tuple[dict, dict]:
        """State of the run as (arrays, numbers); `restore` resumes from it with bit-identical results."""
        current = self.network.learned if self.current is None else self.current
        best = current if self.best is None else self.best
        arrays = {
            "current": current,
            "best": best,
            "adam_mean": self.optimizer.mean,
            "adam_square": self.optimizer.square,
        }
        for array in arrays.values():  # model files hold finite numbers only
            self.divergence.check_finite("Parameters or their running moments", array, len(self.history) + 1)
        numbers = {
            "options": asdict(self.options),
            "data_hash": self.data_hash,
            "step": self.step,
            "loss_sum": self.loss_sum,
            "n_correct": self.n_correct,
            "first_loss": self.divergence.first_loss,
            "history": [asdict(epoch) for epoch in self.history],
        }
        return {name: array.copy() for name, array in arrays.items()}, numbers

    def restore(self, arrays: dict, numbers: dict) -> None:
        """Restore a snapshot of the same network, trained on the same data."""
        if numbers["data_hash"] != self.data_hash:
            raise TrainingError("The run to resume was trained on other images; resume with the data it started with.")
        self.history = read_history(numbers["history"], self.options.epochs)
        self.step, self.loss_sum, self.n_correct = numbers["step"], numbers["loss_sum"], numbers["n_correct"]
        types = type(self.step), type(self.loss_sum), type(self.n_correct)
        if types != (int, float, int) or not 0 <= self.step <= self.n_steps or self.n_correct < 0:
            raise TrainingError("The record of the current epoch is malformed.")
        self.divergence.restore(numbers.get("first_loss"))
        self.optimizer.n_steps = len(self.history) * self.n_steps + self.step
        self.optimizer.mean[:] = arrays["adam_mean"]
        self.optimizer.square[:] = arrays["adam_square"]
        self.best = arrays["best"].copy() if self.history else None
        self.current = arrays["current"].copy()
        self.network.learned = arrays["best"]


def _checked_split(network: Network, split, what: str, options: FitOptions | None = None):
    """Check a split; returns its prepared images, with jitter if the options ask for it, and its labels."""
    prepared: PreparedImages | JitteredImages
    if options and options.jitter:
        prepared = JitteredImages(network, split.images, options.jitter, options.seed)
    else:
        prepared = PreparedImages(network, split.images)
    return prepared, network.checked_labels(split.labels, len(prepared), what)


def _some(images, labels: np.ndarray, seed: int):
    """All images, or a random subset that is large enough for means and deviations, and their labels."""
    if len(images) <= CALIBRATION_IMAGES:
        return images, labels
    chosen = np.sort(generator(seed, "calibration").permutation(len(images))[:CALIBRATION_IMAGES])
    return images[chosen], labels[chosen]
