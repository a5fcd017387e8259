"""Runs as things: a classifier on its way, trained or fitted on a data set, kept in a model file, and measured.

A run has `steps`, which does the work and pauses where the run may be saved, `save`, `model` and `facts`. `perform` is
the one loop around them: `tigra train`, `tigra reproduce` and the benchmarks all use it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from tigra.baselines.deepscat.fitting import fit_deepscat
from tigra.baselines.nearest import NearestNeighbour
from tigra.datasets.splits import Splits, split_hash
from tigra.errors import DatasetError, ModelFileError
from tigra.files.cache import cache_folder
from tigra.model_file import Model, save
from tigra.models.classifier import Classifier, accuracy
from tigra.models.network import Network
from tigra.options import FitOptions
from tigra.training import Training

SAVE_EVERY = 10  # seconds between saves, so that a power cut costs little


class Stopped(Exception):
    """The run was told to stop; what it has learned is in its model file."""


class Watch(NamedTuple):
    """What a caller wants to see and to say while runs go on.

    show : called with (what is done, how many, of how many); should_stop : asked after every step, and by every `look`
    """

    show: Callable[[str, int, int], None] = lambda what, done, total: None
    should_stop: Callable[[], bool] = lambda: False

    def look(self, what: str, done: int = 0, total: int = 0) -> None:
        """Show it, and raise Stopped if that is wanted: where nothing is lost by it."""
        if self.should_stop():
            raise Stopped
        self.show(what, done, total)


class Run:
    """A classifier on its way.

    splits : the data set
    is_finished : whether nothing is left to do
    can_resume : whether what `save` writes of an unfinished run says how to go on
    """

    splits: Splits
    is_finished = False
    can_resume = False

    def steps(self, watch: Watch) -> Iterator[None]:
        """Do the work, pausing where the run may be saved; ends early, or raises Stopped, if the watch says so."""
        raise NotImplementedError

    @property
    def model(self) -> Classifier:
        """The best classifier so far."""
        raise NotImplementedError

    @property
    def facts(self) -> dict[str, Any]:
        """What a report says of the run, ready for JSON."""
        return {"architecture": self.model.options.architecture, "parameters": self.model.n_parameters}

    @property
    def summary(self) -> str:
        """How the classifier came about, in a few words."""
        return "fitted"

    def save(self, path, report: dict | None = None, **more) -> None:
        """Write the best classifier so far, with what is known of the run, and `more`."""
        save(self.model, path, data_facts(self.splits, report) | more)


class NetworkRun(Run):
    """A network in training; when it is stopped, its file says how to go on, to the same bits as without a stop."""

    can_resume = True

    def __init__(self, training: Training, splits: Splits):
        self.training, self.splits = training, splits

    @property
    def is_finished(self) -> bool:  # type: ignore[override]  # other runs set it at their end
        """Whether the last epoch is done."""
        return self.training.is_finished

    def steps(self, watch: Watch) -> Iterator[None]:
        """Train, pausing after every epoch."""
        training = self.training
        training.should_stop = watch.should_stop
        training.on_progress = lambda what, done, total: watch.show(what + self._so_far(), done, total)
        for _ in training.run():
            yield

    def _so_far(self) -> str:
        """What the epochs brought, for a live line."""
        best = self.training.best_epoch
        if best is None:
            return ""
        last = self.training.history[-1]
        return (
            f"  loss {last.loss:.4f}  valid {100 * last.valid_accuracy:.1f} % (best {100 * best.valid_accuracy:.1f} %)"
        )

    @property
    def model(self) -> Classifier:
        """The network with the best parameters so far."""
        return self.training.best_network()

    @property
    def facts(self) -> dict[str, Any]:
        """Architecture, parameters, seed and epochs."""
        training, best = self.training, self.training.best_epoch
        network, n_epochs = training.network, len(training.history)
        facts = {"architecture": network.options.architecture, "parameters": network.n_parameters}
        return facts | {"seed": training.options.seed, "epochs": n_epochs, "best_epoch": best.number if best else 0}

    @property
    def summary(self) -> str:
        """Which epoch was the best, of how many."""
        return f"best epoch {self.facts['best_epoch']} of {self.facts['epochs']} (by upright validation)"

    def save(self, path, report: dict | None = None, **more) -> None:
        """Write the best network so far, its history, and the state to resume from."""
        training, best = self.training, self.training.best_epoch
        facts = {
            "options": asdict(training.options),
            "best_epoch": best.number if best else 0,
            "history": [asdict(epoch) for epoch in training.history],
        }
        resume = None if training.is_finished else training.snapshot()
        save(self.model, path, data_facts(self.splits, report) | facts | more, resume)


class DeepScatRun(Run):
    """DeepScat on its way: features of training and validation images, then planes and settings."""

    def __init__(self, recipe, splits: Splits, seed: int = 0, threads: int = 1):
        self.recipe, self.splits, self.seed, self.threads = recipe, splits, seed, threads
        self._model: Classifier | None = None

    def steps(self, watch: Watch) -> Iterator[None]:
        """Fit; features that were computed before a stop are found in the cache folder."""
        recipe = self.recipe
        self._model, _ = fit_deepscat(
            self.splits,
            recipe.architecture,
            recipe.log,
            recipe.standardise,
            recipe.candidates,
            threads=self.threads,
            cache=cache_folder(),
            on_progress=watch.look,
        )
        self._model.class_names = self.splits.class_names
        self.is_finished = True
        yield

    @property
    def model(self) -> Classifier:
        """The fitted classifier."""
        assert self._model is not None, "steps comes first"
        return self._model

    @property
    def facts(self) -> dict[str, Any]:
        """Architecture, number of fitted numbers, and the seed, which decided only the split."""
        return super().facts | {"seed": self.seed}

    @property
    def summary(self) -> str:
        """Whether settings were chosen."""
        return "fitted, settings by upright validation" if self.recipe.candidates else "fitted as printed"


class NearestRun(Run):
    """One nearest neighbour on pixels: nothing to learn, nothing to save."""

    is_finished = True

    def __init__(self, splits: Splits, threads: int = 1):
        self.splits = splits

    def steps(self, watch: Watch) -> Iterator[None]:
        """There is nothing to do."""
        yield from ()

    @property
    def model(self) -> Classifier:
        """The training images and their labels."""
        return NearestNeighbour(*self.splits.train, self.splits.class_names)

    @property
    def facts(self) -> dict[str, Any]:
        """None: it has neither architecture nor parameters."""
        return {}

    def save(self, path, report: dict | None = None, **more) -> None:
        """Nothing is learned, so nothing is saved."""


def perform(run: Run, path=None, watch: Watch | None = None, save_every: float = SAVE_EVERY, facts=None) -> float:
    """The run loop: work, save now and then and at the end. Returns the seconds; raises Stopped if told to stop.

    path : the model file, or None to save nothing
    facts : function from the seconds so far to further facts for the model file
    """
    watch = watch or Watch()
    started = last_save = time.monotonic()

    def keep() -> float:
        seconds = time.monotonic() - started
        if path is not None:
            run.save(path, **(facts(seconds) if facts else {}))
        return seconds

    for _ in run.steps(watch):
        if time.monotonic() - last_save > save_every:
            keep()
            last_save = time.monotonic()
    seconds = keep()
    if not run.is_finished:
        raise Stopped
    return seconds


def resume(model: Model, splits: Splits, path, threads: int = 1) -> NetworkRun:
    """The run that a model file (read from `path`) holds, ready to go on, to the same bits as without a stop."""
    if model.resume is None:
        raise ModelFileError(f"{path} holds a finished run, there is nothing to resume; start a new one.")
    arrays, numbers = model.resume
    try:
        assert isinstance(model.network, Network)
        training = Training(model.network, splits, FitOptions.from_json(numbers["options"]), threads)
        if training.data_hash != numbers["data_hash"]:
            raise DatasetError(
                f"The images of {splits.name} have changed since {path} was saved; put them back, or start a new run."
            )
        training.restore(arrays, numbers)
    except DatasetError:
        raise
    except Exception as error:  # the file's numbers may be of any kind
        raise ModelFileError(f"{path} does not say how to go on ({error}); start a new run.") from error
    return NetworkRun(training, splits)


# --- reports --------------------------------------------------------------------------------------------


def data_facts(splits: Splits, report: dict | None = None) -> dict[str, Any]:
    """What a model file says of the data set, and of the accuracy, where it is known."""
    return {
        "dataset": splits.name,
        "dataset_options": splits.options,
        "split_hash": split_hash(splits),
        "learned": " ".join(sorted(splits.learned)),
        "protocol": splits.protocol,
        "accuracy": report["accuracy"] if report else None,
    }


def measured_parts(splits: Splits) -> dict:
    """The splits that accuracy is reported on; transformed test images only where there are any."""
    parts = {"train": splits.train, "valid": splits.valid, "test_upright": splits.test_upright}
    return parts | ({"test_transformed": splits.test} if splits.transform else {})


def run_report(
    model: Classifier,
    splits: Splits,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    **facts,
) -> dict:
    """What came out, ready for JSON, with further facts; accuracies as fractions.

    on_progress : called with (what is done, how many, of how many)
    """
    parts = measured_parts(splits)

    def measure(name, split):
        what = f"measuring the accuracy on {name.replace('_', ', ')}"
        return accuracy(model, split, threads, lambda _, done, total: on_progress(what, done, total))

    return {
        "dataset": splits.name,
        "images": {name: len(split.labels) for name, split in parts.items()},
        **facts,
        "protocol": splits.protocol,
        "notes": list(splits.notes),
        "accuracy": {name: measure(name, split) for name, split in parts.items()},
    }
