"""Load data sets by name, or a folder of pictures."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tigra.datasets.folders import load_folder
from tigra.datasets.npz.files import is_array_file
from tigra.datasets.npz.loading import load_arrays
from tigra.datasets.protocols import (
    load_eth_80,
    load_mnist_012,
    load_mnist_rot,
    load_mnist_trans,
)
from tigra.datasets.splits import Splits
from tigra.errors import DatasetError, UsageError
from tigra.images.transforms import INTERPOLATIONS
from tigra.option_fields import is_same_object, unknown_option

DATASETS: dict[str, Callable[..., Splits]] = {
    "mnist-012": load_mnist_012,
    "mnist-rot": load_mnist_rot,
    "mnist-trans": load_mnist_trans,
    "eth-80": load_eth_80,
}


def register_dataset(name: str, loader: Callable[..., Splits]) -> None:
    """Register a data set for `load_dataset` and all commands.

    Parameters
    ----------
    name : str
        Name of the data set, without "/". A name that is already registered is refused.
    loader : callable returning Splits
        Function that loads the data set. It receives those of the arguments `seed`, `interpolation`,
        `data_dir`, `threads` and `on_progress` of `load_dataset` that it has. Its other arguments are the
        options of the data set.
    """
    if not callable(loader):
        raise UsageError(f"The loader of a data set is a function that returns Splits, got {loader!r}.")
    known = DATASETS.get(name) if isinstance(name, str) else None
    is_new = known is None or is_same_object(known, loader)
    if not (isinstance(name, str) and name and "/" not in name and is_new):
        raise UsageError(
            f"A data set needs a name of its own without '/', got {name!r}; choose another than {', '.join(DATASETS)}."
        )
    DATASETS[name] = loader


SURROUNDINGS = "data_dir", "threads", "on_progress"  # arguments that do not change the data


def load_dataset(
    name: str,
    seed: int = 0,
    interpolation: str = "cubic",
    data_dir=None,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    **options,
) -> Splits:
    """Load a data set by name, a folder with one subfolder of pictures per class, or an .npz file of arrays.

    Parameters
    ----------
    name : str or path
        One of `tigra.DATASETS`, a folder of pictures, or an .npz file (`tigra.datasets.npz.loading.load_arrays`).
    seed : int
        Seed of the random split and of the transformations of test images.
    interpolation : {"cubic", "linear"}
        How images are interpolated when they are rotated or shifted.
    data_dir : path, optional
        Folder to search first for the files of MNIST and ETH-80.
    threads : int
        Number of threads for decoding pictures.
    on_progress : callable
        Called with (description, number done, total).
    **options
        Options of the data set. See the functions in `tigra.datasets.protocols`, and
        `tigra.datasets.folders.load_folder` for folders.

    Returns
    -------
    Splits
        Training, validation and test images. Call `load_dataset` with `Splits.options` to get them again.

    Examples
    --------
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
    return _checked(splits, name, chosen)


def _checked(splits: Splits, name, chosen: dict) -> Splits:
    """What a loader returned, with the name and the options that load it again, if it can be used and saved."""
    if not isinstance(splits, Splits):
        raise DatasetError(f"The loader of {name} must return tigra.Splits, but returned {type(splits).__name__}.")
    names = splits.class_names
    if not (isinstance(names, list) and len(names) > 1 and all(isinstance(n, str) and n.isprintable() for n in names)):
        raise DatasetError(f"class_names of {name} must be a list of at least two printable strings, got {names!r}.")
    named = replace(splits, name=name) if name in DATASETS and splits.name != name else splits
    return named if named.options else replace(named, options=chosen)


def loader_of(name) -> Callable[..., Splits]:
    """Return the function that loads the data set `name`, or the folder of that name."""
    if isinstance(name, str) and name in DATASETS:
        return DATASETS[name]
    if is_array_file(name):
        return partial(load_arrays, name)
    if isinstance(name, (str, os.PathLike)) and os.path.isdir(name):
        return partial(load_folder, name)
    raise UsageError(
        f"There is no data set {name!r}; choose one of {', '.join(DATASETS)}, or give a folder of pictures, or an .npz"
        " file of arrays."
    )


def is_own_data(name) -> bool:
    """Whether a data set is a folder of pictures or a file of arrays that exists."""
    return name is not None and name not in DATASETS and (os.path.isdir(name) or is_array_file(name))


def dataset_options(name) -> list[str]:
    """Return the options of a data set, without those that do not change the data.

    >>> dataset_options("mnist-trans")[:3]
    ['seed', 'interpolation', 'size']
    """
    parameters = inspect.signature(loader_of(name)).parameters
    return [option for option in parameters if option not in (*SURROUNDINGS, "folder", "file")]
