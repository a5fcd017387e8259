"""`tigra train`: train a network on a data set, save it, and report its accuracy."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tigra.datasets import DATASETS, load_dataset
from tigra.datasets.loading import dataset_options, is_own_data
from tigra.datasets.npz.files import ENDING
from tigra.datasets.splits import Splits
from tigra.errors import DatasetError, ModelFileError
from tigra.experiments.methods import Method, find_method
from tigra.experiments.own_data.advice import on_few_images
from tigra.experiments.own_data.folds import fold_splits
from tigra.experiments.own_data.sizing import choose_size
from tigra.experiments.recipe import LARGEST_FACTOR, Recipe
from tigra.experiments.report.counts import wilson
from tigra.experiments.resuming import check_resumable, resume
from tigra.experiments.runs import (
    Run,
    Stopped,
    Watch,
    perform,
    run_report,
)
from tigra.files.atomic import check_writable
from tigra.model_file import load_model
from tigra.options import CLASS_WEIGHTS, FitOptions, NetworkOptions
from tigra.processes.team import TeamError
from tigra.training.weights import read_class_weights

from .shared.ahead import compiling_ahead
from .shared.data_options import (
    check_options,
    data_options,
    dataset_argument,
    given_options,
    loading,
)
from .shared.field_options import (
    HeadedCommand,
    HeadedOption,
    field_options,
    given_fields,
    spelling,
)
from .shared.folding import Folds, cross_validated
from .shared.options import (
    EXISTING_FILE,
    MethodName,
    RecipeName,
    import_option,
)
from .shared.output import Progress, duration, percent, print_json, say, table
from .shared.processes import current_team, share_training
from .shared.signals import StopSignals


@click.command(cls=HeadedCommand)
@dataset_argument(required=False)
@click.option(
    "--out",
    type=click.Path(),
    help="Model file to write.  [default: DATASET.npz]  With --folds, a folder for the results of finished folds: the"
    " same command continues with the others.  [default: keep nothing]",
)
@click.option(
    "--resume",
    "resumed",
    type=EXISTING_FILE,
    help="Continue the interrupted run in this model file with the settings saved there, or finish its report.",
)
@click.option(
    "--recipe",
    type=RecipeName(),
    default="best",
    show_default=True,
    help="Settings for the options that you do not give. `best` tells left from right. `achiral` treats mirror images"
    " alike; choose it where objects may be seen from either side. `repaired` is the paper's network with standardised"
    " statistics, `paper` the paper as printed.",
)
@click.option(
    "--method",
    type=MethodName(),
    default="tigranet",
    show_default=True,
    help="What to train: TIGraNet, or a baseline to compare it with.",
)
@field_options(FitOptions, NetworkOptions, first=("epochs", "architecture"))
@data_options
@click.option(
    "--folds",
    cls=HeadedOption,
    heading="Data",
    type=click.IntRange(min=2),
    help="Cross-validation: train this many networks, test each on another part of the images, and report mean and"
    " spread. No model is saved. Use it if there are few pictures.",
)
@click.option(
    "--jobs",
    cls=HeadedOption,
    heading="Data",
    type=click.IntRange(min=1, max=1024),
    default=1,
    help="Number of folds at a time, each in a process of its own; the cores are shared out to them.",
)
@import_option
@click.pass_context
def train(ctx, dataset, out, resumed, folds, jobs, method, threads, as_json, **settings):
    """Train a network and save it.

    DATASET is mnist-012, which comes with tigra, one of mnist-rot, mnist-trans and eth-80 ('tigra data
    list'), a folder of your own pictures, or an .npz file. The folder has one subfolder per class, or
    subfolders train, valid and test that each have one per class. The file has the arrays train_images
    and train_labels, and may have val_... and test_...

    Settings that you do not give come from the recipe of the data set. The best epoch is chosen on
    upright validation images; test images are used only for the report. An existing model file is
    replaced. Ctrl-C stops and saves the run; continue it with --resume.

    \b
    Example:
        tigra train mnist-012 --seed 1 --out digits.npz
        tigra train --resume digits.npz
        tigra train pictures --size 32x32 --test-rotations
        tigra train pictures --folds 5
    """
    threads = _checked_folding(ctx, out, folds, jobs, threads)
    with Progress() as progress, StopSignals() as stop:
        load = _loader(settings, threads, progress, stop)
        if resumed:
            out = out or resumed
            check_writable(out)
            run = _resumed(ctx, resumed, dataset, threads, load)
        else:
            chosen = _chosen(dataset, out, folds, method, threads, settings, load, progress)
            if folds:
                watch = Watch(progress_line(progress), stop.asked)
                return cross_validated(ctx, Folds.of(ctx, dataset, *chosen, threads, out), jobs, watch, progress)
            out = out or default_name(dataset)
            run = chosen[0].start(chosen[2], chosen[1], settings["seed"], threads)
        share_training(ctx, run, dataset or run.splits.name, threads)
        progress.clear()
        for note in run.splits.notes:
            say(f"Note: {note}.", err=True)
        if current_team().size > 1 and run.can_resume:  # mpiexec would end this process, too
            say(f"Note: if a process is killed, continue with: tigra train --resume {out}", err=True)
        try:
            with compiling_ahead(run, threads, ctx.meta.get("modules", ()), current_team()):
                seconds = perform(run, out, Watch(progress_line(progress), stop.asked))
        except Stopped:
            progress.clear()
            _tell_stopped(run, out)
            ctx.exit(130)
        except TeamError as error:
            raise click.ClickException(f"{error} Continue with: tigra train --resume {out}") from error
    report = _measured(ctx, run, out, threads, round(seconds, 3))
    run.save(out, report)
    if as_json:
        print_json(report)
    else:
        _print_report(report, run, threads)


def default_name(dataset) -> str:
    """Return the default name of the model file: the data set or folder, plus .npz.

    >>> default_name("mnist-012"), default_name("photos/pets/"), default_name("arrays/cells.npz")
    ('mnist-012.npz', 'pets.npz', 'cells-model.npz')
    """
    if dataset and dataset.endswith(ENDING):  # never the data itself
        return f"{Path(dataset).stem}-model.npz"
    return f"{dataset if dataset in DATASETS else Path(dataset or '.').resolve().name or 'model'}.npz"


def _checked_folding(ctx, out, folds, jobs, threads) -> int:
    """Check the options that mean something else with --folds; returns the threads of each process."""
    if not folds and out and os.path.isdir(out):
        raise click.BadParameter(f"{out!r} is a directory; give the name of a model file.", ctx, param_hint="--out")
    if jobs == 1:
        return threads
    if not folds:
        raise click.UsageError("--jobs is the number of folds at a time; for one run, give --threads.")
    if current_team().size > 1:
        raise click.UsageError("mpiexec says how many folds to do at a time; leave out --jobs.")
    is_given = ctx.get_parameter_source("threads") is ParameterSource.COMMANDLINE
    return threads if is_given else max(1, threads // jobs)


def progress_line(progress: Progress):
    """Return a function for `Watch` that shows a live line; the phase is its text without numbers."""

    def show(what, done=0, total=0):
        progress.show(what, done, total, phase=what.split("  ")[0].rstrip("0123456789/ "))

    return show


def _loader(settings, threads, progress, stop):
    """Return `load_dataset` with the common arguments set; it shows a live line and stops on a signal."""
    progress.show("loading; compiling the kernels takes some seconds the first time")
    return partial(
        load_dataset, data_dir=settings["data_dir"], threads=threads, on_progress=loading(progress, stop.asked)
    )


def _chosen(dataset, out, folds, name, threads, settings, load, progress) -> tuple[Method, Any, Splits]:
    """Return method, recipe and data set; check all that can be checked before the data set is loaded."""
    if dataset is None:
        raise click.UsageError("Give a DATASET, or continue a run with --resume FILE.")
    method, changes = find_method(name), given_fields(settings, FitOptions, NetworkOptions)
    if changes.get("class_weights") not in (None, *CLASS_WEIGHTS):
        changes["class_weights"] = read_class_weights(changes["class_weights"])
    if settings["recipe"] not in method.recipe_names:
        names = ", ".join(method.recipe_names)
        raise click.UsageError(f"Method {name} has no recipe {settings['recipe']}, only {names}; leave out --recipe.")
    recipe = method.recipe(dataset, settings["recipe"])
    method.check_changes(changes, recipe, spelling)
    usual = recipe
    notes: tuple[str, ...] = ()
    recipe = recipe.with_changes(changes) if changes else recipe
    if settings["size"] == "auto":
        chosen = choose_size(dataset, method, recipe, threads)
        settings["size"], notes = chosen.size, (*notes, chosen.words)
    if settings["size"] and "architecture" not in changes and isinstance(recipe, Recipe):
        recipe = replace(recipe, limits_pooling=True)  # small images have few nodes
    of_data = given_options(settings)
    check_options(dataset, of_data, settings["data_dir"])
    of_data |= _of_both(dataset, method, settings, of_data)
    if not folds:
        out = out or default_name(dataset)
        if os.path.exists(out) and os.path.exists(dataset) and os.path.samefile(out, dataset):
            raise click.UsageError(f"--out {out} would replace the data set; choose another name.")
        check_writable(out)
    if settings["size"]:
        method.check_size(recipe, settings["size"])
    splits = load(dataset, seed=settings["seed"], interpolation=settings["interpolation"], **of_data)
    if "batch_size" in changes and "learning_rate" not in changes and isinstance(recipe, Recipe):
        recipe, words = _for_batches(recipe, usual, len(splits.train.labels))
        notes += words
    if is_own_data(dataset):
        notes += on_few_images(next(fold_splits(splits, folds, settings["seed"])) if folds else splits, bool(folds))
    splits = replace(splits, notes=(*notes, *splits.notes)) if notes else splits
    progress.show(f"measuring the statistics of {len(splits.train.labels)} training images")
    return method, recipe, splits


def _for_batches(recipe: Recipe, usual: Recipe, n_images: int) -> tuple[Recipe, tuple[str, ...]]:
    """Return the recipe with the learning rate for its batches, if they are larger than the usual ones, and a note."""
    size, fit = min(recipe.fit.batch_size, n_images), usual.fit
    rate = replace(usual, network=recipe.network).rate_for(size)
    if rate == fit.learning_rate:
        return recipe, ()
    words = f"the learning rate is {rate:.3g}, not {fit.learning_rate:g}, because batches have {size} images,"
    words += f" not {fit.batch_size} as in the recipe"
    too_large = size > LARGEST_FACTOR * fit.batch_size and not usual.least_steps
    words += "; such large batches also need more --epochs" * too_large
    return replace(recipe, fit=replace(recipe.fit, learning_rate=rate)), (words,)


def _of_both(dataset, method, settings, of_data) -> dict:
    """Return options of the data set that follow from the method, or that network and data set share."""
    known, shared = dataset_options(dataset), {}
    if "background" in known and settings["background"]:
        shared["background"] = settings["background"]
    if "colour" in known and not method.sees_colour:
        if of_data.get("colour") == "yes":
            raise click.UsageError(f"Method {method.name} has no use for colour; leave out --colour.")
        shared["colour"] = "no"
    return shared


def _resumed(ctx, path, dataset, threads, load) -> Run:
    """Return the run saved in a model file, ready to continue; `dataset` is the folder if it has moved."""
    allowed = "resumed", "threads", "out", "as_json", "dataset", "data_dir"
    for name in ctx.params:
        if name not in allowed and ctx.get_parameter_source(name).name == "COMMANDLINE":
            raise click.UsageError(f"--resume continues with the settings in {path}; leave out {spelling(name)}.")
    model = load_model(path)
    check_resumable(model, path)
    trained_on = model.training.get("dataset")
    if dataset not in (None, trained_on) and (trained_on in DATASETS or not is_own_data(dataset)):
        raise click.UsageError(f"{path} was trained on {trained_on}, got {dataset}; leave out DATASET.")
    if trained_on and trained_on not in DATASETS and not is_own_data(dataset or trained_on):
        raise click.UsageError(
            f"The folder {trained_on} does not exist; give its new place: tigra train FOLDER --resume {path}."
        )
    try:
        splits = load(dataset or model.training["dataset"], **model.training["dataset_options"])
    except DatasetError:
        raise
    except Exception as error:  # the file may contain anything
        raise ModelFileError(f"{path} has no usable record of its run ({error}); start a new run.") from error
    return resume(model, splits, path, threads)


def _tell_stopped(run: Run, out) -> None:
    if not run.can_resume:
        say("Stopped.", err=True)
        return
    say(f"Stopped in epoch {run.facts['epochs'] + 1}; saved {out}.", err=True)
    say(f"Continue with: tigra train --resume {out}", err=True)


def _measured(ctx: click.Context, run: Run, out, threads, seconds) -> dict:
    """Measure the report; the model is already saved, and --resume starts here if this is stopped."""
    try:
        with Progress() as progress:
            facts = run.facts | {"seconds": seconds}
            return {"model": str(out)} | run_report(
                run.model, run.splits, threads, progress_line(progress), run.is_weighted, **facts
            )
    except KeyboardInterrupt:
        done = "Trained" if run.can_resume else "Fitted"
        say(f"{done} and saved as {out}, but without a report; get it with: tigra train --resume {out}", err=True)
        ctx.exit(130)


def _print_report(report, run: Run, threads) -> None:
    splits = run.splits
    rows = [
        (name.replace("_", ", "), n, percent(report["accuracy"][name]), _interval(report["accuracy"][name], n))
        for name, n in report["images"].items()
    ]
    if not splits.transform:
        rows[-1] = ("test", *rows[-1][1:])
    what = [report.get("architecture"), f"{report['parameters']} parameters" if "parameters" in report else None]
    what.append(f"seed {report['seed']}" if "seed" in report else None)
    say(f"{splits.name}: {', '.join(filter(None, what))}")
    say(f"{splits.protocol}")
    say(table(rows, header=("images", "n", "accuracy", "95 % interval")))
    spent = f"{duration(report['seconds'])} on {threads} thread{'s' if threads > 1 else ''}"
    if (size := current_team().size) > 1:
        spent += f" in each of {size} processes"
    say(f"{run.summary}, {spent}, saved as {report['model']}")
    for remark in report["remarks"]:
        say(f"Note: {remark}.", err=True)


def _interval(accuracy: float, n: int) -> str:
    """Format the confidence interval of an accuracy.

    >>> _interval(0.9, 100)
    '82.6 % to 94.5 %'
    """
    return " to ".join(percent(limit) for limit in wilson(accuracy, n))
