"""Read archives from untrusted sources; nothing is unpacked to disk.

An archive may be malicious. The name, type and size of every member are checked before its content is
returned. Bytes are counted while they are unpacked, because declared sizes may be wrong. One bad member
makes the whole archive invalid.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tigra.errors import DatasetError

HEADERS = 1 << 16  # bytes of headers allowed between two members of a tar
DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, ValueError, RuntimeError
)  # fmt: skip
UNPACKERS: dict[bytes, Callable] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
FORBIDDEN_NAME = re.compile(r"^/|^[A-Za-z]:|(^|/)\.\.(/|$)|[\\\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Limits:
    """Limits of an archive: bytes per member, unpacked bytes in total, number of members."""

    member: int = 4 << 20
    total: int = 1 << 30
    members: int = 20_000


def read_members(path, wanted: Callable[[str], bool], limits: Limits | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the regular files in an archive for which `wanted(name)` is true.

    The archive is a tar (plain, gzip, bzip2, xz) or a zip (stored, deflated), recognised by its first
    bytes. Names are relative, with `/`. Raises DatasetError for an archive that is damaged or encrypted,
    exceeds the limits, has links or devices, or has names that lead out of its folder. Members before
    the bad one may already have been yielded.
    """
    limits = limits or Limits()
    with _reporting(path), open(path, "rb") as file:
        start = file.read(6)
        file.seek(0)
        if start.startswith(b"PK"):
            yield from _zip_members(_ModestFile(file, limits), wanted, limits)
        else:
            unpack = next((unpack for magic, unpack in UNPACKERS.items() if start.startswith(magic)), None)
            yield from _tar_members(unpack(file) if unpack else file, wanted, limits)


def member_names(path, limits: Limits | None = None) -> list[str]:
    """Return the names of all regular files in an archive, checked as in `read_members`."""
    names = []

    def note(name: str) -> bool:
        names.append(name)
        return False

    for _ in read_members(path, note, limits):
        pass
    return names


def read_in_order(path: Path, names: Sequence[str], limits: Limits | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield members of an archive, or files of a folder, in the order of `names`.

    An archive is read in its own order. Members that come too early are kept in memory, at most
    `limits.total` bytes.
    """
    if path.is_dir():
        yield from ((name, _small_file(path / name, limits or Limits())) for name in names)
        return
    waiting, turn = {}, iter(names)
    expected = next(turn, None)
    for name, content in read_members(path, set(names).__contains__, limits):
        waiting[name] = content
        while expected in waiting:
            yield expected, waiting.pop(expected)
            expected = next(turn, None)
    if expected is not None:
        raise DatasetError(f"{path} has no {expected} any more; download it again.")


def read_gzip(path, largest: int) -> bytes:
    """Return the content of a file, gzipped or not; raise DatasetError beyond `largest` bytes."""
    with _reporting(path), open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        content = (gzip.GzipFile(fileobj=file) if packed else file).read(largest + 1)
        if len(content) > largest:
            raise _Refused(f"holds more than the {largest} bytes expected")
        return content


def sha256_of(path) -> str:
    """Return the SHA-256 of a file, read in chunks."""
    total = hashlib.sha256()
    with _reporting(path), open(path, "rb") as file:
        while piece := file.read(1 << 20):
            total.update(piece)
    return total.hexdigest()


def safe_name(name: str) -> str:
    """Return the name of a member with `/` and without `./`; refuse names that lead out of the folder.

    >>> safe_name("./apple1//apple1-000-000.png")
    'apple1/apple1-000-000.png'
    """
    if FORBIDDEN_NAME.search(name):
        raise _Refused(f"has a member called {name[:100]!r}, which could lead out of its folder")
    return PurePosixPath(name).as_posix()


def _small_file(path: Path, limits: Limits) -> bytes:
    if not path.is_file():  # opening a pipe would block
        raise DatasetError(f"{path} is not a regular file; download it again.")
    with _reporting(path), open(path, "rb") as file:
        content = file.read(limits.member + 1)
        if len(content) > limits.member:
            raise _Refused(f"has more than {limits.member} bytes")
        return content


class _Refused(Exception):
    """What is wrong with an archive; `_reporting` adds its path."""


@contextmanager
def _reporting(path):
    """Turn errors of the readers into DatasetError with the path of the archive."""
    advice = "download the file again"
    try:
        yield
    except _Refused as error:
        raise DatasetError(f"{path} {error}; {advice}.") from error
    except DAMAGE as error:
        raise DatasetError(f"{path} is damaged, cut short or no archive ({error}); {advice}.") from error
    except OSError as error:
        if error.strerror is None:  # raised by the unpackers, e.g. "Not a gzipped file"
            raise DatasetError(f"{path} is damaged, cut short or no archive ({error}); {advice}.") from error
        raise DatasetError(f"Cannot read {path}: {error.strerror}.") from error


class _Tally:
    """Count members and their declared bytes, and check them against the limits."""

    def __init__(self, limits: Limits):
        self.limits, self.members, self.bytes = limits, 0, 0

    def add(self, name: str, size: int) -> None:
        self.members, self.bytes = self.members + 1, self.bytes + size
        if self.members > self.limits.members:
            raise _Refused(f"has more than {self.limits.members} members")
        if not 0 <= size <= self.limits.member:
            raise _Refused(f"has a member of {size} bytes, {name!r}; at most {self.limits.member} are allowed")
        if self.bytes > self.limits.total:
            raise _Refused(f"unpacks to more than {self.limits.total} bytes")


# --- tar ----------------------------------------------------------------------------------------------


class _Forward:
    """A file-like view of an unpacker that is read forwards only, and not beyond `limit`.

    `limit` counts unpacked bytes, including skipped ones. It is raised from member to member, so that
    neither a header nor padding can hide more than `HEADERS` bytes.
    """

    def __init__(self, file):
        self.file, self.position, self.limit, self.last = file, 0, HEADERS, b""

    def tell(self) -> int:
        return self.position

    def read(self, size: int) -> bytes:
        if size < 0 or self.position + size > self.limit:
            raise _Refused(f"holds more than it declares, or headers of more than {HEADERS} bytes")
        self.last = self.file.read(size)
        self.position += len(self.last)
        return self.last

    def seek(self, position: int) -> None:
        if position < self.position:
            raise _Refused("is not in order")
        while self.position < position and self.read(min(position - self.position, 1 << 16)):
            pass


def _tar_members(file, wanted, limits) -> Iterator[tuple[str, bytes]]:
    stream, tally = _Forward(file), _Tally(limits)
    with tarfile.open(fileobj=stream, mode="r:") as archive:  # type: ignore[call-overload]  # reads, seeks, tells
        while archive.offset and (member := archive.next()):  # at 0 it is empty, and Python 3.10 would seek to -1
            archive.members.clear()  # else tarfile keeps every header
            name = safe_name(member.name)
            if member.issparse() or not (member.isfile() or member.isdir()):
                raise _Refused(f"has a member, {name!r}, that is neither a file nor a folder but a link or the like")
            tally.add(name, member.size)
            stream.limit = min(member.offset_data + member.size + HEADERS, limits.total + HEADERS)
            if member.isfile() and wanted(name):
                stream.seek(member.offset_data)
                content = stream.read(member.size)
                if len(content) < member.size:
                    raise EOFError(f"{name!r} is cut short")
                yield name, content
    _check_end(stream)


def _check_end(stream: _Forward) -> None:
    """Check that the rest is zeros: tarfile also takes a damaged header for the end."""
    while not any(stream.last):
        if not stream.read(1 << 14):
            return
    raise tarfile.ReadError("a header is damaged")


# --- zip ----------------------------------------------------------------------------------------------


class _ModestFile:
    """A file for zipfile that refuses large reads, since zipfile reads the list of members at once."""

    def __init__(self, file, limits: Limits):
        # enough for 256 bytes per member, a whole member, and the last 64 KB, where zipfile finds the list
        self.file, self.most = file, max(256 * limits.members, limits.member + (1 << 17))
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        content = self.file.read(self.most + 1 if size < 0 else min(size, self.most + 1))
        if len(content) > self.most:
            raise _Refused("has a list of members that is far too long")
        return content


def _zip_members(file, wanted, limits) -> Iterator[tuple[str, bytes]]:
    tally = _Tally(limits)
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = safe_name(member.orig_filename)
            tally.add(name, member.file_size)
            _check_kind(member, name)
            if not member.is_dir() and wanted(name):
                with archive.open(member) as unpacked:
                    content = unpacked.read(member.file_size + 1)
                if len(content) != member.file_size:
                    raise EOFError(f"{name!r} is not of the size declared")
                yield name, content


def _check_kind(member: zipfile.ZipInfo, name: str) -> None:
    if member.flag_bits & 0x1:
        raise _Refused(f"has an encrypted member, {name!r}")
    if stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise _Refused(f"has a member, {name!r}, that is neither a file nor a folder but a link or the like")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _Refused(f"has a member, {name!r}, that is neither stored nor deflated")
