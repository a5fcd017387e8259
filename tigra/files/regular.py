"""Open files that must be regular: opening a pipe or a device could block for ever."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO


class NotRegularError(OSError):
    """A pipe, device or folder where a regular file was expected."""


def open_regular(path) -> BinaryIO:
    """Open a file for reading; raise NotRegularError if it is not a regular file.

    The check is made on the open file, so it holds even if another process replaces the file by a pipe.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError("it is not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
