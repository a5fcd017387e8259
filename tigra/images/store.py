"""Pictures decoded once, into a memory-mapped file: a folder may be larger than memory.

A store is a folder with `pixels.npy`, an array (n, height, width) of 16-bit grey levels that is mapped
rather than read, and `index.json`, which tells what lies where. It stands in the user's cache folder
under a name made of the pictures' content and the options of reading, is built under another
name and renamed when it is whole, and can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tigra.errors import DatasetError, ImageError
from tigra.images.pictures import GREY_LEVELS, decode_image, reader_version
from tigra.images.transforms import rotate

FORMAT = 1  # to be raised when pictures are read in another way, so that old stores are not used
AT_ONCE = 256  # pictures decoded between two looks at the progress
N_SAMPLES = 64  # pictures whose pixels are compared with the index when a store is opened
ABANDONED = 24 * 3600  # seconds after which an unfinished store belongs to nobody


class LazyImages:
    """Images (n, height, width) that come into being when they are asked for, by slice or list of numbers.

    `take(rows)`, to be written by subclasses, makes the images with these numbers.
    """

    dtype = np.dtype(np.float64)
    ndim = 3

    def __init__(self, shape: tuple[int, int, int]):
        self.shape = shape

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """How many pixels there are in all."""
        return int(np.prod(self.shape))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The images with these numbers, as an array."""
        raise NotImplementedError

    def __getitem__(self, key) -> np.ndarray:
        rows = np.arange(len(self))[key]
        return self.take(np.atleast_1d(rows)).reshape(rows.shape + self.shape[1:])

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)


Images: TypeAlias = np.ndarray | LazyImages


class StoredImages(LazyImages):
    """Some rows of a file of 16-bit pixels, as images in [0, 1]."""

    def __init__(self, pixels: np.ndarray, rows: np.ndarray):
        super().__init__((len(rows), *pixels.shape[1:]))
        self.pixels, self.rows = pixels, np.asarray(rows)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Grey levels of the images with these numbers."""
        return self.pixels[self.rows[rows]] / np.float64(GREY_LEVELS)


class TurnedImages(LazyImages):
    """Images turned, each by its own angle, as by `tigra.images.transforms.rotate`."""

    def __init__(self, images, degrees: np.ndarray, interpolation: str = "cubic"):
        super().__init__(images.shape)
        self.images, self.degrees, self.interpolation = images, np.asarray(degrees), interpolation

    def take(self, rows: np.ndarray) -> np.ndarray:
        """The images with these numbers, turned."""
        return rotate(self.images[rows], self.degrees[rows], self.interpolation)


class ImageStore:
    """Decoded pictures.

    pixels : (n, height, width) 16-bit grey levels, mapped
    names : of the pictures, in the order of the pixels
    digests : for each picture a hash of its pixels; equal ones are duplicates
    skipped : (name, reason) of what could not be decoded
    """

    def __init__(self, folder: Path):
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        self.names, self.digests, self.skipped = index["names"], index["digests"], index["skipped"]
        n_images, shape = len(self.names), tuple(index["shape"])
        if n_images:
            self.pixels = np.load(folder / "pixels.npy", mmap_mode="r", allow_pickle=False)
        else:
            self.pixels = np.zeros((0, *shape), np.uint16)
        if self.pixels.shape != (n_images, *shape) or self.pixels.dtype != np.uint16 or len(self.digests) != n_images:
            raise ValueError("the index does not fit the pixels")
        for row in np.unique(np.linspace(0, n_images - 1, min(n_images, N_SAMPLES)).astype(int)):
            if _pixel_digest(self.pixels[row]) != self.digests[row]:
                raise ValueError("the pixels are not those of the index")


def _pixel_digest(pixels: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=16).hexdigest()


def store_key(contents: Iterable[tuple[str, str]], shape: tuple[int, int], invert: bool) -> str:
    """A name for the store of pictures given as (name, hash of the file), read with these options."""
    digest = hashlib.sha256(f"{FORMAT} {shape[0]}x{shape[1]} {invert} {reader_version()}\n".encode())
    for name, content in contents:
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + content.encode() + b"\n")
    return digest.hexdigest()[:32]


def open_store(cache: Path, key: str) -> ImageStore | None:
    """The store of this key, if it is there and whole."""
    try:
        return ImageStore(cache / "images" / key)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


def build_store(
    cache: Path,
    key: str,
    pictures: Iterator[tuple[str, bytes | Callable[[], bytes]]],
    n_pictures: int,
    shape: tuple[int, int],
    invert: bool = False,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> ImageStore:
    """Decode pictures, given as (name, content of the file or a function that reads it), into a new store.

    Memory stays flat: files are read when it is their turn. What cannot be decoded, or whose function
    raises ImageError, is left out, and listed in `skipped`.
    """
    final = cache / "images" / key
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(dir=final.parent, prefix=".building-"))
    except OSError as error:
        raise DatasetError(_cannot_write(cache, error)) from error
    try:
        _remove_abandoned(final.parent)
        _fill(building, pictures, n_pictures, shape, invert, threads, on_progress)
        building.chmod(0o755)  # a cache may be shared
        return _named(building, final)
    except OSError as error:
        raise DatasetError(_cannot_write(cache, error)) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _named(building: Path, final: Path) -> ImageStore:
    """The finished store under its name, or the equal one of a process that was faster."""
    for _ in range(10):
        try:
            building.rename(final)
        except OSError:
            if not final.exists():
                raise
        try:
            return ImageStore(final)
        except (OSError, ValueError, KeyError, TypeError, EOFError):  # damaged: make room
            shutil.rmtree(final, ignore_errors=True)
    raise DatasetError(f"{final} is changed by others all the time; set TIGRA_CACHE to a folder of your own.")


def _remove_abandoned(folder: Path) -> None:
    """Delete what a process that was killed has left behind."""
    for path in folder.glob(".building-*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                shutil.rmtree(path, ignore_errors=True)


def _cannot_write(cache, error):
    return f"Cannot keep decoded pictures in {cache}: {error.strerror or error}; set TIGRA_CACHE to another folder."


def _fill(folder, pictures, n_pictures, shape, invert, threads, on_progress):
    """Write pixels.npy and index.json."""
    height, width = shape
    index = {"shape": [height, width], "names": [], "digests": [], "skipped": []}

    def decode(picture):
        name, content = picture
        try:
            content = content() if callable(content) else content
            return name, np.rint(decode_image(content, name, shape, invert) * GREY_LEVELS).astype("<u2")
        except ImageError as error:
            return name, str(error)

    with (
        ThreadPoolExecutor(threads) as pool,
        open(folder / "pixels.npy", "wb") as file,
        warnings.catch_warnings(),  # here, because it does not work in several threads at a time
    ):
        warnings.simplefilter("ignore")
        _write_header(file, 0, shape)
        done = 0
        while part := list(islice(pictures, AT_ONCE)):
            for name, pixels in pool.map(decode, part):
                if isinstance(pixels, str):
                    index["skipped"].append([name, pixels])
                    continue
                file.write(pixels.tobytes())
                index["names"].append(name)
                index["digests"].append(_pixel_digest(pixels))
            done += len(part)
            on_progress("decoding pictures", done, n_pictures)
        file.seek(0)
        _write_header(file, len(index["names"]), shape)
        file.flush()
        os.fsync(file.fileno())
    (folder / "index.json").write_text(json.dumps(index), encoding="utf-8")


def _write_header(file, n_images, shape):
    """The head of an .npy file, of the same length for any number of images (NumPy leaves room to grow)."""
    header = {"descr": "<u2", "fortran_order": False, "shape": (n_images, *shape)}
    np.lib.format.write_array_header_1_0(file, header)
