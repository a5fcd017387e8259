"""Getting the raw data sets over the network: several mirrors, and nothing kept that is not whole.

pooch downloads to a temporary file, which gets its name only once its SHA-256 is found right, and is
removed otherwise, also on Ctrl-C. Where no SHA-256 is published, all pictures must be there and
open; then the sum is kept beside the file, so that `tigra data verify` can tell later damage. It
cannot tell whether the file was right in the first place.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tigra.datasets.archives import Limits, sha256_of
from tigra.datasets.sources import Source, SourceFile, check, source_named
from tigra.errors import DatasetError, UsageError
from tigra.files.cache import cache_folder

Report = Callable[[str, int, int], None]  # file name, bytes so far, bytes in all (0 if not known)


def fetch(
    source: Source | str,
    mirror: str | None = None,
    folder=None,
    on_progress: Report | None = None,
    timeout: float = 30.0,
    files: Sequence[str] | None = None,
) -> list[Path]:
    """Download what is not yet there of a source; the paths of its files.

    mirror : address of a folder on a server, tried before the published ones
    folder : where the files go, by default a folder of the source's name in `cache_folder()`
    on_progress : function (file name, bytes so far, bytes in all or 0)
    timeout : seconds to wait for a server that sends nothing
    files : names of files, by default all those needed: for ETH-80 the smaller archive

    DatasetError when a file is to be had from no mirror, with a reason for each.
    """
    source = source if isinstance(source, Source) else source_named(source)
    if mirror is not None and not _is_address(mirror):
        raise UsageError(f"A mirror is an address that begins with http:// or https://, got {mirror!r}.")
    chosen = _chosen(source, files)
    folder = Path(folder).expanduser() if folder is not None else cache_folder() / source.name
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return [_fetched(file, mirror, folder, on_progress, timeout) for file in chosen]
    except DatasetError as error:
        wanted = [file.name for file in chosen if not _is_right(folder / file.name)]
        raise DatasetError(f"{error} Get {', '.join(wanted)} by hand, and put it into {folder}.") from error
    finally:
        for place in made:
            with suppress(OSError):
                place.rmdir()  # which does nothing unless it is empty


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
    """The path of a file that is right, downloaded from the first mirror that can give it."""
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
    tried = "; ".join(failures) or "it is on no server that we know of, name one with --mirror"
    raise DatasetError(f"Could not get {file.name} ({tried}).")


def _is_right(path: Path) -> bool:
    try:
        return path.is_file() and bool(check(path))
    except DatasetError:
        return False


class _Failed(Exception):
    """Why a mirror did not give the file, in a few words."""


def _download(url: str, file: SourceFile, path: Path, on_progress, timeout: float) -> None:
    """Write `path` from one address, whole and checked, or leave it as it was; _Failed says why."""
    import pooch  # here, because it is slow to import
    import requests

    arrived = path.with_name(f"{path.name}.{os.getpid()}.part")
    arrived.unlink(missing_ok=True)

    def download(url, temporary, _) -> None:
        """What pooch calls to fill its temporary file."""
        with open(temporary, "wb") as opened:
            target = _Bounded(opened, file, on_progress)
            headers = {"Accept-Encoding": "identity"}  # or requests would unpack the file as it comes
            get = pooch.HTTPDownloader(target, chunk_size=1 << 14, timeout=timeout, headers=headers)
            get(url, target, None)
        if file.size not in (None, target.n_bytes):
            raise _Failed(f"{target.n_bytes} bytes came instead of {file.size}, the file may be packed in another way")
        if file.sha256 is None:
            _check_as(path.name, temporary)
        Path(temporary).chmod(0o644)  # temporary files are for their owner only, data is for all

    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(url, file.sha256, arrived.name, path.parent, downloader=download)
        _name(arrived, path, file)
    except (requests.RequestException, ValueError) as error:
        raise _Failed(_reason(error)) from error
    finally:
        arrived.unlink(missing_ok=True)


def _check_as(name: str, temporary: str) -> None:
    """Judge a file that has only a temporary name by its content; _Failed if it is not right."""
    try:
        check(Path(temporary))
    except DatasetError as error:
        raise _Failed(str(error).replace(temporary, name)) from error


def _name(arrived: Path, path: Path, file: SourceFile) -> None:
    """Give a checked file its name, in place of a damaged one; keep its sum if none is published."""
    kept = path.with_name(path.name + ".sha256")
    total = sha256_of(arrived)
    kept.unlink(missing_ok=True)  # it is no longer true, should we be stopped before the next line but one
    arrived.replace(path)
    if file.sha256 is None:
        kept.write_text(f"{total}  {path.name}\n")


class _Bounded:
    """A file to write to that takes no more bytes than were published, and tells how far it is.

    pooch also takes it for its progress bar, and so sets `total` to what the server announces.
    """

    def __init__(self, file, expected: SourceFile, on_progress: Report | None):
        self.file, self.expected, self.on_progress = file, expected, on_progress
        self.n_bytes, self.total, self.most = 0, 0, expected.size or Limits().total

    def write(self, piece: bytes) -> None:
        self.n_bytes += len(piece)
        if self.n_bytes > self.most:
            raise _Failed(f"more than {self.most} bytes came")
        self.file.write(piece)
        if self.on_progress:
            self.on_progress(self.expected.name, self.n_bytes, self.expected.size or self.total)

    def flush(self, *_) -> None:
        """Nothing: pooch would flush after every piece."""

    update = reset = close = flush


def _reason(error: Exception) -> str:
    """A few words for what requests raises, and pooch for a wrong sum."""
    import requests

    if "hash of downloaded file" in str(error):
        return "wrong SHA-256"
    if isinstance(error, requests.HTTPError):
        return f"the server answers {error.response.status_code} {error.response.reason}".rstrip()
    if "timed out" in str(error):
        return "the server sends nothing"
    if isinstance(error, requests.exceptions.ChunkedEncodingError) or "aborted" in str(error):
        return "the connection was cut"
    return "no connection" if isinstance(error, requests.ConnectionError) else "an answer without sense"


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
