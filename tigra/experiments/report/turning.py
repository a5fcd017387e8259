"""Accuracy by rotation angle, for the curve of a report."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tigra.datasets.splits import Split, Splits
from tigra.experiments.report.counts import outcomes
from tigra.images.transforms import rotate
from tigra.models.classifier import Classifier

STEP = 15  # degrees
N_IMAGES = 500  # at most


def accuracy_by_angle(
    network: Classifier,
    splits: Splits,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[tuple[float, float, float]]:
    """Return (degrees, accuracy, mean probability of the true class) of upright test images after rotations.

    Parameters
    ----------
    network : Classifier
        The classifier.
    splits : Splits
        The data set; of many test images, N_IMAGES spread over them are taken.
    threads : int
        Number of worker threads.
    on_progress : callable
        Called with (what, done, total).

    Returns
    -------
    list of (float, float, float)
        From 0 to 360 degrees in steps of STEP.
    """
    rows = np.arange(0, len(splits.test_upright.labels), -(-len(splits.test_upright.labels) // N_IMAGES))
    images, labels = splits.test_upright.images[rows], splits.test_upright.labels[rows]
    interpolation, points = splits.options.get("interpolation", "cubic"), []
    for degrees in range(0, 360, STEP):
        turned = rotate(images, np.full(len(images), float(degrees)), interpolation, background=splits.entering)
        found = outcomes(network, Split(turned, labels), threads)
        right = found.probabilities[np.arange(len(labels)), labels]
        points.append((float(degrees), float((found.predicted == labels).mean()), float(right.mean())))
        on_progress(f"rotated by {degrees} degrees", degrees + STEP, 360)
    return [*points, (360.0, *points[0][1:])]
