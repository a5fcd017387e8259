"""The four data sets of the paper, with its splits and transformations as defaults.

Every function takes `seed`, the seed of all random numbers, and returns `Splits`. Validation images are
always upright. Training images are, too, unless `train_rotations` asks for the paper's D_i.
"""

from __future__ import annotations

import hashlib
from functools import partial
from importlib import resources
from numbers import Real

import numpy as np

from tigra.datasets.learned import Learned
from tigra.datasets.sources import eth80_pictures, find, load_mnist
from tigra.datasets.splits import Split, Splits, assemble, draw, turned_at_random
from tigra.errors import DatasetError, UsageError
from tigra.files.cache import cache_folder
from tigra.files.room import check_memory, check_room
from tigra.images.store import StoredImages, store_key, stored_pictures
from tigra.images.transforms import checked_shape, pad, random_shifts, resize
from tigra.seeding import generator

FLOATS = 8  # bytes of a pixel in memory: float32, and as much while the digits are scaled
ROTATED = "rotated by [0, 360) degrees"


def load_mnist_012(seed=0, interpolation="cubic", all_test=False, train_rotations=0, data_dir=None) -> Splits:
    """Load 500/100/100 MNIST digits 0, 1, 2 that come with the package; test digits are rotated.

    The upright digits are in data/mnist-012.npz, drawn by data/draw_mnist_012.py. Each test digit is
    rotated by its own random angle in [0, 360) degrees.

    Parameters
    ----------
    all_test : bool
        Test on all 3147 digits 0, 1, 2 of MNIST's test set, which needs the files of MNIST.
    seed, interpolation, train_rotations, data_dir
        As for `load_dataset` and `load_folder`.

    Returns
    -------
    Splits
        The data set.
    """
    try:
        with resources.files("tigra_data").joinpath("mnist-012.npz").open("rb") as file:
            stored = dict(np.load(file, allow_pickle=False))
    except ModuleNotFoundError as error:
        raise DatasetError("The package's data is not installed; run 'pip install .' in tigra's folder.") from error
    upright = {
        part: Split(stored[f"{part}_images"] / 255.0, stored[f"{part}_labels"].astype(np.int64))
        for part in ("train", "valid", "test")
    }
    which = "test"
    if all_test:
        images, labels = load_mnist(data_dir)["test"]
        chosen = labels <= 2
        upright["test"] = Split(images[chosen] / 255.0, labels[chosen].astype(np.int64))
        which = "test (all of MNIST's)"
    return assemble(
        "mnist-012",
        upright,
        class_names=["0", "1", "2"],
        transform=partial(turned_at_random, interpolation=interpolation),
        seed=seed,
        train_rotations=train_rotations,
        interpolation=interpolation,
        test_words=f"{which} {ROTATED}, {interpolation} interpolation",
        options={"all_test": bool(all_test)},
        learned=Learned.of_images(upright["train"].images, upright["valid"].images),
    )


def load_mnist_rot(
    seed=0,
    interpolation="cubic",
    size=(26, 26),
    nines=False,
    n_train=50_000,
    n_valid=3_000,
    train_rotations=0,
    data_dir=None,
) -> Splits:
    """Load MNIST digits 0 to 8 resized to 26x26; the 8,991 test digits are rotated by any angle.

    Training and validation digits are drawn from MNIST's training set. The paper leaves out the 9 because it
    looks like a rotated 6.

    Parameters
    ----------
    size : (int, int)
        Height and width of the images.
    nines : bool
        Load the 9, too; then there are 10,000 test digits.
    n_train, n_valid : int
        Number of training and validation images.
    seed, interpolation, train_rotations, data_dir
        As for `load_dataset` and `load_folder`.

    Returns
    -------
    Splits
        The data set.
    """
    size, last = checked_shape(size), 9 if nines else 8
    upright, learned = _digits(data_dir, last, seed, n_train, n_valid, size, lambda images: resize(images, size))
    return assemble(
        "mnist-rot",
        upright,
        class_names=[str(digit) for digit in range(last + 1)],
        transform=partial(turned_at_random, interpolation=interpolation),
        seed=seed,
        train_rotations=train_rotations,
        interpolation=interpolation,
        before=f"digits 0-{last} resized to {size[0]}x{size[1]}, ",
        test_words=f"test {ROTATED}, {interpolation} interpolation",
        options={"size": size, "n_train": n_train, "n_valid": n_valid} | ({"nines": True} if nines else {}),
        learned=learned,
    )


def load_mnist_trans(
    seed=0,
    interpolation="cubic",
    size=(34, 34),
    max_shift=6,
    shifts="whole",
    n_train=50_000,
    n_valid=3_000,
    train_rotations=0,
    data_dir=None,
) -> Splits:
    """Load MNIST digits 0 to 8 padded to 34x34; the 8,991 test digits are shifted up to 6 pixels each way.

    Parameters
    ----------
    max_shift : float
        Largest shift in pixels, horizontally and vertically.
    shifts : {"whole", "real"}
        Shift by whole pixels, or by real numbers of pixels with interpolation.
    size, n_train, n_valid, seed, interpolation, train_rotations, data_dir
        As for `load_mnist_rot`.

    Returns
    -------
    Splits
        The data set.
    """
    size = checked_shape(size)
    if shifts not in ("whole", "real"):
        raise UsageError(f"shifts must be 'whole' or 'real', got {shifts!r}.")
    if not (isinstance(max_shift, Real) and 0 <= float(max_shift) <= max(size)):
        raise UsageError(f"max_shift must be a number of pixels from 0 to {max(size)}, got {max_shift!r}.")
    whole, largest = shifts == "whole", float(max_shift)
    how = "whole pixels" if whole else f"real numbers of pixels, {interpolation} interpolation"
    upright, learned = _digits(data_dir, 8, seed, n_train, n_valid, size, lambda images: pad(images, size))
    return assemble(
        "mnist-trans",
        upright,
        class_names=[str(digit) for digit in range(9)],
        transform=partial(random_shifts, largest=largest, whole=whole, interpolation=interpolation),
        seed=seed,
        train_rotations=train_rotations,
        interpolation=interpolation,
        before=f"digits 0-8 padded to {size[0]}x{size[1]}, ",
        test_words=f"test shifted by up to {int(largest) if whole else largest:g} pixels each way, {how}",
        options={"size": size, "max_shift": max_shift, "shifts": shifts, "n_train": n_train, "n_valid": n_valid},
        learned=learned,
    )


def _digits(data_dir, last, seed, n_train, n_valid, size, fit) -> tuple[dict[str, Split], Learned]:
    """Return MNIST from 0 to `last`: random training and validation digits, all test digits, and what is learned."""
    mnist = load_mnist(data_dir)
    images, labels = mnist["train"]
    wanted = np.flatnonzero(labels <= last)
    drawn = draw(len(wanted), {"n_train": n_train, "n_valid": n_valid}, generator(seed, "split"))
    test_images, test_labels = mnist["test"]
    chosen = {
        "train": (images, labels, wanted[drawn["n_train"]]),
        "valid": (images, labels, wanted[drawn["n_valid"]]),
        "test": (test_images, test_labels, np.flatnonzero(test_labels <= last)),
    }
    n_digits, (height, width) = sum(len(rows) for _, _, rows in chosen.values()), size
    what = f"{n_digits} digits of {height}x{width} pixels"
    check_memory(FLOATS * n_digits * height * width, what, "choose a smaller --size, or fewer digits with --n-train")
    parts = {
        part: Split(fit(pixels[rows] / np.float32(255)), names[rows].astype(np.int64))
        for part, (pixels, names, rows) in chosen.items()
    }
    return parts, Learned.of_images(images[chosen["train"][2]], images[chosen["valid"][2]])  # as in files of digits


def load_eth_80(
    seed=0,
    interpolation="cubic",
    size=(50, 50),
    split="image",
    fold=None,
    n_train=None,
    n_valid=None,
    test_rotations=False,
    train_rotations=0,
    data_dir=None,
    threads=1,
    on_progress=lambda what, done, total: None,
    colour="no",
) -> Splits:
    """Load ETH-80: 80 objects of 8 classes in 41 views each, 50x50 pixels, in grey as in the paper.

    Parameters
    ----------
    split : {"image", "object"}
        "image", as in the paper, splits at random by image, so that views of one object are both in
        training and in test. "object" splits by object: object number `fold` of each class is for the
        test, the next one for validation, and the other eight for training.
    fold : int, optional
        From 0 to 9, for split="object"; 0 by default.
    n_train, n_valid : int, optional
        For split="image"; 2300 and 300 by default, which leaves 680 test images.
    test_rotations : bool
        Rotate test images by any angle over their background, which the paper does not do.
    colour : {"no", "yes"}
        Read the photographs in colour.
    size, seed, interpolation, train_rotations, data_dir, threads, on_progress
        As for `load_mnist_rot` and `load_dataset`.

    Returns
    -------
    Splits
        The data set.
    """
    size = checked_shape(size)
    if split not in ("image", "object"):
        raise UsageError(f"split must be 'image' or 'object', got {split!r}.")
    if split == "image" and fold is not None:
        raise UsageError(
            "fold is for split='object', got split='image'; leave out fold, and change seed for another split."
        )
    if split == "object" and (n_train is not None or n_valid is not None):
        raise UsageError("n_train and n_valid are for split='image', got split='object'; leave them out.")
    n_train, n_valid, fold = (
        usual if value is None else value for value, usual in ((n_train, 2_300), (n_valid, 300), (fold, 0))
    )
    if not isinstance(fold, (int, np.integer)) or not 0 <= fold <= 9:
        raise UsageError(f"fold must be a whole number from 0 to 9, got {fold!r}.")
    if colour not in ("no", "yes"):
        raise UsageError(f"colour of eth-80 must be 'no' or 'yes', got {colour!r}.")
    shape = (*size, 3) if colour == "yes" else size
    store, labels, objects, class_names = _eth_80_views(data_dir, shape, threads, on_progress)
    if split == "image":
        sizes = {"n_train": n_train, "n_valid": n_valid, "test": max(1, len(labels) - n_train - n_valid)}
        train, valid, test = draw(len(labels), sizes, generator(seed, "split")).values()
        words, options = "random split over images", {"n_train": n_train, "n_valid": n_valid}
    else:
        turn = (objects - fold) % 10
        train, valid, test = (np.flatnonzero(mask) for mask in (turn > 1, turn == 1, turn == 0))
        words, options = f"split by object, fold {fold}", {"fold": int(fold)}
    found = find("eth80", data_dir)
    assert found is not None  # its pictures have just been read
    parts = {
        part: Split(StoredImages(store.pixels, rows), labels[rows])
        for part, rows in (("train", train), ("valid", valid), ("test", test))
    }
    return assemble(
        "eth-80",
        parts,
        class_names=class_names,
        transform=partial(turned_at_random, interpolation=interpolation, background="border")
        if test_rotations
        else None,
        seed=seed,
        train_rotations=train_rotations,
        interpolation=interpolation,
        before=f"{found.paths[0].name}, {size[0]}x{size[1]} {'colour' if colour == 'yes' else 'grey'}, ",
        drawn=f"{words}, ",
        test_words=f"test {ROTATED}, {interpolation} interpolation" if test_rotations else "test as photographed",
        options={
            "size": size,
            "split": split,
            **options,
            "test_rotations": bool(test_rotations),
            **({"colour": colour} if colour == "yes" else {}),
        },
        entering="border",
        learned=Learned.of_digests((store.digests[row] for row in (*train, *valid)), shape),
    )


def _eth_80_views(data_dir, size, threads, on_progress):
    """Return (store, labels, objects, class names); objects are counted from 0 in each class."""

    def pictures():
        for kind, thing, view, content in eth80_pictures(data_dir):
            yield f"{kind}/{thing}/{view}", content

    on_progress("reading ETH-80", 0, 0)
    cache = cache_folder()
    key = store_key([(name, hashlib.sha256(content).hexdigest()) for name, content in pictures()], size, invert=False)

    def decoded():
        check_room(cache, 8 * 10 * 41, size)
        return pictures()

    def report(_, done, total):
        on_progress("decoding ETH-80", done, total)

    store = stored_pictures(cache, key, decoded, 8 * 10 * 41, size, threads=threads, on_progress=report)
    if store.skipped:
        raise DatasetError(
            f"{len(store.skipped)} pictures of ETH-80 are damaged, fetch it again: {store.skipped[0][1]}"
        )
    kinds, things, _ = zip(*(name.split("/") for name in store.names), strict=True)
    class_names = sorted(set(kinds))
    labels = np.array([class_names.index(kind) for kind in kinds])
    places = {thing: number for number, thing in enumerate(dict.fromkeys(things))}  # in the order of the source
    return store, labels, np.array([places[thing] for thing in things]) % 10, class_names
