"""Classifier: images in the users' order, (n, height, width), in; classes out."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError
from tigra.image_store import LazyImages
from tigra.loss import softmax

LARGEST_PIXEL = 50.0  # far beyond standardised images, far below 255


class Classifier:
    """What a `Network`, trained by gradients, and a `DeepScat`, fitted, have in common.

    options : the arguments of the function that built it, kept for the model file; with image_shape,
        n_classes and dtype
    at_once : images between two looks at the progress
    """

    options: dict
    class_names: list[str]
    at_once = 1024

    @property
    def image_shape(self) -> tuple[int, int]:
        """(height, width) of the images that it takes."""
        return tuple(self.options["image_shape"])

    @property
    def n_classes(self) -> int:
        """How many classes it tells apart."""
        return self.options["n_classes"]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64, of the maps that images go through."""
        return np.dtype(self.options["dtype"])

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
