"""`tigra evaluate`: accuracy of a model on freshly transformed test images."""

from __future__ import annotations

import os
from dataclasses import replace

import click
import numpy as np

from tigra.experiments.invariance import MIRRORED, measure_invariance
from tigra.experiments.report.counts import Counts, outcomes
from tigra.experiments.report.page import Report, confident_mistakes, page
from tigra.experiments.report.remarks import remarks
from tigra.experiments.report.turning import accuracy_by_angle
from tigra.files.atomic import check_writable, write_atomically
from tigra.files.cache import cache_folder
from tigra.model_file import load_model
from tigra.seeding import generator
from tigra.training.views import Views

from .shared.data_options import data_dir_option, given_options, test_options
from .shared.model_data import checked_dataset, splits_for
from .shared.options import (
    import_option,
    json_option,
    model_argument,
    seed_option,
    threads_option,
    views_option,
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
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False),
    help="Also write the report to this HTML file: one page with the confusion matrix, the accuracy by rotation angle"
    " and the most confident mistakes.",
)
@click.option(
    "--no-test-rotations",
    is_flag=True,
    help="Test images as they are, although the model was trained with --test-rotations.",
)
@data_dir_option
@test_options
@views_option
@seed_option
@threads_option
@import_option
@json_option
def evaluate(model, dataset, runs, invariance, report_file, views, seed, threads, as_json, data_dir, **settings):
    """Measure a model's accuracy on freshly transformed test images.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. Each run
    transforms every test image at random, as the data set's protocol says, and measures the accuracy.
    The command reports the mean and the standard deviation over the runs, recall and precision of each
    class, and on standard error what else there is to say about the result.

    DATASET is by default the data set that the model was trained on, with the same split. It may also
    be a folder of pictures with one subfolder per class, or an .npz file. Then all pictures are tested,
    or only those in the subfolder test, or in the array test_images, if there is one. Pictures that the
    model was trained on are left out.

    \b
    Example:
        tigra evaluate mnist-012.npz --runs 10
        tigra evaluate mnist-012.npz --invariance
        tigra evaluate pets.npz photos --report pets.html
    """
    if report_file:
        if invariance:
            raise click.UsageError("--report has the accuracy, not the table of --invariance; leave one out.")
        check_writable(report_file, "the report", "--report", source=model)
    if settings["no_test_rotations"]:
        if settings["test_rotations"]:
            raise click.UsageError("--test-rotations and --no-test-rotations exclude each other; leave one out.")
        settings["test_rotations"] = False
    loaded = load_model(model)
    loaded.network.keep_features_in(cache_folder())  # features of images seen before are read from there
    given = given_options(settings) | (
        {"interpolation": settings["interpolation"]} if settings["interpolation"] else {}
    )
    dataset = checked_dataset(model, loaded, dataset, given, data_dir, f"tigra evaluate {model} FOLDER")
    with Progress() as progress:
        splits = splits_for(model, loaded, dataset, given, data_dir, threads, progress)
        facts = {"model": model, "dataset": dataset, "seed": seed, "views": views, "n_images": len(splits.test.labels)}
        if views > 1:
            loaded = replace(loaded, network=(network := Views(loaded.network, views)))
            splits = replace(splits, protocol=f"{splits.protocol}, {network.words}")
        if invariance:
            report, text = _invariance(loaded.network, splits, dataset, runs, seed, threads, progress)
        else:
            report, text, html = _accuracy(loaded, splits, model, runs, seed, threads, progress, bool(report_file))
    if report_file:
        write_atomically(report_file, html.encode(), "--report")
        report["report"] = report_file
    for note in (*splits.notes, *report.get("remarks", ())):
        say(f"Note: {note}.", err=True)
    if as_json:
        print_json(facts | {"protocol": splits.protocol, "notes": list(splits.notes)} | report)
    else:
        say(text)


def _accuracy(loaded, splits, model, runs, seed, threads, progress, with_page) -> tuple[dict, str, str]:
    """Return (results for JSON, text, page): accuracy on test images that every run transforms again."""
    network = loaded.network
    if runs and not splits.transform:
        raise click.UsageError(f"The test images of {splits.name} are not transformed; leave out --runs.")
    runs = runs or (10 if splits.transform else 1)
    tests, n = [], len(splits.test.labels)
    for run in range(runs):
        what = f"run {run + 1}/{runs}"
        test = splits.fresh_test(generator(seed, f"evaluate {run}"))
        show = lambda _, done, __, run=run, what=what: progress.show(what, run * n + done, runs * n)  # noqa: E731
        tests.append(outcomes(network, test, threads, show))
    values = [float((test.predicted == test.labels).mean()) for test in tests]
    mean, std = float(np.mean(values)), float(np.std(values, ddof=1)) if runs > 1 else 0.0
    counts = Counts.of(network.class_names, tests)
    is_weighted = loaded.training.get("options", {}).get("class_weights", "none") != "none"
    found = [test.calibration for test in tests]
    calibration = {name: float(np.mean([entry[name] for entry in found])) for name in found[0]}
    report = {"runs": runs, "accuracy": {"mean": mean, "std": std, "values": values}, **counts.to_json()}
    report |= calibration | {"remarks": remarks(counts, splits, network, is_weighted)}
    over = f" +- {percent(std)} over {runs} runs" if runs > 1 else ""
    interval = " to ".join(percent(limit) for limit in counts.interval)
    text = (
        f"{percent(mean)}{over} on {n} test images of {splits.name}, 95 % interval {interval}\n{_by_class(counts)}\n"
        f"mean recall of the classes {percent(counts.macro_recall)}, {_calibration(report)}\n"
        f"{splits.protocol}"
    )
    return report, text, _page(network, splits, model, counts, report, tests, seed, threads) if with_page else ""


def _calibration(report: dict) -> str:
    """Return the calibration error in words."""
    before = report.get("calibration_error_before")
    was = "" if before is None else f" ({percent(before)} before calibration)"
    return f"expected calibration error {percent(report['calibration_error'])}{was}"


def _by_class(counts: Counts) -> str:
    """Return a table of recall and precision, with the class that each is most often taken for."""
    taken = {a: (b, share) for a, b, share in reversed(counts.confused())}
    rows = []
    for place, name in enumerate(counts.class_names):
        wrong = f"{counts.class_names[taken[place][0]]} ({percent(taken[place][1])})" if place in taken else ""
        found = (percent(v[place]) if v[place] == v[place] else "-" for v in (counts.recall, counts.precision))
        rows.append((name, int(counts.images[place]), *found, wrong))
    return table(rows, ("class", "images", "recall", "precision", "most often taken for"))


def _page(network, splits, model, counts, report, tests, seed, threads) -> str:
    """Return the report as a page."""
    first = splits.fresh_test(generator(seed, "evaluate 0"))
    return page(
        Report(
            title=f"{os.path.basename(model)} on {splits.name}",
            protocol=splits.protocol,
            counts=counts,
            remarks=[*splits.notes, *report["remarks"]],
            facts={"Calibration": _calibration(report)},
            curve=accuracy_by_angle(network, splits, threads),
            mistakes=confident_mistakes(tests[0], first.images, network.class_names, splits.test_names),
        )
    )


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
        background=splits.entering,
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
    how += f", {network.words}" if isinstance(network, Views) else ""
    how += f", {'black' if splits.entering == 'black' else 'the background'} comes in from outside"
    report = {"protocol": how, "interpolation": interpolation, "invariance": result}
    return report, "\n".join([*lines, "", mirrored, "", summary, f"{len(labels)} {how}"])
