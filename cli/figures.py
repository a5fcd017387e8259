"""`tigra figures`: pictures of what a model has learned, and of what it makes of images."""

from __future__ import annotations

import os

import click

from tigra.model_file import load_model

from .shared.data_options import data_dir_option, given_options, test_options
from .shared.model_data import checked_dataset, splits_for
from .shared.options import (
    import_option,
    json_option,
    model_argument,
    threads_option,
)
from .shared.output import Progress, print_json


@click.command()
@model_argument
@click.option("--dataset", metavar="NAME", help="Data set or folder with the images.  [default: that of the training]")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="figures",
    show_default=True,
    help="Folder for the files; made if need be, files in it are replaced.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["both", "png", "svg"]),
    default="both",
    show_default=True,
    help="Kind of picture files.",
)
@click.option(
    "--image",
    type=click.IntRange(min=0),
    help="Number of the test image that is turned.  [default: the first that is named rightly]",
)
@click.option("--gif/--no-gif", default=True, show_default=True, help="Also write the animation turning.gif.")
@click.option(
    "--interpolation",
    type=click.Choice(["cubic", "linear"]),
    help="How images are interpolated when they are turned.  [default: as in training's report]",
)
@data_dir_option
@test_options
@threads_option
@import_option
@json_option
def figures(model, dataset, out, kind, image, gif, data_dir, threads, as_json, **settings):
    """Draw what a model has learned, and what it makes of images.

    Filters in the spectral domain with their start values, feature maps of an image and its rotations,
    maps and active sets after each pooling, the statistics features under a full turn, training curves,
    confusion matrix, misclassified images, and an image turning as an animation: PNG and SVG files, and
    index.html with all of them and their captions, which name the figures of the paper.

    \b
    Example:
        tigra figures mnist-012.npz --out figures
    """
    with Progress() as progress:
        progress.show("loading")
        loaded = load_model(model)
        given = given_options(settings)
        if settings["interpolation"]:
            given["interpolation"] = settings["interpolation"]
        words = f"tigra figures {model} --dataset FOLDER"
        dataset = checked_dataset(model, loaded, dataset, given, data_dir, words)
        splits = splits_for(model, loaded, dataset, given, data_dir, threads, progress)
        entries, skipped = _drawn(loaded, splits, out, kind, image, gif, threads, progress)
    for note in splits.notes:
        click.echo(f"Note: {note}.", err=True)
    for left in skipped:
        click.echo(f"Note: no figure {left['figure']}, because {left['reason']}.", err=True)
    files = [os.path.join(out, name) for entry in entries for name in entry["files"]]
    page = os.path.join(out, "index.html")
    if as_json:
        facts = {"model": model, "dataset": dataset, "protocol": splits.protocol, "notes": list(splits.notes)}
        print_json(facts | {"files": [page, *files], "figures": entries, "skipped": skipped})
        return
    for entry in entries:
        click.echo(f"{entry['title']} ({entry['paper']}): {', '.join(entry['files'])}")
    click.echo(f"{len(files)} files in {out}; all with captions: {page}")


def _drawn(loaded, splits, out, kind, image, gif, threads, progress):
    """(entries, skipped) of `tigra.figures.write`."""
    from tigra.figures import write
    from tigra.figures.exhibit import exhibit

    shown = exhibit(loaded.network, splits, loaded.training, image, threads)

    def report(name, done, total):
        progress.show(f"drawing {name}, {done + 1} of {total}")

    return write(shown, out, ("png", "svg") if kind == "both" else (kind,), gif, report)
