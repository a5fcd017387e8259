"""Compiled kernels on disk, as numba keeps them, but with checksums.

Numba believes its cache: a damaged index ends in EOFError or a pickle error, damaged code in an error of LLVM or
a crash, and a program killed between two writes leaves an index that points to the code of older sources.
Here every file has a checksum, and every compiled function says which source and which types it was compiled
for. What is in doubt is removed and compiled anew.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import itertools
import os
import pickle
import re
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from numba import __version__ as numba_version
from numba.core.caching import FunctionCache, IndexDataCacheFile

from tigra.errors import CacheWarning

# Numba reads its version from an index first. Plain numba takes this for another version, and leaves the rest alone.
HEADER = pickle.dumps(f"{numba_version} with checksums", protocol=4)
VERSION = re.compile(rb"\x80[\x04-\x09]\x95.{8}\x8c.[0-9]+\.[ -~]*\x94\.", re.DOTALL)  # the pickle of a version
N_BYTES = 32  # of a checksum
ABANDONED = 3600  # seconds after which a file that numba has not renamed is a leftover of a killed process

_told: list[str] = []  # folders that the user was told of; one is enough
_when_missing: list[Callable[[], None]] = []  # by `when_missing`

if not all(hasattr(IndexDataCacheFile, name) for name in ("_data_name", "_data_path", "_dump", "_open_for_write")):
    raise ImportError("the cache of this numba is made in another way")


class DamagedError(Exception):
    """A file does not have the content that was written."""


class CheckedFile(IndexDataCacheFile):
    """Index and data files of one function, with checksums."""

    def save(self, key, data) -> None:
        """Save compiled code; `key` has the types and the processor."""
        try:
            overloads = self._load_index()
        except DamagedError:  # it could not be removed
            overloads = {}
        names = map(self._data_name, itertools.count(1))
        name = overloads.get(key) or next(name for name in names if name not in set(overloads.values()))
        self._write(name, (self._label(key), data))
        if key not in overloads:
            self._save_index({**overloads, key: name})

    def load(self, key) -> Any | None:
        """Return compiled code, or None if there is none for this key."""
        name = self._load_index().get(key)
        if name is None:
            return None
        found = self._read(name)
        if found is None or found[0] != self._label(key):  # processes that save at once may choose the same name
            return None
        return found[1]

    def remove(self) -> None:
        """Delete the files of this function, as far as possible."""
        base = glob.escape(self._index_path.removesuffix(".nbi"))
        for path in [self._index_path, *glob.glob(f"{base}.*.nbc")]:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def remove_leftovers(self) -> None:
        """Delete what processes have left that were killed while they saved."""
        base = glob.escape(self._index_path.removesuffix(".nbi"))
        for path in glob.glob(f"{base}*.tmp.*"):
            with contextlib.suppress(OSError):
                if time.time() - os.stat(path).st_mtime > ABANDONED:
                    os.unlink(path)

    def _label(self, key) -> tuple:
        return self._index_name, self._source_stamp, key

    def _load_index(self) -> dict:
        stamp, overloads = self._read(self._index_name) or (None, {})
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict) -> None:
        self._write(self._index_name, (self._source_stamp, overloads))

    def _read(self, name: str) -> tuple | None:
        """Return what a file holds, or None if there is none of this version; raise DamagedError if it is damaged."""
        try:
            with open(self._data_path(name), "rb") as file:
                content = file.read()
        except OSError:  # missing or not readable
            return None
        start = len(HEADER) + N_BYTES
        if content[: len(HEADER)] == HEADER and content[len(HEADER) : start] == _checksum(content[start:]):
            return pickle.loads(content[start:])
        if _is_of_another_version(content):
            return None
        raise DamagedError(self._data_path(name))

    def _write(self, name: str, content: tuple) -> None:
        packed = self._dump(content)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(HEADER + _checksum(packed) + packed)


class CheckedCache(FunctionCache):
    """Cache of one function: damage and folders that cannot be written cost time, and nothing else."""

    def __init__(self, function):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = CheckedFile(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig, target_context):
        """Return the compiled function for these types, or None."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # damaged, or made by another build of numba or LLVM: there are many kinds of error
            self._cache_file.remove()
            _tell_once(self._cache_path)
            found = None
        if found is None and _when_missing:
            _when_missing.pop()()
        return found

    def save_overload(self, sig, data) -> None:
        """Save a compiled function, if possible."""
        with contextlib.suppress(OSError):  # a full disk, or a folder that is write-protected by now
            self._cache_file.remove_leftovers()
            super().save_overload(sig, data)


@contextlib.contextmanager
def when_missing(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` when the first kernel is not found and has to be compiled, before that is done; once at most."""
    _when_missing[:] = [action]
    try:
        yield
    finally:
        _when_missing.clear()


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=N_BYTES).digest()


def _is_of_another_version(content: bytes) -> bool:
    """Whether this is an index of another numba, or of one without checksums."""
    return not content.startswith(HEADER) and VERSION.match(content) is not None


def _tell_once(folder: str) -> None:
    """Warn, once in the life of the process."""
    if not _told:
        _told.append(folder)
        text = f"Compiled kernels in {folder} were damaged; damaged files are removed, and compiled anew."
        warnings.warn(text, CacheWarning, stacklevel=2)
