"""Download the raw data sets, from several mirrors; only complete files are kept.

A file arrives under a temporary name. It gets its own once its SHA-256 is verified, and is removed otherwise, also
on Ctrl-C; what a killed process leaves is removed by the next download to the same folder. If no SHA-256 is
published, all pictures must be present and open. Then the SHA-256 is saved next to the file, so that
`tigra data verify` detects later damage. It cannot detect whether the file was correct in the first place.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from tigra.datasets.archives import Limits
from tigra.datasets.sources import Source, SourceFile, check, source_named
from tigra.errors import DatasetError, UsageError
from tigra.files.atomic import TEMPORARY, replace_file
from tigra.files.cache import cache_folder
from tigra.files.temporary import ABANDONED, remove_leftovers, temporary_file

Report = Callable[[str, int, int], None]  # file name, bytes so far, bytes in total (0 if unknown)


def fetch(
    source: Source | str,
    mirror: str | None = None,
    folder=None,
    on_progress: Report | None = None,
    timeout: float = 30.0,
    files: Sequence[str] | None = None,
) -> list[Path]:
    """Download the files of a source that are missing or damaged.

    Parameters
    ----------
    source : Source or str
        The source, or its name.
    mirror : str, optional
        URL of a folder with the files, tried before the official servers.
    folder : path, optional
        Where to put the files; by default a subfolder of `cache_folder()`.
    on_progress : callable, optional
        Called with (file name, bytes so far, bytes in total or 0).
    timeout : float
        Seconds to wait for a server that sends nothing.
    files : sequence of str, optional
        Names of the files; by default all that are needed, for ETH-80 the smaller archive.

    Returns
    -------
    list of Path

    Raises
    ------
    DatasetError
        If no server provides a file, with a reason for each server.
    """
    source = source if isinstance(source, Source) else source_named(source)
    if mirror is not None and not _is_address(mirror):
        raise UsageError(f"mirror must be a URL that begins with http:// or https://, got {mirror!r}.")
    chosen = _chosen(source, files)
    folder = Path(folder).expanduser() if folder is not None else cache_folder() / source.name
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder, TEMPORARY)
    _remove_old_parts(folder, chosen)
    try:
        return [_fetched(file, mirror, folder, on_progress, timeout) for file in chosen]
    except DatasetError as error:
        wanted = [file.name for file in chosen if not _is_right(folder / file.name)]
        raise DatasetError(f"{error} Download {', '.join(wanted)} by hand and put it into {folder}.") from error
    finally:
        for place in made:
            with suppress(OSError):
                place.rmdir()  # fails unless it is empty


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(map(str.isspace, text))
    except ValueError:
        return False


def _chosen(source: Source, names: Sequence[str] | None) -> tuple[SourceFile, ...]:
    if not names:
        return source.files if source.needs_all else source.files[:1]
    known = {file.name: file for file in source.files}
    for name in names:
        if name not in known:
            raise UsageError(f"{source.name} has no file {name!r}; choose from {', '.join(known)}.")
    return tuple(known[name] for name in names)


def _fetched(file: SourceFile, mirror: str | None, folder: Path, on_progress, timeout: float) -> Path:
    """Return the path of a verified file, downloaded from the first mirror that provides it."""
    path = folder / file.name
    if _is_right(path):
        return path
    failures = []
    for address in ([mirror] if mirror else []) + list(file.mirrors):
        url = f"{address.rstrip('/')}/{file.name}"
        try:
            _download(url, file, path, on_progress, timeout)
            return path
        except _Failed as error:
            failures.append(f"{url}: {error}")
    tried = "; ".join(failures) or "no server is known, give one with --mirror"
    raise DatasetError(f"Could not get {file.name} ({tried}).")


def _is_right(path: Path) -> bool:
    try:
        return path.is_file() and bool(check(path))
    except DatasetError:
        return False


class _Failed(Exception):
    """The reason why a mirror did not provide the file."""


def _remove_old_parts(folder: Path, files: Sequence[SourceFile]) -> None:
    """Delete what killed processes of version 0.1 left, which had no locks."""
    with suppress(OSError):
        for path in folder.glob("*.part"):
            is_ours = any(re.fullmatch(rf"{re.escape(file.name)}\.\d+\.part", path.name) for file in files)
            if is_ours and time.time() - path.lstat().st_mtime > ABANDONED:
                path.unlink()


def _download(url: str, file: SourceFile, path: Path, on_progress, timeout: float) -> None:
    """Download and verify `path` from one URL; on failure leave it unchanged and raise _Failed."""
    import pooch  # imported here because it is slow
    import requests

    with temporary_file(path.parent, TEMPORARY) as (opened, temporary):
        target = _Bounded(opened, file, on_progress)
        headers = {"Accept-Encoding": "identity"}  # else requests would unpack the file
        get = pooch.HTTPDownloader(target, chunk_size=1 << 14, timeout=timeout, headers=headers)
        try:
            get(url, target, None)
        except (requests.RequestException, ValueError) as error:
            raise _Failed(_reason(error)) from error
        if file.size not in (None, target.n_bytes):
            raise _Failed(f"got {target.n_bytes} bytes instead of {file.size}, the file may be compressed differently")
        if file.sha256 not in (None, target.digest.hexdigest()):
            raise _Failed("wrong SHA-256")
        opened.flush()
        os.fsync(opened.fileno())
        if file.sha256 is None:
            _check_as(path.name, str(temporary))
        temporary.chmod(0o644)  # temporary files are private, data is readable by all
        if os.name == "nt":
            opened.close()  # Windows does not rename open files
        _name(temporary, path, file, target.digest.hexdigest())


def _check_as(name: str, temporary: str) -> None:
    """Check the content of a temporary file; raise _Failed if it is wrong."""
    try:
        check(Path(temporary))
    except DatasetError as error:
        raise _Failed(str(error).replace(temporary, name)) from error


def _name(arrived: Path, path: Path, file: SourceFile, total: str) -> None:
    """Move a verified file to its place; save its SHA-256 if none is published."""
    kept = path.with_name(path.name + ".sha256")
    kept.unlink(missing_ok=True)  # outdated if we are interrupted after the next line
    arrived.replace(path)
    if file.sha256 is None:
        replace_file(kept, f"{total}  {path.name}\n".encode())


class _Bounded:
    """A file for writing that refuses more bytes than published, sums them up, and reports progress.

    pooch also uses it as its progress bar, and sets `total` to the size that the server announces.
    """

    def __init__(self, file: BinaryIO, expected: SourceFile, on_progress: Report | None):
        self.file, self.expected, self.on_progress = file, expected, on_progress
        self.digest = hashlib.sha256()
        self.n_bytes, self.total, self.most = 0, 0, expected.size or Limits().total

    def write(self, piece: bytes) -> None:
        self.n_bytes += len(piece)
        if self.n_bytes > self.most:
            raise _Failed(f"got more than {self.most} bytes")
        self.file.write(piece)
        self.digest.update(piece)
        if self.on_progress:
            self.on_progress(self.expected.name, self.n_bytes, self.expected.size or self.total)

    def flush(self, *_) -> None:
        """Do nothing; pooch would flush after every chunk."""

    update = reset = close = flush


def _reason(error: Exception) -> str:
    """Describe an error of requests in a few words."""
    import requests

    if isinstance(error, requests.HTTPError):
        return f"the server answers {error.response.status_code} {error.response.reason}".rstrip()
    if "timed out" in str(error):
        return "the server sends nothing"
    if isinstance(error, requests.exceptions.ChunkedEncodingError) or "aborted" in str(error):
        return "the connection was cut"
    return "no connection" if isinstance(error, requests.ConnectionError) else "an answer without sense"
