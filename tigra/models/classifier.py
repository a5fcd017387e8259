"""Classifier: images in the users' order, (n, height, width), in; classes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tigra.datasets.splits import as_split
from tigra.errors import ShapeError
from tigra.graph import Graph
from tigra.images.store import LazyImages
from tigra.models.loss import softmax

LARGEST_PIXEL = 50.0  # far beyond standardised images, far below 255


class ModelPlan(Protocol):
    """A classifier before it is built: how much memory it will take, and how to build it."""

    @property
    def n_bytes(self) -> int:
        """Memory of what it learns."""

    @property
    def n_pixels(self) -> int:
        """Pixels of an image, with its margin."""

    def network(self) -> Classifier:
        """Build it."""


MODEL_KINDS: dict[str, Callable[[dict, Graph | None], ModelPlan]] = {}  # kind -> from the options in a file to a plan


class Classifier:
    """What a `Network`, trained by gradients, and a `DeepScat`, fitted, have in common.

    kind : what a model file calls it (`MODEL_KINDS`)
    options : what it was built from, kept for the model file; with architecture, image_shape, n_classes and dtype
    layers : its parts in their order, each with `params` and `state`
    at_once : images between two looks at the progress
    """

    kind = ""
    options: Any
    layers: list
    class_names: list[str]
    n_parameters: int
    at_once = 1024

    @property
    def own_graph(self) -> Graph | None:
        """The user's own graph, or None: a grid follows from the options."""
        return None

    def keep_features_in(self, folder) -> None:
        """Keep features of images in a cache folder, where they take long to compute; most classifiers need not."""

    @property
    def obstacle(self) -> str | None:
        """Why it cannot be saved, or None if it can."""
        return None

    @property
    def image_shape(self) -> tuple[int, int]:
        """(height, width) of the images that it takes."""
        return tuple(self.options.image_shape)

    @property
    def n_classes(self) -> int:
        """How many classes it tells apart."""
        return self.options.n_classes

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64, of the maps that images go through."""
        return np.dtype(self.options.dtype)

    def scores(self, images, threads: int = 1) -> np.ndarray:
        """Class scores (n, n_classes); the highest one wins."""
        raise NotImplementedError

    def predict_proba(self, images, threads: int = 1) -> np.ndarray:
        """Class probabilities (n, n_classes) of images (n, height, width) in [0, 1]."""
        return softmax(self.scores(images, threads).T).T

    def predict(self, images, threads: int = 1) -> np.ndarray:
        """Most likely class number of each image, (n,)."""
        return self.scores(images, threads).argmax(axis=1)

    def checked(self, images):
        """Images that fit by their shape and type: an array, or LazyImages as they are."""
        try:
            images = images if isinstance(images, LazyImages) else np.asarray(images)
        except ValueError as error:
            raise ShapeError(f"Images must all have one size: {error}.") from error
        if images.size == 0:
            raise ShapeError(f"{self._expected}, got none; give at least one image.")
        if images.ndim != 3 or images.shape[1:] != self.image_shape:
            hint = "add a first axis to a single image" if images.shape == self.image_shape else "resize them"
            raise ShapeError(f"{self._expected}, got {images.shape}; {hint}.")
        if not np.issubdtype(images.dtype, np.floating):
            raise ShapeError(
                f"{self._expected} with real values in [0, 1], got {images.dtype}; divide 8-bit pixels by 255."
            )
        return images

    def checked_pixels(self, images: np.ndarray, numbers=None) -> np.ndarray:
        """Images with pixels that can be worked with; their numbers among all are for messages."""
        if not np.isfinite(images).all():
            place = int((~np.isfinite(images)).any(axis=(1, 2)).argmax())
            bad = place if numbers is None else numbers[place]
            raise ShapeError(f"{self._expected} with finite pixels, but image {bad} has NaN or infinite ones.")
        if np.abs(images).max() > LARGEST_PIXEL:
            raise ShapeError(
                f"{self._expected} with values in [0, 1], got values up to {np.abs(images).max():g};"
                " divide 8-bit pixels by 255."
            )
        return images if images.dtype in (np.float32, np.float64) else images.astype(np.float64)

    def checked_labels(self, labels, n_images: int, what: str = "training") -> np.ndarray:
        """Class numbers, one for each image."""
        labels = np.asarray(labels)
        if labels.shape != (n_images,) or not np.issubdtype(labels.dtype, np.integer):
            raise ShapeError(
                f"The {what} set has {n_images} images, so it needs as many integer labels,"
                f" got {labels.dtype} of shape {labels.shape}."
            )
        if labels.min() < 0 or labels.max() >= self.n_classes:
            raise ShapeError(
                f"Labels of the {what} set run from {labels.min()} to {labels.max()}, but the network has"
                f" {self.n_classes} classes, 0 to {self.n_classes - 1}."
            )
        return labels

    @property
    def _expected(self) -> str:
        return f"Expected images of shape (n, {self.image_shape[0]}, {self.image_shape[1]})"


def accuracy(
    network: Classifier,
    split,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> float:
    """Fraction of a split's images that the network names rightly.

    on_progress : called with (what is done, how many, of how many)
    """
    split = as_split(split)
    images, labels = network.checked(split.images), np.asarray(split.labels)
    if labels.shape != (len(images),):
        raise ShapeError(f"{len(images)} images need as many labels, got {labels.shape}.")
    n_right = 0
    for start in range(0, len(images), network.at_once):
        part = slice(start, start + network.at_once)
        n_right += int((network.predict(images[part], threads) == labels[part]).sum())
        on_progress("measuring the accuracy", min(part.stop, len(images)), len(images))
    return n_right / len(images)
