"""The data set that a model is shown: the one it was trained on, split as it was then, or another that fits."""

from __future__ import annotations

import os
from functools import partial

import click

from tigra.datasets.folders import load_test_folder
from tigra.datasets.loading import DATASETS, load_dataset
from tigra.datasets.splits import split_hash
from tigra.errors import DatasetError, UsageError

from .data_options import check_options, loading


def checked_dataset(model: str, loaded, dataset, given: dict, data_dir, command: str) -> str:
    """The name of the data set to use, by default the training's; click.UsageError if there is none, or no such."""
    trained_on = loaded.training.get("dataset")
    dataset = dataset or trained_on
    if dataset is None:
        raise click.UsageError(f"{model} does not name its data set; choose one of {', '.join(DATASETS)}.")
    if dataset not in DATASETS and not os.path.isdir(dataset) and dataset == trained_on:
        raise click.UsageError(f"The folder {dataset} is not here; say where: {command}.")
    check_options(dataset, given, data_dir)
    return dataset


def splits_for(model: str, loaded, dataset, given: dict, data_dir, threads, progress):
    """The data set, split as for the training; of a folder, wherever it lies, all that was not learned from."""
    record, network = loaded.training, loaded.network
    is_same, stored = dataset == record.get("dataset"), record.get("dataset_options", {})
    load_folder = partial(load_test_folder, threads=threads, on_progress=loading(progress))
    if dataset not in DATASETS:
        wanted = "invert", "test_rotations", "interpolation"
        options = {name: value for name, value in (stored | given).items() if name in wanted}
        learned = frozenset(record.get("learned", "").split())
        return load_folder(dataset, network.image_shape, network.class_names, learned, **options)
    load = partial(load_dataset, data_dir=data_dir, threads=threads, on_progress=loading(progress))
    splits = load(dataset, **(stored if is_same else {}) | given)
    if is_same and record.get("split_hash") not in (None, split_hash(splits)):
        raise DatasetError(
            f"The images of {dataset} are not those that the model was trained on, so its test images may be among"
            " them; use the files, and the version of tigra, of the training."
        )
    if splits.class_names != network.class_names:
        raise UsageError(
            f"The model knows the classes {', '.join(network.class_names)}, but {dataset} has"
            f" {', '.join(splits.class_names)}; choose a data set with the same classes."
        )
    if splits.image_shape != network.image_shape:
        sizes = ["x".join(map(str, shape)) for shape in (network.image_shape, splits.image_shape)]
        raise UsageError(f"{model} takes images of {sizes[0]}, but {dataset} has {sizes[1]}; choose another one.")
    return splits
