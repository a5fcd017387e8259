"""Fit DeepScat to a data set, and choose its settings on upright validation images."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tigra.baselines.deepscat.affine_pca import check_dimension, largest_dimension
from tigra.baselines.deepscat.deepscat import DeepScat, build_deepscat, read_deepscat
from tigra.baselines.deepscat.scattering import largest_octaves, n_features
from tigra.datasets.splits import Splits
from tigra.errors import UsageError
from tigra.models.notation import parse_architecture

PAPER = "W[2, 5]-PCA[20]"  # the paper's settings for ETH-80


class Trial(NamedTuple):
    """One setting of DeepScat and its accuracy on validation images."""

    architecture: str
    log: bool
    standardise: bool
    valid_accuracy: float


def suited(architecture: str, image_shape, labels: np.ndarray) -> str:
    """Limit octaves to the size of the image, and dimensions to the size of the smallest class.

    >>> suited("W[2, 5]-PCA[20]", (28, 28), np.repeat([0, 1], 12))
    'W[2, 4]-PCA[10]'
    """
    wave, plane = parse_architecture(architecture)
    order, octaves = map(int, wave.numbers)
    octaves = suited_octaves(octaves, image_shape)
    most = max(1, largest_dimension(np.asarray(labels), n_features(order, octaves)))
    return f"W[{order}, {octaves}]-PCA[{min(plane.numbers[0], most)}]"


def suited_octaves(octaves: int, image_shape) -> int:
    """Limit octaves J to the size of the image: the widest average, 2^J pixels, stays inside it.

    >>> suited_octaves(5, (28, 28))
    4
    """
    return min(octaves, max(1, int(min(image_shape)).bit_length() - 1))


def fit_deepscat(
    splits: Splits,
    architecture: str = PAPER,
    log: bool = False,
    standardise: bool = False,
    candidates: dict | None = None,
    dtype: str = "float32",
    threads: int = 1,
    cache: Path | None = None,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> tuple[DeepScat, list[Trial]]:
    """Fit DeepScat to training images; choose its settings on upright validation images.

    Parameters
    ----------
    splits : Splits
        The data set. Test images are not used.
    architecture, log, standardise, dtype
        As for `build_deepscat`.
    candidates : dict of list, optional
        Further values of "octaves", "dimension", "log" and "standardise". All combinations that the images
        allow are tried after the setting of the other arguments.
    threads : int
        Number of worker threads; the result does not depend on it.
    cache : Path, optional
        Folder that caches features by content, such as `tigra.files.cache.cache_folder()`.
    on_progress : callable
        Called with (description, number done, total).

    Returns
    -------
    model : DeepScat
        The fitted classifier with the highest validation accuracy, the first in case of ties.
    trials : list of Trial
        All settings that were tried, with their accuracies.
    """
    search = _Search(splits, architecture, log, standardise, dtype, threads, cache, on_progress)
    tried = {setting: search.trial(setting) for setting in search.settings(candidates or {})}
    trials = [trial for _, trial in tried.values()]
    model = list(tried.values())[int(np.argmax([trial.valid_accuracy for trial in trials]))][0]
    model.calibrate(search.features(model.scattering.octaves)[1], search.labels[1])
    return model, trials


class _Setting(NamedTuple):
    """The settings that can be chosen."""

    octaves: int
    log: bool
    standardise: bool
    dimension: int


class _Search:
    """Try settings on the same images; features are computed once for each number of octaves.

    `labels` are those of the training and of the validation images.
    """

    def __init__(self, splits, architecture, log, standardise, dtype, threads, cache, on_progress):
        self.images = {"training": splits.train.images, "validation": splits.valid.images}
        self.class_names, self.dtype, self.shape = list(splits.class_names), dtype, splits.image_shape
        self.threads, self.cache, self.on_progress = threads, cache, on_progress
        self.order, octaves, dimension = read_deepscat(architecture, self.shape)
        self.first = _Setting(octaves, log, standardise, dimension)
        model = self.built(self.first)
        parts = zip((splits.train, splits.valid), self.images, strict=True)
        self.labels = [model.checked_labels(part.labels, len(model.checked(part.images)), what) for part, what in parts]
        check_dimension(dimension, self.labels[0], model.n_classes, model.scattering.n_features)
        self._features, self._planes = {}, {}

    def built(self, setting: _Setting) -> DeepScat:
        """Build a DeepScat with this setting."""
        octaves, log, standardise, dimension = setting
        text = f"W[{self.order}, {octaves}]-PCA[{dimension}]"
        model = build_deepscat(text, self.shape, len(self.class_names), log, standardise, self.dtype)
        model.cache, model.class_names = self.cache, self.class_names
        return model

    def settings(self, candidates: dict) -> list[_Setting]:
        """Return the first setting and all others that the candidates and the images allow."""
        lists = {name: [value] for name, value in self.first._asdict().items()}
        if not set(candidates) <= set(lists):
            raise UsageError(f"candidates must be for {', '.join(lists)}, got {', '.join(map(str, candidates))}.")
        for name, values in candidates.items():
            kind = (bool, np.bool_) if name in ("log", "standardise") else (int, np.integer)
            if not isinstance(values, (list, tuple)) or not all(isinstance(value, kind) for value in values):
                raise UsageError(f"candidates[{name!r}] must be a list of {kind[0].__name__}, got {values!r}.")
        combinations = [_Setting(*values) for values in product(*(lists | candidates).values())]
        possible = [setting for setting in combinations if setting.dimension <= self.most(setting.octaves)]
        return list(dict.fromkeys([self.first, *possible]))

    def most(self, octaves: int) -> int:
        """Return the largest dimension of planes; 0 if there are too many octaves for the image."""
        if octaves > largest_octaves(self.shape):
            return 0
        return largest_dimension(self.labels[0], n_features(self.order, octaves))

    def trial(self, setting: _Setting) -> tuple[DeepScat, Trial]:
        """Fit a DeepScat with this setting; return it with its validation accuracy."""
        train, valid = self.features(setting.octaves)
        kind = setting[:3]
        if kind not in self._planes:  # fit the largest dimension once; smaller ones are parts of it
            wide = self.built(setting._replace(dimension=self.most(setting.octaves)))
            self._planes[kind] = wide.fit_features(train, self.labels[0], valid, self.labels[1])
        model = self.built(setting)
        model.scale, model.planes = self._planes[kind].scale, self._planes[kind].planes.narrowed(setting.dimension)
        hits = model.scores_of_features(valid).argmax(axis=1) == self.labels[1]
        return model, Trial(model.options.architecture, setting.log, setting.standardise, float(hits.mean()))

    def _tell(self, what: str, _: str, done: int, total: int) -> None:
        self.on_progress(what, done, total)

    def features(self, octaves: int) -> list[np.ndarray]:
        """Return features (n, F) of the training and of the validation images."""
        if octaves not in self._features:
            model = self.built(self.first._replace(octaves=octaves, dimension=1))
            self._features[octaves] = [
                model.features(images, self.threads, partial(self._tell, f"scattering {what} images"))
                for what, images in self.images.items()
            ]
        return self._features[octaves]
