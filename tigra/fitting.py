"""Fitting DeepScat to a data set, and choosing its settings by upright validation images.

`RECIPES` is for `fit_deepscat` what tigra.recipes is for `fit`: for each data set the arguments to start with.
"paper" is W[2, 5]-PCA[20] on linear features as the paper names it. "chosen" tries CANDIDATES, the paper's
setting first, and takes what names most validation images rightly; where several do, the first of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tigra.affine_pca import largest_dimension
from tigra.deepscat import DeepScat, build_deepscat, read_deepscat
from tigra.errors import UsageError
from tigra.notation import format_architecture, parse_architecture
from tigra.scattering import largest_octaves
from tigra.splits import Splits

PAPER = {"architecture": "W[2, 5]-PCA[20]", "log": False, "standardise": False}
CANDIDATES = {
    "octaves": [5, 4, 3],
    "dimension": [20, 5, 10, 40, 60],
    "log": [False, True],
    "standardise": [False, True],
}
RECIPES = {
    variant: {name: PAPER | more for name in ("mnist-012", "mnist-rot", "mnist-trans", "eth-80", "folder")}
    for variant, more in {"paper": {}, "chosen": {"candidates": CANDIDATES}}.items()
}


class Trial(NamedTuple):
    """One setting of DeepScat, and the share of validation images that it names rightly."""

    architecture: str
    log: bool
    standardise: bool
    valid_accuracy: float


def with_dimension_limited(architecture: str, labels: np.ndarray, image_shape) -> str:
    """The architecture with planes of so few dimensions that the smallest class fills them.

    >>> with_dimension_limited("W[2, 5]-PCA[20]", np.repeat([0, 1], 12), (50, 50))
    'W[2, 5]-PCA[10]'
    """
    items = parse_architecture(architecture)
    model = build_deepscat(architecture, image_shape, n_classes=2)
    most = max(1, largest_dimension(np.asarray(labels), model.scattering.n_features))
    items[1] = items[1]._replace(numbers=(min(items[1].numbers[0], most),))
    return format_architecture(items)


def fit_deepscat(
    splits: Splits,
    architecture: str = PAPER["architecture"],
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
    cache : folder in which features are kept by content, such as `tigra.sources.cache_folder()`, or None
    on_progress : called with (what is done, how many, of how many)
    """
    images = {"training": splits.train.images, "validation": splits.valid.images}
    n_classes, labels = len(splits.class_names), {}
    first = build_deepscat(architecture, splits.image_shape, n_classes, log, standardise, dtype)
    for what, split in (("training", splits.train), ("validation", splits.valid)):
        labels[what] = first.checked_labels(split.labels, len(first.checked(split.images)), what)
    settings = [_setting(first), *_combinations(first, candidates or {}, labels["training"])]
    features, wide, models, trials = {}, {}, [], []
    for order, octaves, dimension, log, standardise in dict.fromkeys(settings):
        if octaves not in features:
            model = _built(first, order, octaves, 1, False, False, cache)
            features[octaves] = {
                what: model.features(
                    images[what], threads, lambda *n, what=what: on_progress(f"scattering {what} images", *n)
                )
                for what in images
            }
        train, valid = (features[octaves][what] for what in ("training", "validation"))
        kind = octaves, log, standardise
        if kind not in wide:  # planes of the most dimensions; those of fewer are parts of them
            most = max(setting[2] for setting in settings if (setting[1], *setting[3:]) == kind)
            wide[kind] = _built(first, order, octaves, most, log, standardise, cache)
            wide[kind].fit_features(train, labels["training"], valid, labels["validation"])
        model = _built(first, order, octaves, dimension, log, standardise, cache)
        model.scale, model.planes = wide[kind].scale, wide[kind].planes.narrowed(dimension)
        hits = model.scores_of_features(valid).argmax(axis=1) == labels["validation"]
        models.append((model, valid))
        trials.append(Trial(model.options["architecture"], log, standardise, float(hits.mean())))
    model, valid = models[int(np.argmax([trial.valid_accuracy for trial in trials]))]
    model.calibrate(valid, labels["validation"])
    model.class_names = list(splits.class_names)
    return model, trials


def _setting(model: DeepScat) -> tuple:
    options = model.options
    return *read_deepscat(options["architecture"], model.image_shape), options["log"], options["standardise"]


def _combinations(first: DeepScat, candidates: dict, labels: np.ndarray) -> list[tuple]:
    """All settings that the candidates and the images allow."""
    order, octaves, dimension, log, standardise = _setting(first)
    lists = {"octaves": [octaves], "dimension": [dimension], "log": [log], "standardise": [standardise]}
    if not set(candidates) <= set(lists):
        raise UsageError(f"candidates may be given for {', '.join(lists)}, got {', '.join(candidates)}.")
    found = []
    for octaves, log, standardise, dimension in product(
        *((lists | candidates)[k] for k in ("octaves", "log", "standardise", "dimension"))
    ):
        if octaves > largest_octaves(first.image_shape):
            continue
        n_features = _built(first, order, octaves, 1, log, standardise).scattering.n_features
        if dimension <= largest_dimension(labels, n_features):
            found.append((order, octaves, dimension, log, standardise))
    return found


def _built(first: DeepScat, order, octaves, dimension, log, standardise, cache=None) -> DeepScat:
    """A DeepScat for the same images with other settings."""
    text = f"W[{order}, {octaves}]-PCA[{dimension}]"
    model = build_deepscat(text, first.image_shape, first.n_classes, log, standardise, first.options["dtype"])
    model.cache = cache
    return model
