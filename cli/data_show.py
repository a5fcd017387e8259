"""`tigra data show`: a contact sheet of a data set."""

from __future__ import annotations

import io
from pathlib import Path

import click

from .shared.data_options import (
    check_options,
    data_options,
    given_options,
    loading,
)
from .shared.options import import_option
from .shared.output import Progress, print_json, say

FORMATS = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".gif": "GIF",
    ".webp": "WEBP",
    ".bmp": "BMP",
    ".tif": "TIFF",
    ".tiff": "TIFF",
}


@click.command()
@click.argument("dataset", metavar="NAME")
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False), help="Picture file to write; its ending sets the format."
)
@click.option(
    "--columns",
    type=click.IntRange(1, 100),
    default=6,
    show_default=True,
    help="Images per class, for each group of columns.",
)
@data_options
@import_option
def show(dataset, out, columns, data_dir, interpolation, seed, threads, as_json, **settings):
    """Draw sample images of a data set.

    Each row shows one class, with upright and transformed images side by side. NAME is a data
    set ('tigra data list') or a folder of pictures with one subfolder per class. An existing file is
    replaced.

    \b
    Example:
        tigra data show mnist-012 --out digits.png
    """
    from tigra.datasets.loading import load_dataset
    from tigra.figures.contact_sheet import MOST_CLASSES, contact_sheet
    from tigra.model_file import write_atomically

    kind = FORMATS.get(Path(out).suffix.lower())
    if kind is None:
        raise click.UsageError(f"{out} must end in one of {', '.join(FORMATS)}, which sets the format of the picture.")
    options = given_options(settings)
    check_options(dataset, options, data_dir)
    with Progress() as progress:
        progress.show("loading")
        splits = load_dataset(
            dataset, seed, interpolation, data_dir, threads=threads, on_progress=loading(progress), **options
        )
        sheet, content = contact_sheet(splits, columns), io.BytesIO()
        sheet.save(content, kind)
        write_atomically(out, content.getvalue())
    for note in splits.notes:
        say(f"Note: {note}.", err=True)
    if as_json:
        sizes = {part: len(getattr(splits, part).labels) for part in ("train", "valid", "test")}
        facts = {"file": out, "dataset": splits.name, "protocol": splits.protocol, "notes": list(splits.notes)}
        print_json(facts | {"classes": splits.class_names, "images": sizes})
        return
    n_classes = len(splits.class_names)
    shown = n_classes if n_classes <= MOST_CLASSES else f"the first {MOST_CLASSES} of {n_classes}"
    say(f"{out}: {shown} classes of {splits.name}")
    say(splits.protocol)
