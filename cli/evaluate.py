"""`tigra evaluate`: accuracy of a model on freshly transformed test images."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

import click
import numpy as np
from tigra_cli.data_options import check_options, data_dir_option, given_options, loading, test_options
from tigra_cli.options import json_option, model_argument, seed_option, threads_option
from tigra_cli.output import Progress, percent, print_json

from tigra.datasets import DATASETS, load_dataset
from tigra.errors import ShapeError
from tigra.folders import load_test_folder
from tigra.model_file import load_model
from tigra.training import accuracy

CHANGED = "{} has changed since the training: all its pictures are tested, though some may have been learned from"


@click.command()
@model_argument
@click.argument("dataset", metavar="[DATASET]", required=False)
@click.option("--runs", type=click.IntRange(min=1), default=10, show_default=True, help="How often to transform anew.")
@click.option(
    "--interpolation",
    type=click.Choice(["cubic", "linear"]),
    help="How test images are interpolated.  [default: as in training's report]",
)
@data_dir_option
@test_options
@seed_option
@threads_option
@json_option
def evaluate(model, dataset, runs, seed, threads, as_json, data_dir, **settings):
    """Measure a model's accuracy on freshly transformed test images.

    Every run transforms each test image anew, at random, as the data set's protocol says; reported are
    mean and standard deviation over the runs. DATASET is by default the one that the model was
    trained on, split as it was then. It may also be another folder of pictures, with a subfolder
    for each class: then all of them are tested, or those of its folder test.

    \b
    Example:
        tigra evaluate mnist-012.npz --runs 10
    """
    loaded = load_model(model)
    network = loaded.network
    dataset = dataset or loaded.training.get("dataset")
    if dataset is None:
        raise click.UsageError(f"{model} does not name its data set; choose one of {', '.join(DATASETS)}.")
    given = given_options(settings) | (
        {"interpolation": settings["interpolation"]} if settings["interpolation"] else {}
    )
    check_options(dataset, given)
    with Progress() as progress:
        load = partial(load_dataset, data_dir=data_dir, threads=threads, on_progress=loading(progress))
        load_folder = partial(load_test_folder, threads=threads, on_progress=loading(progress))
        splits = _splits(loaded, dataset, given, load, load_folder)
        if network.n_classes != len(splits.class_names):
            raise ShapeError(
                f"{model} tells {network.n_classes} classes apart, but {dataset} has {len(splits.class_names)};"
                " choose a data set with the same classes."
            )
        runs = runs if splits.transform else 1
        values = []
        for run in range(runs):
            what = f"run {run + 1}/{runs}"
            test, n = splits.fresh_test([seed, run]), len(splits.test.labels)
            show = lambda done, _, run=run, what=what, n=n: progress.show(what, run * n + done, runs * n)  # noqa: E731
            values.append(accuracy(network, test, threads, show))
    mean, std = float(np.mean(values)), float(np.std(values, ddof=1)) if runs > 1 else 0.0
    for note in splits.notes:
        click.echo(f"Note: {note}.", err=True)
    if as_json:
        print_json(
            {
                "model": model,
                "dataset": dataset,
                "runs": runs,
                "seed": seed,
                "n_images": len(splits.test.labels),
                "protocol": splits.protocol,
                "accuracy": {"mean": mean, "std": std, "values": values},
            }
        )
        return
    over = f" +- {percent(std)} over {runs} runs" if splits.transform else ""
    click.echo(f"{percent(mean)}{over} on {len(splits.test.labels)} test images of {dataset}")
    click.echo(splits.protocol)


def _splits(loaded, dataset, given, load, load_folder):
    """The data set as it was split for the training; pictures from another folder are all for the test."""
    record = loaded.training
    trained_on, stored = record.get("dataset"), record.get("dataset_options", {})
    if dataset in DATASETS:
        same = dataset == trained_on
        return load(dataset, **(stored if same else {}) | given)
    is_same_place = trained_on is not None and os.path.realpath(dataset) == os.path.realpath(trained_on)
    if is_same_place:
        splits = load(dataset, **stored | given)
        if splits.content == record.get("dataset_content"):
            return splits
    wanted = "invert", "test_rotations", "interpolation"
    options = {name: value for name, value in (stored | given).items() if name in wanted}
    splits = load_folder(dataset, loaded.network.image_shape, loaded.network.class_names, **options)
    return replace(splits, notes=(*splits.notes, CHANGED.format(dataset))) if is_same_place else splits
