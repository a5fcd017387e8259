"""`tigra train`: train a network on a data set, save it, and report how well it does."""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path

import click
from tigra_cli.data_options import check_options, data_options, given_options, loading
from tigra_cli.options import EXISTING_FILE
from tigra_cli.output import Progress, duration, percent, print_json, table
from tigra_cli.recipe_options import FIT_OPTIONS, NETWORK_OPTIONS, check_method, recipe_options

from tigra.datasets import DATASETS, load_dataset
from tigra.errors import DatasetError, ModelFileError
from tigra.model_file import check_writable, load_model
from tigra.recipes import RECIPE_NAMES
from tigra.runs import (
    METHOD_NAMES,
    fit_run,
    measured_parts,
    recipe_for,
    resume_run,
    run_report,
    save_fitted,
    save_run,
    start_run,
    training_facts,
)
from tigra.training import Training

SAVE_EVERY = 10  # seconds between saves while training, so that a power cut costs little


@click.command()
@click.argument("dataset", metavar="[DATASET]", required=False)
@click.option("--out", type=click.Path(dir_okay=False), help="Model file to write.  [default: DATASET.npz]")
@click.option(
    "--resume", type=EXISTING_FILE, help="Go on with the interrupted run in this model file, with its own settings."
)
@click.option(
    "--recipe",
    type=click.Choice(RECIPE_NAMES),
    default="best",
    show_default=True,
    help="Settings to start from: the best found, or those printed in the paper.",
)
@click.option(
    "--method",
    type=click.Choice(METHOD_NAMES),
    default="tigranet",
    show_default=True,
    help="What to train: TIGraNet, or a method that it is compared with.",
)
@recipe_options
@data_options
@click.pass_context
def train(ctx, dataset, out, resume, method, threads, as_json, **settings):
    """Train a network and save it.

    DATASET is mnist-012, which comes with tigra, one of mnist-rot, mnist-trans and eth-80 ('tigra
    data list'), or a folder of your own pictures: one subfolder for each class, or folders train,
    valid and test that have them. Settings that are not given are those of the data set's
    recipe. The best epoch is chosen on upright validation images; test images are only for the
    report. An existing model file is replaced. Ctrl-C stops and keeps what was learned: go on with
    --resume.

    \b
    Example:
        tigra train mnist-012 --seed 1 --out digits.npz
        tigra train --resume digits.npz
        tigra train pictures --size 32x32 --test-rotations
    """
    if method == "deepscat" and not resume:
        return _fit(ctx, dataset, out or default_name(dataset), threads, as_json, settings)
    with Progress() as progress, StopSignals() as stop:
        load = _loader(settings, threads, progress, stop)
        if resume:
            out = out or resume
            check_writable(out)
            training, splits = _resumed(ctx, resume, dataset, threads, load)
        else:
            out = out or default_name(dataset)
            check_method(method, settings)
            splits = _loaded(dataset, out, settings, load)
            training = _fresh(splits, method, threads, settings, progress)
        progress.clear()
        for note in splits.notes:
            click.echo(f"Note: {note}.", err=True)
        training.should_stop = stop.asked
        started = time.monotonic()
        _run(training, splits, out, progress)
        seconds = time.monotonic() - started
        save_run(training, splits, out)
    if not training.is_finished:
        click.echo(f"Stopped in epoch {len(training.history) + 1}; saved {out}.", err=True)
        click.echo(f"Go on with: tigra train --resume {out}", err=True)
        ctx.exit(130)
    report = _measured(ctx, training.network, splits, out, threads, training_facts(training, seconds))
    save_run(training, splits, out, report)
    if as_json:
        return print_json(report)
    _print_report(report, splits)
    click.echo(
        f"best epoch {report['best_epoch']} of {report['epochs']} (by upright validation),"
        f" {_effort(report, threads)}, saved as {out}"
    )


def default_name(dataset) -> str:
    """The model file's name where none is given: that of the data set, or of the folder.

    >>> default_name("mnist-012"), default_name("photos/pets/")
    ('mnist-012.npz', 'pets.npz')
    """
    return f"{dataset if dataset in DATASETS else Path(dataset or '.').resolve().name or 'model'}.npz"


def _loader(settings, threads, progress, stop):
    """`load_dataset` with what is the same in every call; it shows a live line, and heeds a stop."""
    progress.show("loading; compiling the kernels takes some seconds the first time")
    return partial(
        load_dataset, data_dir=settings["data_dir"], threads=threads, on_progress=loading(progress, stop.asked)
    )


def _loaded(dataset, out, settings, load):
    """The data set, after what can be checked without it."""
    if dataset is None:
        raise click.UsageError("Name a DATASET, or a run to go on with: --resume FILE.")
    of_data = given_options(settings)
    check_options(dataset, of_data, settings["data_dir"])
    check_writable(out)
    return load(dataset, seed=settings["seed"], interpolation=settings["interpolation"], **of_data)


def _changes(settings) -> dict:
    """The settings of network and training that were given."""
    changes = {name: settings[name] for name in NETWORK_OPTIONS + FIT_OPTIONS if settings[name] is not None}
    return changes | ({"neighbours": int(changes["neighbours"])} if "neighbours" in changes else {})


def _fresh(splits, method, threads, settings, progress):
    """A new run, from the recipe and the settings given."""
    progress.show("measuring the statistics of the training images")
    recipe = recipe_for(splits.name, settings["recipe"], method)
    return start_run(splits, recipe, settings["seed"], threads, bool(settings["size"]) or None, **_changes(settings))


def _fit(ctx, dataset, out, threads, as_json, settings) -> None:
    """Fit DeepScat, save it and report."""
    changes = _changes(settings)
    if set(changes) - {"architecture"}:
        option = "--" + min(set(changes) - {"architecture"}).replace("_", "-")
        raise click.UsageError(f"DeepScat is fitted, not trained, and works on pixels; leave out {option}.")
    with Progress() as progress, StopSignals() as stop:
        splits = _loaded(dataset, out, settings, _loader(settings, threads, progress, stop))
        started = time.monotonic()
        recipe = recipe_for(splits.name, settings["recipe"], "deepscat")
        model = fit_run(splits, recipe, threads, loading(progress, stop.asked), **changes)
        seconds = round(time.monotonic() - started, 3)
        save_fitted(model, splits, out)
    for note in splits.notes:
        click.echo(f"Note: {note}.", err=True)
    report = _measured(ctx, model, splits, out, threads, {"seed": settings["seed"], "seconds": seconds})
    save_fitted(model, splits, out, report)
    if as_json:
        return print_json(report)
    _print_report(report, splits)
    how = "fitted, settings by upright validation" if settings["recipe"] == "best" else "fitted as printed"
    click.echo(f"{how}, {_effort(report, threads)}, saved as {out}")


def _measured(ctx, model, splits, out, threads, facts) -> dict:
    """The report on a model that is saved already, so that Ctrl-C may end it at any time."""
    try:
        with Progress() as progress:
            return {"model": str(out)} | run_report(model, splits, threads, measuring(progress), **facts)
    except KeyboardInterrupt:
        done = "Trained" if "epochs" in facts else "Fitted"
        click.echo(f"{done}, and saved as {out}; only the report is missing: tigra evaluate {out}", err=True)
        ctx.exit(130)


def _effort(report, threads) -> str:
    return f"{duration(report['seconds'])} on {threads} thread{'s' if threads > 1 else ''}"


def _resumed(ctx, path, dataset, threads, load):
    """The run that a model file holds, ready to go on; a folder of pictures may have moved in between."""
    allowed = "resume", "threads", "out", "as_json", "dataset", "data_dir"
    for name in ctx.params:
        if name not in allowed and ctx.get_parameter_source(name).name == "COMMANDLINE":
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"--resume goes on with the settings in {path}; leave out {option}.")
    model = load_model(path)
    trained_on = model.training.get("dataset")
    if dataset not in (None, trained_on) and (trained_on in DATASETS or not os.path.isdir(dataset)):
        raise click.UsageError(f"{path} was trained on {trained_on}, not on {dataset}.")
    if trained_on and trained_on not in DATASETS and not os.path.isdir(dataset or trained_on):
        raise click.UsageError(f"The folder {trained_on} is not here; say where: tigra train FOLDER --resume {path}.")
    try:
        splits = load(dataset or model.training["dataset"], **model.training["dataset_options"])
    except DatasetError:
        raise
    except Exception as error:  # the file's record may be of any kind
        raise ModelFileError(f"{path} does not say how to go on ({error}); start a new run.") from error
    return resume_run(model, splits, path, threads), splits


class StopSignals:
    """While this lasts, Ctrl-C, a termination signal or a vanished terminal only ask the run to stop.

    It stops after the step under way, and is saved; pressing Ctrl-C again changes nothing about that.
    """

    NAMES = "SIGINT", "SIGTERM", "SIGHUP"  # the last is not known everywhere

    def __init__(self):
        self.received = []

    def __enter__(self) -> StopSignals:
        numbers = [getattr(signal, name) for name in self.NAMES if hasattr(signal, name)]
        heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # nohup
        self.previous = {number: signal.signal(number, self._note) for number in heeded}
        return self

    def _note(self, number, _):
        self.received.append(number)

    def asked(self) -> bool:
        """Whether a signal has come."""
        return bool(self.received)

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)


def _run(training: Training, splits, out, progress: Progress) -> None:
    """Train to the end or to the stop, with a live line, saving now and then."""
    n_epochs, last_save = training.options.epochs, time.monotonic()

    def line():
        text = f"epoch {min(len(training.history) + 1, n_epochs)}/{n_epochs}"
        if training.history:
            text += f"  loss {training.history[-1].loss:.4f}"
            text += f"  valid {percent(training.history[-1].valid_accuracy)}"
            text += f" (best {percent(training.best_epoch.valid_accuracy)})"
        return text

    def on_step(step, n_steps):
        progress.show(line(), len(training.history) * n_steps + step, n_epochs * n_steps)

    training.on_step = on_step
    progress.show(line())
    for _ in training.run():
        if time.monotonic() - last_save > SAVE_EVERY:
            save_run(training, splits, out)
            last_save = time.monotonic()


def measuring(progress: Progress):
    """A function for `run_report(on_progress=...)` that shows a live line."""

    def report(part, done, total):
        what = f"measuring the accuracy on {part.replace('_', ', ')}"
        progress.show(what, done, total, phase=what)

    return report


def _print_report(report, splits) -> None:
    rows = [
        (name.replace("_", ", "), len(split.labels), percent(report["accuracy"][name]))
        for name, split in measured_parts(splits).items()
    ]
    if not splits.transform:
        rows[-1] = ("test", *rows[-1][1:])
    click.echo(f"{splits.name}: {report['architecture']}, {report['parameters']} parameters, seed {report['seed']}")
    click.echo(f"{splits.protocol}")
    click.echo(table(rows, header=("images", "n", "accuracy")))
