"""Cross-validation: every image is tested once, by a network that was trained on the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tigra.datasets.splits import Split, Splits, draw_stratified, transformed, with_train_rotations
from tigra.errors import DatasetError
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
        The data set.
    n_folds : int
        Number of folds, at least 2.
    seed : int
        Seed of the folds, and of the transformations of training and test images.

    Yields
    ------
    Splits
        One fold is the test; of the rest of each class 15 % are for validation. Training images are rotated if those
        of the data set are.
    """
    parts = [splits.train_upright or splits.train, splits.valid, splits.test_upright]
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
        yield replace(
            splits,
            train=_as_asked(train, splits, seed),
            train_upright=None if splits.train_upright is None else train,
            valid=valid,
            test_upright=upright,
            test=transformed(upright, splits.transform, np.random.default_rng(seed)),
            protocol=fold_protocol(splits, n_folds),
            learned=None,
            test_names=(),
        )


def fold_protocol(splits: Splits, n_folds: int) -> str:
    """Return the protocol of a cross-validation: that of the data set, but divided into folds."""
    words = f"{n_folds} folds, valid drawn ({VALID_SHARE:.0%} of each class that is not tested), "
    return splits.protocol.replace(splits.drawn, words, 1)  # in front if there are no such words


def _as_asked(train: Split, splits: Splits, seed: int) -> Split:
    """Rotate upright training images as those of the data set are rotated."""
    if splits.train_upright is None:
        return train
    options = splits.options
    return with_train_rotations(train, options["train_rotations"], seed, options["interpolation"], splits.entering)[0]
