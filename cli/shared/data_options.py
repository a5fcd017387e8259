"""Options that choose a data set and how it is split and transformed."""

from __future__ import annotations

import os
import re

import click
from click.shell_completion import CompletionItem

from .field_options import FIRST, HeadedOption, spelling
from .options import (
    interpolation_option,
    json_option,
    seed_option,
    threads_option,
)
from .output import Progress


class Size(click.ParamType):
    """A size HxW, such as 26x26, or "auto"."""

    name = "HxW|auto"

    def convert(self, value, param, ctx):
        """Return (height, width), or "auto"."""
        if isinstance(value, tuple) or value == "auto":
            return value
        match = re.fullmatch(r"(\d{1,5})[xX](\d{1,5})", value)
        if not match or "0" in (match[1].lstrip("0") or "0", match[2].lstrip("0") or "0"):
            self.fail(f"Expected a size such as 50x50 (height x width in pixels), got {value!r}.", param, ctx)
        return int(match[1]), int(match[2])


class Rotations(click.ParamType):
    """A number of angles, or "random"."""

    name = "K|random"

    def convert(self, value, param, ctx):
        """Return a whole number, or "random"."""
        if value == "random" or isinstance(value, int):
            return value
        if not re.fullmatch(r"\d{1,3}", value) or int(value) > 360:
            self.fail(f"Expected a number of angles from 0 to 360 or 'random', got {value!r}.", param, ctx)
        return int(value)


data_dir_option = click.option(
    "--data-dir",
    cls=HeadedOption,
    heading="Data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder to search first for the files of MNIST and ETH-80, before $TIGRA_DATA and the cache folder.",
)


def dataset_argument(required: bool):
    """Return the argument DATASET; shells complete names of data sets and folders."""

    def complete(ctx, param, incomplete):
        from tigra.datasets import DATASETS

        names = [CompletionItem(name) for name in DATASETS if name.startswith(incomplete)]
        return [*names, CompletionItem(incomplete, type="dir")]

    metavar = "DATASET" if required else "[DATASET]"
    return click.argument("dataset", metavar=metavar, required=required, shell_complete=complete)


# name, type, help; options that are not given get the default of the data set
_TEST_OPTIONS = (
    ("--all-test", None, "mnist-012: test on all 3,147 digits 0, 1 and 2 of MNIST's test set; needs MNIST."),
    (
        "--shifts",
        click.Choice(["whole", "real"]),
        "mnist-trans: shift by whole pixels, or by any distance (real), which is harder.",
    ),
    ("--max-shift", click.FloatRange(min=0), "mnist-trans: largest shift in pixels; increase it for a harder test."),
    (
        "--test-rotations",
        None,
        "eth-80 and folders: rotate test images by random angles, to see whether the network is invariant.",
    ),
)
_SPLIT_OPTIONS = (
    ("--nines", None, "mnist-rot: ten digits; the paper leaves out the 9, which looks like a rotated 6."),
    (
        "--size",
        Size(),
        (
            "Scale images to this height and width; smaller images train faster. auto, for your own pictures, chooses"
            " by their size and the time that training takes."
        ),
    ),
    ("--n-train", click.IntRange(min=1), "Number of training images; use fewer for a quick trial."),
    (
        "--n-valid",
        click.IntRange(min=1),
        "Number of validation images; use more to choose the best epoch more reliably.",
    ),
    (
        "--train-rotations",
        Rotations(),
        (
            "Rotate each training image by one of K equally spaced angles, or by a random angle. Use it to compare with"
            " training on rotated images."
        ),
    ),
    (
        "--split",
        click.Choice(["image", "object"]),
        "eth-80: split at random by image, as in the paper, or by object, so that no test object was seen in training.",
    ),
    ("--fold", click.IntRange(min=0, max=9), "eth-80 with --split object: number of the test object in each class."),
    ("--invert", None, "Folders: invert the pictures. It is not needed: the background is found in each picture."),
    (
        "--colour",
        click.Choice(["auto", "yes", "no"]),
        "Read pictures in colour or in grey; auto, the default for folders, reads in colour if some have colour.",
    ),
)
_FIRST = "--size", "--test-rotations"  # options most users need


def _decorated(options):
    def decorate(command):
        for name, kind, text in reversed(options):
            how = {"is_flag": True, "flag_value": True} if kind is None else {"type": kind}
            how |= {"metavar": kind.name} if isinstance(kind, (Size, Rotations)) else {}
            heading = FIRST if name in _FIRST else "Data"
            command = click.option(name, cls=HeadedOption, heading=heading, **how, default=None, help=text)(command)
        return command

    return decorate


test_options = _decorated(_TEST_OPTIONS)
split_options = _decorated(_SPLIT_OPTIONS)


def data_options(command):
    """Decorator: add all options of a command that loads a data set."""
    for decorate in (json_option, threads_option, seed_option, interpolation_option, test_options, split_options):
        command = decorate(command)
    return data_dir_option(command)


DATA_OPTIONS = [name[2:].replace("-", "_") for name, _, _ in _TEST_OPTIONS + _SPLIT_OPTIONS]


def given_options(parameters: dict) -> dict:
    """Return the data set options that were given on the command line."""
    return {name: parameters[name] for name in DATA_OPTIONS if parameters.get(name) is not None}


def check_options(dataset, options: dict, data_dir=None) -> None:
    """Raise click.UsageError for an option that the data set does not have."""
    from tigra.datasets.loading import dataset_options, is_own_data

    if data_dir and is_own_data(dataset):
        kind = "folder of pictures" if os.path.isdir(dataset) else "file"
        raise click.UsageError(f"--data-dir is for MNIST and ETH-80, got the {kind} {dataset}; leave out --data-dir.")
    known = dataset_options(dataset)
    for name in options:
        if name not in known:
            its_own = ", ".join(spelling(option) for option in known)
            raise click.UsageError(f"{dataset} has no option {spelling(name)}; it has {its_own}.")


def loading(progress: Progress, is_stopped=lambda: False):
    """Return a function for `load_dataset(on_progress=...)` that shows a live line and stops on a signal."""

    def report(what, done, total):
        if is_stopped():
            raise KeyboardInterrupt
        progress.show(f"{what} {done}/{total}" if total else what, done, total, phase=what)

    return report
