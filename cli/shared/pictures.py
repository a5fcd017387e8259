"""Pictures on the command line: paths of files and folders, read as the model was trained, as a stream."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import click
import numpy as np

from tigra.datasets.npz.files import ENDING, ArrayImages, is_array_file
from tigra.datasets.npz.loading import load_images
from tigra.errors import DatasetError, ImageError
from tigra.files.regular import open_regular
from tigra.images.pictures import decode_image
from tigra.images.streaming import Batch, Listed, decoded_batches, list_files
from tigra.model_file import Model

from .model_data import picture_background
from .output import say

paths_argument = click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path())
recursive_option = click.option(
    "--recursive", is_flag=True, help="Also take the pictures in folders inside the given folders."
)
invert_option = click.option(
    "--invert",
    is_flag=True,
    help="Invert the pictures. It is not needed: the background is found in each picture.",
)


@dataclass
class Tally:
    """How many pictures were read, how many of them could not be, and why the first one could not."""

    pictures: int = 0
    errors: int = 0
    first: str = ""

    def add(self, error: str) -> None:
        """Count a picture; `error` is empty if it could be read."""
        self.pictures, self.errors, self.first = self.pictures + 1, self.errors + bool(error), self.first or error

    @property
    def counts(self) -> dict[str, int]:
        """The numbers, for JSON."""
        return {"pictures": self.pictures, "errors": self.errors}

    def tell(self, where: str) -> None:
        """Say on standard error how many pictures could not be read, and why the first one could not."""
        if self.errors:
            what = f"{self.errors} of {self.pictures} pictures could not be read; {where} says why"
            say(f"Error: {what}. {'The first: ' if self.errors > 1 else ''}{self.first}", err=True)


def reader_of(loaded: Model, invert: bool) -> Callable[[str], np.ndarray]:
    """Return the function that reads a picture file for this model, as in its training."""
    shape, background = loaded.network.image_shape, picture_background(loaded)
    invert ^= loaded.training.get("dataset_options", {}).get("invert") is True

    arrays: dict[str, ArrayImages] = {}

    def read(path: str) -> np.ndarray:
        container, _, row = path.rpartition("[")
        if container.endswith(ENDING):  # one of `listed`
            if container not in arrays:
                arrays[container] = load_images(container, shape, background)
            return arrays[container][int(row.rstrip("]"))]
        try:
            with open_regular(path) as file:
                return decode_image(file, path, shape, invert, background)
        except OSError as error:
            raise ImageError(f"Cannot read {path}: {error.strerror or error}.") from error

    return read


def listed(paths, recursive: bool) -> Iterator[Listed]:
    """Yield the files to read; of a file of arrays every image, called FILE.npz[0], FILE.npz[1], ..."""
    for path in paths:
        if not is_array_file(path):
            yield from list_files([path], recursive)
            continue
        try:
            n_images = len(load_images(path, (1, 1)))
        except DatasetError as error:
            yield Listed(path, str(error))
            continue
        yield from (Listed(f"{path}[{row}]") for row in range(n_images))


@contextlib.contextmanager
def batches_of(loaded: Model, files: Iterable[Listed], invert: bool, threads: int) -> Iterator[Iterator[Batch]]:
    """Yield the stream of pictures; warnings of Pillow, about unusual metadata, are not shown."""
    batches = decoded_batches(files, reader_of(loaded, invert), loaded.network.image_shape, threads)
    with warnings.catch_warnings(), contextlib.closing(batches):  # type: ignore[type-var]  # a generator
        warnings.filterwarnings("ignore", module="PIL")
        yield batches
