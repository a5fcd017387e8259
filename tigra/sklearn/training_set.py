"""Training and validation sets from images, classes and weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from tigra.datasets.splits import draw_stratified
from tigra.errors import UsageError
from tigra.seeding import generator


class WeightedImages(NamedTuple):
    """Images (n, height, width) with class numbers (n,) and weights (n,)."""

    images: np.ndarray
    labels: np.ndarray
    weights: np.ndarray

    def at(self, places) -> WeightedImages:
        """Return some of the images, by a mask or places."""
        return WeightedImages(self.images[places], self.labels[places], self.weights[places])


def distinct(images: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> WeightedImages:
    """Merge equal images of one class by adding their weights, and sort the images by their content.

    An image with weight 2 then is the same as two equal images, to the last bit, and the order of the images does not
    matter. No image can be in both the training and the validation set.

    Parameters
    ----------
    images : array (n, height, width)
        The images.
    labels : integer array (n,)
        Their class numbers.
    weights : array (n,)
        Their weights, above 0.

    Returns
    -------
    WeightedImages
        The different images.

    Examples
    --------
    >>> images = np.array([1.0, 2.0, 1.0]).reshape(3, 1, 1)
    >>> found = distinct(images, labels=np.zeros(3, int), weights=np.array([1.0, 1.0, 3.0]))
    >>> sorted(zip(found.images.ravel().tolist(), found.weights.tolist()))
    [(1.0, 4.0), (2.0, 1.0)]
    """
    places: dict[bytes, list[int]] = {}
    for place, (image, label) in enumerate(zip(images, labels, strict=True)):
        content = (image + 0).tobytes() + int(label).to_bytes(8, "little")  # -0.0 + 0 is 0.0
        places.setdefault(hashlib.blake2b(content, digest_size=16).digest(), []).append(place)
    groups = [places[key] for key in sorted(places)]
    first = [group[0] for group in groups]
    return WeightedImages(images[first], labels[first], np.array([weights[group].sum() for group in groups]))


def held_out(images: WeightedImages, fraction: float, seed: int) -> tuple[WeightedImages, WeightedImages]:
    """Return training and validation images; classes with one image are for training only."""
    if not isinstance(fraction, (int, float, np.number)) or not 0 <= fraction < 1:
        raise UsageError(f"validation_fraction must be a number from 0 to below 1, got {fraction!r}.")
    mask = np.zeros(len(images.labels), bool)
    several = (np.bincount(images.labels) > 1)[images.labels]
    if fraction > 0 and several.any():
        names, labels = np.unique(images.labels[several], return_inverse=True)
        mask[several] = draw_stratified(labels, fraction, generator(seed, "split"), names)
    return (images.at(~mask), images.at(mask)) if mask.any() else (images, images)


def class_weights(given, classes: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weight of each class, from the parameter `class_weight`."""
    if given is None:
        return np.ones(len(classes))
    if isinstance(given, str) and given == "balanced":
        return weights.sum() / (len(classes) * np.bincount(labels, weights))
    if not isinstance(given, Mapping):
        raise UsageError(f"class_weight must be a dictionary, 'balanced' or None, got {given!r}.")
    found = compute_class_weight(dict(given), classes=classes, y=classes[labels])
    if not (np.isfinite(found).all() and (found >= 0).all() and found.any()):
        raise UsageError(f"class_weight must have finite weights of at least 0 that are not all 0, got {given!r}.")
    return found
