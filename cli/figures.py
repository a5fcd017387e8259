"""`tigra figures`: figures of what a model has learned and how it processes images."""

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
from .shared.output import Progress, print_json, say


@click.command()
@model_argument
@click.option(
    "--dataset", metavar="NAME", help="Data set or folder to take the images from.  [default: as in training]"
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="figures",
    show_default=True,
    help="Folder to write to; existing files of the same name are replaced.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["both", "png", "svg"]),
    default="both",
    show_default=True,
    help="Format of the figures: svg for print, png for the web.",
)
@click.option(
    "--image",
    type=click.IntRange(min=0),
    help="Index of the test image to rotate, from 0.  [default: the first one classified correctly]",
)
@click.option(
    "--gif/--no-gif",
    default=True,
    show_default=True,
    help="Also write turning.gif, an animation of the rotating image; --no-gif saves time.",
)
@click.option(
    "--interpolation",
    type=click.Choice(["cubic", "linear"]),
    help="How to interpolate images when they are rotated; linear blurs more.  [default: as in training]",
)
@data_dir_option
@test_options
@threads_option
@import_option
@json_option
def figures(model, dataset, out, kind, image, gif, data_dir, threads, as_json, **settings):
    """Draw what a model has learned and how it processes images.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. The figures
    show the filters in the spectral domain, what an oriented network makes of mirror images, the feature
    maps of an image and of its rotations, the nodes that each pooling keeps, the statistics features over
    a full rotation, the training curves, the confusion matrix, misclassified images, and an animation of a
    rotating image. Open index.html to see all of them with captions, which name the corresponding figures
    of the paper.

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
        say(f"Note: {note}.", err=True)
    for left in skipped:
        say(f"Note: no figure {left['figure']}, because {left['reason']}.", err=True)
    files = [os.path.join(out, name) for entry in entries for name in entry["files"]]
    page = os.path.join(out, "index.html")
    if as_json:
        facts = {"model": model, "dataset": dataset, "protocol": splits.protocol, "notes": list(splits.notes)}
        print_json(facts | {"files": [page, *files], "figures": entries, "skipped": skipped})
        return
    for entry in entries:
        say(f"{entry['title']} ({entry['paper']}): {', '.join(entry['files'])}")
    say(f"{len(files)} files in {out}; all with captions: {page}")


def _drawn(loaded, splits, out, kind, image, gif, threads, progress):
    """Draw the figures; return (entries, skipped) of `tigra.figures.write`."""
    from tigra.figures import write
    from tigra.figures.exhibit import exhibit

    shown = exhibit(loaded.network, splits, loaded.training, image, threads)

    def report(name, done, total):
        progress.show(f"drawing {name}, {done + 1} of {total}")

    return write(shown, out, ("png", "svg") if kind == "both" else (kind,), gif, report)
