"""Load data sets from .npz files: to train, and to test a network."""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from tigra.datasets.folders import BACKGROUNDS, as_read, checked_choice, described, drawn_parts, is_in_colour
from tigra.datasets.learned import Learned, image_digests
from tigra.datasets.npz.files import (
    PART_NAMES,
    ArrayImages,
    images_have_colour,
    lacking,
    read_arrays,
    read_images,
    read_labels,
)
from tigra.datasets.picture_files import USUAL_SIZE
from tigra.datasets.splits import Split, Splits, assemble
from tigra.errors import DatasetError, printable
from tigra.images.background import entering
from tigra.images.sizes import checked_shape
from tigra.option_fields import short

LABELLED = "images", "labels"  # of a file without parts


def load_arrays(
    file,
    seed: int = 0,
    interpolation: str = "cubic",
    size: tuple[int, int] | None = None,
    test_rotations: bool = False,
    train_rotations: int | str = 0,
    background: str = "auto",
    colour: str = "auto",
) -> Splits:
    """Load a file of arrays: train_images, train_labels and, if there are, val_... and test_...

    Parameters
    ----------
    file : path
        An .npz file. `images` and `labels` without parts are split at random. `class_names`, if it has them, are the
        names of the labels 0, 1, ...
    seed, interpolation
        As for `load_dataset`.
    size, test_rotations, train_rotations, background, colour
        As for `load_folder`. By default images keep their size, if it is at most 50x50.

    Returns
    -------
    Splits
        Parts that the file does not have are drawn from the training images.
    """
    parts = _parts_in(file)
    if "train" not in parts:
        raise lacking(file, "train_images and train_labels, or images and labels")
    pixels = {part: images for part, (images, _) in parts.items()}
    class_names, labels = _numbered(file, {part: names for part, (_, names) in parts.items()})
    first = pixels["train"]
    is_colour = is_in_colour(colour, partial(images_have_colour, first))
    size = (
        checked_shape(size) if size is not None else _usual(first.shape[1:3], bool(test_rotations or train_rotations))
    )
    shape = (*size, 3) if is_colour else size
    frame = entering(checked_choice("background", background, BACKGROUNDS))
    given = np.concatenate([np.full(len(labels[part]), part) for part in pixels])
    chosen, drawn = drawn_parts(given, np.concatenate(list(labels.values())), class_names, seed)
    upright = {}
    for part in ("train", "valid", "test"):
        source = part if part in pixels else "train"
        rows = np.flatnonzero(chosen[given == source] == part)
        upright[part] = Split(ArrayImages(pixels[source], rows, shape, frame), labels[source][rows])
    learned = Learned.of_images(upright["train"].images, upright["valid"].images)
    return assemble(
        str(file),
        upright,
        class_names=class_names,
        seed=seed,
        train_rotations=train_rotations,
        options={
            "size": size,
            "test_rotations": bool(test_rotations),
            "background": background,
            "colour": "yes" if is_colour else "no",
        },
        notes=_seen_note(upright["test"].images, learned),
        learned=learned,
        **described(shape, False, test_rotations, interpolation, drawn, background, upright["train"]),
    )


def load_test_arrays(
    file,
    shape: tuple[int, ...],
    class_names: list[str],
    learned: Learned | None = None,
    test_rotations: bool = False,
    interpolation: str = "cubic",
    background: str = "border",
) -> Splits:
    """Load test_images and test_labels, or images and labels, to test a network with.

    Parameters
    ----------
    file, test_rotations, interpolation
        As for `load_arrays`.
    shape, class_names, learned, background
        As for `load_test_folder`.

    Returns
    -------
    Splits
        `train` and `valid` are empty. Images that the network was trained on are left out.
    """
    parts = _parts_in(file)
    if "test" not in parts and len(parts) != 1:
        raise lacking(file, "test_images and test_labels, or images and labels")
    pixels, names = parts.get("test") or parts["train"]
    numbers = {name: number for number, name in enumerate(class_names)}
    own_names = [_named(name, _class_names(file)) for name in names]
    if strange := sorted(set(own_names) - set(class_names)):
        raise DatasetError(
            f"{file} has the class {strange[0]!r}, which the network does not have; its classes are"
            f" {', '.join(class_names[:10])}."
        )
    labels, rows = np.array([numbers[name] for name in own_names]), np.arange(len(pixels))
    frame = as_read(background)
    if learned:
        at_shape = ArrayImages(pixels, rows, learned.shape, frame)
        rows = rows[~learned.contains(image_digests(at_shape))]
    if not len(rows):
        raise DatasetError(f"There is no image in {file} to test with: the network was trained on all of them.")
    n_left_out = len(pixels) - len(rows)
    words = f"without {n_left_out} that the model was trained on, " if n_left_out else ""
    test = Split(ArrayImages(pixels, rows, shape, frame), labels[rows])
    none = Split(ArrayImages(pixels, rows[:0], shape, frame), labels[:0])
    return assemble(
        str(file),
        {"train": none, "valid": none, "test": test},
        class_names=class_names,
        options={"background": background},
        notes=(f"left out {n_left_out} images, because the model was trained on them",) if n_left_out else (),
        test_names=[f"{os.path.basename(file)}[{row}]" for row in rows],  # as `tigra predict` names them
        **described(tuple(shape), False, test_rotations, interpolation, words, background, none),
    )


def load_images(file, shape: tuple[int, ...], background: str = "border") -> ArrayImages:
    """Return the images to predict in a file: `images`, `test_images`, or the only array of images."""
    found = read_arrays(file, ("images", "test_images"))
    if not found:
        raise lacking(file, "images or test_images")
    name = next(iter(found))
    pixels = read_images(file, name, found[name])
    return ArrayImages(pixels, np.arange(len(pixels)), shape, background)


def _parts_in(file) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return (images, labels) of every part of a file; `images` and `labels` are for training."""
    pairs = {part: [(f"{name}_images", f"{name}_labels") for name in names] for part, names in PART_NAMES.items()}
    pairs["train"].append(LABELLED)
    arrays = read_arrays(file, [name for some in pairs.values() for pair in some for name in pair])
    parts = {}
    for part, some in pairs.items():
        for images, labels in some:
            if (images in arrays) != (labels in arrays):
                missing, other = (labels, images) if images in arrays else (images, labels)
                raise DatasetError(f"{file} has {other}, but no {missing}; add it.")
            if images in arrays and part not in parts:
                pixels = read_images(file, images, arrays[images])
                parts[part] = pixels, read_labels(file, labels, arrays[labels], len(pixels))
    shapes = {pixels.shape[1:] for pixels, _ in parts.values()}
    if len(shapes) > 1:
        raise DatasetError(f"The images of {file} have the shapes {sorted(shapes)}; give all parts the same.")
    return parts


def _class_names(file) -> list[str]:
    """Return the names of the labels in a file, or nothing."""
    names = read_arrays(file, ["class_names"]).get("class_names")
    if names is None:
        return []
    if names.ndim != 1 or names.dtype.kind != "U" or len(set(names.tolist())) < len(names):
        raise DatasetError(f"class_names of {file} must be a list of different names, as strings.")
    return names.tolist()


def _named(label, class_names: list[str]) -> str:
    """Return the name of a label."""
    if isinstance(label, (int, np.integer)) and class_names:
        return class_names[label] if 0 <= label < len(class_names) else str(label)
    return str(label)


def _numbered(file, labels: dict[str, np.ndarray]) -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the class names and, for every part, the numbers of the classes."""
    given = _class_names(file)
    kinds = np.unique(labels["train"])
    names = [_named(kind, given) for kind in kinds]
    if len(names) < 2:
        raise DatasetError(f"A classifier needs at least two classes, got {len(names)} in the training labels.")
    for name in names:
        if not name.isprintable() or not name:
            raise DatasetError(f"The label {printable(name)!r} of {file} is not printable; rename it.")
    numbered = {}
    for part, values in labels.items():
        places = np.clip(np.searchsorted(kinds, values), 0, len(kinds) - 1)
        is_strange = kinds[places] != values if values.dtype.kind == kinds.dtype.kind else np.ones(len(values), bool)
        if is_strange.any():
            strange = short(values[is_strange][0].item())
            raise DatasetError(
                f"{file} has the label {strange} in {part}, which is not among those in train; correct it, or add"
                " training images of this class."
            )
        numbered[part] = places.astype(np.int64)
    return names, numbered


def _usual(shape: tuple[int, ...], is_square: bool) -> tuple[int, int]:
    """Return the size of the images if it is small, else 50x50; square if images are to be rotated."""
    height, width = shape
    if height > USUAL_SIZE[0] or width > USUAL_SIZE[1]:
        return USUAL_SIZE
    return (max(height, width),) * 2 if is_square else (height, width)


def _seen_note(images, learned: Learned) -> tuple[str, ...]:
    """Return one sentence on test images that are also in training or validation."""
    n_seen = int(learned.contains(image_digests(images)).sum())
    return (f"{n_seen} test images are also among the training or validation images",) if n_seen else ()
