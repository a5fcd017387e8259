"""What to do about an error of the operating system."""

from __future__ import annotations

import errno

ADVICE = {
    "ENOSPC": "free disk space",
    "EDQUOT": "your disk quota is used up: delete files",
    "EFBIG": "the file system does not take files this large: use another disk",
    "EACCES": "check the permissions of the file and its folder",
    "EPERM": "check the permissions of the file and its folder",
    "EROFS": "the file system is read-only: use another place",
    "ENOENT": "check the path",
    "ENOTDIR": "a part of the path is a file: check the path",
    "EISDIR": "it is a folder: give the path of a file",
    "ENAMETOOLONG": "use a shorter name",
    "ELOOP": "its symbolic links form a loop: give the path of the file itself",
    "EMFILE": "too many files are open: raise the limit with 'ulimit -n'",
    "ENFILE": "too many files are open: close other programs",
    "ENOMEM": "close other programs, or use smaller images or a smaller --batch-size",
    "EAGAIN": "too many processes or threads: close other programs, or use fewer --threads",
    "EBUSY": "it is in use by another program: try again later",
    "ETXTBSY": "it is in use by another program: try again later",
    "EIO": "the disk or its connection fails: check it",
    "ESTALE": "the network drive has changed: try again",
    "ETIMEDOUT": "check the network connection, and try again",
    "ECONNREFUSED": "check the network connection, and try again",
    "ECONNRESET": "check the network connection, and try again",
    "ENETUNREACH": "check the network connection, and try again",
}


def advice_for(error: OSError) -> str:
    """Return what to do about an error.

    Examples
    --------
    >>> advice_for(OSError(errno.ENOSPC, "No space left on device"))
    'free disk space'
    """
    return ADVICE.get(errno.errorcode.get(error.errno or 0, ""), "check the path and the disk")
