"""DeepScat, W[2, 5]-PCA[20]: scattering features and an affine subspace ("plane") for each class.

DeepScat is fitted, not trained by gradients. The features are fixed, and the classifier is one singular value
decomposition per class. So there are no epochs, no initial values and no seed. Octaves, dimension of the planes,
logarithm and scaling of the features are given, or chosen by the accuracy on upright validation images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from tigra.baselines.deepscat.affine_pca import AffinePCA
from tigra.baselines.deepscat.feature_cache import AT_ONCE, scattering_features
from tigra.baselines.deepscat.scattering import (
    LARGEST_ORDER,
    Scattering,
    largest_octaves,
    n_features,
)
from tigra.errors import ArchitectureError, TrainingError
from tigra.graph import check_shape
from tigra.layers import Standardise
from tigra.models.classifier import MODEL_KINDS, Classifier
from tigra.models.costs import Cost, check_cost
from tigra.models.kinds import LayerKind, layer_kind, whole
from tigra.models.loss import softmax
from tigra.models.notation import format_architecture, parse_architecture
from tigra.models.workers import Workers
from tigra.option_fields import Options, option

LARGEST_FITTED = 10**8  # numbers; a typo should not fill the memory
LEAST = 1e-6  # added to features before their logarithm


# --- as text ---------------------------------------------------------------------------------------------


class FittedKind(LayerKind):
    """Base class of the parts of DeepScat, which `build_network` cannot train."""

    def check(self, item, site):
        """Raise ArchitectureError, as it cannot be part of a trained network."""
        raise ArchitectureError(
            f"{item} at position {item.position} is fitted, not trained by gradients; use it in W[order, octaves]-"
            "PCA[dimension] with build_deepscat."
        )


@layer_kind("W")
class ScatteringKind(FittedKind):
    """W[order, octaves]"""

    arguments = whole("order"), whole("octaves", 1)
    takes = "maps"


@layer_kind("PCA")
class AffinePCAKind(FittedKind):
    """PCA[dimension]"""

    arguments = (whole("dimension", 1),)


def read_deepscat(architecture: str, image_shape) -> tuple[int, int, int]:
    """Return (order, octaves, dimension) of a text; raise ArchitectureError if the images are too small.

    >>> read_deepscat("W[2, 5]-PCA[20]", (50, 50))
    (2, 5, 20)
    """
    items = parse_architecture(architecture)
    if [item.name for item in items] != ["W", "PCA"]:
        raise ArchitectureError(f"DeepScat is W[order, octaves]-PCA[dimension], got {format_architecture(items)!r}.")
    order, octaves, dimension = (int(number) for item in items for number in item.numbers)
    shape = check_shape(image_shape)
    if order > LARGEST_ORDER:
        raise ArchitectureError(f"{items[0]} has too high an order; use at most {LARGEST_ORDER}.")
    if octaves > largest_octaves(shape):
        raise ArchitectureError(
            f"{items[0]} has too many octaves for images of {shape[0]}x{shape[1]} pixels; use at most"
            f" {largest_octaves(shape)}."
        )
    if dimension >= n_features(order, octaves):
        most = n_features(order, octaves) - 1
        raise ArchitectureError(
            f"{items[1]} at position {items[1].position} must have fewer dimensions than there are features; use"
            + (f" at most {most}." if most else f" an order of at least 1, as {items[0]} has one feature.")
        )
    return order, octaves, dimension


def count_fitted(architecture: str, image_shape, n_classes: int) -> int:
    """Return the number of fitted parameters: mean and directions of each class.

    >>> count_fitted("W[2, 5]-PCA[20]", (50, 50), n_classes=8)  # 8 * 341 * (1 + 20)
    57288
    """
    order, octaves, dimension = read_deepscat(architecture, image_shape)
    return n_classes * n_features(order, octaves) * (1 + dimension)


# --- the classifier --------------------------------------------------------------------------------------


def build_deepscat(
    architecture: str,
    image_shape: tuple[int, int],
    n_classes: int,
    log: bool = False,
    standardise: bool = False,
    dtype: str = "float32",
) -> DeepScat:
    """Build a DeepScat classifier, which is then to be fitted.

    Parameters
    ----------
    architecture : str
        "W[order, octaves]-PCA[dimension]".
    image_shape : (int, int)
        Height and width of the images.
    n_classes : int
        Number of classes.
    log : bool
        Take the logarithm of the features. The authors' script that matches the paper's numbers does not.
    standardise : bool
        Scale each feature to mean 0 and deviation 1 on the training images. The script does not.
    dtype : {"float32", "float64"}
        Precision of maps and features; planes are always float64.

    Returns
    -------
    DeepScat

    Examples
    --------
    >>> build_deepscat("W[2, 5]-PCA[20]", (50, 50), n_classes=8).n_parameters
    57288
    """
    options = DeepScatOptions(
        architecture=architecture,
        image_shape=image_shape,
        n_classes=n_classes,
        log=log,
        standardise=standardise,
        dtype=dtype,
    )
    return DeepScatPlan(options).network()


@dataclass(frozen=True, kw_only=True)
class DeepScatOptions(Options):
    """The options of `build_deepscat`."""

    where: ClassVar[str] = "build_deepscat"

    architecture: str = option(MISSING, "W[order, octaves]-PCA[dimension].", "text")
    image_shape: tuple[int, int] = option(MISSING, "Height and width of the images.", "shape")
    n_classes: int = option(MISSING, "Number of classes.", "whole", least=2)
    log: bool = option(False, "Take the logarithm of the features.")
    standardise: bool = option(False, "Scale each feature to mean 0 and deviation 1.")
    dtype: str = option("float32", "Precision of maps and features.", choices=("float32", "float64"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", getattr(self.dtype, "__name__", str(self.dtype)))  # np.float32, too
        super().__post_init__()


class DeepScatPlan:
    """A DeepScat before it is built (`tigra.models.classifier.ModelPlan`)."""

    def __init__(self, options: DeepScatOptions):
        self.options = options
        n_fitted = count_fitted(options.architecture, options.image_shape, options.n_classes)
        if n_fitted > LARGEST_FITTED:
            raise ArchitectureError(
                f"{options.architecture} for {options.n_classes} classes has more than {LARGEST_FITTED:,} numbers to"
                " fit; use fewer."
            )
        self.n_bytes = 8 * n_fitted
        self.n_pixels = math.prod(options.image_shape)

    def network(self) -> DeepScat:
        """Build the classifier, which is then to be fitted."""
        text = format_architecture(parse_architecture(self.options.architecture))
        return DeepScat(replace(self.options, architecture=text))


class DeepScat(Classifier):
    """Classifier of scattering features by one plane per class; made by `build_deepscat`.

    Parameters
    ----------
    options : DeepScatOptions
        Options, see `build_deepscat`.
    cache : Path, optional
        Folder that caches features by the content of images; not saved with the model.

    Attributes
    ----------
    layers : list
        Scattering, scaling and planes, with `params` (empty) and `state` like layers of a Network.
    """

    kind = "deepscat"
    at_once = AT_ONCE
    options: DeepScatOptions

    def __init__(self, options: DeepScatOptions, cache: Path | None = None):
        self.options, self.cache = options, cache
        order, octaves, dimension = read_deepscat(options.architecture, self.image_shape)
        self.scattering = Scattering(order, octaves, options.image_shape, self.dtype)
        self.scale = Standardise.init(self.scattering.n_features, np.float64)
        self.planes = AffinePCA.init(self.scattering.n_features, self.n_classes, dimension)
        self.class_names = [str(label) for label in range(self.n_classes)]

    def keep_features_in(self, folder) -> None:
        """Cache scattering features in a folder, by the content of images."""
        self.cache = folder

    @property
    def layers(self) -> list:  # type: ignore[override]  # a network sets its own
        """Scattering, scaling and planes."""
        return [self.scattering, self.scale, self.planes]

    @property
    def n_parameters(self) -> int:  # type: ignore[override]  # other classifiers may set theirs
        """Number of fitted parameters: means and directions of the planes."""
        return sum(self.planes.state[name].size for name in ("means", "axes"))

    @property
    def cost(self) -> Cost:
        """Estimate for one image: filters and maps of every octave at the padded size, and their transforms."""
        places = math.prod(self.scattering.padded) * self.scattering.octaves
        return Cost(90 * places, (2500 if self.scattering.order == 2 else 100) * places)

    @property
    def obstacle(self) -> str | None:
        """Why it cannot be saved yet, or None."""
        return None if self.is_fitted else "This DeepScat has not been fitted; call fit first"

    @property
    def is_fitted(self) -> bool:
        """True after `fit`, or if a fitted classifier was loaded."""
        return self.planes.is_fitted

    def features(
        self,
        images,
        threads: int = 1,
        on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> np.ndarray:
        """Return scattering features (n, F) of images (n, height, width) in [0, 1], before logarithm and scaling."""
        checked = self.checked(images)
        check_cost(self.cost, 1, self.dtype.itemsize)
        return scattering_features(self.scattering, checked, threads, self.cache, on_progress, self.checked_pixels)

    def feature_names(self) -> list[str]:
        """Name of each feature, such as `order2_j0_j1_d3_f0`, see `Scattering.feature_names`."""
        return self.scattering.feature_names()

    def fit(
        self,
        images,
        labels,
        valid=None,
        threads: int = 1,
        on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> DeepScat:
        """Fit the planes to training images, and the temperature of the probabilities to validation images.

        Parameters
        ----------
        images : array of shape (n, height, width)
            Training images in [0, 1].
        labels : array of int, shape (n,)
            Their labels.
        valid : (images, labels), optional
            Validation images. Without them, training images are used, and probabilities are overconfident.
        threads : int
            Number of worker threads; the result does not depend on it.
        on_progress : callable
            Called with (description, number done, total).

        Returns
        -------
        DeepScat
            The classifier itself.
        """
        features = self.features(images, threads, on_progress)
        pairs = [(features, self.checked_labels(labels, len(features)))]
        if valid is not None:
            of_valid = self.features(valid[0], threads, on_progress)
            pairs.append((of_valid, self.checked_labels(valid[1], len(of_valid), "validation")))
        return self.fit_features(*pairs[0], *pairs[-1])

    def fit_features(self, features, labels, valid_features, valid_labels) -> DeepScat:
        """Fit as `fit` does, from the features (n, F) of the images."""
        columns = self._columns(features)
        if self.options.standardise:
            self.scale.calibrate(columns)
        try:
            self.planes = AffinePCA.fitted(self._scaled(columns), labels, self.n_classes, self.planes.dimension)
        except np.linalg.LinAlgError as error:
            raise TrainingError(f"The planes of the classes cannot be fitted: {error}.") from error
        self.calibrate(valid_features, valid_labels)
        return self

    def calibrate(self, features, labels) -> None:
        """Set the temperature of the probabilities from features (n, F) that the planes were not fitted to."""
        with Workers(1):
            self.planes.calibrate(self._scaled(self._columns(features)), labels)

    def scores(self, images, threads: int = 1) -> np.ndarray:
        """Return the negative squared distances from the planes, (n, n_classes)."""
        self._check_fitted()
        return self.scores_of_features(self.features(images, threads))

    def scores_of_features(self, features: np.ndarray) -> np.ndarray:
        """Return scores as `scores` does, from features (n, F)."""
        self._check_fitted()
        with Workers(1):
            return np.ascontiguousarray(-self.planes.distances(self._scaled(self._columns(features))).T)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return class probabilities (n, n_classes): the softmax of scores divided by the temperature of `fit`."""
        below = scores.T - scores.max(axis=1)  # no effect on the softmax, and the best score stays finite
        with np.errstate(over="ignore"):
            return softmax(below / self.planes.state["temperature"]).T

    def _check_fitted(self):
        if not self.is_fitted:
            raise TrainingError("This DeepScat has not been fitted; call fit with training images and labels.")

    def _columns(self, features: np.ndarray) -> np.ndarray:
        """Return features (F, n), or their logarithms, in float64."""
        columns = np.asarray(features, np.float64).T
        return np.log(np.abs(columns) + LEAST) if self.options.log else columns

    def _scaled(self, columns: np.ndarray) -> np.ndarray:
        scaled = self.scale.forward(columns)
        self.scale.forget()
        return scaled


MODEL_KINDS[DeepScat.kind] = lambda options, graph: DeepScatPlan(DeepScatOptions.from_json(options))
