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
from tigra.models.classifier import Classifier

CONTRAST = "each picture also with contrast x 0.7 and x 1.4, for a third of the epochs"
EQUAL = "contrast of every picture made equal"
COLOUR = "colour"
AVERAGED = "two networks, probabilities averaged"
MIXED = "a grey and a colour network, probabilities averaged"
COLOURS: dict[str, list[dict]] = {COLOUR: [{"colour": "yes"}], MIXED: [{}, {"colour": "yes"}]}  # options of the data
PARTS = "valid", "test"


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
    judges: list[tuple[Classifier, Splits]] = []
    for colour in COLOURS.get(idea, [{}]):
        splits = load_dataset("eth-80", split="object", fold=fold, data_dir=data_dir, **colour)
        if idea == CONTRAST:
            splits = with_contrasts(splits)
            recipe = recipe.with_changes({"epochs": -(-recipe.fit.epochs // 3)})
        if idea == EQUAL:
            splits = with_equal_contrast(splits)
        for seed in range(2 if idea == AVERAGED else 1):
            run = find_method("tigranet").start(splits, recipe, seed, threads)
            replace_layers(run.training.network, idea)
            perform(run, watch=watch)
            judges.append((run.model, splits))
    return [_accuracy([(model, getattr(splits, part)) for model, splits in judges], threads) for part in PARTS]


def _accuracy(judges: list[tuple[Classifier, Split]], threads: int) -> float:
    """Percent that the mean of the probabilities gets right; each network has its own pictures of the same objects."""
    labels = judges[0][1].labels
    parts = [(model, part.images[np.arange(len(labels))]) for model, part in judges]
    mean = np.mean([model.predict_proba(images, threads) for model, images in parts], axis=0)
    return round(100 * float((mean.argmax(axis=1) == labels).mean()), 3)
