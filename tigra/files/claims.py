"""Claims: a lock on a name, which one process holds at a time, and which a dead process loses.

`claim` is for a run that one of several processes does, `alone` for a file that all of them change.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from tigra.files.temporary import try_lock

PAUSE = 0.01  # seconds between two looks at a lock that another process holds


@contextlib.contextmanager
def claim(path) -> Iterator[bool]:
    """Hold the lock file `path`; yields False if another process holds it.

    The system releases a lock when its owner ends, however it ends. The file is deleted at the end; one that a killed
    process left behind is claimed as if it were new. Where there are no locks, every claim succeeds.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "lock")
    >>> with claim(path) as first, claim(path) as second:
    ...     first, second
    (True, False)
    """
    descriptor = _locked(path)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)  # before the lock is released, or the next owner would lose its file
        os.close(descriptor)


@contextlib.contextmanager
def alone(path) -> Iterator[None]:
    """Hold the lock file `path`; waits while another process holds it."""
    while True:
        with claim(path) as is_mine:
            if is_mine:
                yield
                return
        time.sleep(PAUSE)


def _locked(path) -> int | None:
    """Descriptor of the lock file; None if another process has it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        if try_lock(descriptor) is False:
            os.close(descriptor)
            return None
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # its owner deleted it between our two calls


def _is_at(descriptor: int, path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
