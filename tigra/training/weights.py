"""Weights of images in the loss."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence

import numpy as np

from tigra.errors import TrainingError, UsageError
from tigra.options import CLASS_WEIGHTS, weights_by_class

HEADER = ["class", "weight"]
LARGEST_FILE = 2**20  # bytes of a file of class weights
IMBALANCE = 3  # times as many images of one class as of another, from which "auto" is "balanced"


def with_mean_one(weights, *labels: np.ndarray) -> list[np.ndarray | None]:
    """Check the weights of each set, and scale them to mean 1, so that they leave the learning rate as it is.

    Parameters
    ----------
    weights : sequence of array, or None
        Weights of the images of each set.
    *labels : array (n,)
        Labels of each set.

    Returns
    -------
    list of array (n,) or None
        The scaled weights, or None for each set without weights.

    Examples
    --------
    >>> with_mean_one([[1, 3]], np.array([0, 1]))
    [array([0.5, 1.5])]
    """
    if weights is None:
        return [None] * len(labels)
    checked = []
    for given, of_images in zip(weights, labels, strict=True):
        some = np.asarray(given, np.float64)
        if some.shape != of_images.shape or not (np.isfinite(some).all() and some.min() >= 0 and some.any()):
            raise TrainingError(
                f"Expected {len(of_images)} finite weights of at least 0 that are not all 0, got shape {some.shape} and"
                f" values from {some.min(initial=0):g} to {some.max(initial=0):g}; give one weight for each image."
            )
        checked.append(some / some.mean())
    return [*checked]


def settled_class_weights(class_weights: str, labels: np.ndarray, n_classes: int) -> str:
    """Return "balanced" or "none" for "auto", by the numbers of training images; other values as they are.

    Examples
    --------
    >>> settled_class_weights("auto", np.array([0, 0, 0, 1]), 2), settled_class_weights("auto", np.array([0, 0, 1]), 2)
    ('balanced', 'none')
    """
    if class_weights != "auto":
        return class_weights
    n_images = np.bincount(labels, minlength=n_classes)
    return "balanced" if n_images.max() >= IMBALANCE * max(n_images.min(), 1) else "none"


def with_class_weights(weights, class_weights: str, class_names: Sequence[str], *labels: np.ndarray):
    """Multiply weights of images by those of their classes.

    Parameters
    ----------
    weights : sequence of array, or None
        Weights of the images of each set.
    class_weights : str
        "none", "balanced", "auto" or a JSON text, as in `FitOptions`.
    class_names : sequence of str
        Names of the classes.
    *labels : array (n,)
        Labels of each set, the training images first. With "balanced", the classes are balanced in each set.

    Returns
    -------
    list of array, or None
        The products; None if neither is given.

    Examples
    --------
    >>> with_class_weights(None, "balanced", ["cat", "dog"], np.array([0, 0, 0, 1]))
    [array([0.66666667, 0.66666667, 0.66666667, 2.        ])]
    """
    class_weights = settled_class_weights(class_weights, labels[0], len(class_names))
    if class_weights == "none":
        return weights
    by_name = weights_by_class(class_weights)
    if unknown := sorted(set(by_name or ()) - set(class_names)):
        raise UsageError(
            f"class_weights has {unknown[0]!r}, but the classes are {', '.join(class_names)}; correct the name."
        )
    found = []
    for place, of_images in enumerate(labels):
        sample = np.ones(len(of_images)) if weights is None else np.asarray(weights[place], np.float64)
        if by_name is None:  # balanced
            totals = np.bincount(of_images, sample, minlength=len(class_names))
            scale = sample.sum() / (np.count_nonzero(totals) * np.where(totals > 0, totals, 1))
        else:
            scale = np.array([by_name.get(name, 1.0) for name in class_names])
        found.append(sample * scale[of_images])
    return found


def read_class_weights(path) -> str:
    """Read a file of lines `class,weight` (CSV, maybe with a header), or a JSON object; return it as JSON text."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            text = file.read(LARGEST_FILE + 1)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"class_weights must be {', '.join(CLASS_WEIGHTS)} or a file that can be read, got {path}: {reason}."
        ) from error
    found = weights_by_class(text)
    if found is None:
        rows = [row for row in csv.reader(text.splitlines()) if row]
        rows = rows[1:] if rows and [cell.strip() for cell in rows[0]] == HEADER else rows
        try:
            found = weights_by_class(json.dumps({name.strip(): float(weight) for name, weight in rows}))
        except ValueError:
            found = None
    if not found or len(text) > LARGEST_FILE:
        raise UsageError(f"{path} must have lines of a class and its weight of at least 0, such as 'cat,2.5'.")
    return json.dumps(found)
