"""PCA[dimension]: an affine PCA classifier, with one affine subspace ("plane") per class.

The plane of class c goes through the mean mu_c of its training features, along the directions V_c in which
they vary most. Features f are assigned to the class of the closest plane:

    e_c(f) = |r|^2 - |V_c^T r|^2 with r = f - mu_c,  class of f = argmin_c e_c(f)
"""

from __future__ import annotations

import numpy as np
import scipy

from tigra.errors import ShapeError, UsageError
from tigra.models.loss import negative_log_likelihood
from tigra.models.workers import Workers

LARGEST_FACTOR = 1e3  # range of temperatures, up and down from the median distance


def largest_dimension(labels: np.ndarray, n_features: int) -> int:
    """Return the largest useful dimension; a plane through all features of its class would be useless.

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
    """One plane per class, and squared distances to them.

    Like a layer it has `params`, which is empty, and `state`. Features are (F, B).

    Parameters
    ----------
    means : array of shape (n_classes, F)
        mu_c.
    axes : array of shape (n_classes, F, dimension)
        V_c, orthonormal.
    temperature : array of shape (1,)
        Scale of the probabilities softmax(-e / temperature).

    Examples
    --------
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
        """Return planes that are not fitted yet."""
        return cls(np.zeros((n_classes, n_features)), np.zeros((n_classes, n_features, dimension)), np.ones(1))

    @classmethod
    def fitted(cls, features: np.ndarray, labels: np.ndarray, n_classes: int, dimension: int) -> AffinePCA:
        """Fit planes to features (F, n) with labels (n,)."""
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
            with Workers(1):  # BLAS on one thread, for reproducible bits
                directions, _, _ = np.linalg.svd(of_class - mean[:, None], full_matrices=False)
            planes.state["means"][c] = mean
            planes.state["axes"][c] = directions[:, :dimension]
        return planes

    @property
    def dimension(self) -> int:
        """Dimension of the planes."""
        return self.state["axes"].shape[2]

    @property
    def is_fitted(self) -> bool:
        """True if the planes are fitted."""
        return bool(self.state["axes"].any())

    def narrowed(self, dimension: int) -> AffinePCA:
        """Return the planes with only their first directions, as if fitted with this dimension."""
        means, axes = self.state["means"], self.state["axes"]
        return AffinePCA(means, np.ascontiguousarray(axes[:, :, :dimension]), np.ones(1))

    def distances(self, features: np.ndarray) -> np.ndarray:
        """Return squared distances e (n_classes, B) of features (F, B) from each plane."""
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
        """Set the temperature at which these labels are most likely; predicted classes do not change.

        One of n + 1 images is treated as unlabelled. So no class is ever certain, even if all images are
        classified correctly.
        """
        e = self.distances(features)
        typical, doubt = np.median(e) or 1.0, 1 / (len(labels) + 1)

        def loss(log_factor):
            return negative_log_likelihood(-e / (typical * np.exp(log_factor)), labels, label_smoothing=doubt)[0]

        limit = np.log(LARGEST_FACTOR)
        self.state["temperature"][0] = typical * np.exp(
            scipy.optimize.minimize_scalar(loss, bounds=(-limit, limit), method="bounded").x
        )
