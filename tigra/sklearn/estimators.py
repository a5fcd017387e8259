"""TIGraNet as a classifier and as a transformer of scikit-learn."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tigra.datasets.loading import DATASETS
from tigra.errors import TrainingError, UsageError
from tigra.experiments.methods import METHODS, NetworkMethod
from tigra.images.background import find_background
from tigra.models.build import Plan
from tigra.models.classifier import LARGEST_PIXEL
from tigra.models.loss import softmax
from tigra.models.network import Network
from tigra.options import BuildOptions, FitOptions
from tigra.sklearn.images import read_rows, value_errors
from tigra.sklearn.parameters import OPTIONS, PARAMETERS, constructor, documented, real, seed_of
from tigra.sklearn.training_set import WeightedImages, class_weights, distinct, held_out
from tigra.training import Epoch, Training


class TIGraNetEstimator(BaseEstimator):
    """Base class of the estimators that train a network."""

    __init__: Any = constructor(PARAMETERS)

    def fit(self, X, y, sample_weight=None):
        """Train a network.

        Parameters
        ----------
        X : array-like (n, pixels), (n, height, width) or (n, height, width, 3)
            Images. In colour, the network gets luminance and two opponent colours.
        y : array-like (n,)
            Their classes, numbers or strings.
        sample_weight : array-like (n,), optional
            Weights of the images in the loss. An image with weight 2 counts like two equal images.

        Returns
        -------
        self
            The estimator.
        """
        with value_errors():
            is_warm = self.warm_start and hasattr(self, "network_")
            images, classes = self._training_images(X, y, sample_weight, is_warm)
            self._train(images, classes, is_warm)
        self.classes_ = classes
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    def _training_images(self, X, y, sample_weight, is_warm: bool) -> tuple[WeightedImages, np.ndarray]:
        """Return the different images with their weights, and the classes."""
        rows, y = read_rows(self, X, y, reset=not is_warm)
        check_classification_targets(y)
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
        kept = weights > 0
        if not kept.any():
            raise UsageError("The sample weights are all zero; give at least two classes weights above 0.")
        classes, labels = np.unique(y[kept], return_inverse=True)
        if len(classes) < 2:
            raise UsageError("Expected images of at least two classes, got one class; add images of another.")
        if not is_warm:
            self._set_range(rows[kept])
        elif not np.array_equal(classes, self.classes_):
            raise UsageError(f"With warm_start, y must have the classes {self.classes_}, got {classes}.")
        weights = weights[kept] * class_weights(self.class_weight, classes, labels, weights[kept])[labels]
        return distinct(self._images(rows[kept]), labels, weights), classes

    def _set_range(self, rows: np.ndarray) -> None:
        """Set `black_` and `white_` from the parameters or the training images."""
        self.black_ = min(0.0, float(rows.min())) if self.black is None else real("black", self.black)
        largest = float(rows.max())
        highest = largest if largest > self.black_ else self.black_ + 1
        self.white_ = highest if self.white is None else real("white", self.white)
        if not self.white_ > self.black_:
            raise UsageError(f"white must be above black, got {self.white_:g} and {self.black_:g}.")

    def _train(self, images: WeightedImages, classes: np.ndarray, is_warm: bool) -> None:
        seed, threads = seed_of(self.seed, self.random_state), effective_n_jobs(self.n_jobs)
        train, valid = held_out(images, self.validation_fraction, seed)
        background = find_background(train.images, train.labels) if min(self.image_shape_[:2]) > 2 else "black"
        options, fit = self._settled(len(classes), len(train.labels), seed, background)
        network = self._continued(options) if is_warm else Plan.of(options).network()
        network.class_names = [str(name) for name in classes]
        splits = tuple((part.images, part.labels) for part in (train, valid))
        training = Training(network, splits, fit, threads, weights=(train.weights, valid.weights))
        self._run(training)
        self.network_, self.history_ = network, training.history

    def _run(self, training: Training) -> None:
        """Train; if training diverges after the first epoch, warn and keep the best one, as scikit-learn does."""
        try:
            for epoch in training.run():
                if self.verbose:
                    print(epoch_line(epoch, training.options.epochs), flush=True)
        except TrainingError as error:
            if not training.history:
                raise
            warnings.warn(f"{error} The best epoch is kept.", ConvergenceWarning, stacklevel=4)

    def _settled(self, n_classes: int, n_images: int, seed: int, background: str) -> tuple[BuildOptions, FitOptions]:
        """Return the options of the network and of the training: the recipe's, with the parameters that are given."""
        method = METHODS["tigranet"]
        assert isinstance(method, NetworkMethod)
        if self.dataset not in ("folder", *DATASETS):
            raise UsageError(f"dataset must be one of folder, {', '.join(DATASETS)}, got {self.dataset!r}.")
        recipe = method.recipe(self.dataset, self.recipe)
        changes = {name: getattr(self, name) for name in OPTIONS if getattr(self, name) is not None}
        method.check_changes(changes, recipe)
        sizes = self.image_shape_, n_classes, n_images
        changes["class_weights"] = "none"  # `class_weight` and `sample_weight` are in the weights of the images
        return method.settled(recipe.with_changes(changes), *sizes, seed, background)

    def _continued(self, options: BuildOptions) -> Network:
        """Return a copy of the network of the last `fit`, which must have the same options."""
        new, old = Plan.of(options).options, self.network_.options
        if replace(new, seed=old.seed) != old:
            changed = [name for name in old if name != "seed" and new[name] != old[name]]
            raise UsageError(f"With warm_start, the network must stay as it is, but {', '.join(changed)} changed.")
        return self.network_.with_parameters(self.network_.learned)

    def _images(self, rows: np.ndarray) -> np.ndarray:
        """Return images of `image_shape_` in which black is 0 and white is 1, as float32."""
        images = (rows.reshape(len(rows), *self.image_shape_) - self.black_) / (self.white_ - self.black_)
        if np.abs(images).max() > LARGEST_PIXEL:
            raise UsageError(
                f"X has values from {rows.min():g} to {rows.max():g}, but black is {self.black_:g} and white is"
                f" {self.white_:g}; scale X like the training images."
            )
        return images.astype(np.float32)

    def _read(self, X) -> np.ndarray:
        check_is_fitted(self)
        return self._images(read_rows(self, X))


def epoch_line(epoch: Epoch, n_epochs: int) -> str:
    """Return what `verbose` prints after an epoch."""
    valid = f"{100 * epoch.valid_accuracy:.1f} %"
    return f"epoch {epoch.number}/{n_epochs}  loss {epoch.loss:.4f}  validation accuracy {valid}"


@documented(PARAMETERS)
class TIGraNetClassifier(ClassifierMixin, TIGraNetEstimator):
    """Classifier of images that is invariant to rotations and shifts.

    Attributes
    ----------
    network_ : Network
        The trained network, for images in [0, 1]: (X - black_) / (white_ - black_). `tigra.save` writes it to a file.
    history_ : list of Epoch
        Loss and accuracies after each epoch.
    classes_ : array (n_classes,)
        The classes in order.
    image_shape_ : tuple
        (height, width) or (height, width, 3).
    black_, white_ : float
        Pixel values that are 0 and 1 in the network.
    n_features_in_ : int
        Number of values of an image.

    Notes
    -----
    Images with weight 0 are left out, and equal images of one class are merged. So weights are the same as repetitions
    and the order of the images does not matter, to the last bit. Statistics are standardised over the different
    training images, without weights.

    Examples
    --------
    >>> import numpy as np
    >>> bars = np.zeros((20, 5, 5))
    >>> bars[::2, 2, 1:4] = bars[1::2, 2:3, 2] = np.linspace(0.5, 1, 10)[:, None]
    >>> classes = np.tile(["bar", "dot"], 10)
    >>> model = TIGraNetClassifier(architecture="SC[2, 1]-S[2]-FC[8]", epochs=30, batch_size=4)
    >>> model.fit(bars, classes).predict(np.rot90(bars[-2:], axes=(1, 2)))
    array(['bar', 'dot'], dtype='<U3')
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True  # on scikit-learn's points in the plane: an image of two pixels can turn
        return tags

    def predict_proba(self, X) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like (n, pixels), (n, height, width) or (n, height, width, 3)
            Images.

        Returns
        -------
        array (n, n_classes)
            One row per image, in the order of `classes_`.
        """
        with value_errors():
            images = self._read(X)
            scores = self.network_.scores(images, effective_n_jobs(self.n_jobs))
            return np.ascontiguousarray(softmax(scores.T.astype(np.float64)).T)

    def predict(self, X) -> np.ndarray:
        """Return the most likely class of each image.

        Parameters
        ----------
        X : array-like (n, pixels), (n, height, width) or (n, height, width, 3)
            Images.

        Returns
        -------
        array (n,)
            Classes.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]


@documented(PARAMETERS)
class TIGraNetFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TIGraNetEstimator):
    """Invariant features of images, from a network that `fit` trains to classify them.

    Attributes
    ----------
    network_ : Network
        The trained network.
    history_, classes_, image_shape_, black_, white_, n_features_in_
        As for `TIGraNetClassifier`.
    """

    def transform(self, X) -> np.ndarray:
        """Return the features of images: the output of the statistics layer.

        Parameters
        ----------
        X : array-like (n, pixels), (n, height, width) or (n, height, width, 3)
            Images.

        Returns
        -------
        array (n, n_features)
            Features as float64.
        """
        with value_errors():
            images = self._read(X)
            return self.network_.features(images, effective_n_jobs(self.n_jobs)).astype(np.float64)

    @property
    def _n_features_out(self) -> int:
        blank = np.zeros((1, *self.network_.image_shape))
        return self.network_.features(blank).shape[1]
