"""Counts of a test: confusion matrix, recall and precision by class, confidence interval, calibration error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tigra.models.classifier import Classifier
from tigra.models.loss import softmax

Z = 1.959964  # a 95 % interval is this many standard deviations wide on each side
N_BINS = 15  # of probabilities, for the calibration error


class Outcomes(NamedTuple):
    """True and predicted class numbers (n,), and class probabilities (n, C) of test images.

    `before` has the probabilities without the fitted temperature, if there is one.
    """

    labels: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray
    before: np.ndarray | None = None

    @property
    def calibration(self) -> dict[str, float]:
        """The calibration error, and without the fitted temperature."""
        found = {"calibration_error": calibration_error(self.probabilities, self.labels)}
        if self.before is not None:
            found["calibration_error_before"] = calibration_error(self.before, self.labels)
        return found


def outcomes(
    network: Classifier,
    split,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Outcomes:
    """Classify images in parts; `on_progress` is called with (what, done, total)."""
    images, labels = network.checked(split.images), np.asarray(split.labels)
    predicted, probabilities, before = [], [], []
    for start in range(0, len(images), network.at_once):
        scores = network.scores(images[start : start + network.at_once], threads)
        predicted.append(scores.argmax(axis=1))
        probabilities.append(network.probabilities(scores))
        if network.temperature != 1:
            before.append(softmax(scores.T).T)
        on_progress("measuring the accuracy", min(start + network.at_once, len(images)), len(images))
    uncalibrated = np.concatenate(before) if before else None
    return Outcomes(labels, np.concatenate(predicted), np.concatenate(probabilities), uncalibrated)


def wilson(accuracy: float, n: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of an accuracy measured on n images (Wilson, 1927).

    >>> [round(limit, 3) for limit in wilson(1.0, 10)]  # ten of ten right
    [0.722, 1.0]
    """
    middle, spread = accuracy + Z * Z / (2 * n), Z * math.sqrt(accuracy * (1 - accuracy) / n + Z * Z / (4 * n * n))
    return max(0.0, (middle - spread) / (1 + Z * Z / n)), min(1.0, (middle + spread) / (1 + Z * Z / n))


def calibration_error(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Return the expected calibration error: how far the highest probability is from the share that is right.

    Images are put into N_BINS equal bins by their highest probability. The error is the mean over the images of the
    distance between the bin's mean probability and its accuracy.

    >>> calibration_error(np.array([[0.75, 0.25]] * 4), np.array([0, 0, 0, 1]))  # 75 % sure, 75 % right
    0.0
    """
    highest, hits = probabilities.max(axis=1).astype(np.float64), probabilities.argmax(axis=1) == labels
    bins = np.minimum((highest * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(float((highest[bins == b] - hits[bins == b]).sum())) for b in np.unique(bins)]
    return sum(gaps) / len(labels)


@dataclass(frozen=True)
class Counts:
    """The confusion matrix of a test, and what follows from it.

    Attributes
    ----------
    class_names : list of str
        Names of the classes.
    confusion : integer array (C, C)
        Number of images by true class (row) and predicted class (column), over all runs.
    runs : int
        How often every image was tested, transformed anew each time.

    Examples
    --------
    >>> counts = Counts(["cat", "dog"], np.array([[3, 1], [0, 4]]))
    >>> counts.accuracy, counts.recall.tolist(), counts.precision.tolist()
    (0.875, [0.75, 1.0], [1.0, 0.8])
    """

    class_names: list[str]
    confusion: np.ndarray
    runs: int = 1

    @classmethod
    def of(cls, class_names: list[str], tests: list[Outcomes]) -> Counts:
        """Count the outcomes of some runs on the same images."""
        n = len(class_names)
        places = np.concatenate([test.labels * n + test.predicted for test in tests])
        return cls(class_names, np.bincount(places, minlength=n * n).reshape(n, n), len(tests))

    @property
    def images(self) -> np.ndarray:
        """Number of images of each class."""
        return self.confusion.sum(axis=1) // self.runs

    @property
    def accuracy(self) -> float:
        """Share of images that are right."""
        return float(np.trace(self.confusion) / self.confusion.sum())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of the accuracy; further runs do not make it narrower, further images do."""
        return wilson(self.accuracy, int(self.images.sum()))

    @property
    def recall(self) -> np.ndarray:
        """Share of each class that is found; NaN for a class without images."""
        return _share(np.diag(self.confusion), self.confusion.sum(axis=1))

    @property
    def precision(self) -> np.ndarray:
        """Share of the predictions of each class that are right; NaN for a class that is never predicted."""
        return _share(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def macro_recall(self) -> float:
        """Mean recall of the classes that have images: the accuracy if all classes were equally frequent."""
        return float(np.nanmean(self.recall))

    def confused(self, least: float = 0.0) -> list[tuple[int, int, float]]:
        """Return (true class, predicted class, share of the true class) of mistakes, the largest share first."""
        shares = np.nan_to_num(_share(self.confusion, self.confusion.sum(axis=1)[:, None]))
        np.fill_diagonal(shares, 0)
        pairs = [(int(a), int(b), float(shares[a, b])) for a, b in zip(*np.nonzero(shares), strict=True)]
        return sorted((pair for pair in pairs if pair[2] >= least), key=lambda pair: -pair[2])

    def to_json(self) -> dict[str, Any]:
        """Return everything for JSON; what is not defined is None."""
        return {
            "interval": [round(limit, 6) for limit in self.interval],
            "macro_recall": self.macro_recall,
            "classes": [
                {"name": name, "images": int(n), "recall": _number(recall), "precision": _number(precision)}
                for name, n, recall, precision in zip(
                    self.class_names, self.images, self.recall, self.precision, strict=True
                )
            ],
            "confusion": self.confusion.tolist(),
        }


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return part / whole


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
