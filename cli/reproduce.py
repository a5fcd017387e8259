"""`tigra reproduce`: reproduce the tables of the paper, run by run; resumable."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import click
from click.core import ParameterSource

from tigra.errors import TigraError
from tigra.experiments.reproduction import Experiment
from tigra.experiments.runner import Outcome, hand_out, runner_for
from tigra.experiments.runs import Stopped, Watch
from tigra.experiments.tables import TABLES, Row
from tigra.files.atomic import check_writable, write_atomically

from .shared.data_options import data_dir_option
from .shared.options import json_option, threads_option
from .shared.output import Progress, duration, print_json, say
from .shared.processes import current_team
from .shared.signals import StopSignals


def _check_figure(table: str, figure: str, out: Path, finished: bool) -> None:
    """Check --figure before any run starts; make the folder of the runs if the figure goes there."""
    from tigra.figures.curves.resolution import require_matplotlib  # slow, and runs need no figures
    from tigra.figures.curves.rotations import check_ending

    if table not in ("rotations", "digits"):
        raise click.UsageError("--figure draws the tables rotations and digits; leave it out for other tables.")
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


class Task(NamedTuple):
    """A run of a table, and how to call it."""

    experiment: Experiment
    row: Row
    number: int
    name: str


def do(task: Task, watch: Watch) -> dict | None:
    """Do a run, in this process or another one; None if somebody else does it."""

    def show(text, done=0, total=0):
        watch.show(f"{task.name}: {text}", done, total)

    return task.experiment.claimed_run(task.row, task.number, Watch(show, watch.should_stop))


def _run_all(ctx: click.Context, experiment: Experiment, jobs: int) -> int:
    """Do what is left to do; returns the number of runs without a result."""
    runs = [(row, number) for row, number in experiment.runs() if experiment.record(row, number) is None]
    names = [f"{row.words}, {row.over} {number} ({n}/{len(runs)})" for n, (row, number) in enumerate(runs, start=1)]
    tasks = [Task(experiment, *run, name) for run, name in zip(runs, names, strict=True)]
    failed: list[Task] = []
    with Progress() as progress, StopSignals() as stop:

        def show(text, done=0, total=0):
            progress.show(text, done, total, phase=text.rstrip("0123456789/ "))

        try:
            with runner_for(min(jobs, len(tasks) or 1), Watch(show, stop.asked), current_team()) as runner:
                for n_done, outcome in enumerate(hand_out(runner, do, tasks), start=1):
                    progress.clear()
                    if outcome.error:
                        failed.append(outcome.task)
                    _tell(outcome)
                    progress.show(f"{n_done} of {len(tasks)} runs ended", n_done, len(tasks), phase="runs")
        except Stopped:
            progress.clear()
            say(f"Stopped; the runs so far are in {experiment.folder}. Continue with the same command.", err=True)
            ctx.exit(130)
    others = [task for task in tasks if task not in failed and not experiment.record(task.row, task.number)]
    if others:
        say(f"Note: another process is doing {len(others)} of these runs, first {others[0].name}.", err=True)
    return len(failed)


def _tell(outcome: Outcome) -> None:
    """Say the result of a run, or why it has none."""
    if outcome.error:
        known = isinstance(outcome.error, (TigraError, RuntimeError))
        kind = "" if known else f"{type(outcome.error).__name__}: "
        say(f"{outcome.task.name}: no result. {kind}{outcome.error}", err=True)
    elif outcome.result:
        test, values = next(iter(outcome.result["accuracy"]["test"].items()))
        mean, seconds = 100 * sum(values) / len(values), duration(outcome.result["seconds"])
        say(f"{outcome.task.name}: {mean:.2f} % ({test}), {seconds}", err=True)


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
    "--figure",
    type=click.Path(dir_okay=False),
    help="Tables rotations and digits: also draw the curve (.png, .svg or .pdf).",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1, max=1024),
    default=1,
    show_default=True,
    help="Number of runs at a time, each in a process of its own; the cores are shared out to them.",
)
@data_dir_option
@threads_option
@json_option
@click.pass_context
def reproduce(ctx, table, seeds, only, quick, finished, out, figure, jobs, data_dir, threads, as_json):
    """Reproduce a TABLE of the paper and print it next to the paper's numbers.

    This trains every method of the table several times, which can take hours. Each finished run is saved
    at once, as a JSON file with its model. You can stop with Ctrl-C at any time: the same command
    continues where it stopped, even in the middle of a run. The same command in a second terminal, or
    on another machine that shares the folder, takes runs that no other process is doing. The best epoch
    is chosen on upright validation images.

    \b
    mnist-012         Table 2, digits 0, 1 and 2, tested on all of MNIST's test images of them
    mnist-rot-trans   Table 3, rotated and shifted digits
    eth-80            Table 4, objects; needs ETH-80 ('tigra data fetch eth80')
    rotations         the last figure: accuracy against the number of training rotations
    digits            beyond the paper: rotated digits from 100 to 57,000 upright ones
    All except eth-80 need MNIST ('tigra data fetch mnist').

    \b
    Example:
        tigra reproduce mnist-012 --seeds 3
    """
    if out == "":
        raise click.UsageError("--out must be a folder, got an empty name; leave it out for results/TABLE.")
    out = Path(out or f"results/{table}")
    if jobs > 1 and current_team().size > 1:
        raise click.UsageError("mpiexec says how many runs to do at a time; leave out --jobs.")
    if ctx.get_parameter_source("threads") is not ParameterSource.COMMANDLINE:
        threads = max(1, threads // jobs)
    experiment = Experiment(TABLES[table], out, quick, seeds, threads, data_dir, only, finished)
    if finished:
        _keep_finished_rows(experiment, "these rows" if only else "this table")
    if figure is not None:
        _check_figure(table, figure, out, finished)
    n_failed = 0 if finished else _run_all(ctx, experiment, jobs)
    if figure is not None and experiment.finished_rows():
        from tigra.figures.curves.rotations import draw

        write_atomically(figure, draw(experiment, figure), "--figure")
        say(f"Figure: {figure}", err=True)
    elif figure is not None:
        say("No figure: no run has a result.", err=True)
    if as_json:
        found = [kept for row, number in experiment.runs() if (kept := experiment.record(row, number))]
        print_json({"table": table, "title": TABLES[table].title, "folder": str(out), "quick": quick, "runs": found})
        ctx.exit(1 if n_failed else 0)
    say(f"{TABLES[table].title}\n" + ("QUICK: the numbers mean nothing.\n" if quick else ""))
    say(experiment.markdown())
    known = experiment.n_threads()
    spent = "" if known == "-" else f"; seconds of training on {known} thread{'s' if known != '1' else ''}"
    say(f"Percent, mean +- standard deviation over runs{spent}.")
    ctx.exit(1 if n_failed else 0)
