"""Is there room? Estimates are compared with the free disk space or the memory before anything is made."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path

from tigra.errors import DatasetError, UsageError
from tigra.options import LARGEST_IMAGE

WORTH_SAYING = 10**9  # bytes of decoded pictures
SPARE = 200 * 10**6  # bytes that stay free


def in_words(n_bytes: float) -> str:
    """A number of bytes for a message.

    >>> in_words(2_500_000_000), in_words(80_000)
    ('2.5 GB', '0.1 MB')
    """
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"


def check_disk(folder: Path, n_bytes: int, what: str, advice: str) -> None:
    """Raise DatasetError if n_bytes do not fit into the file system of a folder, which need not exist yet."""
    place = Path(folder).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    try:
        free = shutil.disk_usage(place).free
    except OSError:  # writing will say why
        return
    if n_bytes > free - SPARE:
        raise DatasetError(f"{what} would take {in_words(n_bytes)}, but {folder} has {in_words(free)} free; {advice}.")


def check_memory(n_bytes: int, what: str, advice: str) -> None:
    """Raise DatasetError if n_bytes are more than the machine's memory."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on this system
        return
    if n_bytes > memory:
        raise DatasetError(
            f"{what} would take {in_words(n_bytes)}, but the machine has {in_words(memory)} of memory; {advice}."
        )


def check_room(cache: Path, n_pictures: int, size: tuple[int, ...]) -> None:
    """Raise an error if decoded pictures do not fit on the disk, or are too large for any network."""
    what, n_bytes = f"{n_pictures} pictures of {size[0]}x{size[1]} pixels", decoded_bytes(n_pictures, size)
    check_disk(cache, n_bytes, what, "choose a smaller --size, or set TIGRA_CACHE to a folder with more room")
    if size[0] * size[1] > LARGEST_IMAGE:
        raise UsageError(
            f"{what} would take {in_words(n_bytes)}, and no network takes images of more than {LARGEST_IMAGE:,} pixels;"
            " choose a smaller --size."
        )


def decoded_bytes(n_pictures: int, size: tuple[int, ...]) -> int:
    """Return the size of decoded pictures: two bytes per pixel, or six for colour."""
    return 2 * n_pictures * math.prod(size)
