"""Classifier, the base class of all models: images (n, height, width) or (n, height, width, 3) in, classes out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tigra.datasets.splits import as_split
from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph
from tigra.images.store import LazyImages
from tigra.models.loss import softmax

LARGEST_PIXEL = 50.0  # far beyond standardised images, far below 255


class ModelPlan(Protocol):
    """A classifier before it is built: the memory it will take, and how to build it."""

    @property
    def n_bytes(self) -> int:
        """Memory of the parameters in bytes."""

    @property
    def n_pixels(self) -> int:
        """Number of pixels of an image, including its margin."""

    def network(self) -> Classifier:
        """Build the classifier."""


MODEL_KINDS: dict[str, Callable[[dict, Graph | None], ModelPlan]] = {}  # kind -> from the options in a file to a plan


class Classifier:
    """Base class of `Network`, trained by gradients, and of fitted models such as `DeepScat`.

    Attributes
    ----------
    kind : str
        Name of the class in a model file (`MODEL_KINDS`).
    options : Options
        What the classifier was built from, kept for the model file. Has architecture, image_shape, n_classes, dtype.
    layers : list
        Parts in order, each with `params` and `state`.
    class_names : list of str
        Names of the classes, by class number.
    at_once : int
        Number of images between two progress reports.
    temperature : float
        Scores are divided by it before the softmax; 1 unless it was fitted to validation images.
    """

    kind = ""
    options: Any
    layers: list
    class_names: list[str]
    n_parameters: int
    own_graph: Graph | None = None
    at_once = 1024
    temperature = 1.0

    def keep_features_in(self, folder) -> None:
        """Cache features in a folder if they are slow to compute; does nothing for most classifiers."""

    @property
    def obstacle(self) -> str | None:
        """Why the classifier cannot be saved, or None."""
        return None

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Height and width of the input images, and 3 if they have colour."""
        return tuple(self.options.image_shape)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.options.n_classes

    @property
    def dtype(self) -> np.dtype:
        """Precision of the computation, float32 or float64."""
        return np.dtype(self.options.dtype)

    def scores(self, images, threads: int = 1) -> np.ndarray:
        """Class scores (n, n_classes); the class with the highest score is predicted."""
        raise NotImplementedError

    def features(self, images, threads: int = 1) -> np.ndarray:
        """Feature vectors (n, n_features), for classifiers that have any."""
        raise UsageError(f"A model of kind {self.kind!r} has no features; use a network with S[K_max], or DeepScat.")

    def feature_names(self) -> list[str]:
        """Name of each column of `features`."""
        raise UsageError(f"A model of kind {self.kind!r} has no features; use a network with S[K_max], or DeepScat.")

    def predict_proba(self, images, threads: int = 1) -> np.ndarray:
        """Class probabilities of images.

        Parameters
        ----------
        images : array (n, height, width)
            Floating-point pixels in [0, 1].
        threads : int
            Worker threads; the result does not depend on their number.

        Returns
        -------
        array (n, n_classes)
            Each row sums to 1.
        """
        return self.probabilities(self.scores(images, threads))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities (n, n_classes) from scores (n, n_classes): softmax(scores / temperature)."""
        columns = scores.T if self.temperature == 1 else scores.T / scores.dtype.type(self.temperature)
        return softmax(columns).T

    def predict(self, images, threads: int = 1) -> np.ndarray:
        """Most likely class of each image.

        Parameters
        ----------
        images : array (n, height, width)
            Floating-point pixels in [0, 1].
        threads : int
            Worker threads; the result does not depend on their number.

        Returns
        -------
        array (n,)
            Class numbers.
        """
        return self.scores(images, threads).argmax(axis=1)

    def checked(self, images):
        """Check shape and dtype of images; returns an array, or LazyImages unchanged."""
        try:
            images = images if isinstance(images, LazyImages) else np.asarray(images)
        except ValueError as error:
            raise ShapeError(f"Images must all have the same size: {error}.") from error
        if images.size == 0:
            raise ShapeError(f"{self._expected}, got none; give at least one image.")
        if images.shape[1:] != self.image_shape:
            raise ShapeError(f"{self._expected}, got {images.shape}; {self._hint(images.shape)}.")
        if not np.issubdtype(images.dtype, np.floating):
            raise ShapeError(
                f"{self._expected} with real values in [0, 1], got {images.dtype}; divide 8-bit pixels by 255."
            )
        return images

    def checked_pixels(self, images: np.ndarray, numbers=None) -> np.ndarray:
        """Check the pixel values; `numbers` are the positions in the data set, for messages."""
        peak = np.abs(images).max()
        if peak <= LARGEST_PIXEL:  # false for NaN, too
            return images if images.dtype in (np.float32, np.float64) else images.astype(np.float64)
        if not np.isfinite(images).all():
            place = int((~np.isfinite(images)).reshape(len(images), -1).any(axis=1).argmax())
            bad = place if numbers is None else numbers[place]
            raise ShapeError(f"{self._expected} with finite pixels, but image {bad} has NaN or infinite ones.")
        raise ShapeError(
            f"{self._expected} with values in [0, 1], got values up to {peak:g}; divide 8-bit pixels by 255."
        )

    def checked_labels(self, labels, n_images: int, what: str = "training") -> np.ndarray:
        """Check the labels: one class number for each image."""
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
        return f"Expected images of shape (n, {', '.join(map(str, self.image_shape))})"

    def _hint(self, shape: tuple[int, ...]) -> str:
        """What to do about images of another shape."""
        if shape == self.image_shape:
            return "add a first axis to a single image"
        if shape[1:] == self.image_shape[:2]:
            return "the network was made for colour: give red, green and blue"
        return "convert them to grey" if shape[1:3] == self.image_shape else "resize them"


def accuracy(
    network: Classifier,
    split,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> float:
    """Fraction of images that are classified correctly.

    Parameters
    ----------
    network : Classifier
        A trained network, or another fitted classifier.
    split : Split or (images, labels)
        Images (n, height, width) and their labels (n,).
    threads : int
        Worker threads; the result does not depend on their number.
    on_progress : callable
        Called with (what, done, total).

    Returns
    -------
    float
        Accuracy from 0 to 1.
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
