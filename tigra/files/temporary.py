"""Temporary files and folders; what a killed process leaves behind is removed by the next one.

The owner holds a lock on what it makes (flock), which the system releases when the process ends, however it ends.
So whatever is not locked was left behind. Where there are no locks, age decides.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

ABANDONED = 24 * 3600  # seconds after which what cannot be locked counts as left behind
N_TRIES = 100
RANDOM = "[a-z0-9_]{8}"  # what tempfile appends to a prefix


@contextlib.contextmanager
def temporary_file(folder: Path, prefix: str) -> Iterator[tuple[BinaryIO, Path]]:
    """Make a file, yield it with its path, and delete it unless it was renamed."""
    for _ in range(N_TRIES):
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=prefix)
        with open(descriptor, "wb") as file:
            try:
                if try_lock(descriptor) is not False and os.path.exists(name):  # else it was taken for a leftover
                    yield file, Path(name)
                    return
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(name)
    raise OSError(errno.EBUSY, "Temporary files are deleted as soon as they are made", os.fspath(folder))


@contextlib.contextmanager
def temporary_folder(folder: Path, prefix: str) -> Iterator[Path]:
    """Make a folder, yield its path, and delete it unless it was renamed."""
    for _ in range(N_TRIES):
        path = Path(tempfile.mkdtemp(dir=folder, prefix=prefix))
        try:
            descriptor = _opened(path) if fcntl else None  # folders cannot be opened on Windows
        except FileNotFoundError:  # it was taken for a leftover before it was locked
            continue
        try:
            if descriptor is None or (try_lock(descriptor) is not False and path.exists()):
                yield path
                return
        finally:
            shutil.rmtree(path, ignore_errors=True)
            if descriptor is not None:
                os.close(descriptor)
    raise OSError(errno.EBUSY, "Temporary folders are deleted as soon as they are made", os.fspath(folder))


def remove_leftovers(folder: Path, prefix: str) -> None:
    """Delete files and folders with this prefix whose owners are gone, as far as possible."""
    wanted = re.compile(re.escape(prefix) + RANDOM)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if wanted.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    _remove_if_left(Path(entry.path))


def _remove_if_left(path: Path) -> None:
    facts = os.lstat(path)
    is_folder = stat.S_ISDIR(facts.st_mode)
    if not is_folder and not stat.S_ISREG(facts.st_mode):
        return  # not ours
    is_old = time.time() - facts.st_mtime > ABANDONED
    descriptor = _opened(path) if fcntl else None
    try:
        has_lock = None if descriptor is None else try_lock(descriptor)
        if has_lock or (has_lock is None and is_old):
            shutil.rmtree(path, ignore_errors=True) if is_folder else os.unlink(path)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(path: Path) -> int:
    """Open a file or folder to lock it; locks of network file systems need files that can be written."""
    how = os.O_RDONLY if path.is_dir() else os.O_RDWR
    return os.open(path, how | os.O_NOFOLLOW | os.O_NONBLOCK)


def try_lock(descriptor: int) -> bool | None:
    """Return True with the lock, False if another process has it, and None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
