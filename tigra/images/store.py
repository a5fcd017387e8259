"""Decode pictures once, into a memory-mapped file; a folder may be larger than memory.

A store is a folder with `pixels.npy`, a memory-mapped array (n, height, width) of 16-bit grey levels, or of colours
with a fourth axis, and `index.json`, which lists the pictures. It is in the user's cache folder, under a hash of
the pictures and the options of reading. It is built under a temporary name and renamed when complete. The index has
a checksum and the digest of each picture, which is checked when the picture is first used. A damaged store is made
anew. It can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from tigra.errors import DatasetError, ImageError
from tigra.files.checked_json import packed, unpacked
from tigra.files.room import WORTH_SAYING, decoded_bytes, in_words
from tigra.files.temporary import remove_leftovers, temporary_folder
from tigra.images.pictures import GREY_LEVELS, decode_image, reader_version
from tigra.images.stored_pixels import StoredPixels, npy_header, pixel_digest
from tigra.images.transforms import rotate

FORMAT = 1  # increase when decoding changes, so that old stores are not used
AT_ONCE = 256  # pictures decoded ahead of the writing
LARGEST_PART = 2**28  # bytes of decoded pictures that wait to be written
BUILDING = ".building-"  # prefix of unfinished stores


class LazyImages:
    """Images (n, height, width) or (n, height, width, 3) that are computed when indexed, by slice or indices.

    Subclasses implement `take(rows)`, which returns the images with these indices.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, shape: tuple[int, ...]):
        self.shape, self.ndim = shape, len(shape)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """Total number of pixels."""
        return int(np.prod(self.shape))

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the images with these indices as an array."""
        raise NotImplementedError

    def __getitem__(self, key) -> np.ndarray:
        rows = np.arange(len(self))[key]
        return self.take(np.atleast_1d(rows)).reshape(rows.shape + self.shape[1:])

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)


Images: TypeAlias = np.ndarray | LazyImages


class StoredImages(LazyImages):
    """Rows of an array of 16-bit pixels, as images in [0, 1]."""

    def __init__(self, pixels: np.ndarray | StoredPixels, rows: np.ndarray):
        super().__init__((len(rows), *pixels.shape[1:]))
        self.pixels, self.rows = pixels, np.asarray(rows)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the grey levels of the images with these indices."""
        return self.pixels[self.rows[rows]] / np.float64(GREY_LEVELS)


class TurnedImages(LazyImages):
    """Images rotated, each by its own angle, by `tigra.images.transforms.rotate`."""

    def __init__(self, images, degrees: np.ndarray, interpolation: str = "cubic", background: str = "black"):
        super().__init__(images.shape)
        self.images, self.degrees = images, np.asarray(degrees)
        self.interpolation, self.background = interpolation, background

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the images with these indices, rotated."""
        return rotate(self.images[rows], self.degrees[rows], self.interpolation, background=self.background)


class ImageStore:
    """Decoded pictures.

    Attributes
    ----------
    pixels : StoredPixels, shape (n, height, width) or (n, height, width, 3)
        Levels, memory-mapped.
    names : list of str
        Names of the pictures, in the order of the pixels.
    digests : list of str
        Hash of the pixels of each picture; duplicates have equal hashes.
    skipped : list of (str, str)
        Name and reason of pictures that could not be decoded.
    """

    def __init__(self, folder: Path, key: str):
        index = unpacked((folder / "index.json").read_bytes(), key)
        self.names, self.digests, self.skipped = index["names"], index["digests"], index["skipped"]
        self.pixels = StoredPixels(folder / "pixels.npy", self.digests, tuple(index["shape"]))


def store_key(
    contents: Iterable[tuple[str, str]], shape: tuple[int, ...], invert: bool, background: str = "black"
) -> str:
    """Return the name of the store of pictures given as (name, hash of the file), for these options."""
    frame = "" if background == "black" else f" {background}"
    words = f"{FORMAT} {'x'.join(map(str, shape))} {invert} {reader_version()}{frame}\n"
    digest = hashlib.sha256(words.encode())
    for name, content in contents:
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + content.encode() + b"\n")
    return digest.hexdigest()[:32]


def open_store(cache: Path, key: str) -> ImageStore | None:
    """Return the store of this key, or None if it is missing or damaged."""
    try:
        return ImageStore(cache / "images" / key, key)
    except (OSError, ValueError):
        return None


def stored_pictures(
    cache: Path,
    key: str,
    pictures: Callable[[], Iterator[tuple[str, bytes | Callable[[], bytes]]]],
    n_pictures: int,
    shape: tuple[int, ...],
    invert: bool = False,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    background: str = "black",
) -> ImageStore:
    """Return the store of this key, from the cache or newly built; should it prove damaged, it is built again.

    `pictures` is a function that returns the iterator; the other parameters are those of `build_store`.
    """

    def remade() -> StoredPixels:
        _remove(cache / "images" / key)
        return build_store(cache, key, pictures(), n_pictures, shape, invert, threads, background=background).pixels

    store = open_store(cache, key)
    if store is None:
        store = build_store(cache, key, pictures(), n_pictures, shape, invert, threads, on_progress, background)
    store.pixels.remake = remade
    return store


def build_store(
    cache: Path,
    key: str,
    pictures: Iterator[tuple[str, bytes | Callable[[], bytes]]],
    n_pictures: int,
    shape: tuple[int, ...],
    invert: bool = False,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    background: str = "black",
) -> ImageStore:
    """Decode pictures into a new store.

    Parameters
    ----------
    cache : Path
        The cache folder.
    key : str
        Name of the store, from `store_key`.
    pictures : iterator of (name, content)
        Content is bytes, or a function that reads them. It is called when needed, to save memory.
    n_pictures : int
        Number of pictures, for the progress.
    shape, invert, background
        As for `read_image`.
    threads : int
        Number of threads.
    on_progress : callable
        Called with (description, number done, total).

    Returns
    -------
    ImageStore
        Pictures that cannot be decoded, or whose function raises ImageError, are listed in `skipped`.
    """
    final = cache / "images" / key
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(final.parent, BUILDING)
        with temporary_folder(final.parent, BUILDING) as building:
            decode = partial(decode_image, shape=shape, invert=invert, background=background)
            _fill(building, key, pictures, n_pictures, shape, decode, threads, on_progress)
            building.chmod(0o755)  # a cache may be shared
            return _named(building, final, key)
    except OSError as error:
        raise DatasetError(_cannot_write(cache, error)) from error


def _named(building: Path, final: Path, key: str) -> ImageStore:
    """Rename a finished store and return it, or the equal one of a process that was faster."""
    for _ in range(10):
        try:
            building.rename(final)
        except OSError:
            if not final.exists():
                raise
        try:
            return ImageStore(final, key)
        except (OSError, ValueError):  # damaged: make room
            _remove(final)
    raise DatasetError(f"{final} is being changed by other processes; set TIGRA_CACHE to a folder of your own.")


def _remove(path: Path) -> None:
    """Delete a damaged store, whatever it is by now."""
    with contextlib.suppress(OSError):
        path.unlink()  # a file or a link in its place
    shutil.rmtree(path, ignore_errors=True)


def _cannot_write(cache, error):
    return f"Cannot save decoded pictures in {cache}: {error.strerror or error}; set TIGRA_CACHE to another folder."


def _decoded(pool, decode, pictures, most):
    """Yield the results of `decode`, computed in parts of limited size."""
    while part := list(islice(pictures, min(AT_ONCE, most))):
        yield from pool.map(decode, part)


def _fill(folder, key, pictures, n_pictures, shape, decode_one, threads, on_progress):
    """Write pixels.npy and index.json."""
    index = {"shape": list(shape), "names": [], "digests": [], "skipped": []}
    n_bytes = decoded_bytes(n_pictures, shape)
    what = "decoding pictures" + (f" into {in_words(n_bytes)}" if n_bytes >= WORTH_SAYING else "")

    def decode(picture):
        name, content = picture
        try:
            content = content() if callable(content) else content
            return name, np.rint(decode_one(content, name) * GREY_LEVELS).astype("<u2")
        except ImageError as error:
            return name, str(error)

    with (
        ThreadPoolExecutor(threads) as pool,
        open(folder / "pixels.npy", "wb") as file,
        warnings.catch_warnings(),  # here, because it is not thread-safe
    ):
        warnings.simplefilter("ignore")
        file.write(npy_header((0, *shape)))
        on_progress(what, 0, n_pictures)
        try:
            for name, pixels in _decoded(pool, decode, pictures, max(threads, LARGEST_PART // (2 * math.prod(shape)))):
                if isinstance(pixels, str):
                    index["skipped"].append([name, pixels])
                else:
                    file.write(pixels.tobytes())
                    index["names"].append(name)
                    index["digests"].append(pixel_digest(pixels))
                done = len(index["names"]) + len(index["skipped"])
                on_progress(what, done, n_pictures)  # may raise to stop
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # the others need not be decoded
            raise
        file.seek(0)
        file.write(npy_header((len(index["names"]), *shape)))
        file.flush()
        os.fsync(file.fileno())
    (folder / "index.json").write_bytes(packed(index, key))
