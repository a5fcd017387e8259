"""`--size auto`: the size of images, from that of the pictures and the time that training will take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tigra.datasets.npz.files import is_array_file, lacking, read_arrays, read_images
from tigra.datasets.picture_files import N_SIZES, list_pictures
from tigra.errors import UsageError
from tigra.experiments.recipe import Recipe
from tigra.images.pictures import picture_size
from tigra.models.build import Plan

SIDES = 28, 32, 40, 50, 64, 80, 100, 128, 160, 200
BUDGET = 600.0  # seconds
SPEED = 6e9  # operations of `Plan.cost` a second and thread; training on 32x32 to 100x100 did 5.3 to 7.5 billion
TRAINED = 0.7  # of the pictures


class ChosenSize(NamedTuple):
    """A size of images.

    Attributes
    ----------
    size : (int, int)
        Height and width.
    pictures : (int, int)
        Typical height and width of the pictures.
    seconds : float
        Estimate of the time that training takes.
    """

    size: tuple[int, int]
    pictures: tuple[int, int]
    seconds: float

    @property
    def words(self) -> str:
        """The choice in one sentence."""
        from_size = f"{self.pictures[0]}x{self.pictures[1]}"
        time = f"{self.seconds / 60:.0f} min" if self.seconds >= 90 else f"{max(1, round(self.seconds)):d} s"
        return f"the size is {self.size[0]}x{self.size[1]}, from pictures of {from_size}; training takes about {time}"


def choose_size(dataset, method: Any, recipe: Any, threads: int = 1, budget: float = BUDGET) -> ChosenSize:
    """Return the largest square size that is not beyond the pictures and can be trained in time.

    Parameters
    ----------
    dataset : path
        A folder of pictures, or an .npz file.
    method, recipe
        What is trained.
    threads : int
        Number of threads.
    budget : float
        Seconds. If even the smallest size takes longer, it is chosen.

    Returns
    -------
    ChosenSize
        The size, and what it was chosen from.

    Raises
    ------
    UsageError
        If the data set or the recipe does not allow a choice.
    """
    if not isinstance(recipe, Recipe):
        raise UsageError(f"The time that {method.name} takes is not known; give a --size such as 50x50.")
    pictures, n_pictures, n_classes = _looked_at(dataset)
    n_images = max(1, round(TRAINED * n_pictures))
    largest = max(min(SIDES), max(pictures))
    choices = []
    for side in sorted({min(side, largest) for side in SIDES}):
        options, fit = method.settled(recipe, (side, side), n_classes, n_images, seed=0)
        seconds = fit.epochs * n_images * Plan.of(options).cost.operations / (SPEED * threads)
        choices.append(ChosenSize((side, side), pictures, seconds))
    return next((choice for choice in reversed(choices) if choice.seconds <= budget), choices[0])


def _looked_at(dataset) -> tuple[tuple[int, int], int, int]:
    """Return the median size of the pictures, their number, and the number of classes."""
    if is_array_file(dataset):
        arrays = read_arrays(dataset, ("train_images", "train_labels", "images", "labels"))
        images = [name for name in arrays if name.endswith("images")]
        labels = [name for name in arrays if name.endswith("labels")]
        if not images or not labels:
            raise lacking(dataset, "train_images and train_labels, or images and labels")
        pixels = read_images(dataset, images[0], arrays[images[0]])
        height, width = pixels.shape[1:3]
        return (height, width), len(pixels), max(2, len(np.unique(arrays[labels[0]])))
    if not os.path.isdir(dataset):
        raise UsageError(f"--size auto is for folders and .npz files, got {dataset}; give a size such as 50x50.")
    files = list_pictures(Path(dataset))
    sizes = [size for file in files[:: -(-len(files) // N_SIZES)] if (size := picture_size(file.path))]
    height, width = np.median(sizes, axis=0).astype(int) if sizes else (50, 50)
    return (int(height), int(width)), len(files), max(2, len({file.class_name for file in files}))
