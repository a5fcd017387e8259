"""One nearest neighbour on pixels: no learning at all, to judge how hard a split is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tigra.errors import ShapeError
from tigra.models.classifier import Classifier

AT_ONCE = 512  # test images, so that the table of distances stays small


def nearest_neighbour(train_images, train_labels, images) -> np.ndarray:
    """The label of the training image with the smallest Euclidean distance to each image; of equals the first.

    train_images, images : (n, height, width), of one size

    >>> nearest_neighbour(np.array([[[0.0]], [[1.0]]]), np.array([7, 8]), np.array([[[0.2]], [[0.9]]]))
    array([7, 8])
    """
    train_labels = np.asarray(train_labels)
    if train_images.shape[1:] != images.shape[1:] or len(train_images) != len(train_labels) or not len(train_labels):
        raise ShapeError(
            f"Expected training images with as many labels, and images of the same size, got {train_images.shape},"
            f" {train_labels.shape} and {images.shape}."
        )
    known = np.asarray(train_images[:], np.float64).reshape(len(train_images), -1)
    lengths = (known**2).sum(axis=1)
    labels = np.empty(len(images), train_labels.dtype)
    for start in range(0, len(images), AT_ONCE):
        part = np.asarray(images[start : start + AT_ONCE], np.float64)
        distances = lengths - 2 * (part.reshape(len(part), -1) @ known.T)  # + the image's own length, the same for all
        labels[start : start + AT_ONCE] = train_labels[distances.argmin(axis=1)]
    return labels


class NearestNeighbour(Classifier):
    """The classifier: it remembers its training images, and learns nothing. It cannot be saved."""

    kind = "nearest"

    def __init__(self, images, labels, class_names: list[str]):
        self.images, self.labels, self.class_names = images, np.asarray(labels), class_names
        shape, names = tuple(images.shape[1:]), class_names
        self.options = SimpleNamespace(image_shape=shape, n_classes=len(names), dtype="float64", architecture="")
        self.layers, self.n_parameters = [], 0

    def predict(self, images, threads: int = 1) -> np.ndarray:
        """Class number of the nearest training image, (n,)."""
        return nearest_neighbour(self.images, self.labels, self.checked(images))
