"""Scattering features, which need no training, as a transformer of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from tigra.baselines.deepscat.deepscat import LEAST
from tigra.baselines.deepscat.feature_cache import scattering_features
from tigra.baselines.deepscat.fitting import suited_octaves
from tigra.baselines.deepscat.scattering import Scattering
from tigra.options import BuildOptions
from tigra.sklearn.images import as_images, read_rows, value_errors
from tigra.sklearn.parameters import IMAGE_SHAPE, N_JOBS, Parameter, constructor, documented, whole

OCTAVES = 5  # at most, as in the paper
PARAMETERS = {
    "order": Parameter(2, "int", "How often wavelets are applied, 0 to 2."),
    "octaves": Parameter(
        None,
        "int, optional",
        f"Number of scales J; the widest average is over about 2^J pixels. By default {OCTAVES}, or fewer for images"
        " that are smaller than that.",
    ),
    "log": Parameter(False, "bool", "Whether to take the logarithm of the features."),
    "image_shape": IMAGE_SHAPE,
    "dtype": Parameter(
        "float64", "str", "Precision of the computation; `float32` takes half the time. Features are float64."
    ),
    "n_jobs": N_JOBS,
}


@documented(PARAMETERS)
class ScatteringFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Scattering features of images, which change little when an image is rotated or shifted.

    Attributes
    ----------
    scattering_ : Scattering
        The transform.
    image_shape_ : tuple
        (height, width) or (height, width, 3).
    n_features_in_ : int
        Number of values of an image.

    Examples
    --------
    >>> import numpy as np
    >>> images = np.random.default_rng(0).random((4, 8, 8))
    >>> ScatteringFeatures(octaves=2).fit_transform(images).shape
    (4, 41)
    """

    __init__: Any = constructor(PARAMETERS)

    def fit(self, X, y=None):
        """Prepare the transform for images of this shape.

        Parameters
        ----------
        X : array-like (n, pixels), (n, height, width) or (n, height, width, 3)
            Images; only their shape is used.
        y : None
            Not used.

        Returns
        -------
        self
            The estimator.
        """
        with value_errors():
            read_rows(self, X, reset=True)
            height, width = self.image_shape_[:2]
            order = whole("order", self.order, 0)
            octaves = suited_octaves(OCTAVES, (height, width)) if self.octaves is None else self.octaves
            dtype = BuildOptions.specs()["dtype"].checked("dtype", self.dtype)
            self.scattering_ = Scattering(order, whole("octaves", octaves, 1), (height, width), dtype)
        return self

    def transform(self, X) -> np.ndarray:
        """Return the features of images.

        Parameters
        ----------
        X : array-like (n, pixels), (n, height, width) or (n, height, width, 3)
            Images.

        Returns
        -------
        array (n, n_features)
            Features as float64.
        """
        check_is_fitted(self)
        with value_errors():
            images = as_images(read_rows(self, X), self.image_shape_)
            features = scattering_features(self.scattering_, images, effective_n_jobs(self.n_jobs)).astype(np.float64)
        return np.log(np.abs(features) + LEAST) if self.log else features

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.scattering_.n_features
