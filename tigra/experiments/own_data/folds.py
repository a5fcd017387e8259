"""Cross-validation: every image is tested once, by a network that was trained on the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tigra.datasets.splits import Split, Splits, draw_stratified, transformed
from tigra.errors import DatasetError, UsageError
from tigra.images.store import LazyImages
from tigra.seeding import generator

VALID_SHARE = 0.15  # of the images that are not tested


class JoinedImages(LazyImages):
    """Rows of several sets of images, counted one after the other."""

    def __init__(self, parts: list, rows: np.ndarray):
        self.parts, self.rows = parts, np.asarray(rows)
        self.starts = np.cumsum([0, *(len(part) for part in parts)])
        super().__init__((len(self.rows), *parts[0].shape[1:]))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the images with these indices."""
        wanted, images = self.rows[rows], np.empty((len(rows), *self.shape[1:]))
        for part, start in zip(self.parts, self.starts, strict=False):
            places = np.flatnonzero((wanted >= start) & (wanted < start + len(part)))
            if len(places):
                images[places] = part[wanted[places] - start]
        return images


def fold_splits(splits: Splits, n_folds: int, seed: int = 0) -> Iterator[Splits]:
    """Yield a data set split anew for each fold; all its images, from whatever part, are tested once.

    Parameters
    ----------
    splits : Splits
        The data set, with upright training images.
    n_folds : int
        Number of folds, at least 2.
    seed : int
        Seed of the folds, and of the transformations of test images.

    Yields
    ------
    Splits
        One fold is the test; of the rest of each class 15 % are for validation.
    """
    if splits.options.get("train_rotations") not in (None, 0, 1):
        raise UsageError("Folds need upright training images; leave out train_rotations.")
    parts = [splits.train, splits.valid, splits.test_upright]
    images, labels = [part.images for part in parts], np.concatenate([part.labels for part in parts])
    counts = np.bincount(labels, minlength=len(splits.class_names))
    if n_folds < 2 or n_folds > counts.min():
        smallest = splits.class_names[int(counts.argmin())]
        raise DatasetError(
            f"The number of folds must be from 2 to the {counts.min()} images of class {smallest!r}, got {n_folds}."
        )
    folds, rng = np.empty(len(labels), int), generator(seed, "folds")
    for label in range(len(counts)):
        places = rng.permutation(np.flatnonzero(labels == label))
        folds[places] = np.arange(len(places)) % n_folds
    for fold in range(n_folds):
        rest, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        is_valid = draw_stratified(labels[rest], VALID_SHARE, generator(seed, f"fold {fold}"), splits.class_names)
        train, valid, upright = (
            Split(JoinedImages(images, rows), labels[rows]) for rows in (rest[~is_valid], rest[is_valid], test)
        )
        turned = transformed(upright, splits.transform, np.random.default_rng(seed))
        of_fold = replace(splits, train=train, valid=valid, test_upright=upright, test=turned)
        yield replace(of_fold, learned=None, test_names=())
