"""`tigra evaluate`: accuracy of a model on freshly transformed test images."""

from __future__ import annotations

import os
from functools import partial

import click
import numpy as np
from tigra_cli.data_options import check_options, data_dir_option, given_options, loading, test_options
from tigra_cli.options import json_option, model_argument, seed_option, threads_option
from tigra_cli.output import Progress, percent, print_json, table

from tigra.datasets import DATASETS, load_dataset
from tigra.errors import DatasetError, ShapeError
from tigra.folders import load_test_folder
from tigra.invariance import measure_invariance
from tigra.model_file import load_model
from tigra.splits import generator
from tigra.training import accuracy, split_hash


@click.command()
@model_argument
@click.argument("dataset", metavar="[DATASET]", required=False)
@click.option("--runs", type=click.IntRange(min=1), help="How often to transform anew.  [default: 10]")
@click.option(
    "--interpolation",
    type=click.Choice(["cubic", "linear"]),
    help="How test images are interpolated.  [default: as in training's report]",
)
@click.option(
    "--invariance",
    is_flag=True,
    help="Report instead how labels and probabilities of upright test images change when these are turned, shifted"
    " and mirrored.",
)
@data_dir_option
@test_options
@seed_option
@threads_option
@json_option
def evaluate(model, dataset, runs, invariance, seed, threads, as_json, data_dir, **settings):
    """Measure a model's accuracy on freshly transformed test images.

    Every run transforms each test image anew, at random, as the data set's protocol says; reported are
    mean and standard deviation over the runs. DATASET is by default the one that the model was
    trained on, split as it was then. It may also be another folder of pictures, with a subfolder
    for each class: then all of them are tested, or those of its folder test, except for pictures that
    the model has learned from.

    \b
    Example:
        tigra evaluate mnist-012.npz --runs 10
        tigra evaluate mnist-012.npz --invariance
    """
    loaded = load_model(model)
    network = loaded.network
    dataset = dataset or loaded.training.get("dataset")
    if dataset is None:
        raise click.UsageError(f"{model} does not name its data set; choose one of {', '.join(DATASETS)}.")
    given = given_options(settings) | (
        {"interpolation": settings["interpolation"]} if settings["interpolation"] else {}
    )
    if dataset not in DATASETS and not os.path.isdir(dataset) and dataset == loaded.training.get("dataset"):
        raise click.UsageError(f"The folder {dataset} is not here; say where: tigra evaluate {model} FOLDER.")
    check_options(dataset, given, data_dir)
    with Progress() as progress:
        load = partial(load_dataset, data_dir=data_dir, threads=threads, on_progress=loading(progress))
        load_folder = partial(load_test_folder, threads=threads, on_progress=loading(progress))
        splits = _splits(loaded, dataset, given, load, load_folder)
        if splits.image_shape != network.image_shape:
            sizes = ["x".join(map(str, shape)) for shape in (network.image_shape, splits.image_shape)]
            raise ShapeError(f"{model} takes images of {sizes[0]}, but {dataset} has {sizes[1]}; choose another one.")
        facts = {"model": model, "dataset": dataset, "seed": seed, "n_images": len(splits.test.labels)}
        measure = _invariance if invariance else _accuracy
        report, text = measure(network, splits, dataset, runs, seed, threads, progress)
    for note in splits.notes:
        click.echo(f"Note: {note}.", err=True)
    if as_json:
        print_json(facts | {"protocol": splits.protocol, "notes": list(splits.notes)} | report)
    else:
        click.echo(text)


def _accuracy(network, splits, dataset, runs, seed, threads, progress) -> tuple[dict, str]:
    """(for JSON, in words): accuracy on test images that are transformed anew in every run."""
    if runs and not splits.transform:
        raise click.UsageError(f"The test images of {dataset} are not transformed; leave out --runs.")
    runs = runs or (10 if splits.transform else 1)
    values, n = [], len(splits.test.labels)
    for run in range(runs):
        what = f"run {run + 1}/{runs}"
        test = splits.fresh_test(generator(seed, f"evaluate {run}"))
        show = lambda done, _, run=run, what=what: progress.show(what, run * n + done, runs * n)  # noqa: E731
        values.append(accuracy(network, test, threads, show))
    mean, std = float(np.mean(values)), float(np.std(values, ddof=1)) if runs > 1 else 0.0
    over = f" +- {percent(std)} over {runs} runs" if runs > 1 else ""
    text = f"{percent(mean)}{over} on {n} test images of {dataset}\n{splits.protocol}"
    return {"runs": runs, "accuracy": {"mean": mean, "std": std, "values": values}}, text


def _invariance(network, splits, dataset, runs, seed, threads, progress) -> tuple[dict, str]:
    """(for JSON, in words): how answers to upright test images change."""
    if runs:
        raise click.UsageError("--invariance transforms each test image once in every way; leave out --runs.")
    interpolation = splits.options.get("interpolation", "cubic")
    images, labels = splits.test_upright
    result = measure_invariance(
        network,
        images,
        labels,
        seed,
        threads,
        interpolation,
        on_progress=lambda name, done, total: progress.show(f"{name} {done}/{total}"),
    )
    rows = [
        (
            name,
            percent(entry["label_changed"]),
            percent(entry["probability_moved"]),
            percent(entry["probability_moved_most"]),
            percent(entry["accuracy"]),
        )
        for name, entry in result.items()
    ]
    header = "transformation", "other label", "probability moved", "at most", "accuracy"
    text = f"{table(rows, header)}\n{len(labels)} upright test images of {dataset}, {interpolation} interpolation,"
    return {"interpolation": interpolation, "invariance": result}, text + " shifts of up to 2 pixels each way"


def _splits(loaded, dataset, given, load, load_folder):
    """The data set, split as for the training; of a folder, wherever it lies, all that was not learned from."""
    record, network = loaded.training, loaded.network
    is_same, stored = dataset == record.get("dataset"), record.get("dataset_options", {})
    if dataset not in DATASETS:
        wanted = "invert", "test_rotations", "interpolation"
        options = {name: value for name, value in (stored | given).items() if name in wanted}
        learned = frozenset(record.get("learned", "").split())
        return load_folder(dataset, network.image_shape, network.class_names, learned, **options)
    splits = load(dataset, **(stored if is_same else {}) | given)
    if is_same and record.get("split_hash") not in (None, split_hash(splits)):
        raise DatasetError(
            f"The images of {dataset} are not those that the model was trained on, so its test images may be among"
            " them; use the files, and the version of tigra, of the training."
        )
    if splits.class_names != network.class_names:
        raise ShapeError(
            f"The model knows the classes {', '.join(network.class_names)}, but {dataset} has"
            f" {', '.join(splits.class_names)}; choose a data set with the same classes."
        )
    return splits
