"""One nearest neighbour on pixels, without training; shows how hard a split is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from tigra.errors import ShapeError
from tigra.models.classifier import Classifier

AT_ONCE = 512  # test images per batch, to save memory


def nearest_neighbour(train_images, train_labels, images) -> np.ndarray:
    """Return the label of the nearest training image (Euclidean distance) for each image.

    Parameters
    ----------
    train_images, images : arrays of shape (n, height, width)
        Training images and images to classify, of one size.
    train_labels : array of int, shape (n,)
        Labels of the training images.

    Returns
    -------
    array of int
        In case of ties, the label of the first training image.

    Examples
    --------
    >>> nearest_neighbour(np.array([[[0.0]], [[1.0]]]), np.array([7, 8]), np.array([[[0.2]], [[0.9]]]))
    array([7, 8])
    """
    train_labels = np.asarray(train_labels)
    if train_images.shape[1:] != images.shape[1:] or len(train_images) != len(train_labels) or not len(train_labels):
        raise ShapeError(
            f"Expected training images, one label for each, and images of the same size, got {train_images.shape},"
            f" {train_labels.shape} and {images.shape}."
        )
    known = np.asarray(train_images[:], np.float64).reshape(len(train_images), -1)
    lengths = (known**2).sum(axis=1)
    labels = np.empty(len(images), train_labels.dtype)
    for start in range(0, len(images), AT_ONCE):
        part = np.asarray(images[start : start + AT_ONCE], np.float64)
        distances = lengths - 2 * (part.reshape(len(part), -1) @ known.T)  # up to a constant per image
        labels[start : start + AT_ONCE] = train_labels[distances.argmin(axis=1)]
    return labels


class NearestNeighbour(Classifier):
    """One nearest neighbour as a classifier; it stores the training images and cannot be saved.

    Parameters
    ----------
    images : array of shape (n, height, width)
        Training images.
    labels : array of shape (n,)
        Their classes.
    class_names : list of str
        Names of the classes.
    """

    kind = "nearest"

    def __init__(self, images, labels, class_names: list[str]):
        self.images, self.labels, self.class_names = images, np.asarray(labels), class_names
        shape, names = tuple(images.shape[1:]), class_names
        self.options = SimpleNamespace(image_shape=shape, n_classes=len(names), dtype="float64", architecture="")
        self.layers, self.n_parameters = [], 0

    def predict(self, images, threads: int = 1) -> np.ndarray:
        """Return the class of the nearest training image, (n,)."""
        return nearest_neighbour(self.images, self.labels, self.checked(images))
