"""Load the data set for a model: the one of its training, with the same split, or another that fits."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import click

from tigra.datasets.folders import load_test_folder
from tigra.datasets.loading import DATASETS, is_own_data, load_dataset
from tigra.datasets.npz.loading import load_test_arrays
from tigra.datasets.splits import split_hash
from tigra.errors import DatasetError, TigraError, UsageError
from tigra.images.background import WINDOWS, WORDS, entering

from .data_options import check_options, loading

ON_BLACK = "mnist-012", "mnist-rot", "mnist-trans"  # light objects on black


def checked_dataset(model: str, loaded, dataset, given: dict, data_dir, command: str) -> str:
    """Return the data set to use, by default that of the training; raise click.UsageError if there is none."""
    trained_on = loaded.training.get("dataset")
    dataset = dataset or trained_on
    if dataset is None:
        raise click.UsageError(f"{model} does not record its data set; choose one of {', '.join(DATASETS)}.")
    if dataset not in DATASETS and not is_own_data(dataset) and dataset == trained_on:
        raise click.UsageError(
            f"{dataset} is neither a folder or file that exists nor a data set that is registered; give its new"
            f" place ({command}), or import the module that registers it with --import."
        )
    check_options(dataset, given, data_dir)
    return dataset


def splits_for(model: str, loaded, dataset, given: dict, data_dir, threads, progress):
    """Load the data set, split as in training; from a folder, all images that were not trained on."""
    record, network = loaded.training, loaded.network
    is_same, stored = dataset == record.get("dataset"), record.get("dataset_options", {})
    load_own = partial(load_test_folder, threads=threads, on_progress=loading(progress))
    if dataset not in DATASETS:
        wanted = "invert", "test_rotations", "interpolation"
        options = {name: value for name, value in (stored | given).items() if name in wanted}
        background = getattr(network.options, "background", "black")
        options["background"] = background if background in WINDOWS else picture_background(loaded)
        learned, note = _learned(record, data_dir, threads, progress)
        if not os.path.isdir(dataset):
            options.pop("invert", None)
            load_own = partial(load_test_arrays)
        splits = load_own(dataset, network.image_shape, network.class_names, learned, **options)
        return replace(splits, notes=(*splits.notes, *note))
    load = partial(load_dataset, data_dir=data_dir, threads=threads, on_progress=loading(progress))
    splits = load(dataset, **(stored if is_same else {}) | given)
    if is_same and record.get("split_hash") not in (None, split_hash(splits)):
        raise DatasetError(
            f"The images of {dataset} differ from those in training, so test images may have been trained on; use the"
            " same files and the same version of tigra as in training."
        )
    if splits.class_names != network.class_names:
        raise UsageError(
            f"The model has the classes {', '.join(network.class_names)}, but {dataset} has"
            f" {', '.join(splits.class_names)}; choose a data set with the same classes."
        )
    if splits.image_shape != network.image_shape:
        sizes = ["x".join(map(str, shape)) for shape in (network.image_shape, splits.image_shape)]
        raise UsageError(
            f"{model} expects images of {sizes[0]}, but {dataset} has {sizes[1]}; choose another data set."
        )
    return splits


def picture_background(loaded) -> str:
    """Return the `background` of `tigra.read_image` for pictures that a model is to classify.

    A network on black that learned light objects on black gets other pictures on black, too. Other pictures are read as
    they were in training; what reads them may not look at their background, as ConvNets and DeepScat.
    """
    record, options = loaded.training, loaded.network.options
    given = record.get("dataset_options", {}).get("background", "black")  # "black" for version 0.1, too
    was_black = given == "black" or (given == "auto" and WORDS["border"] not in record.get("protocol", ""))
    if entering(getattr(options, "background", "black")) == "border" or not was_black:
        return "border"
    return "to black" if record.get("dataset") in ON_BLACK or given == "auto" else "black"


def _learned(record: dict, data_dir, threads, progress):
    """Return (what the model was trained on or None, notes if it is not known).

    Files of version 0.1 do not say which images of a named data set they were trained on, so it is loaded again.
    """
    if record.get("learned") is not None:
        return record["learned"], []
    name, why = record.get("dataset"), "its file does not say which"
    if name in DATASETS:
        try:
            load = partial(load_dataset, data_dir=data_dir, threads=threads, on_progress=loading(progress))
            splits = load(name, **record.get("dataset_options", {}))
            if record.get("split_hash") == split_hash(splits):
                return splits.learned_pictures, []
            why = f"its file does not say which, and {name} is not the same any more"
        except (TigraError, TypeError) as error:
            why = f"its file does not say which, and {name} cannot be loaded: {str(error).rstrip('.')}"
    return None, [f"pictures that the model was trained on may be among those tested ({why})"]
