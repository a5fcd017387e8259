"""ETH-80 by object: which objects a network does not know, what it takes them for, and what would help.

    python -m benchmarks.objects FOLDER [--data-dir FOLDER] [--out docs]

FOLDER has the models of `tigra reproduce eth-80 --row best-object`, one a fold; unfinished ones are left out. Fold k
tests on object k + 1 of each class, so its recall of a class is that of one object. Each object is also tested with
its contrast to the background changed, blurred, and made smaller or larger: an object that is known then was mistaken
because of that. `like` is the training object whose features are nearest to those of the views that are mistaken.
Writes objects.json and objects.png to --out; the tables of docs/results.md are made from the former by `python -m
benchmarks.summary`. The figure needs matplotlib. Nothing is trained.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import ndimage

from tigra.datasets.loading import load_dataset
from tigra.datasets.splits import Splits
from tigra.errors import TigraError, UsageError
from tigra.figures.curves.resolution import require_matplotlib
from tigra.files.atomic import write_atomically
from tigra.images.background import border_grey
from tigra.images.transforms import smooth
from tigra.model_file import load_model

N_OBJECTS, N_VIEWS = 10, 41
NAME = re.compile(r"best-object-fold-(\d)\.npz")
POOR = 0.9  # recall below which an object is looked at
SHOWN = 12  # objects in the figure


def with_contrast(images: np.ndarray, factor: float) -> np.ndarray:
    """Images whose distance from the grey of their border is multiplied.

    >>> float(with_contrast(np.pad(np.full((1, 1, 1), 0.5), ((0, 0), (1, 1), (1, 1))), 0.5)[0, 1, 1])
    0.25
    """
    grey = border_grey(images)[:, None, None]
    return np.clip(grey + factor * (images - grey), 0, 1)


def zoomed(images: np.ndarray, factor: float) -> np.ndarray:
    """Images made larger about their centre; what comes in continues the border."""
    height, width = images.shape[1:]
    centre = np.array([(height - 1) / 2, (width - 1) / 2])
    matrix = np.eye(2) / factor
    moved = [
        ndimage.affine_transform(image, matrix, centre - matrix @ centre, order=1, mode="nearest") for image in images
    ]
    return np.array(moved, images.dtype)


CHANGES = {
    "contrast x 0.7": lambda images: with_contrast(images, 0.7),
    "contrast x 1.4": lambda images: with_contrast(images, 1.4),
    "blurred": lambda images: smooth(images, 0.7),
    "smaller": lambda images: zoomed(images, 0.85),
    "larger": lambda images: zoomed(images, 1.15),
}


def objects_of_fold(model, splits: Splits, fold: int) -> dict[str, dict]:
    """By class, what became of the test object: recall, mistakes, the most similar training object, changes."""
    names, labels = splits.class_names, np.asarray(splits.test.labels)
    images = splits.test.images[np.arange(len(labels))]
    predicted = model.predict(images)
    changed = {words: model.predict(change(images).astype(np.float32)) == labels for words, change in CHANGES.items()}
    train = splits.train.images[np.arange(len(splits.train.labels))]
    known, tested = model.features(train), model.features(images)
    centre, scale = known.mean(axis=0), known.std(axis=0) + 1e-9
    known, tested = (known - centre) / scale, (tested - centre) / scale
    found = {}
    for number, name in enumerate(names):
        views = np.flatnonzero(labels == number)
        wrong = views[predicted[views] != number]
        like = Counter(training_object(splits, fold, _nearest(known, tested[view])) for view in wrong)
        found[name] = {
            "recall": float(np.mean(predicted[views] == number)),
            "mistaken for": dict(Counter(names[predicted[view]] for view in wrong).most_common()),
            "like": like.most_common(1)[0][0] if like else None,
            "changed": {words: float(right[views].mean()) for words, right in changed.items()},
        }
    return found


def _nearest(known: np.ndarray, one: np.ndarray) -> int:
    return int(np.argmin(((known - one) ** 2).sum(axis=1)))


def training_object(splits: Splits, fold: int, place: int) -> str:
    """Name of the object of a training image: they are in the order of class, object and view."""
    label = int(splits.train.labels[place])
    order = np.flatnonzero(np.asarray(splits.train.labels) == label).tolist().index(place) // N_VIEWS
    objects = [number for number in range(N_OBJECTS) if number not in (fold, (fold + 1) % N_OBJECTS)]
    return f"{splits.class_names[label]} {objects[order] + 1}"


def recall_table(folds: dict[str, dict[str, dict]]) -> list[list[str]]:
    """Percent of the views of each object that are recognised: one row a class, one column an object.

    >>> recall_table({"0": {"cow": {"recall": 0.5}}, "1": {"cow": {"recall": 1.0}}})
    [['class', '1', '2', 'mean'], ['cow', '50', '100', '75']]
    """
    rows = [["class", *(str(int(fold) + 1) for fold in folds), "mean"]]
    for name in next(iter(folds.values())):
        recalls = [100 * found[name]["recall"] for found in folds.values()]
        rows.append([name, *(f"{recall:.0f}" for recall in (*recalls, np.mean(recalls)))])
    return rows


def poor_table(folds: dict[str, dict[str, dict]]) -> list[list[str]]:
    """The objects that are known least: what they are taken for, and their recall when something is changed."""
    poor = [
        (f"{name} {int(fold) + 1}", one)
        for fold, found in folds.items()
        for name, one in found.items()
        if one["recall"] < POOR
    ]
    rows = [["object", "known", "taken for", "most like", *CHANGES]]
    for name, one in sorted(poor, key=lambda pair: pair[1]["recall"]):
        taken = ", ".join(f"{other} {number}" for other, number in one["mistaken for"].items())
        changed = [f"{100 * one['changed'][words]:.0f}" for words in CHANGES]
        rows.append([name, f"{100 * one['recall']:.0f}", taken, one["like"], *changed])
    others = [one for found in folds.values() for one in found.values() if one["recall"] >= POOR]
    means = [np.mean([one["recall"] for one in others])]
    means += [np.mean([one["changed"][words] for one in others]) for words in CHANGES]
    rows.append([f"the other {len(others)}", f"{100 * means[0]:.0f}", "", "", *(f"{100 * m:.0f}" for m in means[1:])])
    return rows


def figure(folds: dict[str, dict[str, dict]], pictures: dict[str, np.ndarray]) -> bytes:
    """Recall of all objects, and pictures of the worst beside the training objects they resemble, as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    _, *worst, _ = poor_table(folds)
    worst = worst[:SHOWN]
    drawn = Figure(figsize=(9, 7.4), layout="constrained")
    FigureCanvasAgg(drawn)
    above, below = drawn.subfigures(2, 1, height_ratios=(1.15, 1))
    axes = above.add_subplot()
    (_, *columns, _), *rows = recall_table(folds)
    values = np.array([[int(cell) for cell in row[1:-1]] for row in rows])
    axes.imshow(values, vmin=0, vmax=100, cmap="cividis", aspect="auto")
    for (down, right), value in np.ndenumerate(values):
        axes.text(right, down, value, ha="center", va="center", color="white" if value < 60 else "black", fontsize=9)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_xlabel("object of the class, never seen in training")
    axes.set_title("views that are recognised, %", fontsize=10)
    below.suptitle("the worst (left) and the training objects that their mistaken views resemble (right)", fontsize=10)
    boxes = below.subplots(2, -(-len(worst) // 2), squeeze=False).ravel()
    for box in boxes:
        box.set_axis_off()
    for box, (name, known, _, like, *_) in zip(boxes, worst, strict=False):
        box.imshow(np.hstack([pictures[name], pictures[like]]), cmap="gray", vmin=0, vmax=1)
        box.set_title(f"{name}: {known} %\n{like}", fontsize=8)
    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()


def main() -> None:
    """Test all models that are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data-dir")
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    try:
        _run(options)
    except (TigraError, OSError) as error:
        sys.exit(f"Error: {error}")


def _run(options) -> None:
    require_matplotlib()
    paths = {int(match[1]): path for path in options.folder.glob("*.npz") if (match := NAME.fullmatch(path.name))}
    folds, pictures = {}, {}
    for fold, path in sorted(paths.items()):
        model = load_model(path)
        if model.resume is not None:
            continue
        print(f"fold {fold}", end=" ", file=sys.stderr, flush=True)
        splits = load_dataset("eth-80", split="object", fold=fold, data_dir=options.data_dir)
        folds[str(fold)] = objects_of_fold(model.network, splits, fold)
    if not folds:
        raise UsageError(
            f"{options.folder} has no finished model best-object-fold-K.npz; make them by "
            "`tigra reproduce eth-80 --row best-object`."
        )
    print(file=sys.stderr)
    for fold in range(N_OBJECTS):
        test = load_dataset("eth-80", split="object", fold=fold, data_dir=options.data_dir).test
        for number, name in enumerate(splits.class_names):  # a view from the side and a little above
            pictures[f"{name} {fold + 1}"] = test.images[np.flatnonzero(test.labels == number)[[20]]][0]
    options.out.mkdir(parents=True, exist_ok=True)
    write_atomically(options.out / "objects.json", (json.dumps({"folds": folds}, indent=1) + "\n").encode())
    write_atomically(options.out / "objects.png", figure(folds, pictures))
    print("\n".join(" | ".join(row) for row in (*recall_table(folds), *poor_table(folds))))


if __name__ == "__main__":
    main()
