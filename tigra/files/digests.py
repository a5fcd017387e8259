"""SHA-256 of many files, cached: files that have not changed are not read again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from tigra.files.atomic import replace_file
from tigra.files.checked_json import packed, unpacked
from tigra.files.regular import open_regular

LARGEST_FILE = 512 * 2**20  # bytes; larger ones are not read
SETTLED = 2_000_000_000  # nanoseconds; a more recent file might change again within its time stamp
SUM = 64  # length of a SHA-256; other texts say why there is none


def digests_of(
    folder: Path,
    files: list,
    cache: Path,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> list[str]:
    """Return the SHA-256 of each of `files` (with .path and .name), or the reason why it cannot be read.

    As in the index of git, a cached digest is used if size and times of a file are unchanged.
    """
    place = _place(folder, cache)
    known, fresh, digests = _remembered(place), {}, []
    now = time.time_ns()
    for number, file in enumerate(files):
        state = _state(file.path)
        if isinstance(state, str):
            digest = state
        elif (entry := known.get(file.name)) and entry[:-1] == state:
            digest = entry[-1]
        else:
            digest = _digest(file.path)
        digests.append(digest)
        if len(digest) == SUM and not isinstance(state, str) and max(state[1:]) < now - SETTLED:
            fresh[file.name] = [*state, digest]
        on_progress("looking at files", number + 1, len(files))  # may raise to stop
    if any(known.get(name) != entry for name, entry in fresh.items()):
        _remember(place, (known if len(known) < 4 * len(files) else {}) | fresh)
    return digests


def forget_digests(folder: Path, cache: Path) -> None:
    """Delete the cached digests of a folder, so that all files are read again."""
    with contextlib.suppress(OSError):
        _place(folder, cache).unlink()


def _place(folder: Path, cache: Path) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return cache / "folders" / f"{name}.json"


def _state(path: Path) -> list[int] | str:
    """Return [size, modification time, change time], or why the file cannot be read."""
    try:
        facts = os.stat(path)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    if not stat.S_ISREG(facts.st_mode):
        return "not a regular file"
    if facts.st_size > LARGEST_FILE:
        return "too large"
    return [facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns]


def _digest(path: Path) -> str:
    try:
        with open_regular(path) as file:
            digest = hashlib.sha256()
            while block := file.read(2**20):
                digest.update(block)
            return digest.hexdigest()
    except OSError as error:
        return f"unreadable: {error.strerror or error}"


def _remembered(place: Path) -> dict:
    """Read the cached digests; return an empty dict if they are damaged."""
    try:
        return unpacked(place.read_bytes(), place.stem)
    except (OSError, ValueError):
        return {}


def _remember(place: Path, known: dict) -> None:
    """Save the digests; on failure, files are just read again next time."""
    with contextlib.suppress(OSError):
        place.parent.mkdir(parents=True, exist_ok=True)
        replace_file(place, packed(known, place.stem))
