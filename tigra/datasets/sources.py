"""The files of MNIST and ETH-80: find, verify and read them.

Files are searched for in a folder that the caller gives, in $TIGRA_DATA, and in the user's cache folder.
They are never changed. Archives are read without unpacking them to disk.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tigra.datasets.archives import member_names, read_gzip, read_in_order, sha256_of
from tigra.errors import DatasetError, ImageError, UsageError
from tigra.files.cache import cache_folder, expanded
from tigra.images.pictures import decode_image

MNIST_SHA256 = {  # of the unpacked content, so that the compression does not matter
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
LARGEST_IDX = 64 << 20  # bytes; MNIST's largest file has 47 million
ETH80_CLASSES = ("apple", "car", "cow", "cup", "dog", "horse", "pear", "tomato")
N_OBJECTS, N_VIEWS = 10, 41  # objects per class, views per object
PICTURE = re.compile(rf"(?:.*/)?(({'|'.join(ETH80_CLASSES)})([0-9]{{1,3}}))/\1-([0-9]{{3}}-[0-9]{{3}})\.png")


@dataclass(frozen=True)
class SourceFile:
    """A published file: its servers, and its size in bytes and SHA-256 if known."""

    name: str
    mirrors: tuple[str, ...] = ()
    size: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Source:
    """A raw data set. `needs_all`: all its files are needed, otherwise any one of them."""

    name: str
    description: str
    licence: str
    datasets: tuple[str, ...]
    files: tuple[SourceFile, ...]
    needs_all: bool = False


@dataclass(frozen=True)
class Found:
    """A source on this machine: its files or unpacked folder, and which setting led to it."""

    source: Source
    paths: tuple[Path, ...]
    origin: str

    @property
    def n_bytes(self) -> int:
        """Size on disk in bytes."""
        return sum(file.stat().st_size for path in self.paths for file in [path, *path.rglob("*")] if file.is_file())


_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
)
_MNIST_FILES = (
    ("train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
    ("train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ("t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
    ("t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
# We know of no published SHA-256 of the archives of ETH-80, and they are served over plain http.
_AT_MPI = ("http://datasets.d2.mpi-inf.mpg.de/eth80/",)
_ETH80_FILES = (("eth80-cropped-close128.tgz", _AT_MPI), ("eth80-cropped256.tgz", _AT_MPI), ("eth80-cropped64.tgz", ()))
SOURCES = {
    "mnist": Source(
        name="mnist",
        description="70,000 handwritten digits, 28x28 (Y. LeCun, C. Cortes, C. Burges)",
        licence="CC BY-SA 3.0",
        datasets=("mnist-rot", "mnist-trans"),
        files=tuple(SourceFile(name, _MNIST_MIRRORS, size, sha256) for name, size, sha256 in _MNIST_FILES),
        needs_all=True,
    ),
    "eth80": Source(
        name="eth80",
        description="3,280 photographs: 8 classes x 10 objects x 41 views (B. Leibe, B. Schiele)",
        licence="none stated; published for research",
        datasets=("eth-80",),
        files=tuple(SourceFile(name, mirrors) for name, mirrors in _ETH80_FILES),
    ),
}


def source_named(name: str) -> Source:
    """Return the source of that name, or the source of the data set of that name.

    >>> source_named("mnist").name, source_named("mnist-rot").name, source_named("eth-80").name
    ('mnist', 'mnist', 'eth80')
    """
    for source in SOURCES.values():
        if name == source.name or name in source.datasets:
            return source
    raise UsageError(f"There is no source of data {name!r}; choose one of {', '.join(SOURCES)}.")


def find(name: str, data_dir=None) -> Found | None:
    """Return the first place that has the files of a source, or None; their content is not checked."""
    source = source_named(name)
    look = _mnist_paths if source.name == "mnist" else _eth80_paths
    for origin, folder in _places(data_dir):
        if paths := look(source, folder):
            return Found(source, paths, origin)
    return None


def missing(name: str, data_dir=None) -> DatasetError:
    """Return the error for a missing source: where it was searched for, and how to get it."""
    source = source_named(name)
    searched = ", ".join(f"{folder} ({origin})" for origin, folder in _places(data_dir))
    files = (", " if source.needs_all else " or ").join(file.name for file in source.files)
    target = (Path(data_dir) if data_dir is not None else cache_folder()) / source.name
    return DatasetError(
        f"{'Not all' if source.needs_all else 'None'} of the files of {source.name} are on this machine; looked in "
        f"{searched}. Run 'tigra data fetch {source.name}', or put {files} into {target}."
    )


def _found(name: str, data_dir) -> Found:
    found = find(name, data_dir)
    if found is None:
        raise missing(name, data_dir)
    return found


def _places(data_dir) -> Iterator[tuple[str, Path]]:
    """Yield (origin, folder) in the order of the search; the cache folder need not exist."""
    for origin, named in (("--data-dir", data_dir), ("$TIGRA_DATA", os.environ.get("TIGRA_DATA") or None)):
        if named is not None:
            folder = expanded(named, origin)
            if not folder.is_dir():
                raise DatasetError(f"{named} ({origin}) is not a folder; give the folder that has the data.")
            yield origin, folder
    yield "cache", cache_folder()


def _mnist_paths(source: Source, folder: Path) -> tuple[Path, ...]:
    for inside in (folder / "mnist", folder, folder / "MNIST" / "raw"):  # the last is that of torchvision
        choices = [(inside / file.name, inside / file.name.removesuffix(".gz")) for file in source.files]
        paths = tuple(path for pair in choices for path in [path for path in pair if path.is_file()][:1])
        if len(paths) == len(source.files):
            return paths
    return ()


def _eth80_paths(source: Source, folder: Path) -> tuple[Path, ...]:
    stems = [file.name.removesuffix(".tgz") for file in source.files]
    for inside in (folder / "eth80", folder):
        archives = [inside / (stem + end) for stem in stems for end in (".tgz", ".tar.gz", ".tar", ".zip")]
        paths = [path for path in archives if path.is_file()]
        paths += [path for path in (inside, *sorted(inside.glob("eth80-cropped*/"))) if _unpacked_names(path)]
        if paths:
            return tuple(paths[:1])
    return ()


def _unpacked_names(folder: Path) -> list[str]:
    """Return the names apple1/apple1-000-000.png and so on that exist."""
    found = (path for kind in ETH80_CLASSES for path in folder.glob(f"{kind}[0-9]*/{kind}[0-9]*.png"))
    return [path.relative_to(folder).as_posix() for path in found]


def load_mnist(data_dir=None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return {"train": (images, labels), "test": (images, labels)}: read-only uint8 (n, 28, 28) and (n,)."""
    arrays = [read_idx(path) for path in _found("mnist", data_dir).paths]
    parts = {"train": (arrays[0], arrays[1]), "test": (arrays[2], arrays[3])}
    for part, (images, labels) in parts.items():
        if len(images) != len(labels):
            raise DatasetError(f"MNIST has {len(images)} {part} images but {len(labels)} labels; fetch it again.")
    return parts


def read_idx(path: Path) -> np.ndarray:
    """Verify one of MNIST's four files, gzipped or not, and return its array."""
    name = path.name.removesuffix(".gz")
    content = read_gzip(path, LARGEST_IDX)
    found = hashlib.sha256(content).hexdigest()
    if found != MNIST_SHA256[name]:
        raise DatasetError(
            f"{path} is not MNIST's {name}: SHA-256 {MNIST_SHA256[name]} of the unpacked content expected, "
            f"{found} found. Remove the file and run 'tigra data fetch mnist'."
        )
    n_axes = 3 if "images" in name else 1
    start = 4 + 4 * n_axes
    shape = struct.unpack_from(f">{n_axes}I", content, 4) if len(content) > start else ()
    fits = content[:4] == bytes([0, 0, 8, n_axes]) and len(content) == start + math.prod(shape)
    if not fits or (shape[1:] != (28, 28) if n_axes == 3 else max(content[start:]) > 9):
        expected = "28x28 images" if n_axes == 3 else "labels from 0 to 9"
        raise DatasetError(f"{path} is not an idx file of {expected}; run 'tigra data fetch mnist'.")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def eth80_pictures(data_dir=None) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield (class, object, view, PNG file) of all 3,280 pictures: ("apple", "apple1", "022-090", b"...").

    Pictures are sorted by class, number of the object, and view. If any is missing, DatasetError is
    raised before the first one. An archive is read twice, for the names and for the pictures. Only
    pictures that come too early are kept in memory, 41 if objects are in alphabetical order (apple10
    before apple2).
    """
    return pictures_in(_found("eth80", data_dir).paths[0])


def pictures_in(path: Path) -> Iterator[tuple[str, str, str, bytes]]:
    """Yield the pictures of ETH-80 in an archive or an unpacked folder, as `eth80_pictures` does."""
    names = _complete(_unpacked_names(path) if path.is_dir() else member_names(path), path)
    for name, content in read_in_order(path, names):
        match = PICTURE.fullmatch(name)
        assert match is not None  # ensured by `_complete`
        object_name, class_name, _, view = match.groups()
        yield class_name, object_name, view, content


def _complete(names: list[str], path: Path) -> list[str]:
    """Return the names that are pictures, sorted; raise DatasetError if ETH-80 is incomplete."""
    objects: dict[str, dict[str, set[str]]] = {kind: defaultdict(set) for kind in ETH80_CLASSES}
    order = {}
    for name in names:
        if match := PICTURE.fullmatch(name):
            object_name, kind, number, view = match.groups()
            if view in objects[kind][object_name]:
                raise DatasetError(f"{path} has the picture {object_name}-{view}.png twice; download it again.")
            objects[kind][object_name].add(view)
            order[name] = kind, int(number), view
    faults = [
        f"{len(found)} of {N_OBJECTS} objects of {kind}" for kind, found in objects.items() if len(found) != N_OBJECTS
    ]
    every = [(name, views) for found in objects.values() for name, views in found.items()]
    usual = set().union(*(views for _, views in every))
    for name, views in every:
        if len(views) != N_VIEWS:
            faults.append(f"{len(views)} of {N_VIEWS} views of {name} (no {', '.join(sorted(usual - views)[:3])})")
    if faults:
        more = f" and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise DatasetError(f"{path} is not all of ETH-80: it has {', '.join(faults[:5])}{more}. Download it again.")
    return sorted(order, key=order.__getitem__)


def check(path: Path) -> str:
    """Verify the content of a file or folder of a source; return what was verified, or raise DatasetError.

    No SHA-256 is published for ETH-80, so an archive must have all 3,280 pictures and each must open. Its
    SHA-256 at the time of the download, saved in FILE.sha256, reveals later damage.
    """
    if path.name.removesuffix(".gz") in MNIST_SHA256:
        return f"{len(read_idx(path))} items, SHA-256 of the content as published"
    kept = path.with_name(path.name + ".sha256")
    if kept.is_file() and kept.read_text(errors="replace").split()[:1] != [sha256_of(path)]:
        raise DatasetError(f"{path} has changed since it was fetched (see {kept.name}); fetch it again.")
    for _, object_name, view, content in pictures_in(path):
        try:
            decode_image(content, view, (8, 8))
        except ImageError as error:
            raise DatasetError(f"{path}: {object_name}-{view}.png cannot be opened; download it again.") from error
    return "all pictures open, " + ("SHA-256 as when fetched" if kept.is_file() else "no SHA-256 to compare with")


def _remains(source: Source, data_dir) -> list[Path]:
    """Return the files of an incomplete source, from the first place that has some of them."""
    for _, folder in _places(data_dir):
        for inside in (folder / source.name, folder):
            names = [name for file in source.files for name in (file.name, file.name.removesuffix(".gz"))]
            if paths := [inside / name for name in names if (inside / name).is_file()]:
                return paths
    return []


def verify(name: str, data_dir=None) -> list[tuple[str, str, str]]:
    """Return (file, state, detail) for each file of a source; state is "ok", "damaged" or "absent"."""
    source, found = source_named(name), find(name, data_dir)
    paths = found.paths if found else _remains(source, data_dir)
    if not paths:
        return [(source.name, "absent", "not found")]
    there = {path.name.removesuffix(".gz") for path in paths}
    results = [
        (file.name, "absent", "missing, although other files of the data set are present")
        for file in source.files
        if source.needs_all and file.name.removesuffix(".gz") not in there
    ]
    for path in paths:
        try:
            results.append((str(path), "ok", check(path)))
        except DatasetError as error:
            results.append((str(path), "damaged", str(error)))
    return results
