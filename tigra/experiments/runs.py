"""Runs: train or fit a classifier on a data set, save it in a model file, and measure it.

A run has `steps`, which does the work and yields where the run may be saved, `save`, `model` and `facts`. `perform` is
the loop around them. `tigra train`, `tigra reproduce` and the benchmarks use it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any, NamedTuple

from tigra.baselines.deepscat.fitting import fit_deepscat
from tigra.baselines.nearest import NearestNeighbour
from tigra.datasets.splits import Splits, split_hash, train_and_valid
from tigra.experiments.report.counts import Counts, outcomes
from tigra.experiments.report.remarks import remarks
from tigra.files.cache import cache_folder
from tigra.layers import Dense
from tigra.model_file import save
from tigra.models.classifier import Classifier
from tigra.processes.team import TeamError
from tigra.training import Training
from tigra.training.familiarity import Familiar
from tigra.training.temperature import fitted_temperature
from tigra.training.weights import settled_class_weights

SAVE_EVERY = 10  # seconds between saves


class Stopped(Exception):
    """Raised when a run was asked to stop; its state is in its model file."""


class Watch(NamedTuple):
    """Callbacks for progress and for stopping a run.

    Attributes
    ----------
    show : callable
        Called with (description, number done, total).
    should_stop : callable
        Returns True to stop the run. Called after every step and by every `look`.
    """

    show: Callable[[str, int, int], None] = lambda what, done, total: None
    should_stop: Callable[[], bool] = lambda: False

    def look(self, what: str, done: int = 0, total: int = 0) -> None:
        """Show progress, and raise Stopped if requested; call it only where nothing is lost."""
        if self.should_stop():
            raise Stopped
        self.show(what, done, total)


class Run:
    """Base class of runs, which train or fit one classifier.

    Attributes
    ----------
    splits : Splits
        The data set.
    is_finished : bool
        True if nothing is left to do.
    can_resume : bool
        True if `save` stores what is needed to continue an unfinished run.
    is_weighted : bool
        True if classes have weights.
    """

    splits: Splits
    is_finished = False
    can_resume = False
    is_weighted = False
    _known: dict[str, Any] | None = None  # facts about the data set

    def steps(self, watch: Watch) -> Iterator[None]:
        """Do the work; yield where the run may be saved, and end early or raise Stopped if the watch asks."""
        raise NotImplementedError

    @property
    def model(self) -> Classifier:
        """Best classifier so far."""
        raise NotImplementedError

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the run for reports, ready for JSON."""
        return {"architecture": self.model.options.architecture, "parameters": self.model.n_parameters}

    @property
    def summary(self) -> str:
        """How the classifier was made, in a few words."""
        return "fitted"

    def save(self, path, report: dict | None = None, **more) -> None:
        """Save the best classifier so far, with facts about the run and `more`."""
        save(self.model, path, self._data_facts(report) | more)

    def _data_facts(self, report: dict | None) -> dict[str, Any]:
        """Return the facts about the data set; they are found once, since a hash of many images takes seconds."""
        if self._known is None:
            self._known = data_facts(self.splits)
        return self._known | ({"accuracy": report["accuracy"]} if report else {})


class NetworkRun(Run):
    """The training of a network; a resumed run gives bit for bit the same result as an uninterrupted one."""

    can_resume = True

    def __init__(self, training: Training, splits: Splits):
        self.training = training
        self.familiar: Familiar | None = None
        given, n_classes = training.options.class_weights, len(splits.class_names)
        self.is_weighted = settled_class_weights(given, training.train[1], n_classes) != "none"
        words = balanced_words(given, training.train[1], n_classes)
        splits = splits.seen_with(training.network.options.background)
        self.splits = replace(splits, protocol=splits.protocol + words) if words else splits

    @property
    def is_finished(self) -> bool:  # type: ignore[override]  # other runs set it at their end
        """True after the last epoch."""
        return self.training.is_finished

    def steps(self, watch: Watch) -> Iterator[None]:
        """Train; yield after every step."""
        training = self.training
        training.should_stop = watch.should_stop
        training.on_progress = lambda what, done, total: watch.show(what + self._so_far(), done, total)
        for _ in training.steps():
            yield

    def _calibrate(self) -> None:
        """Fit the temperature to the validation images, and note what training images look like to the network."""
        training, network = self.training, self.training.network
        train, valid = train_and_valid(self.splits)
        network.temperature = fitted_temperature(network.scores(valid.images, training.threads), valid.labels)
        if isinstance(network.layers[-1], Dense):  # takes features; HarmNet's last layer takes whole maps
            self.familiar = Familiar.of(network, train, valid, training.options.seed, training.threads)

    def _so_far(self) -> str:
        """Return the results so far, for a live line."""
        history = self.training.history
        if not history:
            return ""
        last, highest = history[-1], max(epoch.valid_accuracy for epoch in history)
        return f"  loss {last.loss:.4f}  valid {100 * last.valid_accuracy:.1f} % (highest {100 * highest:.1f} %)"

    @property
    def model(self) -> Classifier:
        """Network with the best parameters so far."""
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
        """Best epoch and number of epochs."""
        return f"best epoch {self.facts['best_epoch']} of {self.facts['epochs']} (by upright validation)"

    def save(self, path, report: dict | None = None, **more) -> None:
        """Save the best network so far, its history, and the state to resume from; at the end, calibrate it first."""
        training, best = self.training, self.training.best_epoch
        if training.is_finished and self.familiar is None:
            self._calibrate()
        facts = {
            "options": asdict(training.options),
            "best_epoch": best.number if best else 0,
            "history": [asdict(epoch) for epoch in training.history],
        }
        resume = None if training.is_finished else training.snapshot()
        facts |= {"familiar": self.familiar} if self.familiar is not None else {}
        save(self.model, path, self._data_facts(report) | facts | more, resume)


class DeepScatRun(Run):
    """The fitting of DeepScat: features of training and validation images, then the classifier."""

    def __init__(self, recipe, splits: Splits, seed: int = 0, threads: int = 1):
        self.recipe, self.splits, self.seed, self.threads = recipe, splits.seen_with("black"), seed, threads
        self._model: Classifier | None = None

    def steps(self, watch: Watch) -> Iterator[None]:
        """Fit; features computed before a stop are read from the cache folder."""
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
        """Fitted classifier."""
        assert self._model is not None, "steps comes first"
        return self._model

    @property
    def facts(self) -> dict[str, Any]:
        """Architecture, number of parameters, and the seed, which only affects the split."""
        return super().facts | {"seed": self.seed}

    @property
    def summary(self) -> str:
        """Whether settings were chosen on validation images."""
        return "fitted, settings by upright validation" if self.recipe.candidates else "fitted as printed"


class NearestRun(Run):
    """One nearest neighbour on pixels: nothing to train, nothing to save."""

    is_finished = True

    def __init__(self, splits: Splits, threads: int = 1):
        self.splits = splits.seen_with("black")

    def steps(self, watch: Watch) -> Iterator[None]:
        """Do nothing."""
        yield from ()

    @property
    def model(self) -> Classifier:
        """Training images and their labels."""
        return NearestNeighbour(*self.splits.train, self.splits.class_names)

    @property
    def facts(self) -> dict[str, Any]:
        """Empty; there is neither architecture nor parameters."""
        return {}

    def save(self, path, report: dict | None = None, **more) -> None:
        """Save nothing."""


def perform(run: Run, path=None, watch: Watch | None = None, save_every: float = SAVE_EVERY, facts=None) -> float:
    """Do a run; save it regularly and at the end.

    Parameters
    ----------
    run : Run
        The run.
    path : path, optional
        Model file; None saves nothing.
    watch : Watch, optional
        Callbacks for progress and for stopping.
    save_every : float
        Seconds between saves.
    facts : callable, optional
        Function from the seconds so far to further facts for the model file.

    Returns
    -------
    float
        Seconds that the run took.

    Raises
    ------
    Stopped
        If the watch asked to stop before the run was finished.
    """
    watch = watch or Watch()
    started = last_save = time.monotonic()

    def keep() -> float:
        seconds = time.monotonic() - started
        if path is not None:
            run.save(path, **(facts(seconds) if facts else {}))
        return seconds

    try:
        for _ in run.steps(watch):  # a step of a training, so that long epochs are not lost
            if time.monotonic() - last_save > save_every:
                keep()
                last_save = time.monotonic()
    except TeamError:  # another process failed; here all is well
        keep()
        raise
    seconds = keep()
    if not run.is_finished:
        raise Stopped
    return seconds


def balanced_words(class_weights: str, labels, n_classes: int) -> str:
    """Return what the protocol says about weights that were found to be needed; "" if none were."""
    is_found = class_weights == "auto" and settled_class_weights("auto", labels, n_classes) == "balanced"
    return ", classes weighted to count alike" if is_found else ""


# --- reports --------------------------------------------------------------------------------------------


def data_facts(splits: Splits) -> dict[str, Any]:
    """Return the facts about the data set for a model file; the accuracy is not known yet."""
    return {
        "dataset": splits.name,
        "dataset_options": splits.options,
        "split_hash": split_hash(splits),
        "learned": splits.learned_pictures,
        "protocol": splits.protocol,
        "accuracy": None,
    }


def measured_parts(splits: Splits) -> dict:
    """Return the splits that accuracy is reported on; transformed test images only if there are any."""
    parts = {"train": splits.train, "valid": splits.valid, "test_upright": splits.test_upright}
    return parts | ({"test_transformed": splits.test} if splits.transform else {})


def run_report(
    model: Classifier,
    splits: Splits,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    is_weighted: bool = False,
    **facts,
) -> dict:
    """Measure the accuracies (as fractions) and return a report with further facts, ready for JSON.

    The last part, the test, is also reported class by class. `on_progress` is called with (description, number done,
    total).
    """
    parts = measured_parts(splits)

    def measure(name, split):
        what = f"measuring the accuracy on {name.replace('_', ', ')}"
        return outcomes(model, split, threads, lambda _, done, total: on_progress(what, done, total))

    found = {name: measure(name, split) for name, split in parts.items()}
    test = found[list(parts)[-1]]
    counts = Counts.of(splits.class_names, [test])
    return {
        "dataset": splits.name,
        "images": {name: len(split.labels) for name, split in parts.items()},
        **facts,
        "protocol": splits.protocol,
        "notes": list(splits.notes),
        "accuracy": {name: float((some.predicted == some.labels).mean()) for name, some in found.items()},
        "test": counts.to_json() | test.calibration,
        "remarks": remarks(counts, splits, model, is_weighted),
    }
