"""Data sets from folders of pictures, with one subfolder per class.

    FOLDER/cat/*.png, FOLDER/dog/*.png              split at random, the same share of every class
    FOLDER/train/cat/..., valid/..., test/...       split by folder; a missing part is drawn from train

Pictures are decoded once (`tigra.images.store`). A folder may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from tigra.datasets.decoding import Reading, decoded, room_note, skipped_note, without_duplicates
from tigra.datasets.learned import Learned
from tigra.datasets.picture_files import (
    PictureFile,
    case_note,
    have_colour,
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
from tigra.errors import DatasetError, UsageError
from tigra.images.background import WINDOWS, WORDS, entering, find_background
from tigra.images.store import StoredImages
from tigra.images.transforms import checked_shape
from tigra.seeding import generator

SHARE = 0.15  # of every class for validation, and the same for the test
BACKGROUNDS = "auto", "black", "border", *WINDOWS
COLOURS = "auto", "yes", "no"
N_BORDERS = 1000  # training images whose border is looked at


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
    background: str = "auto",
    colour: str = "auto",
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
        Invert the pictures; not needed, because the background is found.
    test_rotations : bool
        Rotate test images by random angles.
    train_rotations : int or "random"
        Rotate each training image by one of this many equally spaced angles, or by any angle.
    background : {"auto", "black", "border", "window", "window-mean"}
        What surrounds pictures of another aspect ratio, and rotated ones: "black", or for all others the median of a
        picture's border pixels. What networks do with it is what `find_background` says if it is "auto".
    colour : {"auto", "yes", "no"}
        Read pictures in colour, as (n, height, width, 3), or in grey. "auto" reads in colour if some have colour.

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
    is_colour = is_in_colour(colour, partial(have_colour, files))
    shape = (*size, 3) if is_colour else size
    frame = entering(checked_choice("background", background, BACKGROUNDS))
    store = decoded(Path(folder), files, Reading(shape, invert, frame), threads, on_progress)
    found = {file.name: file for file in files}
    rows, duplicates = without_duplicates(store, found)
    notes = (*skipped_note(store, len(files)), *duplicates, *case_note(files), *stray_note(Path(folder)))
    notes += tuple(room_note(store, shape))
    labels = _labels(store, rows, found, class_names)
    given = np.array([found[store.names[row]].part for row in rows])
    _check_parts(class_names, labels, given, {file.part for file in files}, notes)
    parts, drawn = drawn_parts(given, labels, class_names, seed)
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
        options={
            "size": size,
            "invert": bool(invert),
            "test_rotations": bool(test_rotations),
            "background": background,
            "colour": "yes" if is_colour else "no",
        },
        notes=notes,
        test_names=[store.names[row] for row in rows[parts == "test"]],
        learned=Learned.of_digests((store.digests[row] for row in rows[parts != "test"]), shape),
        **described(shape, invert, test_rotations, interpolation, drawn, background, upright["train"]),
    )


def load_test_folder(
    folder,
    shape: tuple[int, ...],
    class_names: list[str],
    learned: Learned | None = None,
    invert: bool = False,
    test_rotations: bool = False,
    interpolation: str = "cubic",
    threads: int = 1,
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    background: str = "border",
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
    background : {"black", "border", "to black", "window", "window-mean"}
        As for `tigra.read_image`, or the window of the network; rotated pictures continue their border unless it is
        "black".

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
    how = Reading(tuple(shape), invert, as_read(background))
    store = decoded(Path(folder), files, how, threads, on_progress)
    found = {file.name: file for file in files}
    rows, duplicates = without_duplicates(store, found)
    notes = (*skipped_note(store, len(files)), *duplicates, *case_note(files))
    new = rows
    if learned:
        at_shape = store if learned.shape == tuple(shape) else None
        if at_shape is None:
            at_shape = decoded(Path(folder), files, how._replace(shape=learned.shape), threads, on_progress)
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
        options={"background": background},
        notes=notes,
        test_names=[store.names[row] for row in new],
        **described(tuple(shape), invert, test_rotations, interpolation, words, background, none),
    )


def as_read(background: str) -> str:
    """Return how pictures are read for a network with this `background`: what surrounds a window is their border."""
    return "border" if background in WINDOWS else background


def described(shape, invert, test_rotations, interpolation, words, background, train: Split) -> dict:
    """Return the arguments of `assemble` that describe the pictures and the transformation of test images.

    "auto" looks for the background in `train`.
    """
    frame, found = entering(background), background
    if background == "auto":
        step = max(1, len(train.labels) // N_BORDERS)
        found = find_background(train.images[::step], train.labels[::step])
    elif background == "to black":
        found = frame
    turned = f"rotated by [0, 360) degrees, {interpolation} interpolation" if test_rotations else "as in the files"
    kind = f"{shape[0]}x{shape[1]} {'colour' if len(shape) == 3 else 'grey'}{', inverted' if invert else ''}"
    kind += WORDS.get(found, "") if background != "to black" else ""
    return {
        "before": f"{kind}, ",
        "drawn": words,
        "test_words": f"test {turned}",
        "transform": partial(turned_at_random, interpolation=interpolation, background=frame)
        if test_rotations
        else None,
        "interpolation": interpolation,
        "background": found,
        "entering": frame,
    }


def checked_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return the value of an option; raise UsageError if it is not one of the choices."""
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}.")
    return value


def is_in_colour(colour: str, look: Callable[[], bool]) -> bool:
    """Return whether images are read in colour; `look` tells whether they have any, for "auto"."""
    return checked_choice("colour", colour, COLOURS) == "yes" or (colour == "auto" and look())


def _labels(store, rows, found: dict[str, PictureFile], class_names) -> np.ndarray:
    numbers = {name: number for number, name in enumerate(class_names)}
    return np.array([numbers[found[store.names[row]].class_name] for row in rows], dtype=np.int64)


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


def drawn_parts(parts, labels, class_names, seed) -> tuple[np.ndarray, str]:
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
