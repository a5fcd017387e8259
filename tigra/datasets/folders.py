"""Data sets from folders of pictures, with one subfolder per class.

    FOLDER/cat/*.png, FOLDER/dog/*.png              split at random, the same share of every class
    FOLDER/train/cat/..., valid/..., test/...       split by folder; a missing part is drawn from train

Pictures are decoded once (`tigra.images.store`). A folder may be larger than memory.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from tigra.datasets.learned import Learned
from tigra.datasets.picture_files import (
    PictureFile,
    case_note,
    counted,
    list_pictures,
    stray_note,
    usual_size,
)
from tigra.datasets.splits import (
    Split,
    Splits,
    assemble,
    draw_stratified,
    turned_at_random,
)
from tigra.errors import DatasetError, ImageError
from tigra.files.cache import cache_folder
from tigra.files.digests import SUM, digests_of, forget_digests
from tigra.files.regular import NotRegularError, open_regular
from tigra.files.room import WORTH_SAYING, check_room, decoded_bytes, in_words
from tigra.images.store import (
    ImageStore,
    StoredImages,
    store_key,
    stored_pictures,
)
from tigra.images.transforms import checked_shape
from tigra.seeding import generator

SHARE = 0.15  # of every class for validation, and the same for the test
REASONS = {  # words in messages of `tigra.images`: name of one such file, and of several
    "is not a picture": ("file that is not a picture", "files that are not pictures"),
    "too large": ("picture that is too large", "pictures that are too large"),
    "has pixels": ("picture with impossible pixels", "pictures with impossible pixels"),
    "NaN": ("picture with impossible pixels", "pictures with impossible pixels"),
    "damaged": ("damaged picture", "damaged pictures"),
}
UNREADABLE = "unreadable file", "unreadable files"


def load_folder(
    folder,
    seed: int = 0,
    interpolation: str = "cubic",
    size: tuple[int, int] | None = None,
    invert: bool = False,
    test_rotations: bool = False,
    train_rotations: int | str = 0,
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Splits:
    """Load a folder with one subfolder of pictures per class.

    Parameters
    ----------
    folder : path
        Folder with one subfolder per class, or with folders train, valid and test that have them.
    seed, interpolation, threads, on_progress
        As for `load_dataset`.
    size : (int, int), optional
        Height and width to which pictures are scaled, with their aspect ratio kept. By default their own
        size if they all have the same and it is at most 50x50, else 50x50.
    invert : bool
        For dark objects on a light background: makes the background 0.
    test_rotations : bool
        Rotate test images by random angles.
    train_rotations : int or "random"
        Rotate each training image by one of this many equally spaced angles, or by any angle.

    Returns
    -------
    Splits
        `notes` says which files were left out, and why.

    Notes
    -----
    Of pictures that are equal after decoding only one is kept, so that none is in two parts: the one in
    test, else the one in valid, else the one in train. Equal pictures in different classes are all left out.
    """
    on_progress("listing the pictures", 0, 0)
    files = list_pictures(Path(folder))
    class_names = sorted({file.class_name for file in files})
    if len(class_names) < 2:
        raise DatasetError(
            f"A classifier needs at least two classes, got only {class_names[0]!r}; add a subfolder for each class."
        )
    size = checked_shape(size) if size is not None else usual_size(files, bool(test_rotations or train_rotations))
    store = _decoded(Path(folder), files, size, invert, threads, on_progress)
    found = {file.name: file for file in files}
    rows, duplicates = _without_duplicates(store, found)
    notes = (*_skipped_note(store, len(files)), *duplicates, *case_note(files), *stray_note(Path(folder)))
    notes += tuple(_room_note(store, size))
    labels = _labels(store, rows, found, class_names)
    given = np.array([found[store.names[row]].part for row in rows])
    _check_parts(class_names, labels, given, {file.part for file in files}, notes)
    parts, drawn = _drawn_parts(given, labels, class_names, seed)
    upright = {
        part: Split(StoredImages(store.pixels, rows[parts == part]), labels[parts == part])
        for part in ("train", "valid", "test")
    }
    return assemble(
        str(folder),
        upright,
        class_names=class_names,
        seed=seed,
        train_rotations=train_rotations,
        options={"size": size, "invert": bool(invert), "test_rotations": bool(test_rotations)},
        notes=notes,
        learned=Learned.of_digests((store.digests[row] for row in rows[parts != "test"]), size),
        **_test_of(size, invert, test_rotations, interpolation, drawn),
    )


def load_test_folder(
    folder,
    shape: tuple[int, int],
    class_names: list[str],
    learned: Learned | None = None,
    invert: bool = False,
    test_rotations: bool = False,
    interpolation: str = "cubic",
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> Splits:
    """Load a folder to test a network with: all pictures, or those of its subfolder test.

    Parameters
    ----------
    folder : path
        Folder with one subfolder of pictures per class. All its classes must be in `class_names`.
    shape, class_names
        Image shape and classes of the network.
    learned : Learned, optional
        `Splits.learned_pictures` of the training. These pictures are left out.
    invert, test_rotations, interpolation, threads, on_progress
        As for `load_folder`.

    Returns
    -------
    Splits
        `train` and `valid` are empty.
    """
    files = list_pictures(Path(folder))
    files = [file for file in files if file.part == "test"] or files
    if strange := sorted({file.class_name for file in files} - set(class_names)):
        known = ", ".join(class_names[:10]) + (", ..." if len(class_names) > 10 else "")
        raise DatasetError(
            f"{folder} has the class {strange[0]!r}, which the network does not have; rename or remove it. The classes"
            f" of the network are {known}."
        )
    store = _decoded(Path(folder), files, tuple(shape), invert, threads, on_progress)
    found = {file.name: file for file in files}
    rows, duplicates = _without_duplicates(store, found)
    notes = (*_skipped_note(store, len(files)), *duplicates, *case_note(files))
    new = rows
    if learned:
        at_shape = store if learned.shape == tuple(shape) else None
        if at_shape is None:
            at_shape = _decoded(Path(folder), files, learned.shape, invert, threads, on_progress)
        was_learned = dict(zip(at_shape.names, learned.contains(at_shape.digests), strict=True))
        new = np.array([row for row in rows if not was_learned.get(store.names[row])], dtype=int)
    if not len(new):
        reasons = [*notes, f"the network was trained on all {len(rows)} others"] if len(rows) else notes
        raise DatasetError(f"There is no picture in {folder} to test with ({'; '.join(reasons)}).")
    if len(new) < len(rows):
        notes += (f"left out {len(rows) - len(new)} of {len(rows)} pictures, because the model was trained on them",)
    words = f"without {len(rows) - len(new)} that the model was trained on, " if len(new) < len(rows) else ""
    labels = _labels(store, new, found, class_names)
    none = Split(StoredImages(store.pixels, new[:0]), labels[:0])
    return assemble(
        str(folder),
        {"train": none, "valid": none, "test": Split(StoredImages(store.pixels, new), labels)},
        class_names=class_names,
        notes=notes,
        **_test_of(shape, invert, test_rotations, interpolation, words),
    )


def _test_of(size, invert, test_rotations, interpolation, words) -> dict:
    """Return the arguments of `assemble` that describe the size and the transformation of test images."""
    turned = f"rotated by [0, 360) degrees, {interpolation} interpolation" if test_rotations else "as in the files"
    return {
        "before": f"{size[0]}x{size[1]} grey{', inverted' if invert else ''}, {words}",
        "test_words": f"test {turned}",
        "transform": partial(turned_at_random, interpolation=interpolation) if test_rotations else None,
        "interpolation": interpolation,
    }


# --- pixels ---------------------------------------------------------------------------------------------


def _decoded(folder, files, size, invert, threads, on_progress) -> ImageStore:
    """Return the store of these files, from the cache or newly built."""
    try:
        return _store(folder, files, size, invert, threads, on_progress)
    except ChangedError:  # or its remembered digest was wrong
        forget_digests(folder, cache_folder())
        return _store(folder, files, size, invert, threads, on_progress)


def _store(folder, files, size, invert, threads, on_progress) -> ImageStore:
    cache = cache_folder()
    digests = digests_of(folder, files, cache, on_progress)

    def pictures():
        check_room(cache, len(files), size)
        return ((file.name, partial(_content, file, digest)) for file, digest in zip(files, digests, strict=True))

    key = store_key([(file.name, digest) for file, digest in zip(files, digests, strict=True)], size, invert)
    return stored_pictures(cache, key, pictures, len(files), size, invert, threads, on_progress)


class ChangedError(DatasetError):
    """A file does not have the digest that it had a moment ago."""


def _room_note(store: ImageStore, size) -> list[str]:
    """Return one sentence on a store that takes much space."""
    n_bytes = decoded_bytes(len(store.names), size)
    if n_bytes < WORTH_SAYING:
        return []
    return [f"the decoded pictures take {in_words(n_bytes)} in {cache_folder()}; 'tigra data clear' removes them"]


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


def _labels(store, rows, found: dict[str, PictureFile], class_names) -> np.ndarray:
    numbers = {name: number for number, name in enumerate(class_names)}
    return np.array([numbers[found[store.names[row]].class_name] for row in rows], dtype=np.int64)


def _without_duplicates(store: ImageStore, found: dict[str, PictureFile]) -> tuple[np.ndarray, list[str]]:
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


# --- parts ------------------------------------------------------------------------------------------------


def _check_parts(class_names, labels, parts, folders: set[str], notes) -> None:
    """Raise DatasetError unless every part and every class has usable pictures."""
    why = f" ({'; '.join(notes)})" if notes else ""
    for label, name in enumerate(class_names):
        if not np.isin(parts[labels == label], ("train", "")).any():
            raise DatasetError(f"Class {name!r} has no training picture; add some, or remove its folder{why}.")
    for part in sorted(folders):
        if not (parts == part).any():
            raise DatasetError(f"The folder {part} has no usable picture; add some, or remove it{why}.")


def _drawn_parts(parts, labels, class_names, seed) -> tuple[np.ndarray, str]:
    """Return (part of each picture, words); draw valid or test from the training pictures if missing."""
    parts = np.where(parts == "", "train", parts).astype("U5")
    rng = generator(seed, "split")
    drawn: list[str] = []
    for part, share in (("test", SHARE), ("valid", SHARE / (1 - SHARE))):
        if not (parts == part).any():
            places = np.flatnonzero(parts == "train")
            parts[places[draw_stratified(labels[places], share, rng, class_names)]] = part
            drawn.insert(0, part)
    return parts, f"{' and '.join(drawn)} drawn ({SHARE:.0%} of each class), " if drawn else ""


def _skipped_note(store: ImageStore, n_files: int) -> list[str]:
    """Return one sentence on the files that are not pictures or cannot be read."""
    by_kind = defaultdict(list)
    for name, reason in store.skipped:
        by_kind[next((kind for text, kind in REASONS.items() if text in reason), UNREADABLE)].append(name)
    listed = "; ".join(counted(names, *kind) for kind, names in by_kind.items())
    return [f"skipped {len(store.skipped)} of {n_files} files: {listed}"] if listed else []
