"""Fitting DeepScat to a data set, and choosing its settings by upright validation images."""

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

PAPER = "W[2, 5]-PCA[20]"  # what the paper names, for ETH-80


class Trial(NamedTuple):
    """One setting of DeepScat, and the share of validation images that it names rightly."""

    architecture: str
    log: bool
    standardise: bool
    valid_accuracy: float


def suited(architecture: str, image_shape, labels: np.ndarray) -> str:
    """The architecture with no more octaves than the image has room for, and no more dimensions than the smallest
    class can fill.

    >>> suited("W[2, 5]-PCA[20]", (28, 28), np.repeat([0, 1], 12))
    'W[2, 4]-PCA[10]'
    """
    wave, plane = parse_architecture(architecture)
    order, octaves = map(int, wave.numbers)
    octaves = min(octaves, max(1, int(min(image_shape)).bit_length() - 1))
    most = max(1, largest_dimension(np.asarray(labels), n_features(order, octaves)))
    return f"W[{order}, {octaves}]-PCA[{min(plane.numbers[0], most)}]"


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
    """(a fitted DeepScat, what was tried), from training images and upright validation images alone.

    architecture, log, standardise, dtype : see `build_deepscat`
    candidates : lists of further "octaves", "dimension", "log" and "standardise", all combinations of which are tried
        after the setting that the other arguments give; those that the images do not allow are left out
    threads : worker threads; the result does not depend on them
    cache : folder in which features are kept by content, such as `tigra.files.cache.cache_folder()`, or None
    on_progress : called with (what is done, how many, of how many)
    """
    search = _Search(splits, architecture, log, standardise, dtype, threads, cache, on_progress)
    tried = {setting: search.trial(setting) for setting in search.settings(candidates or {})}
    trials = [trial for _, trial in tried.values()]
    model = list(tried.values())[int(np.argmax([trial.valid_accuracy for trial in trials]))][0]
    model.calibrate(search.features(model.scattering.octaves)[1], search.labels[1])
    return model, trials


class _Setting(NamedTuple):
    """What may be chosen."""

    octaves: int
    log: bool
    standardise: bool
    dimension: int


class _Search:
    """Settings tried on the same images, which are scattered once for each number of octaves.

    labels : of the training and of the validation images
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
        """A DeepScat that is to be fitted."""
        octaves, log, standardise, dimension = setting
        text = f"W[{self.order}, {octaves}]-PCA[{dimension}]"
        model = build_deepscat(text, self.shape, len(self.class_names), log, standardise, self.dtype)
        model.cache, model.class_names = self.cache, self.class_names
        return model

    def settings(self, candidates: dict) -> list[_Setting]:
        """The first setting, and all others that the candidates and the images allow."""
        lists = {name: [value] for name, value in self.first._asdict().items()}
        if not set(candidates) <= set(lists):
            raise UsageError(f"candidates may be given for {', '.join(lists)}, got {', '.join(map(str, candidates))}.")
        for name, values in candidates.items():
            kind = (bool, np.bool_) if name in ("log", "standardise") else (int, np.integer)
            if not isinstance(values, (list, tuple)) or not all(isinstance(value, kind) for value in values):
                raise UsageError(f"candidates[{name!r}] must be a list of {kind[0].__name__}, got {values!r}.")
        combinations = [_Setting(*values) for values in product(*(lists | candidates).values())]
        possible = [setting for setting in combinations if setting.dimension <= self.most(setting.octaves)]
        return list(dict.fromkeys([self.first, *possible]))

    def most(self, octaves: int) -> int:
        """The most dimensions that planes can have, 0 if there are too many octaves for the image."""
        if octaves > largest_octaves(self.shape):
            return 0
        return largest_dimension(self.labels[0], n_features(self.order, octaves))

    def trial(self, setting: _Setting) -> tuple[DeepScat, Trial]:
        """A DeepScat fitted with this setting, and what it makes of the validation images."""
        train, valid = self.features(setting.octaves)
        kind = setting[:3]
        if kind not in self._planes:  # planes of the most dimensions; those of fewer are parts of them
            wide = self.built(setting._replace(dimension=self.most(setting.octaves)))
            self._planes[kind] = wide.fit_features(train, self.labels[0], valid, self.labels[1])
        model = self.built(setting)
        model.scale, model.planes = self._planes[kind].scale, self._planes[kind].planes.narrowed(setting.dimension)
        hits = model.scores_of_features(valid).argmax(axis=1) == self.labels[1]
        return model, Trial(model.options.architecture, setting.log, setting.standardise, float(hits.mean()))

    def _tell(self, what: str, _: str, done: int, total: int) -> None:
        self.on_progress(what, done, total)

    def features(self, octaves: int) -> list[np.ndarray]:
        """Features (n, F) of the training and of the validation images."""
        if octaves not in self._features:
            model = self.built(self.first._replace(octaves=octaves, dimension=1))
            self._features[octaves] = [
                model.features(images, self.threads, partial(self._tell, f"scattering {what} images"))
                for what, images in self.images.items()
            ]
        return self._features[octaves]
