"""Pictures as a stream: files are listed, decoded ahead on threads, and given in batches. Memory stays flat."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

import numpy as np

from tigra.errors import ImageError

LEFT_BY_SYSTEMS = "Thumbs.db", "desktop.ini", "__MACOSX", "@eaDir"
AT_ONCE = 256  # pictures in a batch
LARGEST_BATCH = 2**25  # bytes of decoded pictures; large ones come in smaller batches
AHEAD = 2  # batches decoded before they are asked for


class Listed(NamedTuple):
    """A file to read, or a place that cannot be listed, with the reason."""

    path: str
    problem: str = ""


class Batch(NamedTuple):
    """Some pictures: `errors` has one text per path, empty if the picture is in `images`."""

    paths: list[str]
    errors: list[str]
    images: np.ndarray


def list_files(paths: Iterable[str], recursive: bool = False) -> Iterator[Listed]:
    """Yield the files among the paths and in the folders among them, each folder sorted by name.

    Hidden files are left out. Links to folders inside folders are not followed, as they may form cycles. Only the
    names in one folder are in memory at a time.

    Parameters
    ----------
    paths : iterable of str
        Files and folders.
    recursive : bool
        Whether to look into folders inside folders.

    Yields
    ------
    Listed
        A file, or a folder in which there is nothing to read.
    """
    for path in paths:
        if os.path.isdir(path):
            yield from _files_in(path, recursive)
        else:
            yield Listed(os.fspath(path))


def _files_in(folder: str, recursive: bool) -> Iterator[Listed]:
    n_files = n_folders = 0
    folders = [os.fspath(folder)]
    while folders:
        place = folders.pop()
        try:
            names, below = _content(place)
        except OSError as error:
            yield Listed(place, f"Cannot list {place}: {error.strerror or error}; check its permissions.")
            n_files += 1
            continue
        for name in names:
            yield Listed(os.path.join(place, name))
        n_files, n_folders = n_files + len(names), n_folders + len(below)
        if recursive:
            folders += [os.path.join(place, name) for name in reversed(below)]
    if not n_files:
        advice = "; add --recursive for those in its folders" if n_folders and not recursive else ""
        yield Listed(folder, f"{folder} has no files{' of its own' if advice else ''}{advice}.")


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or was left by an operating system.

    >>> [name for name in (".DS_Store", "cat.png", "Thumbs.db", "__MACOSX") if not is_hidden(name)]
    ['cat.png']
    """
    return name.startswith(".") or name in LEFT_BY_SYSTEMS


def _content(folder: str) -> tuple[list[str], list[str]]:
    """Return the names of the files and of the folders in a folder, sorted."""
    names, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_hidden(entry.name):
                continue
            if not entry.is_dir():
                names.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
    return sorted(names), sorted(folders)


def decoded_batches(
    files: Iterable[Listed],
    read: Callable[[str], np.ndarray],
    image_shape: tuple[int, ...],
    threads: int = 1,
) -> Iterator[Batch]:
    """Yield batches of decoded pictures, in order; threads decode the next ones while a batch is used.

    Parameters
    ----------
    files : iterable of Listed
        What to read; it is asked for no more than a few batches ahead.
    read : callable
        Function from a path to an image of `image_shape`; raises ImageError for a bad picture.
    image_shape : tuple of int
        Shape of an image.
    threads : int
        Number of threads that decode.

    Yields
    ------
    Batch
        Pictures, and the errors of those that cannot be read.
    """
    size = max(1, min(AT_ONCE, LARGEST_BATCH // (8 * math.prod(image_shape))))
    files = iter(files)

    def attempt(file: Listed) -> np.ndarray | str:
        try:
            return file.problem or read(file.path)
        except ImageError as error:
            return str(error)

    pool = ThreadPoolExecutor(threads)
    try:
        ahead: deque[tuple[str, Future]] = deque()
        while True:
            missing = size * (1 + AHEAD) - len(ahead)
            ahead.extend((file.path, pool.submit(attempt, file)) for file in islice(files, missing))
            if not ahead:
                return
            some = [ahead.popleft() for _ in range(min(size, len(ahead)))]
            yield _batch([path for path, _ in some], [future.result() for _, future in some], image_shape)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _batch(paths: list[str], found: list[np.ndarray | str], image_shape: tuple[int, ...]) -> Batch:
    images = [image for image in found if not isinstance(image, str)]
    errors = [image if isinstance(image, str) else "" for image in found]
    return Batch(paths, errors, np.array(images).reshape(-1, *image_shape))
