"""PCA[dimension]: a classifier that is fitted, not trained: each class is a plane through its features.

The plane of class c goes through the mean mu_c of its training features, along the directions V_c in which
they vary most. Features f are closest to some class:

    e_c(f) = |r|^2 - |V_c^T r|^2 with r = f - mu_c,  class of f = argmin_c e_c(f)
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar

from tigra.errors import ShapeError, UsageError
from tigra.models.loss import negative_log_likelihood
from tigra.models.workers import Workers

LARGEST_FACTOR = 1e3  # of temperatures that are tried, up and down from the typical distance


def largest_dimension(labels: np.ndarray, n_features: int) -> int:
    """The most dimensions that planes can have: a plane that holds all features of its class tells nothing.

    >>> largest_dimension(np.array([0, 0, 0, 0, 0, 1, 1, 1, 1]), n_features=341)  # n directions span n + 1 points
    2
    """
    return min(int(np.bincount(labels).min()) - 2, n_features - 1)


def check_dimension(dimension: int, labels: np.ndarray, n_classes: int, n_features: int) -> None:
    """Raise UsageError if a class has too few training images for planes of this dimension."""
    counts = np.bincount(labels, minlength=n_classes)
    most = min(int(counts.min()) - 2, n_features - 1)
    if dimension > most:
        raise UsageError(
            f"PCA[{dimension}] needs at least {dimension + 2} training images of every class, and more than {dimension}"
            f" features; class {counts.argmin()} has {counts.min()} images, with {n_features} features each."
            + (f" Use at most PCA[{most}]." if most > 0 else " Give more images.")
        )


class AffinePCA:
    """One plane for each class; distances to it are squared.

    means : (n_classes, F), mu_c; axes : (n_classes, F, dimension), V_c, orthonormal
    temperature : (1,), by which distances become probabilities: softmax(-e / temperature)

    Like a layer it has `params`, of which none is learned by gradients, and `state`. Features are (F, B).

    >>> features = np.array([[0.0, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0], [0.0, 0.1, 0.0, 0.1, 5.0, 5.1, 5.0, 5.1]])
    >>> planes = AffinePCA.fitted(features, np.array([0, 0, 0, 0, 1, 1, 1, 1]), n_classes=2, dimension=1)
    >>> planes.distances(np.array([[100.0], [7.0]])).round().tolist()  # two nearly level lines
    [[25.0], [0.0]]
    """

    positive_state = ("temperature",)
    nonnegative_state = ()

    def __init__(self, means: np.ndarray, axes: np.ndarray, temperature: np.ndarray):
        if means.ndim != 2 or axes.ndim != 3 or axes.shape[:2] != means.shape or temperature.shape != (1,):
            raise ShapeError(
                "AffinePCA needs means (n_classes, F), axes (n_classes, F, dimension) and temperature (1,),"
                f" got {means.shape}, {axes.shape} and {temperature.shape}."
            )
        self.params: dict[str, np.ndarray] = {}
        self.state = {"means": means, "axes": axes, "temperature": temperature}

    @classmethod
    def init(cls, n_features: int, n_classes: int, dimension: int) -> AffinePCA:
        """Room for planes, not fitted yet."""
        return cls(np.zeros((n_classes, n_features)), np.zeros((n_classes, n_features, dimension)), np.ones(1))

    @classmethod
    def fitted(cls, features: np.ndarray, labels: np.ndarray, n_classes: int, dimension: int) -> AffinePCA:
        """The planes of features (F, n) with these labels (n,)."""
        features = np.asarray(features, np.float64)
        if features.ndim != 2 or labels.shape != features.shape[1:]:
            raise ShapeError(
                f"AffinePCA expects features (F, n) and n labels, got {features.shape} and {labels.shape}."
            )
        check_dimension(dimension, labels, n_classes, len(features))
        planes = cls.init(len(features), n_classes, dimension)
        for c in range(n_classes):
            of_class = features[:, labels == c]
            mean = of_class.mean(axis=1)
            with Workers(1):  # BLAS on one thread: the same bits everywhere
                directions, _, _ = np.linalg.svd(of_class - mean[:, None], full_matrices=False)
            planes.state["means"][c] = mean
            planes.state["axes"][c] = directions[:, :dimension]
        return planes

    @property
    def dimension(self) -> int:
        """Of the planes."""
        return self.state["axes"].shape[2]

    @property
    def is_fitted(self) -> bool:
        """Whether there are planes."""
        return bool(self.state["axes"].any())

    def narrowed(self, dimension: int) -> AffinePCA:
        """The planes with their first directions only, as if they had been fitted so."""
        means, axes = self.state["means"], self.state["axes"]
        return AffinePCA(means, np.ascontiguousarray(axes[:, :, :dimension]), np.ones(1))

    def distances(self, features: np.ndarray) -> np.ndarray:
        """Squared distances e (n_classes, B) of features (F, B) from each plane."""
        means, axes = self.state["means"], self.state["axes"]
        if features.ndim != 2 or len(features) != means.shape[1]:
            raise ShapeError(f"AffinePCA expects features ({means.shape[1]}, B), got {features.shape}.")
        e = np.empty((len(means), features.shape[1]))
        for c, (mean, v) in enumerate(zip(means, axes, strict=True)):
            r = features - mean[:, None]
            r -= v @ (v.T @ r)  # what the plane leaves; |r|^2 - |V^T r|^2 would lose digits to cancellation
            e[c] = (r * r).sum(axis=0)
        return e

    def calibrate(self, features: np.ndarray, labels: np.ndarray) -> None:
        """Set the temperature at which these labels are most likely; the order of the classes stays as it is.

        As if of n + 1 images one had no label: even where all are named rightly, no class is ever certain.
        """
        e = self.distances(features)
        typical, doubt = np.median(e) or 1.0, 1 / (len(labels) + 1)

        def loss(log_factor):
            return negative_log_likelihood(-e / (typical * np.exp(log_factor)), labels, label_smoothing=doubt)[0]

        limit = np.log(LARGEST_FACTOR)
        self.state["temperature"][0] = typical * np.exp(
            minimize_scalar(loss, bounds=(-limit, limit), method="bounded").x
        )
