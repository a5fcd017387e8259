"""`tigra predict`: predict labels and probabilities for picture files and folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click
import numpy as np

from tigra.errors import printable
from tigra.files.atomic import check_writable
from tigra.files.csv_rows import distinct_columns, safe_path
from tigra.model_file import load_model

from .shared.options import (
    import_option,
    json_option,
    model_argument,
    threads_option,
)
from .shared.output import Progress, percent, print_json, say
from .shared.pictures import batches_of, invert_option, paths_argument, recursive_option
from .shared.tables import write_table

SHOWN = 5  # classes printed; with more, only the three most likely


@click.command()
@model_argument
@paths_argument
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write a table to this CSV file: path, label, probability, one column per class, and error. '-' is standard"
    " output.",
)
@recursive_option
@invert_option
@threads_option
@import_option
@json_option
@click.pass_context
def predict(ctx, model, paths, csv_file, recursive, invert, threads, as_json):
    """Predict the class of each picture.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. PATH is a
    picture that Pillow can open, or a folder of pictures. Pictures are converted to grey and scaled to
    the model's image size with their aspect ratio kept. They are read one after the other, so a folder
    may have any number of them. If a picture cannot be read, the command reports it on standard error
    or in the table, predicts the others, and ends with exit status 1.

    \b
    Example:
        tigra predict mnist-012.npz digit.png
        tigra predict mnist-012.npz photos --recursive --csv photos.csv
    """
    if csv_file == "-" and as_json:
        raise click.UsageError("--csv - and --json both print on standard output; leave one out.")
    if csv_file not in (None, "-"):
        check_writable(csv_file, "the table", "--csv")
    loaded = load_model(model)
    with Progress() as progress, batches_of(loaded, paths, recursive, invert, threads) as batches:
        results = predictions(loaded.network, batches, threads, progress)
        if csv_file:
            counts = _table(ctx, csv_file, loaded.network.class_names, results)
            _tell(model, csv_file, counts, as_json)
            n_bad = counts["errors"]
        else:
            n_bad = _print(model, results, as_json, progress)
    ctx.exit(1 if n_bad else 0)


def predictions(network, batches, threads, progress) -> Iterator[dict]:
    """Yield {"image", "label", "probabilities"} or {"image", "error"} for each picture."""
    n_done = 0
    progress.show("reading")
    for paths, errors, images in batches:
        rows = iter(network.predict_proba(images, threads) if len(images) else ())
        for path, error in zip(paths, errors, strict=True):
            if error:
                yield {"image": path, "error": error}
                continue
            row = [round(float(p), 6) for p in next(rows)]
            label = network.class_names[int(np.argmax(row))]
            yield {"image": path, "label": label, "probabilities": dict(zip(network.class_names, row, strict=True))}
        n_done += len(paths)
        progress.show(f"predicted {n_done} pictures")


def _print(model, results, as_json, progress) -> int:
    """Print the results, and return the number of pictures that could not be read."""
    n_bad, kept = 0, []
    for result in results:
        n_bad += "error" in result
        if as_json:
            kept.append(result)
        progress.clear()
        if "error" in result:
            say(f"Error: {result['error']}", err=True)
        elif not as_json:
            say(f"{printable(result['image'])}: {result['label']}  ({_in_words(result['probabilities'])})")
    if as_json:
        print_json({"model": model, "predictions": kept})
    return n_bad


def _table(ctx, path, class_names, results) -> Counter:
    """Write a CSV file as the results come; Ctrl-C keeps the rows so far."""
    columns = "path", "label", "probability", "error"
    header = [*columns[:3], *distinct_columns(class_names, columns), "error"]
    counts: Counter = Counter(pictures=0, errors=0)

    def lines():
        yield header
        for result in results:
            row = result.get("probabilities", dict.fromkeys(class_names, ""))
            found = [result.get("label", ""), max(row.values()), *row.values(), result.get("error", "")]
            yield [safe_path(result["image"]), *found]
            counts.update(pictures=1, errors="error" in result)

    try:
        write_table(path, lines())
    except KeyboardInterrupt:
        say(f"Stopped; {path} has the rows of the {counts['pictures']} pictures so far.", err=True)
        ctx.exit(130)
    return counts


def _tell(model, path, counts, as_json) -> None:
    if as_json:
        print_json({"model": model, "csv": path, **counts})
    elif path != "-":
        say(f"{counts['pictures']} picture{'' if counts['pictures'] == 1 else 's'}, {path}")
    if counts["errors"]:
        what = f"{counts['errors']} of {counts['pictures']} pictures could not be read"
        say(f"Error: {what}; the column error says why.", err=True)


def _in_words(probabilities: dict[str, float]) -> str:
    """List the classes with their probabilities; if there are many, only the most likely ones.

    >>> _in_words({"cat": 0.25, "dog": 0.75})
    'cat: 25.0 %, dog: 75.0 %'
    """
    listed = list(probabilities.items())
    if len(listed) > SHOWN:
        first = sorted(listed, key=lambda item: -item[1])[:3]
        listed = [*first, ("others", 1 - sum(sorted(probabilities.values())[-3:]))]
    return ", ".join(f"{name}: {percent(p)}" for name, p in listed)
