"""Data sets: from files to training, validation and test images with labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from typing import NamedTuple

import numpy as np

from tigra.errors import DatasetError, UsageError
from tigra.transforms import random_rotations


class Split(NamedTuple):
    """images : array (n, height, width), real, in [0, 1]; labels : integers (n,)."""

    images: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Splits:
    """A data set, ready to train on and to test with.

    train, valid : upright images; test : transformed ones; test_upright : the same before that
    transform : function (images, rng) -> transformed images, which made `test`; `fresh_test` uses
        it for further test sets
    protocol : what was done, in words and numbers, to be printed with every result
    """

    name: str
    train: Split
    valid: Split
    test: Split
    test_upright: Split
    class_names: list[str]
    transform: Callable
    options: dict = field(default_factory=dict)
    protocol: str = ""

    @property
    def image_shape(self) -> tuple[int, int]:
        """(height, width) of the images."""
        return self.train.images.shape[1:]

    def fresh_test(self, seed) -> Split:
        """The test images under new random transformations; seed as for `numpy.random.default_rng`."""
        rng = np.random.default_rng(seed)
        return Split(self.transform(self.test_upright.images, rng), self.test_upright.labels)


def load_dataset(name: str, seed: int = 0, interpolation: str = "cubic") -> Splits:
    """The splits of a data set; `seed` and `interpolation` decide how test images are transformed.

    >>> splits = load_dataset("mnist-012")
    >>> splits.train.images.shape, splits.valid.images.shape, splits.test.images.shape
    ((500, 28, 28), (100, 28, 28), (100, 28, 28))
    """
    if not isinstance(seed, (int, np.integer)) or seed < 0:
        raise UsageError(f"seed must be a whole number >= 0, got {seed!r}.")
    if not isinstance(name, str) or name not in DATASETS:
        raise UsageError(f"There is no data set {name!r}; choose one of {', '.join(DATASETS)}.")
    return DATASETS[name](seed=seed, interpolation=interpolation)


def load_mnist_012(seed: int = 0, interpolation: str = "cubic") -> Splits:
    """500/100/100 MNIST digits 0, 1, 2 that come with the package; test digits are rotated.

    The digits lie upright in data/mnist-012.npz (data/draw_mnist_012.py drew them). Each test digit
    is turned by its own random angle in [0, 360) degrees.
    """
    try:
        with resources.files("tigra_data").joinpath("mnist-012.npz").open("rb") as file:
            stored = dict(np.load(file, allow_pickle=False))
    except ModuleNotFoundError as error:
        raise DatasetError("The package's data is not installed; run 'pip install .' in tigra's folder.") from error
    upright = {
        part: Split(stored[f"{part}_images"] / 255.0, stored[f"{part}_labels"].astype(np.int64))
        for part in ("train", "valid", "test")
    }
    transform = partial(random_rotations, interpolation=interpolation)
    rotated = transform(upright["test"].images, np.random.default_rng(seed))
    return Splits(
        name="mnist-012",
        train=upright["train"],
        valid=upright["valid"],
        test=Split(rotated, upright["test"].labels),
        test_upright=upright["test"],
        class_names=["0", "1", "2"],
        transform=transform,
        options={"seed": int(seed), "interpolation": interpolation},
        protocol=f"train and valid upright, test rotated by [0, 360) degrees, {interpolation} interpolation",
    )


DATASETS = {"mnist-012": load_mnist_012}
