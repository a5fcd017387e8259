"""Accuracy against batch size: which rule for learning rate and epochs holds the accuracy of small batches.

    python -m benchmarks.batch_size [--out batch-size.json] [--seeds 3] [--match WORDS] [--data-dir FOLDER] [--jobs 1]

The best network for MNIST-012 is trained on 4,000 upright digits of MNIST, reduced to 14x14 pixels to save time, with
batches of 50, 200 and 800 images. Learning rate and number of epochs are those of batches of 50 times a power of the
ratio of batch sizes: 0, 1/2 or 1. Equal epochs are equal work. Accuracies on upright validation digits and on rotated
test digits are written to a file as they come; those that it has are not computed again. docs/cluster.md has the table.
Works under mpiexec, too.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tigra_cli.shared.processes import current_team, in_process_0

from tigra.datasets import Split, load_dataset
from tigra.experiments.methods import find_method
from tigra.experiments.recipes import find_recipe
from tigra.experiments.runner import hand_out, runner_for
from tigra.experiments.runs import Watch, perform
from tigra.files.atomic import write_atomically
from tigra.images.transforms import downsample
from tigra.models.classifier import accuracy

BASE, SIZES = 50, (200, 800)
POWERS = (0.5, 0.0), (1.0, 0.0), (0.5, 0.5), (1.0, 0.5)  # of learning rate and epochs
DATA = {"n_train": 4000, "n_valid": 1000}
EPOCHS, FACTOR = 8, 2
RECIPE = find_recipe("mnist-012", "best").with_changes({"margin": 1, "smoothing": 0.5})


class Setting(NamedTuple):
    """A batch size, and the powers of the rule."""

    size: int
    rate_power: float
    epochs_power: float

    @property
    def name(self) -> str:
        """Name in the file."""
        return f"batch {self.size}, rate {self.rate_power:g}, epochs {self.epochs_power:g}"

    @property
    def changes(self) -> dict:
        """The rule's changes of the recipe."""
        ratio = self.size / BASE
        rate, epochs = RECIPE.fit.learning_rate * ratio**self.rate_power, round(EPOCHS * ratio**self.epochs_power)
        return {"batch_size": self.size, "learning_rate": rate, "epochs": epochs}


class Task(NamedTuple):
    """One training."""

    setting: Setting
    seed: int
    data_dir: str | None

    @property
    def name(self) -> str:
        """Name in the file."""
        return f"{self.setting.name}, seed {self.seed}"


def do(task: Task, watch: Watch) -> dict:
    """Train and measure."""
    splits = load_dataset("mnist-rot", seed=task.seed, data_dir=task.data_dir, **DATA)
    parts = {name: _reduced(getattr(splits, name)) for name in ("train", "valid", "test")}
    splits = replace(splits, test_upright=parts["valid"], **parts)
    run = find_method("tigranet").start(splits, RECIPE.with_changes(task.setting.changes), task.seed)
    seconds = perform(run, watch=watch)
    found = {"upright": accuracy(run.model, splits.valid), "rotated": accuracy(run.model, splits.test)}
    return {name: round(100 * value, 2) for name, value in found.items()} | {"seconds": round(seconds, 1)}


def _reduced(split: Split) -> Split:
    """Smaller images; of the test, only some."""
    return Split(downsample(split.images[: DATA["n_train"]], FACTOR, antialias=True), split.labels[: DATA["n_train"]])


def table(known: dict[str, dict]) -> list[str]:
    """Lines of Markdown: means over the seeds."""
    lines = ["| batch | learning rate | epochs | steps | upright | rotated | seeds |", "|" + " ---: |" * 7]
    for setting in settings():
        found = [entry for name, entry in known.items() if name.startswith(f"{setting.name}, seed")]
        if found:
            changes, means = setting.changes, [np.mean([one[n] for one in found]) for n in ("upright", "rotated")]
            steps = -(-DATA["n_train"] // setting.size) * changes["epochs"]
            cells = setting.size, f"{changes['learning_rate']:g}", changes["epochs"], steps
            lines.append("| " + " | ".join([*map(str, cells), *(f"{mean:.1f}" for mean in means)]))
            lines[-1] += f" | {len(found)} |"
    return lines


def settings() -> list[Setting]:
    """Batch sizes and powers; for the smallest batch all powers are the same."""
    return [Setting(BASE, 0.0, 0.0), *(Setting(size, *one) for size in SIZES for one in POWERS)]


def main() -> None:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("batch-size.json"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--match", default="", help="only settings whose names contain this")
    parser.add_argument("--data-dir")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    known = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    tasks = [Task(one, seed, options.data_dir) for seed in range(options.seeds) for one in settings()]
    tasks = [task for task in tasks if options.match in task.name]
    with runner_for(options.jobs, team=current_team()) as runner:
        for outcome in hand_out(runner, do, [task for task in tasks if task.name not in known]):
            if outcome.error:
                raise outcome.error
            known[outcome.task.name] = outcome.result
            write_atomically(options.out, (json.dumps(known, indent=1) + "\n").encode())
    print("\n".join(table(known)))


if __name__ == "__main__":
    in_process_0(main)
