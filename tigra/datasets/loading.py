"""Data sets by name, or a folder of pictures: one door to all of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tigra.datasets.folders import load_folder
from tigra.datasets.protocols import (
    load_eth_80,
    load_mnist_012,
    load_mnist_rot,
    load_mnist_trans,
)
from tigra.datasets.splits import Splits
from tigra.errors import UsageError
from tigra.images.transforms import INTERPOLATIONS
from tigra.option_fields import unknown_option

DATASETS: dict[str, Callable[..., Splits]] = {
    "mnist-012": load_mnist_012,
    "mnist-rot": load_mnist_rot,
    "mnist-trans": load_mnist_trans,
    "eth-80": load_eth_80,
}


def register_dataset(name: str, loader: Callable[..., Splits]) -> None:
    """Make a data set known by its name, to `load_dataset` and to all commands.

    loader : function -> Splits. Of the arguments of `load_dataset` (seed, interpolation, data_dir, threads,
        on_progress) it gets those that it has; its other arguments are the data set's options.
    """
    known = DATASETS.get(name)
    if not name or "/" in name or (known is not None and known.__qualname__ != loader.__qualname__):
        raise UsageError(
            f"A data set needs a name of its own, without '/', got {name!r}; there are {', '.join(DATASETS)}."
        )
    DATASETS[name] = loader


SURROUNDINGS = "data_dir", "threads", "on_progress"  # where and how to load, not what


def load_dataset(
    name: str,
    seed: int = 0,
    interpolation: str = "cubic",
    data_dir=None,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    **options,
) -> Splits:
    """The splits of a data set, or of a folder with a subfolder of pictures for each class.

    seed : decides everything random: which images go where, and how test images are transformed
    interpolation : of images that are turned or shifted, "cubic" or "linear"
    data_dir : where to look first for the files of MNIST and ETH-80 (`tigra.datasets.sources`)
    threads : for decoding pictures; on_progress : called with (what is done, how many, of how many)
    options : of this data set, see the functions in `tigra.datasets.protocols` and `tigra.datasets.folders`

    >>> splits = load_dataset("mnist-012")
    >>> splits.train.images.shape, splits.valid.images.shape, splits.test.images.shape
    ((500, 28, 28), (100, 28, 28), (100, 28, 28))
    """
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise UsageError(f"seed must be a whole number >= 0, got {seed!r}.")
    if interpolation not in INTERPOLATIONS:
        raise UsageError(f"interpolation must be one of {', '.join(INTERPOLATIONS)}, got {interpolation!r}.")
    loader = loader_of(name)
    known = dataset_options(name)
    for option in options:
        if option not in known:
            raise unknown_option(name, option, known)
    chosen = {"seed": int(seed), "interpolation": interpolation, **options}
    given = chosen | {"data_dir": data_dir, "threads": threads, "on_progress": on_progress}
    taken = inspect.signature(loader).parameters
    splits = loader(**{key: value for key, value in given.items() if key in taken})
    return splits if splits.options else replace(splits, options=chosen)  # what to call this with, to have it again


def loader_of(name) -> Callable[..., Splits]:
    """The function that loads the data set `name`, or the folder of that name."""
    if isinstance(name, str) and name in DATASETS:
        return DATASETS[name]
    if isinstance(name, (str, os.PathLike)) and os.path.isdir(name):
        return partial(load_folder, name)
    raise UsageError(
        f"There is no data set {name!r}; choose one of {', '.join(DATASETS)}, or give a folder of pictures."
    )


def dataset_options(name) -> list[str]:
    """The options that a data set takes, apart from where and how it is loaded.

    >>> dataset_options("mnist-trans")[:3]
    ['seed', 'interpolation', 'size']
    """
    parameters = inspect.signature(loader_of(name)).parameters
    return [option for option in parameters if option not in (*SURROUNDINGS, "folder")]
