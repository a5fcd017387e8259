"""`tigra reproduce`: the paper's tables, run by run, resumable."""

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
from .shared.output import Progress, duration, print_json
from .shared.signals import StopSignals


def _check_figure(table: str, figure: str, out: Path, finished: bool) -> None:
    """Complain before the work, not after it; the folder of the runs is made if the figure is wanted in it."""
    if table != "rotations":
        raise click.UsageError("--figure draws the curve of the table rotations; leave it out for others.")
    require_matplotlib("--figure")
    check_ending(figure)
    if not finished and Path(figure).resolve().parent == out.resolve():
        out.mkdir(parents=True, exist_ok=True)
    check_writable(figure, "the figure", "--figure")


def _keep_finished_rows(experiment: Experiment, what: str) -> None:
    """Drop the rows of which no run is finished; complain if none is left."""
    if left_out := experiment.left_out():
        others = f" and {n_more} more" if (n_more := len(left_out) - 1) else ""
        click.echo(f"Note: {left_out[0].name}{others} left out: damaged, or of other settings than today's.", err=True)
    experiment.rows = experiment.finished_rows()
    if not experiment.rows:
        kind = "quick runs" if experiment.quick else "runs"
        raise click.UsageError(
            f"No {kind} of {what} are finished in {experiment.folder}; name their folder with --out."
        )


@click.command()
@click.argument("table", type=click.Choice(list(TABLES)))
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Runs of each row.  [default: as many as the table asks for; with --finished, all]",
)
@click.option("--row", "only", multiple=True, help="Only this row, by its short name; may be given several times.")
@click.option(
    "--quick", is_flag=True, help="A few steps on a few images, to try the machinery; the numbers mean nothing."
)
@click.option("--finished", is_flag=True, help="Run nothing: print the rows of which runs are finished.")
@click.option("--out", type=click.Path(file_okay=False), help="Folder for the runs.  [default: results/TABLE]")
@click.option("--figure", type=click.Path(dir_okay=False), help="Of rotations: draw the curve, too (.png, .svg, .pdf).")
@data_dir_option
@threads_option
@json_option
@click.pass_context
def reproduce(ctx, table, seeds, only, quick, finished, out, figure, data_dir, threads, as_json):
    """Reproduce a TABLE of the paper and print it beside the paper's numbers.

    Every finished run is kept at once, as a JSON file beside its model in the folder; starting again goes on where
    the last start was stopped, by Ctrl-C or otherwise, in the middle of a run too. Epochs are chosen
    on upright validation images.

    \b
    mnist-012         Table 2, tested on all of MNIST's digits 0, 1, 2 (but for --quick)
    mnist-rot-trans   Table 3
    eth-80            Table 4, needs ETH-80 ('tigra data fetch eth80')
    rotations         the last figure: accuracy over the number of training rotations
    The others need MNIST ('tigra data fetch mnist').

    \b
    Example:
        tigra reproduce mnist-012 --seeds 3
    """
    if out == "":
        raise click.UsageError("--out needs the name of a folder; leave it out for results/TABLE.")
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

            if experiment.record(row, number):  # another process on the same folder was quicker
                continue
            try:
                record = experiment.run(row, number, Watch(show, stop.asked))
            except TrainingError as error:  # this run has no result; the others need not wait for it
                progress.clear()
                failed.append(name)
                click.echo(f"{name}: no result. {error}", err=True)
                continue
            except Stopped:
                progress.clear()
                click.echo(f"Stopped; the runs so far are in {out}, the same command goes on.", err=True)
                ctx.exit(130)
            progress.clear()
            test, values = next(iter(record["accuracy"]["test"].items()))
            mean = 100 * sum(values) / len(values)
            click.echo(f"{name}: {mean:.2f} % ({test}), {duration(record['seconds'])}", err=True)
    if figure is not None and experiment.finished_rows():
        write_atomically(figure, draw(experiment, figure), "--figure")
        click.echo(f"Figure: {figure}", err=True)
    elif figure is not None:
        click.echo("No figure: no run has a result.", err=True)
    if as_json:
        found = [kept for row, number in experiment.runs() if (kept := experiment.record(row, number))]
        print_json({"table": table, "title": TABLES[table].title, "folder": str(out), "quick": quick, "runs": found})
        ctx.exit(1 if failed else 0)
    click.echo(f"{TABLES[table].title}\n" + ("QUICK: the numbers mean nothing.\n" if quick else ""))
    click.echo(experiment.markdown())
    known = experiment.n_threads()
    spent = "" if known == "-" else f"; seconds of training on {known} thread{'s' if known != '1' else ''}"
    click.echo(f"Percent, mean +- standard deviation over runs{spent}.")
    ctx.exit(1 if failed else 0)
