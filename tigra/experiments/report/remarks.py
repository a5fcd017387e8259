"""Remarks on a result: what a good colleague would add to the numbers, as sentences."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from tigra.datasets.loading import is_own_data
from tigra.datasets.npz.files import ArrayImages, images_have_colour
from tigra.datasets.picture_files import list_pictures
from tigra.datasets.splits import Splits
from tigra.errors import TigraError
from tigra.experiments.report.counts import Counts
from tigra.images.pictures import picture_size
from tigra.models.classifier import Classifier
from tigra.training.weights import IMBALANCE

FEW_TRAINING, FEW_TEST = 20, 10  # pictures of a class
CONFUSED = 0.2  # of a class
N_LISTED = 3  # classes or pairs in a sentence
N_SAMPLE = 30  # pictures that are looked at for colour, size and mirror images
COLOUR = 32  # difference of two channels of a pixel, of 255, from which it counts as coloured


def remarks(counts: Counts, splits: Splits, network: Classifier, is_weighted: bool = False) -> list[str]:
    """Return sentences on the training and test images and on the mistakes.

    Parameters
    ----------
    counts : Counts
        Counts of the test.
    splits : Splits
        The data set; without training images, nothing is said about them.
    network : Classifier
        The classifier.
    is_weighted : bool
        Whether the training gave rare classes more weight.

    Returns
    -------
    list of str
        Sentences without their full stops.
    """
    names = splits.class_names
    said = on_training(np.bincount(splits.train.labels, minlength=len(names)), names, is_weighted)
    return [*said, *on_test(counts), *on_mistakes(counts, splits, network), *on_pictures(splits, network)]


def on_training(n_images: np.ndarray, names: Sequence[str], is_weighted: bool = False) -> list[str]:
    """Return sentences on the numbers of training images of the classes.

    >>> on_training(np.array([5, 120]), ["cat", "dog"], is_weighted=True)
    ['there are few training images of cat (5); add images until each class has at least 20']
    """
    said: list[str] = []
    if not n_images.sum():  # only a test
        return said
    few = [place for place in np.argsort(n_images, kind="stable") if n_images[place] < FEW_TRAINING]
    if few:
        said.append(
            f"there are few training images of {_listed(names, n_images, few)}; add images until each class has at"
            f" least {FEW_TRAINING}"
        )
    rare, common = int(n_images.argmin()), int(n_images.argmax())
    if n_images[common] >= IMBALANCE * max(n_images[rare], 1) and not is_weighted:
        said.append(
            f"{names[common]} has {n_images[common]} training images, {names[rare]} {n_images[rare]}, so the network"
            f" learns to prefer {names[common]}; train with --class-weights balanced"
        )
    return said


def on_test(counts: Counts) -> list[str]:
    """Return a sentence on classes with few test images."""
    n_images = counts.images
    few = [int(place) for place in np.argsort(n_images, kind="stable") if 0 < n_images[place] < FEW_TEST]
    if not few:
        return []
    low, high = (f"{100 * limit:.0f}" for limit in counts.interval)
    said = f"there are few test images of {_listed(counts.class_names, n_images, few)}: with {int(n_images.sum())} test"
    return [f"{said} images in all, the accuracy may be anything from {low} to {high} %"]


def on_mistakes(counts: Counts, splits: Splits, network: Classifier) -> list[str]:
    """Return sentences on pairs of classes that are often confused, and why."""
    said, names = [], counts.class_names
    told: set[tuple[int, int]] = set()
    for a, b, share in counts.confused(least=CONFUSED):
        if counts.confusion[a, b] < 2 * counts.runs or len(told) == N_LISTED or (b, a) in told:
            continue
        told.add((a, b))
        back = next((s for x, y, s in counts.confused() if (x, y) == (b, a)), 0.0)
        also = f", and {100 * back:.0f} % of {names[b]} for {names[a]}" if back >= CONFUSED else ""
        said.append(f"{100 * share:.0f} % of {names[a]} is taken for {names[b]}{also}")
        images = [splits.test_upright.images[np.flatnonzero(splits.test.labels == c)[:N_SAMPLE]] for c in (a, b)]
        if len(images[1]) and is_achiral(network, images[0]) and are_mirrored(*images):
            said.append(
                f"{names[b]} looks like the mirror image of {names[a]}, and this network does not tell mirror images"
                " apart; train with --recipe best"
            )
    return said


def on_pictures(splits: Splits, network: Classifier) -> list[str]:
    """Return sentences on what happened to the user's own pictures: rotations, colours, sizes."""
    if not is_own_data(splits.name):
        return []
    said = []
    if splits.transform is None:
        said.append("the test pictures were upright, as in the files; add --test-rotations to test them at any angle")
    are_coloured, found = _looked_at(splits)
    if len(network.image_shape) == 2 and are_coloured:
        said.append("the pictures have colours, but the network sees grey: classes that differ by colour look the same")
    sizes = sorted(found, key=lambda size: size[0] * size[1])
    height, width = network.image_shape[:2]
    if sizes and sizes[-1][0] * sizes[-1][1] > 2 * height * width:
        largest = f"{sizes[-1][0]}x{sizes[-1][1]}"
        span = largest if len(sizes) == 1 else f"{sizes[0][0]}x{sizes[0][1]} to {largest}"
        said.append(f"pictures of {span} pixels were reduced to {height}x{width}; details may be lost, see --size")
    return said


def _looked_at(splits: Splits) -> tuple[bool, set[tuple[int, ...]]]:
    """Return whether most pictures have colours, and sizes of some, as they were before they were read."""
    images = splits.test_upright.images
    if isinstance(images, ArrayImages):
        return images_have_colour(images.pixels), {images.pixels.shape[1:3]}
    try:
        files = list_pictures(Path(splits.name))
    except TigraError:  # it was there a moment ago
        return False, set()
    paths = [file.path for file in files[:: max(1, len(files) // N_SAMPLE)]]
    sizes: set[tuple[int, ...]] = {size for path in paths if (size := picture_size(path))}
    return 2 * sum(map(has_colour, paths)) > len(paths), sizes


def has_colour(path) -> bool:
    """Return whether a picture has colours; False if it cannot be read."""
    try:
        with Image.open(path) as picture:
            if picture.mode in ("1", "L", "LA", "I", "I;16", "F") or picture.width * picture.height > 2**24:
                return False
            channels = np.asarray(picture.convert("RGB").resize((32, 32))).astype(int)
    except Exception:  # decoders raise almost anything; the loader says what is wrong
        return False
    return bool((np.ptp(channels, axis=2) > COLOUR).mean() > 0.02)


def is_achiral(network: Classifier, images: np.ndarray) -> bool:
    """Return whether a network gives mirror images the same scores."""
    images = np.asarray(images[:4])
    scores, mirrored = network.scores(images), network.scores(np.ascontiguousarray(images[:, :, ::-1]))
    return bool(np.abs(scores - mirrored).max() < 1e-3 * np.ptp(scores))


def are_mirrored(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether mirror images of a are much closer to images of b than a itself is.

    >>> left = np.zeros((2, 4, 4)); left[:, 1:, 0] = left[:, 3, :2] = 1
    >>> are_mirrored(left, left[:, :, ::-1]), are_mirrored(left, left)
    (True, False)
    """

    def distance(images):
        rows, others = (np.asarray(some, np.float64).reshape(len(some), -1) for some in (images, b))
        return float(np.median([np.square(others - row).sum(axis=1).min() for row in rows]))

    return distance(a[:, :, ::-1]) < 0.6 * distance(a)


def _listed(names: Sequence[str], n_images: np.ndarray, places) -> str:
    """Return names with numbers, the first few of them."""
    shown = ", ".join(f"{names[place]} ({n_images[place]})" for place in places[:N_LISTED])
    more = len(places) - N_LISTED
    return shown + (f" and {more} more class{'es' * (more > 1)}" if more > 0 else "")
