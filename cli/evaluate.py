"""`tigra evaluate`: accuracy of a model on freshly transformed test images."""

from __future__ import annotations

import click
import numpy as np

from tigra.experiments.invariance import MIRRORED, measure_invariance
from tigra.files.cache import cache_folder
from tigra.model_file import load_model
from tigra.models.classifier import accuracy
from tigra.seeding import generator

from .shared.data_options import data_dir_option, given_options, test_options
from .shared.model_data import checked_dataset, splits_for
from .shared.options import (
    import_option,
    json_option,
    model_argument,
    seed_option,
    threads_option,
)
from .shared.output import Progress, percent, print_json, say, table


@click.command()
@model_argument
@click.argument("dataset", metavar="[DATASET]", required=False)
@click.option(
    "--runs", type=click.IntRange(min=1), help="Number of runs; more runs give a more precise mean.  [default: 10]"
)
@click.option(
    "--interpolation",
    type=click.Choice(["cubic", "linear"]),
    help="How to interpolate test images when they are rotated; linear blurs more.  [default: as in training]",
)
@click.option(
    "--invariance",
    is_flag=True,
    help="Report how much the predictions for upright test images change when the images are rotated and shifted,"
    " and, apart from that, when they are mirrored, instead of the accuracy.",
)
@data_dir_option
@test_options
@seed_option
@threads_option
@import_option
@json_option
def evaluate(model, dataset, runs, invariance, seed, threads, as_json, data_dir, **settings):
    """Measure a model's accuracy on freshly transformed test images.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. Each run
    transforms every test image at random, as the data set's protocol says, and measures the accuracy.
    The command reports the mean and the standard deviation over the runs.

    DATASET is by default the data set that the model was trained on, with the same split. It may also
    be a folder of pictures with one subfolder per class. Then all pictures are tested, or only those in
    its subfolder test if it has one. Pictures that the model was trained on are left out.

    \b
    Example:
        tigra evaluate mnist-012.npz --runs 10
        tigra evaluate mnist-012.npz --invariance
    """
    loaded = load_model(model)
    network = loaded.network
    network.keep_features_in(cache_folder())  # features of images seen before are read from there
    given = given_options(settings) | (
        {"interpolation": settings["interpolation"]} if settings["interpolation"] else {}
    )
    dataset = checked_dataset(model, loaded, dataset, given, data_dir, f"tigra evaluate {model} FOLDER")
    with Progress() as progress:
        splits = splits_for(model, loaded, dataset, given, data_dir, threads, progress)
        facts = {"model": model, "dataset": dataset, "seed": seed, "n_images": len(splits.test.labels)}
        measure = _invariance if invariance else _accuracy
        report, text = measure(network, splits, dataset, runs, seed, threads, progress)
    for note in splits.notes:
        say(f"Note: {note}.", err=True)
    if as_json:
        print_json(facts | {"protocol": splits.protocol, "notes": list(splits.notes)} | report)
    else:
        say(text)


def _accuracy(network, splits, dataset, runs, seed, threads, progress) -> tuple[dict, str]:
    """Return (results for JSON, text): accuracy on test images that every run transforms again."""
    if runs and not splits.transform:
        raise click.UsageError(f"The test images of {dataset} are not transformed; leave out --runs.")
    runs = runs or (10 if splits.transform else 1)
    values, n = [], len(splits.test.labels)
    for run in range(runs):
        what = f"run {run + 1}/{runs}"
        test = splits.fresh_test(generator(seed, f"evaluate {run}"))
        show = lambda _, done, __, run=run, what=what: progress.show(what, run * n + done, runs * n)  # noqa: E731
        values.append(accuracy(network, test, threads, show))
    mean, std = float(np.mean(values)), float(np.std(values, ddof=1)) if runs > 1 else 0.0
    over = f" +- {percent(std)} over {runs} runs" if runs > 1 else ""
    text = f"{percent(mean)}{over} on {n} test images of {dataset}\n{splits.protocol}"
    return {"runs": runs, "accuracy": {"mean": mean, "std": std, "values": values}}, text


def _invariance(network, splits, dataset, runs, seed, threads, progress) -> tuple[dict, str]:
    """Return (results for JSON, text): how predictions for upright test images change under transformations."""
    if runs:
        raise click.UsageError("--invariance applies each transformation once, not in runs; leave out --runs.")
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
    *lines, mirrored = table(rows, header).splitlines()
    moved = {name: entry["probability_moved"] for name, entry in result.items() if name != "as they are"}
    by_mirroring = moved.pop(MIRRORED)
    summary = (
        f"Rotations and shifts move a probability by {percent(np.mean(list(moved.values())))} on average,"
        f" mirroring by {percent(by_mirroring)}."
    )
    how = f"upright test images of {dataset}, {interpolation} interpolation, shifts of up to 2 pixels each way"
    how += ", black comes in from outside"
    report = {"protocol": how, "interpolation": interpolation, "invariance": result}
    return report, "\n".join([*lines, "", mirrored, "", summary, f"{len(labels)} {how}"])
