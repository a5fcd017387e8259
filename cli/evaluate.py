"""`tigra evaluate`: accuracy of a model on freshly transformed test images."""

from __future__ import annotations

import click
import numpy as np
from tigra_cli.options import (
    interpolation_option,
    json_option,
    model_argument,
    seed_option,
    threads_option,
)
from tigra_cli.output import Progress, percent, print_json

from tigra.datasets import DATASETS, load_dataset
from tigra.errors import ShapeError
from tigra.model_file import load_model
from tigra.training import accuracy


@click.command()
@model_argument
@click.argument("dataset", metavar="[DATASET]", required=False)
@click.option("--runs", type=click.IntRange(min=1), default=10, show_default=True, help="How often to transform anew.")
@interpolation_option
@seed_option
@threads_option
@json_option
def evaluate(model, dataset, runs, interpolation, seed, threads, as_json):
    """Measure a model's accuracy on freshly transformed test images.

    Every run turns each test image by a new random angle; reported are mean and standard
    deviation over the runs. DATASET is by default the one that the model was trained on.

    \b
    Example:
        tigra evaluate mnist-012.npz --runs 10
    """
    loaded = load_model(model)
    network = loaded.network
    dataset = dataset or loaded.training.get("dataset")
    if dataset is None:
        raise click.UsageError(f"{model} does not name its data set; choose one of {', '.join(DATASETS)}.")
    splits = load_dataset(dataset, seed=seed, interpolation=interpolation)
    if network.n_classes != len(splits.class_names):
        raise ShapeError(
            f"{model} tells {network.n_classes} classes apart, but {dataset} has {len(splits.class_names)};"
            " choose a data set with the same classes."
        )
    values = []
    with Progress() as progress:
        for run in range(runs):
            progress.show(f"run {run + 1}/{runs}", run, runs)
            values.append(accuracy(network, splits.fresh_test([seed, run]), threads))
    mean, std = float(np.mean(values)), float(np.std(values, ddof=1)) if runs > 1 else 0.0
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
    click.echo(
        f"{percent(mean)} +- {percent(std)} over {runs} runs on {len(splits.test.labels)} test images of {dataset}"
    )
    click.echo(splits.protocol)
