"""Atomic writes: files are written under a temporary name, and renamed when complete."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tigra.errors import ModelFileError
from tigra.files.advice import advice_for
from tigra.files.temporary import remove_leftovers, temporary_file

TEMPORARY = ".tigra-"  # prefix of temporary files
_swept: set[Path] = set()  # folders in which this process has looked for leftovers


def check_writable(path, what: str = "the model", option: str = "--out", source=None) -> None:
    """Raise ModelFileError if `write_atomically` could not write to path, or if path is the file `source`.

    `option` is the option to change.
    """
    try:
        obstacle = _obstacle(os.path.realpath(path))
        if not obstacle and source is not None and os.path.exists(path) and os.path.samefile(path, source):
            obstacle = "it is the model, which would be lost"
    except OSError as error:
        obstacle = error.strerror
    if obstacle:
        raise ModelFileError(f"Cannot write {what} to {path}: {obstacle}; choose another file with {option}.")


def _obstacle(path: str) -> str | None:
    """Return why path cannot be written, or None; may raise OSError instead."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            return "it is a folder"
        if not stat.S_ISREG(mode):
            return "it is not a regular file"
        if not os.access(path, os.W_OK):
            return "it is write-protected"
    with tempfile.TemporaryFile(dir=os.path.dirname(path)):
        return None


def write_atomically(path, content: bytes, option: str = "--out") -> None:
    """Write content to path so that a crash leaves either the old file or the new one."""
    try:
        replace_file(path, content)
    except OSError as error:
        what = f"Cannot write {os.path.realpath(path)}: {error.strerror or error}"
        raise ModelFileError(f"{what}; {advice_for(error)}, or choose another file with {option}.") from error


def replace_file(path, content: bytes) -> None:
    """Do the work of `write_atomically`; raise OSError. Leftovers of killed processes beside path are deleted."""
    with replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def replacing(path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of path at the end of the block; after an error, path stays as it was.

    If the block ends by Ctrl-C, what was written so far takes the place of path, too.
    """
    path = Path(os.path.realpath(path))  # replace the target of a symbolic link
    if path.parent not in _swept:
        _swept.add(path.parent)
        remove_leftovers(path.parent, TEMPORARY)
    with temporary_file(path.parent, TEMPORARY) as (file, temporary):
        try:
            yield file
        except KeyboardInterrupt:
            _rename(file, temporary, path)
            raise
        _rename(file, temporary, path)
    _sync_folder(path.parent)


def _rename(file: BinaryIO, temporary: Path, path: Path) -> None:
    """Write a temporary file to the disk, and give it its name."""
    file.flush()
    os.fsync(file.fileno())
    os.chmod(temporary, path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
    if os.name == "nt":
        file.close()  # Windows does not rename open files
    os.replace(temporary, path)


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut, if the system can sync folders."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
