"""Decode the pictures of a folder, once, and say which could not be."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from functools import partial
from typing import NamedTuple

import numpy as np

from tigra.datasets.picture_files import PictureFile, counted
from tigra.errors import DatasetError, ImageError
from tigra.files.cache import cache_folder
from tigra.files.digests import SUM, digests_of, forget_digests
from tigra.files.regular import NotRegularError, open_regular
from tigra.files.room import WORTH_SAYING, check_room, decoded_bytes, in_words
from tigra.images.store import ImageStore, store_key, stored_pictures

REASONS = {  # words in messages of `tigra.images`: name of one such file, and of several
    "is not a picture": ("file that is not a picture", "files that are not pictures"),
    "is a HEIC picture": ("HEIC picture to be converted to JPEG", "HEIC pictures to be converted to JPEG"),
    "too large": ("picture that is too large", "pictures that are too large"),
    "has pixels": ("picture with impossible pixels", "pictures with impossible pixels"),
    "NaN": ("picture with impossible pixels", "pictures with impossible pixels"),
    "damaged": ("damaged picture", "damaged pictures"),
}
UNREADABLE = "unreadable file", "unreadable files"


class ChangedError(DatasetError):
    """A file does not have the digest that it had a moment ago."""


class Reading(NamedTuple):
    """How pictures are read, see `tigra.images.pictures.read_image`."""

    shape: tuple[int, ...]
    invert: bool = False
    background: str = "border"


def decoded(folder, files, how: Reading, threads, on_progress) -> ImageStore:
    """Return the store of these files, from the cache or newly built."""
    try:
        return _store(folder, files, how, threads, on_progress)
    except ChangedError:  # or its remembered digest was wrong
        forget_digests(folder, cache_folder())
        return _store(folder, files, how, threads, on_progress)


def _store(folder, files, how: Reading, threads, on_progress) -> ImageStore:
    cache = cache_folder()
    digests = digests_of(folder, files, cache, on_progress)

    def pictures():
        check_room(cache, len(files), how.shape)
        return ((file.name, partial(_content, file, digest)) for file, digest in zip(files, digests, strict=True))

    key = store_key([(file.name, digest) for file, digest in zip(files, digests, strict=True)], *how)
    return stored_pictures(
        cache, key, pictures, len(files), how.shape, how.invert, threads, on_progress, how.background
    )


def _content(file: PictureFile, digest: str) -> bytes:
    """Read a file and check its digest; raise ImageError if it could not be read before."""
    if len(digest) != SUM:
        raise ImageError(f"{file.name} cannot be read: {digest}.")
    try:
        with open_regular(file.path) as opened:
            content = opened.read()
    except NotRegularError as error:  # swapped for a pipe: the next look at the files skips it
        raise ChangedError(f"{file.path} is no longer a regular file; start again.") from error
    except OSError as error:  # readable a moment ago, so the picture is not at fault
        raise DatasetError(f"Cannot read {file.path}: {error.strerror or error}; start again.") from error
    if hashlib.sha256(content).hexdigest() != digest:
        raise ChangedError(f"{file.path} changed while it was read; start again when nothing writes to the folder.")
    return content


def room_note(store: ImageStore, shape: tuple[int, ...]) -> list[str]:
    """Return one sentence on a store that takes much space."""
    n_bytes = decoded_bytes(len(store.names), shape)
    if n_bytes < WORTH_SAYING:
        return []
    return [f"the decoded pictures take {in_words(n_bytes)} in {cache_folder()}; 'tigra data clear' removes them"]


def skipped_note(store: ImageStore, n_files: int) -> list[str]:
    """Return one sentence on the files that are not pictures or cannot be read."""
    by_kind = defaultdict(list)
    for name, reason in store.skipped:
        by_kind[next((kind for text, kind in REASONS.items() if text in reason), UNREADABLE)].append(name)
    listed = "; ".join(counted(names, *kind) for kind, names in by_kind.items())
    return [f"skipped {len(store.skipped)} of {n_files} files: {listed}"] if listed else []


def without_duplicates(store: ImageStore, found: dict[str, PictureFile]) -> tuple[np.ndarray, list[str]]:
    """Return (rows to keep, notes): one of equal pictures, or none if their classes differ."""
    rank = {"test": 0, "valid": 1, "train": 2, "": 3}
    equal = defaultdict(list)
    for row, digest in enumerate(store.digests):
        equal[digest].append(row)
    kept, repeated, contradictory = [], [], []
    for rows in equal.values():
        if len({found[store.names[row]].class_name for row in rows}) > 1:
            contradictory += [store.names[row] for row in rows]
            continue
        first, *others = sorted(rows, key=lambda row: (rank[found[store.names[row]].part], row))
        kept.append(first)
        repeated += [store.names[row] for row in others]
    notes = []
    if repeated:
        notes.append(f"left out {counted(repeated, 'duplicate', 'duplicates')}")
    if contradictory:
        notes.append(f"left out {counted(contradictory, 'picture', 'pictures')}: equal ones lie in different classes")
    return np.array(sorted(kept), dtype=int), notes
