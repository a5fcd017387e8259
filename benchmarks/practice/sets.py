"""The sets of pictures: what is learned from, upright, and two tests, upright and turned by any angle.

Each is made by one seed, which also says which fonts, objects, digits or places of a photograph are for the test.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from benchmarks.practice.drawing import (
    LETTERS,
    SHAPES,
    TEST_FONTS,
    TEXTURES,
    TRAINING_FONTS,
    draw_letter,
    draw_shape,
    draw_texture,
)
from tigra.datasets.sources import ETH80_CLASSES, eth80_pictures, load_mnist
from tigra.errors import UsageError
from tigra.images.colour import LUMA
from tigra.images.pictures import decode_image
from tigra.images.transforms import rotate
from tigra.seeding import generator


class PictureSet(NamedTuple):
    """Pictures of 8 bits, grey (n, height, width) or in colour (n, height, width, 3), and their labels.

    Attributes
    ----------
    train, train_labels : arrays
        Upright pictures to learn from; validation pictures have to come from them, too.
    upright, turned, test_labels : arrays
        The test: other pictures, upright, and each turned by an angle of its own.
    class_names : list of str
        What the labels mean.
    """

    train: np.ndarray
    train_labels: np.ndarray
    upright: np.ndarray
    turned: np.ndarray
    test_labels: np.ndarray
    class_names: list[str]

    @property
    def digest(self) -> str:
        """Tells whether two sets are the same: other versions of fonts and of Pillow draw other pixels."""
        return hashlib.sha256(b"".join(array.tobytes() for array in self[:5])).hexdigest()[:16]


class Counts(NamedTuple):
    """Pictures of each class."""

    train: int
    test: int


class Recipe(NamedTuple):
    """How a set is made: its words for the table, its counts, and a function of (counts, seed, data_dir)."""

    words: str
    counts: Counts
    make: Callable[[Counts, int, str | None], PictureSet]
    is_dark_on_light: bool = False


def make(name: str, seed: int, data_dir: str | None = None, counts: Counts | None = None) -> PictureSet:
    """Make a set of SETS; `counts` other than the usual ones are for tests."""
    recipe = SETS[name]
    return recipe.make(counts or recipe.counts, seed, data_dir)


def turned_by_interpolation(pictures: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each picture rotated by an angle of its own; its border's median enters from outside."""
    levels = rotate(pictures / 255.0, rng.uniform(0, 360, len(pictures)), background="border")
    return np.rint(255 * levels).astype(np.uint8)


# --- drawn on the spot ----------------------------------------------------------------------------------------


def _drawn(names: list[str], counts: Counts, rng: np.random.Generator, draw_one: Callable) -> PictureSet:
    """A set whose pictures are drawn by `draw_one(name, number, is_test, angle, rng)`."""

    def draw_all(number: int, is_test: bool, angles: np.ndarray) -> np.ndarray:
        turns = iter(angles)
        return np.stack([draw_one(name, n, is_test, next(turns), rng) for name in names for n in range(number)])

    n_test = len(names) * counts.test
    return PictureSet(
        draw_all(counts.train, False, np.zeros(len(names) * counts.train)),
        np.repeat(np.arange(len(names)), counts.train),
        draw_all(counts.test, True, np.zeros(n_test)),
        draw_all(counts.test, True, rng.uniform(0, 360, n_test)),
        np.repeat(np.arange(len(names)), counts.test),
        list(names),
    )


def _letters(counts: Counts, seed: int, data_dir: str | None) -> PictureSet:
    fonts = [list(islice(cycle(some), n)) for some, n in zip((TRAINING_FONTS, TEST_FONTS), counts, strict=True)]

    def draw_one(letter, number, is_test, angle, rng):
        return draw_letter(letter, fonts[is_test][number], angle, rng)

    return _drawn(list(LETTERS), counts, generator(seed, "letters"), draw_one)


def _shapes(counts: Counts, seed: int, data_dir: str | None) -> PictureSet:
    draw_one = lambda name, number, is_test, angle, rng: draw_shape(name, angle, rng)  # noqa: E731
    return _drawn(list(SHAPES), counts, generator(seed, "shapes"), draw_one)


def _textures(counts: Counts, seed: int, data_dir: str | None) -> PictureSet:
    draw_one = lambda name, number, is_test, angle, rng: draw_texture(name, angle, rng)  # noqa: E731
    return _drawn(list(TEXTURES), counts, generator(seed, "textures"), draw_one)


# --- digits and objects ---------------------------------------------------------------------------------------

DIGITS = 9  # without the 9, which looks like a turned 6
OBJECTS, TEST_OBJECTS, ETH_SHAPE = 10, 3, (50, 50, 3)


def _digits(counts: Counts, seed: int, data_dir: str | None) -> PictureSet:
    mnist, rng = load_mnist(data_dir), generator(seed, "digits")

    def drawn(part: str, number: int) -> tuple[np.ndarray, np.ndarray]:
        images, labels = mnist[part]
        rows = [rng.permutation(np.flatnonzero(labels == digit))[:number] for digit in range(DIGITS)]
        return images[np.concatenate(rows)], np.repeat(np.arange(DIGITS), number)

    train, train_labels = drawn("train", counts.train)
    test, test_labels = drawn("test", counts.test)
    turned = turned_by_interpolation(test, rng)
    return PictureSet(train, train_labels, test, turned, test_labels, [str(digit) for digit in range(DIGITS)])


def _objects(counts: Counts, seed: int, data_dir: str | None) -> PictureSet:
    """ETH-80, where the objects of the test are not seen in training."""
    rng = generator(seed, "objects")
    found: dict[str, dict[str, list[bytes]]] = {}
    for class_name, object_name, _, content in eth80_pictures(data_dir):
        found.setdefault(class_name, {}).setdefault(object_name, []).append(content)
    train: list[bytes] = []
    test: list[bytes] = []
    for objects in found.values():
        order = [list(objects.values())[number] for number in rng.permutation(OBJECTS)]
        for some, number, chosen in (
            (order[TEST_OBJECTS:], counts.train, train),
            (order[:TEST_OBJECTS], counts.test, test),
        ):
            views = [view for views in some for view in views]
            chosen += [views[place] for place in rng.permutation(len(views))[:number]]
    upright, train_pictures = (np.stack([_decoded(content) for content in some]) for some in (test, train))
    return PictureSet(
        train_pictures,
        np.repeat(np.arange(len(found)), counts.train),
        upright,
        turned_by_interpolation(upright, rng),
        np.repeat(np.arange(len(found)), counts.test),
        list(ETH80_CLASSES),
    )


def _decoded(content: bytes) -> np.ndarray:
    return np.rint(255 * decode_image(content, "a picture", ETH_SHAPE, background="border")).astype(np.uint8)


# --- photographs ----------------------------------------------------------------------------------------------

PATCH, REACH = 32, 23  # pixels: a turned patch has no corner farther from its centre than REACH
AREAS = {  # left, top, right and bottom in the photographs that come with scikit-learn
    "sky": ("china.jpg", (330, 10, 630, 120)),
    "lake": ("china.jpg", (330, 205, 540, 290)),
    "tower": ("china.jpg", (95, 130, 315, 350)),
    "bushes": ("china.jpg", (340, 320, 560, 425)),
    "leaves": ("china.jpg", (0, 345, 190, 425)),
    "pine": ("china.jpg", (555, 255, 640, 425)),
    "petals": ("flower.jpg", (200, 110, 430, 330)),
    "shadow": ("flower.jpg", (0, 60, 150, 400)),
}


def _photographs(counts: Counts, seed: int, data_dir: str | None) -> PictureSet:
    """Grey patches of two photographs; half of each area is for training, the other half for the test."""
    rng = generator(seed, "photographs")
    train, upright, turned = [], [], []
    for file, (left, top, right, bottom) in AREAS.values():
        area = _grey_photograph(file)[top:bottom, left:right]
        halves = np.array_split(area, 2, axis=0 if area.shape[0] > area.shape[1] else 1)
        train += _patches(halves[0], np.zeros(counts.train), rng)
        upright += _patches(halves[1], np.zeros(counts.test), rng)
        turned += _patches(halves[1], rng.uniform(0, 360, counts.test), rng)
    labels = [np.repeat(np.arange(len(AREAS)), number) for number in counts]
    return PictureSet(np.stack(train), labels[0], np.stack(upright), np.stack(turned), labels[1], list(AREAS))


@cache
def _grey_photograph(file: str) -> np.ndarray:
    package = importlib.util.find_spec("sklearn")  # not imported, which takes seconds
    if package is None or package.origin is None:
        raise UsageError("Photographs come with scikit-learn; install it with: pip install scikit-learn")
    with Image.open(Path(package.origin).parent / "datasets" / "images" / file) as photograph:
        return np.asarray(photograph.convert("RGB")) @ np.array(LUMA)


def _patches(area: np.ndarray, angles: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """One patch for each angle, from a random place; a turned one is cut from the turned surroundings."""
    patches, start = [], REACH - PATCH // 2
    for angle in angles:
        row, column = (int(rng.integers(REACH, size - REACH + 1)) for size in area.shape)
        around = area[row - REACH : row + REACH, column - REACH : column + REACH]
        around = rotate(around[None] / 255, angle)[0] if angle else around / 255
        patches.append(np.rint(255 * around[start : start + PATCH, start : start + PATCH]).astype(np.uint8))
    return patches


SETS = {
    "letters": Recipe("letters, unseen fonts, 40 a class", Counts(40, 36), _letters, is_dark_on_light=True),
    "shapes": Recipe("shapes, 40 a class", Counts(40, 40), _shapes),
    "textures": Recipe("textures, 40 a class", Counts(40, 40), _textures),
    "photographs": Recipe("patches of photographs, 40 a class", Counts(40, 40), _photographs),
    "objects": Recipe("ETH-80, unseen objects, 40 a class", Counts(40, 40), _objects),
    "digits-20": Recipe("MNIST, 20 a class", Counts(20, 100), _digits),
    "digits-100": Recipe("MNIST, 100 a class", Counts(100, 100), _digits),
    "digits-500": Recipe("MNIST, 500 a class", Counts(500, 100), _digits),
}
