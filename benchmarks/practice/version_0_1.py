"""tigra 0.1 (commit 1cfe078) on a set of pictures; run by a Python that has it, so nothing here is of today's tigra.

    PYTHON version_0_1.py ARRAYS.npz SEED [--invert]

Writes the pictures as files into the folder where it is started, trains as `tigra train FOLDER` did, and prints
accuracies in percent and seconds of CPU time as JSON.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image
from tigra.runs import recipe_for, start_run

from tigra.datasets import load_dataset
from tigra.images import read_image
from tigra.training import accuracy


def main() -> None:
    """Train, test, print."""
    arrays, seed, inverts = np.load(sys.argv[1]), int(sys.argv[2]), "--invert" in sys.argv
    names = [f"{number:03d}" for number in range(len(arrays["class_names"]))]
    for part in ("train", "test"):
        write(Path("pictures", part), arrays[f"{part}_images"], arrays[f"{part}_labels"], names)
    write(Path("turned"), arrays["turned"], arrays["test_labels"], names)
    splits = load_dataset("pictures", seed=seed, invert=inverts)
    recipe = recipe_for("pictures")
    list(start_run(splits, recipe, seed, epochs=1).run())  # compiles the kernels
    started = time.process_time()
    training = start_run(splits, recipe, seed)
    list(training.run())
    seconds = time.process_time() - started
    network = training.best_network()
    found = {
        part: 100 * accuracy(network, read(Path(folder), splits.image_shape, inverts))
        for part, folder in (("upright", "pictures/test"), ("turned", "turned"))
    }
    facts = {"epochs": len(training.history), "best_epoch": training.best_epoch.number}
    print(json.dumps({**found, "seconds": seconds, **facts, "protocol": splits.protocol}))


def write(folder: Path, images: np.ndarray, labels: np.ndarray, names: list) -> None:
    """Write pictures into one folder for each class."""
    for number, (image, label) in enumerate(zip(images, labels)):  # noqa: B905
        inside = folder / names[label]
        inside.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(inside / f"{number:05d}.png")


def read(folder: Path, shape: tuple, inverts: bool) -> tuple:
    """Images and labels of a folder, as the network takes them."""
    paths = sorted(folder.glob("*/*.png"))
    images = np.stack([read_image(path, shape, inverts) for path in paths]).astype(np.float32)
    return images, np.array([int(path.parent.name) for path in paths])


if __name__ == "__main__":
    main()
