"""Few pictures: what steps, early stopping, weight decay and rotated training pictures change, for 5 to 1000 a class.

    python -m benchmarks.practice.few [--sets letters shapes digits] [--numbers 5 20 100] [--seeds 1] [--match WORDS]
                                      [--out FILE] [--data-dir FOLDER] [--table] [--write PAGE]

The recipe for folders, and the same with one thing changed, are trained on pictures of `benchmarks.practice`, made by
other seeds. Validation pictures are drawn from them, as for every folder. The network is then judged on 25 further
upright pictures a class, by which one may choose, and on the same turned, as a diagnosis. None is a test picture of
the benchmark. Early stopping needs no training of its own: the parameters that it would have returned are judged, too.
Results are written to FILE at once and are not computed again; docs/notebook.md has the table.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.practice.sets import Counts, make, turned_by_interpolation
from benchmarks.results import with_block
from tigra.datasets import load_dataset
from tigra.datasets.npz.files import ArrayImages
from tigra.experiments.methods import find_method
from tigra.files.atomic import write_atomically
from tigra.models.classifier import accuracy
from tigra.seeding import generator
from tigra.training import Training

OUT = Path("docs/few-pictures.json")
SETS = {"letters": "letters", "shapes": "shapes", "digits": "digits-20"}  # their names in `benchmarks.practice`
JUDGED, FIRST_SEED = 25, 100  # pictures a class; seeds of the benchmark are smaller
RECIPE = "the recipe"  # with at least 400 steps and 30 epochs for any number of pictures, as when this was measured
IDEAS: dict[str, dict[str, Any]] = {  # `epochs` are a share of the recipe's
    RECIPE: {},
    "half of the steps": {"epochs": 0.5},
    "twice the steps": {"epochs": 2.0},
    "weight decay 0.05": {"weight_decay": 0.05},
    "weight decay 0.5": {"weight_decay": 0.5},
    "training pictures rotated": {"train_rotations": "random"},
}
PATIENCES = 0.1, 0.2, 0.3  # shares of the epochs without a new best one


class Task(NamedTuple):
    """One training."""

    name: str
    number: int
    idea: str
    seed: int

    @property
    def key(self) -> str:
        """Its name in the file."""
        return ", ".join(map(str, self))


def measured(task: Task, data_dir: str | None = None) -> dict[str, Any]:
    """Train, and judge what patience would have returned, and what was returned without any."""
    changes, seed = dict(IDEAS[task.idea]), FIRST_SEED + task.seed
    pictures = make(SETS[task.name], seed, data_dir, Counts(task.number + JUDGED, 1))
    is_judged = np.arange(len(pictures.train)) % (task.number + JUDGED) >= task.number
    method = find_method("tigranet")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pictures.npz")
        train = {"train_images": pictures.train[~is_judged], "train_labels": pictures.train_labels[~is_judged]}
        test = {"test_images": pictures.upright, "test_labels": pictures.test_labels}  # not looked at
        np.savez(path, **train, **test)
        splits = load_dataset(path, seed=seed, train_rotations=changes.pop("train_rotations", 0))
        recipe = replace(method.recipe(path), steps_for_few=0, epochs_for_many=0)
        usual = method.settled(recipe, splits.image_shape, len(splits.class_names), len(splits.train.labels), seed)[1]
        if "epochs" in changes:
            changes["epochs"] = max(1, round(changes["epochs"] * usual.epochs))
        training = method.start(splits, recipe.with_changes(changes), seed).training
        judged = pictures.train[is_judged], pictures.train_labels[is_judged]
        turned = turned_by_interpolation(judged[0], generator(seed, "judged"))
        return _followed(training, judged, turned)


def _followed(training: Training, judged, turned) -> dict[str, Any]:
    """Run a training; returns numbers of its end, and of the epochs at which patience would have stopped it."""
    best: dict[int, np.ndarray] = {}
    seconds, started = [], time.process_time()
    for epoch in training.run():
        seconds.append(time.process_time() - started)
        if epoch.best:
            best[epoch.number] = training.network.learned.copy()
    n_epochs = len(seconds)

    def judge(epoch: int, *sets) -> list[float]:
        network = training.network.with_parameters(best[epoch])
        rows = np.arange(len(judged[1]))
        images = [ArrayImages(pixels, rows, network.image_shape)[:] for pixels in sets]
        return [round(100 * accuracy(network, (some, judged[1])), 2) for some in images]

    stops = {}
    for share in PATIENCES:
        end, chosen = stopped(sorted(best), n_epochs, max(1, round(share * n_epochs)))
        (upright,) = judge(chosen, judged[0])
        stops[str(share)] = {"upright": upright, "seconds": round(seconds[end - 1], 2), "epoch": chosen}
    upright, at_any_angle = judge(max(best), judged[0], turned)
    end = {"upright": upright, "turned": at_any_angle, "seconds": round(seconds[-1], 2)}
    return end | {"epochs": n_epochs, "steps": n_epochs * training.n_steps, "best_epoch": max(best), "patience": stops}


def stopped(best: list[int], n_epochs: int, patience: int) -> tuple[int, int]:
    """The last epoch with patience, and the best one until then, from the epochs that were the best when they ended.

    >>> stopped([1, 2, 5, 9], 20, 3), stopped([1, 2, 5, 9], 20, 4), stopped([1, 9], 10, 9)
    ((8, 5), (13, 9), (10, 9))
    """
    chosen = best[0]
    for epoch in best[1:]:
        if epoch - chosen > patience:
            break
        chosen = epoch
    return min(n_epochs, chosen + patience), chosen


def table(results: dict[str, dict[str, Any]]) -> list[str]:
    """Lines of Markdown: means over the sets and seeds that all ideas for a number of pictures have in common."""
    lines = ["| pictures a class | idea | upright | turned | CPU s | steps | runs |", "| ---: | --- |" + 5 * " ---: |"]
    by_number: dict[int, dict[str, dict[tuple, dict]]] = {}
    for key, run in results.items():
        name, number, idea, seed = key.split(", ")
        by_number.setdefault(int(number), {}).setdefault(idea, {})[name, seed] = run
    for number, by_idea in sorted(by_number.items()):
        base = by_idea.get(RECIPE, {})
        for idea in (idea for idea in IDEAS if idea in by_idea):
            runs = list(by_idea[idea].values())
            pairs = [(run, base[key]) for key, run in by_idea[idea].items() if key in base]
            lines.append(_row(number, idea, runs, pairs))
            if idea == RECIPE:
                lines += [_row(number, f"stopped after {100 * p:.0f} % of the epochs without a better one",
                               [run["patience"][str(p)] for run in runs],
                               [(run["patience"][str(p)], run) for run in runs]) for p in PATIENCES]  # fmt: skip
    return lines


def _row(number: int, idea: str, runs: list[dict], pairs: list[tuple[dict, dict]]) -> str:
    """Means over the runs; accuracies of ideas as differences to the recipe in the same sets and seeds."""
    cells = []
    for what in ("upright", "turned"):
        if idea == RECIPE:
            cells.append(f"{statistics.mean(run[what] for run in runs):.1f}")
        elif what in runs[0] and pairs:
            cells.append(f"{statistics.mean(run[what] - base[what] for run, base in pairs):+.1f}")
        else:
            cells.append("-")
    cells.append(f"{statistics.mean(run['seconds'] for run in runs):.0f}")
    cells.append(f"{statistics.mean(run['steps'] for run in runs):.0f}" if "steps" in runs[0] else "-")
    return f"| {number} | {idea} | {' | '.join(cells)} | {len(runs)} |"


def main(words: list[str] | None = None) -> None:
    """Train what is not recorded yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--numbers", nargs="+", type=int, default=[5, 20, 100])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--match", default="", help="only ideas whose words contain this")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--data-dir", help="where MNIST is")
    parser.add_argument("--table", action="store_true", help="only print the table")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the table into the block of a page, too")
    options = parser.parse_args(words)
    results = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    ideas = [idea for idea in IDEAS if options.match in idea and not options.table]
    for seed in range(options.seeds):
        for task in (Task(name, n, idea, seed) for n in options.numbers for idea in ideas for name in options.sets):
            if task.key not in results:
                results[task.key] = measured(task, options.data_dir)
                print(f"{task.key}: {json.dumps(results[task.key])}", file=sys.stderr, flush=True)
                write_atomically(options.out, (json.dumps(results, indent=1) + "\n").encode())
    lines = "\n".join(table(results))
    print(lines)
    if options.write:
        page = with_block(options.write.read_text(encoding="utf-8"), lines, "few pictures")
        write_atomically(options.write, page.encode())


if __name__ == "__main__":
    main()
