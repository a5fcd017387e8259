"""`tigra reproduce`: reproduce the tables of the paper, run by run; resumable."""

from __future__ import annotations

from pathlib import Path

import click

from tigra.errors import TrainingError
from tigra.experiments.reproduction import Experiment
from tigra.experiments.runs import Stopped, Watch
from tigra.experiments.tables import TABLES
from tigra.figures.curves.resolution import require_matplotlib
from tigra.figures.curves.rotations import check_ending, draw
from tigra.files.atomic import check_writable, write_atomically

from .shared.data_options import data_dir_option
from .shared.options import json_option, threads_option
from .shared.output import Progress, duration, print_json, say
from .shared.signals import StopSignals


def _check_figure(table: str, figure: str, out: Path, finished: bool) -> None:
    """Check --figure before any run starts; make the folder of the runs if the figure goes there."""
    if table != "rotations":
        raise click.UsageError("--figure draws the curve of the table rotations; leave it out for other tables.")
    require_matplotlib("--figure")
    check_ending(figure)
    if not finished and Path(figure).resolve().parent == out.resolve():
        out.mkdir(parents=True, exist_ok=True)
    check_writable(figure, "the figure", "--figure")


def _keep_finished_rows(experiment: Experiment, what: str) -> None:
    """Drop rows without a finished run; raise click.UsageError if none is left."""
    if left_out := experiment.left_out():
        others = f" and {n_more} more" if (n_more := len(left_out) - 1) else ""
        say(
            f"Note: {left_out[0].name}{others} left out: damaged, or from other settings than the current ones.",
            err=True,
        )
    experiment.rows = experiment.finished_rows()
    if not experiment.rows:
        kind = "quick runs" if experiment.quick else "runs"
        raise click.UsageError(
            f"{experiment.folder} has no finished {kind} of {what}; give the folder of the runs with --out."
        )


@click.command()
@click.argument("table", type=click.Choice(list(TABLES)))
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Number of runs per row, each with another seed.  [default: as in the table; with --finished, all]",
)
@click.option("--row", "only", multiple=True, help="Run only this row, by its short name; can be repeated.")
@click.option(
    "--quick", is_flag=True, help="Train for a few steps on a few images, to test the setup; the numbers mean nothing."
)
@click.option("--finished", is_flag=True, help="Run nothing; print the rows that have finished runs.")
@click.option(
    "--out", type=click.Path(file_okay=False), help="Folder for the results of the runs.  [default: results/TABLE]"
)
@click.option(
    "--figure", type=click.Path(dir_okay=False), help="Table rotations: also draw the curve (.png, .svg or .pdf)."
)
@data_dir_option
@threads_option
@json_option
@click.pass_context
def reproduce(ctx, table, seeds, only, quick, finished, out, figure, data_dir, threads, as_json):
    """Reproduce a TABLE of the paper and print it next to the paper's numbers.

    This trains every method of the table several times, which can take hours. Each finished run is saved
    at once, as a JSON file with its model. You can stop with Ctrl-C at any time: the same command
    continues where it stopped, even in the middle of a run. The best epoch is chosen on upright
    validation images.

    \b
    mnist-012         Table 2, digits 0, 1 and 2, tested on all of MNIST's test images of them
    mnist-rot-trans   Table 3, rotated and shifted digits
    eth-80            Table 4, objects; needs ETH-80 ('tigra data fetch eth80')
    rotations         the last figure: accuracy against the number of training rotations
    All except eth-80 need MNIST ('tigra data fetch mnist').

    \b
    Example:
        tigra reproduce mnist-012 --seeds 3
    """
    if out == "":
        raise click.UsageError("--out must be a folder, got an empty name; leave it out for results/TABLE.")
    out = Path(out or f"results/{table}")
    experiment = Experiment(TABLES[table], out, quick, seeds, threads, data_dir, only, finished)
    if finished:
        _keep_finished_rows(experiment, "these rows" if only else "this table")
    if figure is not None:
        _check_figure(table, figure, out, finished)
    runs = [] if finished else experiment.runs()
    todo = [(row, number) for row, number in runs if experiment.record(row, number) is None]
    failed = []
    with Progress() as progress, StopSignals() as stop:
        for place, (row, number) in enumerate(todo, start=1):
            name = f"{row.words}, {row.over} {number} ({place}/{len(todo)})"

            def show(text, done=0, total=0, name=name):
                progress.show(f"{name}: {text}", done, total, phase=name + text.rstrip("0123456789/ "))

            if experiment.record(row, number):  # another process in the same folder finished it first
                continue
            try:
                record = experiment.run(row, number, Watch(show, stop.asked))
            except TrainingError as error:  # go on with the other runs
                progress.clear()
                failed.append(name)
                say(f"{name}: no result. {error}", err=True)
                continue
            except Stopped:
                progress.clear()
                say(f"Stopped; the runs so far are in {out}. Continue with the same command.", err=True)
                ctx.exit(130)
            progress.clear()
            test, values = next(iter(record["accuracy"]["test"].items()))
            mean = 100 * sum(values) / len(values)
            say(f"{name}: {mean:.2f} % ({test}), {duration(record['seconds'])}", err=True)
    if figure is not None and experiment.finished_rows():
        write_atomically(figure, draw(experiment, figure), "--figure")
        say(f"Figure: {figure}", err=True)
    elif figure is not None:
        say("No figure: no run has a result.", err=True)
    if as_json:
        found = [kept for row, number in experiment.runs() if (kept := experiment.record(row, number))]
        print_json({"table": table, "title": TABLES[table].title, "folder": str(out), "quick": quick, "runs": found})
        ctx.exit(1 if failed else 0)
    say(f"{TABLES[table].title}\n" + ("QUICK: the numbers mean nothing.\n" if quick else ""))
    say(experiment.markdown())
    known = experiment.n_threads()
    spent = "" if known == "-" else f"; seconds of training on {known} thread{'s' if known != '1' else ''}"
    say(f"Percent, mean +- standard deviation over runs{spent}.")
    ctx.exit(1 if failed else 0)
