"""Accuracy against batch size and learning rate: which rule holds the accuracy of small batches.

    python -m benchmarks.batch_size [--out batch-size.json] [--seeds 2] [--data-dir FOLDER] [--jobs 1]

A small network is trained on 4,000 upright digits of MNIST with batches of 50, 200 and 800 images for the same number
of epochs. The learning rate is that of batches of 50 times a power of the ratio of batch sizes: 0, 1/2 or 1. Accuracies
on upright validation digits and on rotated test digits are written to a file as they come; those that it has are not
computed again. docs/cluster.md has the table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tigra.datasets import load_dataset
from tigra.experiments.methods import find_method
from tigra.experiments.recipes import find_recipe
from tigra.experiments.runner import hand_out, runner_for
from tigra.experiments.runs import Watch, perform
from tigra.files.atomic import write_atomically
from tigra.models.classifier import accuracy

BASE, SIZES, POWERS = 50, (200, 800), (0.0, 0.5, 1.0)
DATA = {"n_train": 4000, "n_valid": 1000}
EPOCHS, N_TEST = 8, 2000


class Task(NamedTuple):
    """One training: batch size, power of the rule, seed, and where the digits are."""

    size: int
    power: float
    seed: int
    data_dir: str | None

    @property
    def name(self) -> str:
        """Name in the file."""
        return f"batch {self.size}, power {self.power:g}, seed {self.seed}"


def do(task: Task, watch: Watch) -> dict:
    """Train and measure."""
    splits = load_dataset("mnist-rot", seed=task.seed, data_dir=task.data_dir, **DATA)
    recipe = find_recipe("mnist-012", "achiral")
    rate = recipe.fit.learning_rate * (task.size / BASE) ** task.power
    recipe = recipe.with_changes({"epochs": EPOCHS, "batch_size": task.size, "learning_rate": rate})
    run = find_method("tigranet").start(splits, recipe, task.seed)
    seconds = perform(run, watch=watch)
    test = splits.test.images[:N_TEST], splits.test.labels[:N_TEST]
    found = {"upright": accuracy(run.model, splits.valid), "rotated": accuracy(run.model, test)}
    return {name: round(100 * value, 2) for name, value in found.items()} | {"rate": rate, "seconds": round(seconds, 1)}


def table(known: dict[str, dict]) -> list[str]:
    """Lines of Markdown: means over the seeds."""
    lines = ["| batch | learning rate | upright | rotated | seeds |", "| ---: | ---: | ---: | ---: | ---: |"]
    for size, power in configurations():
        found = [entry for name, entry in known.items() if name.startswith(f"batch {size}, power {power:g},")]
        if found:
            upright, rotated = (np.mean([entry[name] for entry in found]) for name in ("upright", "rotated"))
            lines.append(f"| {size} | {found[0]['rate']:g} | {upright:.1f} | {rotated:.1f} | {len(found)} |")
    return lines


def configurations() -> list[tuple[int, float]]:
    """Batch sizes and powers; for the smallest batch all powers are the same."""
    return [(BASE, 0.0), *((size, power) for size in SIZES for power in POWERS)]


def main() -> None:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("batch-size.json"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--data-dir")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    known = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    tasks = [Task(*one, seed, options.data_dir) for seed in range(options.seeds) for one in configurations()]
    with runner_for(options.jobs) as runner:
        for outcome in hand_out(runner, do, [task for task in tasks if task.name not in known]):
            if outcome.error:
                raise outcome.error
            known[outcome.task.name] = outcome.result
            write_atomically(options.out, (json.dumps(known, indent=1) + "\n").encode())
    print("\n".join(table(known)))


if __name__ == "__main__":
    main()
