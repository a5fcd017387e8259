"""What accuracy on unseen objects of ETH-80 depends on, for `python -m benchmarks.ideas objects`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.lesser_layers import replace_layers
from benchmarks.objects import with_contrast
from tigra.datasets.loading import load_dataset
from tigra.datasets.splits import Split, Splits
from tigra.experiments.methods import find_method
from tigra.experiments.recipe import Recipe
from tigra.experiments.runs import Watch, perform
from tigra.images.background import border_grey

CONTRAST = "each picture also with contrast x 0.7 and x 1.4, for a third of the epochs"
EQUAL = "contrast of every picture made equal"
COLOUR = "colour"
AVERAGED = "three networks, probabilities averaged"


def with_contrasts(splits: Splits) -> Splits:
    """A data set whose training pictures are there three times."""
    images, labels = splits.train.images[np.arange(len(splits.train.labels))], splits.train.labels
    copies = [images, *(with_contrast(images, factor).astype(np.float32) for factor in (0.7, 1.4))]
    return replace(splits, train=Split(np.concatenate(copies), np.tile(labels, 3)))


def with_equal_contrast(splits: Splits, size: float = 0.12) -> Splits:
    """A data set whose pictures differ from the grey of their border by `size` in the root mean square."""

    def changed(part: Split) -> Split:
        images = part.images[np.arange(len(part.labels))]
        away = images - border_grey(images)[:, None, None]
        factor = size / np.maximum(np.sqrt((away**2).mean(axis=(1, 2), keepdims=True)), 0.01)
        return Split(np.clip(images + (factor - 1) * away, 0, 1).astype(np.float32), part.labels)

    return replace(splits, **{name: changed(getattr(splits, name)) for name in ("train", "valid", "test")})


def measured(recipe: Recipe, idea: str, fold: int, watch: Watch, data_dir=None, threads: int = 1) -> list[float]:
    """Percent of the validation objects and of the test objects that are recognised, all views."""
    colour = {"colour": "yes"} if idea == COLOUR else {}
    splits = load_dataset("eth-80", split="object", fold=fold, data_dir=data_dir, **colour)
    if idea == CONTRAST:
        splits = with_contrasts(splits)
        recipe = recipe.with_changes({"epochs": -(-recipe.fit.epochs // 3)})
    if idea == EQUAL:
        splits = with_equal_contrast(splits)
    models = []
    for seed in range(3 if idea == AVERAGED else 1):
        run = find_method("tigranet").start(splits, recipe, seed, threads)
        replace_layers(run.training.network, idea)
        perform(run, watch=watch)
        models.append(run.model)
    return [_accuracy(models, part, threads) for part in (splits.valid, splits.test)]


def _accuracy(models, part: Split, threads: int) -> float:
    images = part.images[np.arange(len(part.labels))]
    mean = np.mean([model.predict_proba(images, threads) for model in models], axis=0)
    return round(100 * float((mean.argmax(axis=1) == part.labels).mean()), 3)
