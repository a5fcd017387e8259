"""Resuming: continue the run of a model file, or finish its report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tigra.datasets.splits import Splits, split_hash
from tigra.errors import DatasetError, ModelFileError, TigraError
from tigra.experiments.runs import NetworkRun, Run, Watch
from tigra.files.cache import cache_folder
from tigra.model_file import Model, save
from tigra.models.classifier import Classifier
from tigra.models.network import Network
from tigra.options import FitOptions
from tigra.training import Training


class FinishedRun(Run):
    """A run that is finished and saved, but ended before its report."""

    is_finished = True

    def __init__(self, model: Model, splits: Splits):
        self.found, self.splits = model, splits
        model.network.keep_features_in(cache_folder())  # those of the report that was cut off are not lost
        self.can_resume = isinstance(model.network, Network)
        self._facts = super().facts | {"seed": splits.options.get("seed", 0)}
        if self.can_resume:
            record = model.training
            self.splits = replace(splits, protocol=record.get("protocol", splits.protocol))
            self.is_weighted = record["options"].get("class_weights", "none") != "none"
            self._facts |= {
                "seed": FitOptions.from_json(record["options"]).seed,
                "epochs": len(record["history"]),
                "best_epoch": record["best_epoch"],
            }

    def steps(self, watch: Watch) -> Iterator[None]:
        """Do nothing."""
        yield from ()

    @property
    def model(self) -> Classifier:
        """Classifier of the file."""
        return self.found.network

    @property
    def facts(self) -> dict[str, Any]:
        """Facts about the run, from its record."""
        return self._facts

    @property
    def summary(self) -> str:
        """How the classifier was made."""
        if not self.can_resume:
            return super().summary
        return f"best epoch {self.facts['best_epoch']} of {self.facts['epochs']} (by upright validation)"

    def save(self, path, report: dict | None = None, **more) -> None:
        """Save the classifier with its record and the report."""
        save(self.model, path, self.found.training | ({"accuracy": report["accuracy"]} if report else {}) | more)


def check_resumable(model: Model, path) -> None:
    """Raise ModelFileError if nothing is left to do: the run in `path` is finished and has its report."""
    if model.resume is None and model.training.get("accuracy") is not None:
        raise ModelFileError(f"{path} has a finished run with its report, which cannot be resumed; start a new one.")


def resume(model: Model, splits: Splits, path, threads: int = 1) -> Run:
    """Return the run of a model file (read from `path`), ready to continue; only the report may be left to do."""
    check_resumable(model, path)
    try:
        if model.resume is None:
            _check_images(model.training["split_hash"], split_hash(splits), splits, path)
            return FinishedRun(model, splits)
        arrays, numbers = model.resume
        assert isinstance(model.network, Network)
        training = Training(model.network, splits, FitOptions.from_json(numbers["options"]), threads)
        _check_images(numbers["data_hash"], training.data_hash, splits, path)
        training.restore(arrays, numbers)
    except DatasetError:
        raise
    except Exception as error:  # the file may contain anything
        reason = error if isinstance(error, TigraError) else f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{path} has no usable record of its run ({reason}); start a new run.") from error
    return NetworkRun(training, splits)


def _check_images(saved: str, found: str, splits: Splits, path) -> None:
    if saved != found:
        raise DatasetError(
            f"The images of {splits.name} have changed since {path} was saved; put them back, or start a new run."
        )
