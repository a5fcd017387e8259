"""Data sets in memory: training, validation and test images with labels, and how they were made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tigra.datasets.learned import Learned
from tigra.errors import DatasetError, UsageError
from tigra.images.background import WINDOWS, WORDS, find_background
from tigra.images.store import Images, LazyImages, TurnedImages
from tigra.images.transforms import rotate
from tigra.seeding import generator


class Split(NamedTuple):
    """Images with their labels.

    Attributes
    ----------
    images : array of shape (n, height, width) or (n, height, width, 3), or LazyImages
        Grey levels, or red, green and blue, in [0, 1].
    labels : array of int, shape (n,)
        Index of each image's class.
    """

    images: Images
    labels: np.ndarray


@dataclass(frozen=True)
class Splits:
    """A data set: training, validation and test images.

    Attributes
    ----------
    name : str
        Name of the data set, or path of the folder.
    train, valid : Split
        Training and validation images, upright unless training rotations are requested.
    test, test_upright : Split
        Test images after and before the transformation.
    class_names : list of str
        Name of each class, in the order of the labels.
    transform : callable or None
        Function (images, rng) -> transformed images that made `test`; `fresh_test` uses it again. None
        if test images are not transformed.
    options : dict
        Arguments of `load_dataset` that give the same data set.
    protocol : str
        How the data set was made; printed with every result.
    notes : tuple of str
        Remarks on the files for the user, such as pictures left out.
    learned : Learned or None
        The pictures in `train` and `valid`, so that they are never tested. None stands for the images of these parts.
    background : {"", "black", "border", "window", "window-mean"}
        What is around the objects, or a window; "" stands for what `find_background` says.
    test_names : sequence of str
        File names of the test pictures of a folder, in their order; empty for other data sets.
    drawn : str
        Words of the protocol on how the images were divided; a cross-validation has others.
    train_upright : Split or None
        Training images before they were rotated; None if they were not.
    """

    name: str
    train: Split
    valid: Split
    test: Split
    test_upright: Split
    class_names: list[str]
    transform: Callable | None
    options: dict = field(default_factory=dict)
    protocol: str = ""
    notes: tuple[str, ...] = ()
    learned: Learned | None = None
    background: str = ""
    test_names: Sequence[str] = ()
    drawn: str = ""
    train_upright: Split | None = None

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Height and width of the images, and 3 if they have colour."""
        return tuple(self.train.images.shape[1:])

    @cached_property
    def learned_pictures(self) -> Learned:
        """`learned`, or computed from `train` and `valid`."""
        return Learned.of_images(self.train.images, self.valid.images) if self.learned is None else self.learned

    @cached_property
    def found_background(self) -> str:
        """`background`, or that of the training images."""
        return self.background or find_background(self.train.images, self.train.labels)

    def seen_with(self, background: str) -> Splits:
        """These splits for a network with this `background`: no window that it does not have is in the protocol."""
        if self.background not in WINDOWS or background in WINDOWS:
            return self
        protocol = self.protocol.replace(WORDS[self.background], WORDS["border"], 1)
        return replace(self, background="border", protocol=protocol)

    @property
    def entering(self) -> str:
        """What enters when images are moved: "black" if the user said so, else "border", their own background."""
        return "black" if self.options.get("background") == "black" else "border"

    def fresh_test(self, seed) -> Split:
        """Return the test images under new random transformations.

        Parameters
        ----------
        seed : int or numpy.random.Generator
            As for `numpy.random.default_rng`.

        Returns
        -------
        Split
        """
        return transformed(self.test_upright, self.transform, np.random.default_rng(seed))


def transformed(split: Split, transform: Callable | None, rng: np.random.Generator) -> Split:
    """Return the split with its images transformed."""
    return Split(transform(split.images, rng), split.labels) if transform else split


# --- identity ---------------------------------------------------------------------------------------------


def as_split(split) -> Split:
    """Return a Split from a Split, an object with .images and .labels, or a pair."""
    return Split(split.images, split.labels) if hasattr(split, "images") else Split(*split)


def train_and_valid(splits) -> tuple[Split, Split]:
    """Return (training set, validation set) of a data set, an object with .train and .valid, or a pair."""
    if hasattr(splits, "train") and hasattr(splits, "valid"):
        return as_split(splits.train), as_split(splits.valid)
    try:
        train, valid = splits
        return as_split(train), as_split(valid)
    except (TypeError, ValueError) as error:
        raise UsageError(
            "Expected a data set with .train and .valid, or a pair (train, valid), each with .images and .labels or a"
            f" pair (images, labels), got {type(splits).__name__}."
        ) from error


def fingerprint(splits) -> str:
    """Return the SHA-256 of the training and validation images and labels, independent of their dtype."""
    train, valid = train_and_valid(splits)
    return _hash_of(*train, *valid)


def split_hash(splits) -> str:
    """Return the SHA-256 of the validation images and all labels, which identifies the split."""
    return _hash_of(as_split(splits.train).labels, *as_split(splits.valid))


def _hash_of(*arrays) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        array, kind = (array, "<f8") if np.ndim(array) > 1 else (np.asarray(array), "<i8")
        for start in range(0, len(array), 1024):  # in chunks, to save memory
            digest.update(np.ascontiguousarray(array[start : start + 1024], dtype=kind).data)
    return digest.hexdigest()


# --- rotations --------------------------------------------------------------------------------------------


def turned_at_random(images, rng: np.random.Generator, interpolation: str = "cubic", background: str = "black"):
    """Rotate each image by its own angle, uniform in [0, 360) degrees; lazy images stay lazy."""
    return _turned(images, rng.uniform(0, 360, len(images)), interpolation, background)


def _turned(images, degrees, interpolation, background):
    turn = TurnedImages if isinstance(images, LazyImages) else rotate
    return turn(images, degrees, interpolation, background=background)


def check_rotations(n_angles: int | str) -> None:
    """Raise UsageError unless `train_rotations` is "random" or a whole number from 0 to 360."""
    is_number = isinstance(n_angles, (int, np.integer)) and not isinstance(n_angles, bool)
    if n_angles != "random" and not (is_number and n_angles in range(361)):
        raise UsageError(f"train_rotations must be 'random' or a whole number from 0 to 360, got {n_angles!r}.")


def with_train_rotations(
    train: Split, n_angles: int | str, seed: int, interpolation: str, background: str = "black"
) -> tuple[Split, str]:
    """Rotate each training image once, as in the paper's D_i; return it with words for the protocol.

    With `n_angles` = 0, images stay as they are. With K, each image is rotated by one of the K angles
    0, 360/K, 2 360/K, ..., chosen at random. With "random", each is rotated by any angle.
    """
    if n_angles in (0, 1):
        return train, "upright"
    rng = generator(seed, "train rotations")
    if isinstance(n_angles, str):
        turned = turned_at_random(train.images, rng, interpolation, background)
        return Split(turned, train.labels), "rotated by [0, 360) degrees"
    degrees = 360.0 / n_angles * rng.integers(n_angles, size=len(train.labels))
    turned = _turned(train.images, degrees, interpolation, background)
    return Split(turned, train.labels), f"rotated by one of {n_angles} equally spaced angles"


# --- putting together ------------------------------------------------------------------------------------


def assemble(
    name: str,
    upright: dict[str, Split],
    class_names: list[str],
    transform: Callable | None,
    interpolation: str,
    test_words: str,
    seed: int = 0,
    train_rotations: int | str = 0,
    options: dict | None = None,
    before: str = "",
    drawn: str = "",
    entering: str = "black",
    **more,
) -> Splits:
    """Make Splits from upright parts: rotate training images if requested, transform test images.

    The texts `before`, `drawn` and `test_words` become parts of the protocol. `entering` is the background that
    rotated training images continue.
    """
    check_rotations(train_rotations)
    train, train_words = with_train_rotations(upright["train"], train_rotations, seed, interpolation, entering)
    if train_words != "upright" and more.get("learned") is None:
        more["learned"] = Learned.of_images(upright["train"].images, upright["valid"].images)
    both = "train and valid upright, " if train_words == "upright" else f"train {train_words}, valid upright, "
    both = both if len(train.labels) else ""  # a folder that is only tested
    return Splits(
        name=name,
        train=train,
        valid=upright["valid"],
        test=transformed(upright["test"], transform, np.random.default_rng(seed)),
        test_upright=upright["test"],
        class_names=class_names,
        transform=transform,
        options={"seed": seed, "interpolation": interpolation, **(options or {}), "train_rotations": train_rotations},
        protocol=f"{before}{drawn}{both}{test_words}",
        drawn=drawn,
        train_upright=None if train_words == "upright" else upright["train"],
        **more,
    )


# --- drawing ------------------------------------------------------------------------------------------------


def draw(n_images: int, sizes: dict[str, int], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Draw random disjoint sets of indices below n_images, of the given sizes, each sorted.

    >>> drawn = draw(5, {"a": 3, "b": 2}, np.random.default_rng(0))
    >>> sorted(np.concatenate(list(drawn.values())).tolist())
    [0, 1, 2, 3, 4]
    """
    for name, size in sizes.items():
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise UsageError(f"{name} must be a whole number of at least 1, got {size!r}.")
    if sum(sizes.values()) > n_images:
        wanted = " + ".join(f"{name} {size}" for name, size in sizes.items())
        raise UsageError(f"Expected at most {n_images} images in all, got {wanted}; choose fewer.")
    order, start, drawn = rng.permutation(n_images), 0, {}
    for name, size in sizes.items():
        drawn[name] = np.sort(order[start : start + size])
        start += size
    return drawn


def draw_stratified(labels: np.ndarray, share: float, rng: np.random.Generator, class_names) -> np.ndarray:
    """Return a mask of about `share` of the images of every class, at least one and never all.

    >>> draw_stratified(np.array([0, 0, 0, 0, 1, 1]), 0.5, np.random.default_rng(0), "ab").tolist().count(True)
    3
    """
    mask = np.zeros(len(labels), bool)
    for label, name in enumerate(class_names):
        places = np.flatnonzero(labels == label)
        if len(places) < 2:
            raise DatasetError(
                f"Class {name!r} has too few different pictures to split into training, validation and test;"
                " add pictures until it has at least 3, or make folders train/, valid/ and test/."
            )
        n_drawn = min(max(1, round(share * len(places))), len(places) - 1)
        mask[rng.permutation(places)[:n_drawn]] = True
    return mask
