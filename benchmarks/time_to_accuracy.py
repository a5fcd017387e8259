"""Seconds until the default network of MNIST-rot is right about 97 % of rotated digits, from a fresh start.

    python -m benchmarks.time_to_accuracy [--goal 0.97] [--every 50] [--threads 2] [--out FOLDER]

The default recipe, seed 0. Reading the data set and compiling kernels do not count; preparing the images, calibration,
steps and validation do. After every 50 steps the first 2000 rotated test digits are predicted, which does not count. A
run that was stopped goes on from its last record in FOLDER, to the same weights, with the seconds so far.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from pathlib import Path

import numpy as np

from tigra import accuracy, build_network, load_dataset
from tigra.datasets.splits import Split
from tigra.experiments.recipes import find_recipe
from tigra.files.atomic import write_atomically
from tigra.training.training import Training

N_TEST = 2000


class Clock:
    """Wall and CPU seconds inside `with`."""

    def __init__(self, wall: float = 0.0, cpu: float = 0.0):
        self.wall, self.cpu = wall, cpu

    def __enter__(self) -> Clock:
        self._started = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_) -> None:
        wall, cpu = self._started
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


def race(splits, recipe, folder: Path, goal: float = 0.97, every: int = 50, threads: int = 1) -> list[dict]:
    """Records (step, wall, cpu, accuracy); the last one reaches the goal, or is at the end of the recipe."""
    log, state = folder / "steps.json", folder / "state.npz"
    records = json.loads(log.read_text(encoding="utf-8")) if log.exists() and state.exists() else []
    test = Split(splits.test.images[:N_TEST], splits.test.labels[:N_TEST])
    shape, n_classes = splits.train.images.shape[1:], len(splits.class_names)
    network = build_network(**recipe.network, image_shape=shape, n_classes=n_classes)
    with Clock() as clock:
        training = Training(network, splits, recipe.fit, threads)
    if records:
        clock = Clock(records[-1]["wall"], records[-1]["cpu"])
        with np.load(state) as arrays:
            training.restore({name: arrays[name] for name in arrays}, records[-1]["numbers"])
    steps, step = training.steps(), training.optimizer.n_steps
    while not (records and records[-1]["accuracy"] >= goal):
        with clock:
            more = [next(steps, "end") for _ in range(every)]
        if more[0] == "end":
            break
        step = training.optimizer.n_steps
        arrays, numbers = training.snapshot()
        found = {"step": step, "wall": clock.wall, "cpu": clock.cpu, "accuracy": accuracy(network, test, threads)}
        print(f"step {step}: {clock.wall:.1f} s, {clock.cpu:.1f} s of CPU, {found['accuracy']:.4f}", flush=True)
        records.append(found | {"numbers": numbers})
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(state, buffer.getvalue())
        write_atomically(log, (json.dumps(records) + "\n").encode())
    return records


def main() -> None:
    """Race, and print the seconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--goal", type=float, default=0.97)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("time_to_accuracy"))
    options = parser.parse_args()
    recipe = find_recipe("mnist-rot")
    records = race(load_dataset("mnist-rot"), recipe, options.out, options.goal, options.every, options.threads)
    last = records[-1]
    reached = "reached" if last["accuracy"] >= options.goal else "not reached"
    print(f"{100 * options.goal:g} % {reached} after {last['wall']:.0f} s, {last['cpu']:.0f} s of CPU.")


if __name__ == "__main__":
    main()
