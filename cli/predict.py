"""`tigra predict`: predict labels and probabilities for picture files and folders."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import click

from tigra.errors import printable
from tigra.files.atomic import check_writable
from tigra.files.csv_rows import distinct_columns, safe_path
from tigra.images.streaming import AT_ONCE, Listed
from tigra.model_file import Model, load_model
from tigra.processes.team import shares

from .shared.judging import Judge
from .shared.options import (
    import_modules,
    import_option,
    json_option,
    model_argument,
    threads_option,
    views_option,
)
from .shared.output import Progress, percent, print_json, say
from .shared.pictures import Tally, batches_of, invert_option, listed, paths_argument, recursive_option
from .shared.processes import current_team
from .shared.tables import write_table

SHOWN = 5  # classes printed; with more, only the three most likely


@click.command()
@model_argument
@paths_argument
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Write a table to this CSV file: path, label, probability, one column per class, distance, doubt and"
    " error. '-' is standard output.",
)
@click.option(
    "--reject",
    type=click.FloatRange(0, 1),
    default=0.0,
    metavar="P",
    help="Give no label to pictures whose highest probability is below P, such as 0.9.",
)
@click.option(
    "--explain",
    type=click.Path(file_okay=False),
    help="Write a heat map of each picture to this folder: red pixels speak for the predicted class, blue against it.",
)
@recursive_option
@invert_option
@views_option
@threads_option
@import_option
@json_option
@click.pass_context
def predict(ctx, model, paths, csv_file, reject, explain, recursive, invert, views, threads, as_json):
    """Predict the class of each picture.

    MODEL is a model file from 'tigra train', or the name of a model that comes with tigra. PATH is a
    picture that Pillow can open, or a folder of pictures. Pictures are read in grey or colour, as in
    the training, and scaled to the model's image size with their aspect ratio kept. They are read one
    after the other, so a folder may have any number of them. If a picture cannot be read, the command
    reports it on standard error or in the table, predicts the others, and ends with exit status 1.

    The distance compares a picture with those of the training. It is 1 for the most unusual of 100
    ordinary pictures; pictures beyond that are said to be unlike the training.

    \b
    Example:
        tigra predict mnist-012.npz digit.png
        tigra predict mnist-012.npz photos --recursive --csv photos.csv
    """
    if csv_file == "-" and as_json:
        raise click.UsageError("--csv - and --json both print on standard output; leave one out.")
    if csv_file not in (None, "-"):
        check_writable(csv_file, "the table", "--csv", source=model)
    loaded = load_model(model)
    with Progress() as progress:
        files, how = listed(paths, recursive), How(loaded, reject, explain, views, invert, threads)
        if current_team().size > 1:
            results = shared_predictions(ctx, files, how, progress)
        else:
            results = predictions(files, how, progress, how.judge)
        if csv_file:
            tally = _table(ctx, csv_file, loaded.network.class_names, results)
            _tell({"model": model, "views": views, "csv": csv_file}, tally, as_json)
            n_bad = tally.errors
        else:
            n_bad = _print({"model": model, "views": views}, results, as_json, progress)
    ctx.exit(1 if n_bad else 0)


class How(NamedTuple):
    """The model, and the options that decide what is said about a picture."""

    loaded: Model
    reject: Any
    explain: Any
    views: int
    invert: bool
    threads: int

    @property
    def judge(self) -> Judge:
        """A new judge."""
        return Judge(self.loaded, self.reject, self.explain, self.views)


def predictions(files: Iterable[Listed], how: How, progress: Progress, judge: Judge) -> Iterator[dict]:
    """Yield the judgement of each picture, or {"image", "error"}."""
    n_done = 0
    progress.show("reading")
    with batches_of(how.loaded, files, how.invert, how.threads) as batches:
        for paths, errors, images in batches:
            good = [path for path, error in zip(paths, errors, strict=True) if not error]
            found = iter(judge(good, images, how.threads))
            for path, error in zip(paths, errors, strict=True):
                yield {"image": path, "error": error} if error else next(found)
            n_done += len(paths)
            progress.show(f"predicted {n_done} pictures")


@dataclass
class PredictJob:
    """What another process needs to predict; the model is pickled apart, since its layers may be of the modules."""

    modules: tuple[str, ...]
    content: bytes
    is_given: bool  # the number of threads

    def __call__(self, team) -> None:
        """Predict what process 0 hands out."""
        found: list = []

        def load() -> list:
            import_modules(self.modules)
            how = pickle.loads(self.content)
            found.append(how if self.is_given else how._replace(threads=team.cores))
            found.append(how.judge)
            return []

        team.gather(load)
        while not team.agree(False):
            _round(team, None, *found)


def shared_predictions(ctx, files: Iterator[Listed], how: How, progress: Progress) -> Iterator[dict]:
    """Hand out the files in rounds to all processes; yield what they find in the order of the files."""
    team: Any = current_team()
    judge = how.judge
    is_given = ctx.get_parameter_source("threads").name == "COMMANDLINE"
    content = pickle.dumps(how._replace(loaded=replace(how.loaded, resume=None)))
    team.send(PredictJob(ctx.meta.get("modules", ()), content, is_given))
    team.gather(list)
    n_done = 0
    while some := list(islice(files, AT_ONCE * team.size)):
        team.agree(False)
        found = _round(team, some, how, judge)
        team.rest()
        n_done += len(some)
        progress.show(f"predicted {n_done} pictures")
        yield from found
    team.agree(True)


def _round(team, files: list[Listed] | None, how: How, judge: Judge) -> list[dict]:
    """Predict this process's share of the files, which process 0 has; returns what all have found."""
    mine = team.comm.scatter(None if files is None else [files[part] for part in shares(len(files), team.size)])
    quiet = Progress()
    quiet.is_live = False
    return team.gather(lambda: list(predictions(mine, how, quiet, judge)))


def _print(facts, results, as_json, progress) -> int:
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
            doubt = f"  {result['doubt']}" if result["doubt"] else ""
            label = "no label" if result["label"] is None else result["label"]
            say(f"{printable(result['image'])}: {label}  ({_in_words(result['probabilities'])}){doubt}")
    if as_json:
        print_json(facts | {"predictions": kept})
    return n_bad


def _table(ctx, path, class_names, results) -> Tally:
    """Write a CSV file as the results come; Ctrl-C keeps the rows so far."""
    first, last = ("path", "label", "probability"), ("distance", "doubt", "error")
    header = [*first, *distinct_columns(class_names, first + last), *last]
    tally = Tally()

    def lines():
        yield header
        for result in results:
            row = result.get("probabilities", dict.fromkeys(class_names, ""))
            found = [result.get("label") or "", max(row.values()), *row.values()]
            yield [safe_path(result["image"]), *found, *(result.get(name, "") for name in last)]
            tally.add(result.get("error", ""))

    try:
        write_table(path, lines())
    except KeyboardInterrupt:
        say(f"Stopped; {path} has the rows of the {tally.pictures} pictures so far.", err=True)
        ctx.exit(130)
    return tally


def _tell(facts, tally: Tally, as_json) -> None:
    path = facts["csv"]
    if as_json:
        print_json(facts | tally.counts)
    elif path != "-":
        say(f"{tally.pictures} picture{'' if tally.pictures == 1 else 's'}, {path}")
    tally.tell("the column error")


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
