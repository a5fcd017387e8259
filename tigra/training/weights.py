"""Weights of images in the loss."""

from __future__ import annotations

import numpy as np

from tigra.errors import TrainingError


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
