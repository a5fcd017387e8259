"""Pixels in a memory-mapped file; each picture is compared with its digest when it is first used."""

from __future__ import annotations

import hashlib
import io
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tigra.errors import CacheWarning, DatasetError

N_TRIES = 3  # a disk may fail


class StoredPixels:
    """Levels (n, height, width) or (n, height, width, 3) of 16 bits, indexed like an array.

    Attributes
    ----------
    remake : callable, optional
        Makes the file anew and returns its StoredPixels; called when a picture does not have its digest.
    """

    dtype = np.dtype("<u2")

    def __init__(self, path: Path, digests: list[str], shape: tuple[int, ...]):
        self.shape = (len(digests), *shape)
        self.path, self.digests = path, digests
        self.remake: Callable[[], StoredPixels] | None = None
        self._file = _mapped(path, self.shape), np.zeros(len(digests), bool)  # pixels, and which are checked
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key) -> np.ndarray:
        is_rows = isinstance(key, np.ndarray) and key.dtype.kind == "i"
        rows = key if is_rows else np.arange(len(self))[key]
        pixels = self._read(np.atleast_1d(rows))
        return pixels.reshape(rows.shape + self.shape[1:])

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)

    @property
    def mapped(self) -> np.ndarray:
        """The file, as it is."""
        return self._file[0]

    def _read(self, rows: np.ndarray) -> np.ndarray:
        for _ in range(N_TRIES):
            file = self._file
            mapped, is_checked = file
            pixels = mapped[rows]  # a copy, so that what is checked is what is used
            new = np.flatnonzero(~is_checked[rows])
            if all(pixel_digest(pixels[place]) == self.digests[rows[place]] for place in new):
                is_checked[rows] = True
                return pixels
            with self._lock:
                if self._file is file:  # no other thread has replaced it
                    self._make_anew()
        raise DatasetError(f"{self.path} is damaged again and again; set TIGRA_CACHE to a folder on another disk.")

    def _make_anew(self) -> None:
        if self.remake is None:
            raise DatasetError(f"The decoded pictures in {self.path} are damaged; delete this file and start again.")
        text = f"Decoded pictures in {self.path.parent} were damaged; they are decoded anew."
        warnings.warn(text, CacheWarning, stacklevel=5)
        made = self.remake()
        if made.digests != self.digests or made.shape != self.shape:
            raise DatasetError("Pictures have changed since they were decoded; start again.")
        self._file = made._file


def pixel_digest(pixels: np.ndarray) -> str:
    """Return the hash of a picture's pixels."""
    return hashlib.blake2b(np.ascontiguousarray(pixels).data, digest_size=16).hexdigest()


def npy_header(shape: tuple[int, ...]) -> bytes:
    """Return the header of an .npy file of 16-bit pixels; its length does not depend on the number of images."""
    file = io.BytesIO()
    header = {"descr": "<u2", "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


def _mapped(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Map a file; raise ValueError if it does not hold an array of this shape."""
    header = npy_header(shape)
    with open(path, "rb") as file:
        if file.read(len(header)) != header or path.stat().st_size != len(header) + 2 * int(np.prod(shape)):
            raise ValueError("the file does not have the pixels of the index")
    if not shape[0]:  # nothing cannot be mapped
        return np.zeros(shape, np.uint16)
    return np.memmap(path, "<u2", "r", len(header), shape)
