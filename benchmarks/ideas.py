"""What accuracy depends on: a recipe, and the same with one thing changed, three seeds each.

    python -m benchmarks.ideas [mnist-012] [mnist-rot] [oriented] [objects] [--seeds 3] [--match WORDS] [--out FOLDER]
                               [--data-dir FOLDER] [--jobs 1]

Several processes do it together under mpiexec, with --jobs, or if the command is started several times.

mnist-012 and mnist-rot change the achiral recipes, oriented changes the best one of MNIST-rot, objects the best one of
ETH-80 by object. Some train for fewer epochs than their recipe, all ideas alike. For objects, seeds are folds, and the
numbers are those of the validation objects, by which one may choose, and of the test objects; a network has seen
neither.

For each idea networks are trained as `tigra train` does. Those for digits are tested on digits of MNIST's *training*
file that they did not learn from: upright, which is what one may choose by, and rotated, with either interpolation, as
a diagnosis. (Of MNIST-rot these are the validation digits, which choose the epoch, too: upright numbers are a little
flattered, for all ideas alike.) Each seed's numbers are written to docs/ideas/DATASET.json at once, beside the recipe
and what was changed, and are not computed again; a file of another recipe is refused. Tables go to standard output.
The tables are in docs/notebook.md: on one thread that of MNIST-012 took half an hour, that of MNIST-rot two hours of a
busy core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tigra_cli.shared.processes import current_team, in_process_0

from benchmarks import object_ideas
from benchmarks.lesser_layers import DROPPED, replace_layers
from tigra.datasets.loading import load_dataset
from tigra.datasets.sources import load_mnist
from tigra.datasets.splits import Splits, turned_at_random
from tigra.errors import TigraError, UsageError
from tigra.experiments.methods import find_method
from tigra.experiments.recipe import Recipe
from tigra.experiments.recipes import find_recipe
from tigra.experiments.runner import hand_out, runner_for
from tigra.experiments.runs import Watch, perform
from tigra.files.atomic import write_atomically
from tigra.files.claims import alone, claim
from tigra.models.classifier import accuracy
from tigra.options import FitOptions, NetworkOptions
from tigra.seeding import generator

SMALL, DEEP = (find_recipe(dataset, "achiral").network.architecture for dataset in ("mnist-012", "mnist-rot"))
ORIENTED, POOLED = (find_recipe("mnist-rot", name).network.architecture for name in ("best", "pooled"))
RECIPE = "the recipe"
IDEAS = {
    "mnist-012": {
        RECIPE: {},
        "smoothing 0": {"smoothing": 0.0},
        "smoothing 0.5": {"smoothing": 0.5},
        "smoothing 1.5": {"smoothing": 1.5},
        "margin 0": {"margin": 0},
        "edges of weight 1, all eight": {"diagonal_weight": 1.0},
        "4 neighbours": {"neighbours": 4},
        "free boundary": {"boundary": "free"},
        "active nodes: those of any map (`active=\"union\"`)": {"active_set": "union"},
        "full mixing": {"mixing": "full"},
        "a filter for each pair of maps, rectifier": {"mixing": "pairs", "active_set": "all"},
        "the same, squared gradients": {"mixing": "gradients", "active_set": "all"},
        "DP[600], DP[300]": {"architecture": SMALL.replace("DP[300]", "DP[600]").replace("DP[100]", "DP[300]")},
        "DP[150], DP[50]": {"architecture": SMALL.replace("DP[300]", "DP[150]").replace("DP[100]", "DP[50]")},
        "degree 2": {"architecture": SMALL.replace(", 3]", ", 2]")},
        "degree 5": {"architecture": SMALL.replace(", 3]", ", 5]")},
        "S[10]": {"architecture": SMALL.replace("S[20]", "S[10]")},
        "S[30]": {"architecture": SMALL.replace("S[20]", "S[30]")},
        "one spectral layer": {"architecture": "SC[6, 3]-DP[300]-S[20]-FC[50]-FC[30]-FC[10]"},
        "three spectral layers": {"architecture": SMALL.replace("-S[", "-SC[6, 3]-DP[100]-S[")},
        "four spectral layers": {"architecture": SMALL.replace("-S[", 2 * "-SC[6, 3]-DP[100]" + "-S[")},
        "raw statistics": {"standardise": False, "deviation_floor": 0.0},
        "no floor under deviations": {"deviation_floor": 0.0},
        "logarithms of statistics": {"log_offset": 0.03},
        "learning rate 0.003": {"learning_rate": 0.003},
        "learning rate 0.03": {"learning_rate": 0.03},
        "constant learning rate 0.001": {"schedule": "constant", "learning_rate": 0.001},
        "no weight decay": {"weight_decay": 0.0},
        "no label smoothing": {"label_smoothing": 0.0},
        "FC from U[-1, 1]": {"dense_init": "paper"},
        "digits moved by up to half a pixel (`jitter`)": {"jitter": 0.5},
    },
    "mnist-rot": {
        RECIPE: {},
        "squared gradients, no products (`mixing=\"gradients\"`)": {"mixing": "gradients"},
        "no gradients (`mixing=\"pairs\"`)": {"mixing": "pairs"},
        "maps not smoothed behind convolutions (`diffusion=0`)": {"diffusion": 0},
        "maps smoothed twice": {"diffusion": 2},
        "smoothing 1.5": {"smoothing": 1.5},
        "DP[400] in all layers": {"architecture": DEEP.replace("DP[600]", "DP[400]")},
        "no pooling": {"architecture": DEEP.replace("-DP[600]", "")},
        "two layers": {"architecture": DEEP.replace("-SC[32, 2]-DP[600]", "", 1)},
        "four layers": {"architecture": DEEP.replace("-S[", "-SC[32, 2]-DP[600]-S[")},
        "degree 3": {"architecture": DEEP.replace(", 2]", ", 3]")},
        "S[6]": {"architecture": DEEP.replace("S[12]", "S[6]")},
        "edges of weight 1, all eight": {"diagonal_weight": 1.0},
        "floor 0.15": {"deviation_floor": 0.15},
        "logarithms of statistics": {"log_offset": 0.03},
        "24, 48 and 48 maps": {"architecture": DEEP.replace("[16,", "[24,").replace("[32,", "[48,")},
        "learning rate 0.01": {"learning_rate": 0.01},
        "weight decay 0.02": {"weight_decay": 0.02},
        "no label smoothing": {"label_smoothing": 0.0},
    },
    "oriented": {
        RECIPE: {},
        "no cross products": {},
        "pairs not learned": {},
        "features scaled, maps as they are (`batch_norm=False`)": {"batch_norm": False, "deviation_floor": 0.05},
        "dynamic pooling (recipe `pooled`)": {"architecture": POOLED},
        "averages, no Chebyshev statistics (`S[0]`)": {"architecture": ORIENTED.replace("S[2]", "S[0]")},
        "coarsened once": {"architecture": ORIENTED.replace("-GC[2]", "", 1)},
        "maps not smoothed behind convolutions (`diffusion=0`)": {"diffusion": 0},
        "smoothing 0": {"smoothing": 0.0},
        "margin 1": {"margin": 1},
    },
    "objects": {
        RECIPE: {},
        "half of the maps": {"architecture": "OC[8, 2]-GC[2]-OC[16, 2]-GC[2]-OC[24, 2]-GC[2]-OC[32, 2]-S[6]-FC[128]"},
        "weight decay 0.5": {"weight_decay": 0.5},
        DROPPED: {},
        object_ideas.CONTRAST: {},
        object_ideas.EQUAL: {},
        object_ideas.COLOUR: {},
        object_ideas.AVERAGED: {},
        object_ideas.MIXED: {},
    },
}  # fmt: skip
BASES = {
    "mnist-012": ("mnist-012", "achiral"),
    "mnist-rot": ("mnist-rot", "achiral"),
    "oriented": ("mnist-rot", "best"),
    "objects": ("eth-80", "best"),
}
FEW: dict[str, dict] = {  # options of `load_dataset`
    "mnist-012": {},
    "mnist-rot": {"n_train": 5_000},
    "oriented": {"n_train": 10_000},
    "objects": {"split": "object"},
}
CHANGES: dict[str, dict] = {  # for all ideas, the recipe too
    "mnist-rot": {"epochs": 4},
    "oriented": {"epochs": 4},
    "objects": {"epochs": 8},
}
Runs = list[list[float] | None]  # accuracies in the order of COLUMNS, by seed; None if only later seeds are recorded
DIGITS = "upright", "rotated, cubic", "rotated, linear"
COLUMNS = {"mnist-012": DIGITS, "mnist-rot": DIGITS, "oriented": DIGITS, "objects": ("validation", "test")}


def held_out(splits: Splits, data_dir=None) -> tuple[np.ndarray, np.ndarray]:
    """Upright digits of MNIST's training file to compare ideas by: (images, labels)."""
    if splits.name != "mnist-012":
        return splits.valid.images, splits.valid.labels
    known = {_pixels(image) for part in (splits.train, splits.valid, splits.test_upright) for image in part.images}
    images, labels = load_mnist(data_dir)["train"]
    places = [place for place in np.flatnonzero(labels < 3) if images[place].tobytes() not in known][:1500]
    return images[places].astype(np.float32) / 255, labels[places].astype(np.int64)


def _pixels(image: np.ndarray) -> bytes:
    return np.round(255 * image).astype(np.uint8).tobytes()


def measured(
    dataset: str, idea: str, seed: int, data_dir=None, threads: int = 1, should_stop=lambda: False
) -> list[float]:
    """Accuracies in percent, in the order of COLUMNS, of a network trained with the idea."""
    recipe = find_recipe(*BASES[dataset]).with_changes(CHANGES.get(dataset, {}) | IDEAS[dataset][idea])
    show = lambda what, done=0, total=0: _tell(f"{dataset}, {idea}, seed {seed}: {what}")  # noqa: E731
    watch = Watch(show, should_stop)
    if dataset == "objects":
        return object_ideas.measured(recipe, idea, seed, watch, data_dir, threads)
    splits = load_dataset(BASES[dataset][0], seed=seed, data_dir=data_dir, **FEW[dataset])
    run = find_method("tigranet").start(splits, recipe, seed, threads)
    replace_layers(run.training.network, idea)
    perform(run, watch=watch)
    upright, labels = held_out(splits, data_dir)
    sets = [upright, *(turned_at_random(upright, generator(seed, "ideas"), kind) for kind in ("cubic", "linear"))]
    return [round(100 * accuracy(run.model, (images, labels), threads), 3) for images in sets]


def table(dataset: str, results: dict[str, Runs]) -> list[str]:
    """Lines of Markdown: mean and standard deviation over the seeds.

    >>> table("mnist-rot", {"smoothing 0": [[96.0, 80.0, 70.0], [97.0, 82.0, 71.0]]})[2]
    '| smoothing 0 | 96.5 +- 0.7 | 81.0 +- 1.4 | 70.5 +- 0.7 | 2 |'
    """
    columns, over = COLUMNS[dataset], "folds" if dataset == "objects" else "seeds"
    lines = [f"| idea | {' | '.join(columns)} | {over} |", "| --- |" + " ---: |" * (len(columns) + 1)]
    for idea, all_runs in results.items():
        runs = [run for run in all_runs if run is not None]
        cells = [f"{mean:.1f}" for mean in np.mean(runs, axis=0)]
        if len(runs) > 1:
            spread = np.std(runs, axis=0, ddof=1)
            cells = [f"{cell} +- {deviation:.1f}" for cell, deviation in zip(cells, spread, strict=True)]
        lines.append(f"| {idea} | {' | '.join(cells)} | {len(runs)} |")
    return lines


def settings(dataset: str) -> dict:
    """All but the ideas that decides the numbers, as JSON knows it: a file with other settings is out of date."""
    chosen = {
        "recipe": find_recipe(*BASES[dataset]).to_json(),
        "data": FEW[dataset],
        "changes": CHANGES.get(dataset, {}),
    }
    return json.loads(json.dumps(chosen))


def is_today(found: dict, dataset: str) -> bool:
    """Whether the settings in a file are today's; recipes are compared as objects, whatever names they use."""
    same = found | {"recipe": None} == settings(dataset) | {"recipe": None}
    return same and Recipe.from_json(found["recipe"]) == find_recipe(*BASES[dataset])


def renamed(changes: dict) -> dict:
    """The changes of an idea with today's names of options."""
    of_fit = {name: value for name, value in changes.items() if name in FitOptions.specs()}
    others = {name: value for name, value in changes.items() if name not in of_fit}
    return of_fit | NetworkOptions.resolved(others, warn=False)


def read(path: Path, dataset: str) -> dict[str, Runs]:
    """Of each idea, the accuracies that a file has for its seeds; ideas that mean something else today are left out."""
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = {idea: (entry["changes"], entry["runs"]) for idea, entry in content["ideas"].items()}
        whole = [run for _, runs in found.values() for run in runs if run is not None]
        shapes = {np.shape(np.array(run, float)) for run in whole}
        numbers = [number for run in whole for number in run]
        is_whole = shapes <= {(len(COLUMNS[dataset]),)} and all(0 <= number <= 100 for number in numbers)
        is_ours = is_today(content["settings"], dataset)
        known = {idea: found[idea][1] for idea in IDEAS[dataset] if idea in found}
        known = {idea: runs for idea, runs in known.items() if renamed(found[idea][0]) == IDEAS[dataset][idea]}
    except (UsageError, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise UsageError(f"{path} is no file of this benchmark, or damaged; move it away, or choose another --out.")
    if not is_ours:
        raise UsageError(f"{path} is of another recipe than today's; move it away, or choose another --out.")
    return known


def given_up(path: Path, dataset: str) -> dict[str, dict]:
    """Entries of a file whose ideas are not asked for today: they stay in it."""
    ideas = json.loads(path.read_text(encoding="utf-8"))["ideas"] if path.exists() else {}
    return {idea: entry for idea, entry in ideas.items() if idea not in IDEAS[dataset]}


def written(dataset: str, results: dict[str, Runs], others: dict[str, dict] | None = None) -> bytes:
    """The content of the file, ideas in their order, and behind them `others`, which are not asked for today."""
    ideas = {
        idea: {"changes": changes, "runs": results[idea]} for idea, changes in IDEAS[dataset].items() if idea in results
    }
    return (json.dumps({"settings": settings(dataset), "ideas": ideas | (others or {})}, indent=1) + "\n").encode()


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def main() -> None:
    """Train what is not recorded yet, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help=", ".join(IDEAS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data-dir")
    parser.add_argument("--out", type=Path, default=Path("docs/ideas"))
    parser.add_argument("--match", default="", help="only ideas whose words contain this")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="networks at a time, each in a process of its own")
    options = parser.parse_args()
    if unknown := set(options.datasets) - set(IDEAS):
        parser.error(f"no ideas for {', '.join(sorted(unknown))}; there are some for {', '.join(IDEAS)}")
    if min(options.seeds, options.jobs) < 1:
        parser.error(f"--seeds and --jobs are numbers of at least 1, got {options.seeds} and {options.jobs}")
    datasets = options.datasets or list(IDEAS)
    chosen = [idea for dataset in datasets for idea in IDEAS[dataset]]
    datasets = [dataset for dataset in datasets if any(options.match in idea for idea in IDEAS[dataset])]
    if not datasets:
        parser.error(f"no idea contains {options.match!r}; there are: {'; '.join(chosen)}")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        worked = [_run(dataset, options) for dataset in datasets]
    except (TigraError, OSError) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit(f"\nStopped; what is finished is in {options.out}, the same command goes on.")
    if not all(worked):
        sys.exit(1)


class Task(NamedTuple):
    """One network to train."""

    dataset: str
    idea: str
    seed: int
    options: argparse.Namespace


def do(task: Task, watch: Watch) -> None:
    """Train a network and record it at once, unless it is recorded or another process is at it."""
    dataset, idea, seed, options = task
    path = options.out / f"{dataset}.json"
    name = hashlib.sha256(f"{idea} {seed}".encode()).hexdigest()[:16]
    with claim(options.out / f".{dataset}-{name}.lock") as is_mine:
        if not is_mine or has(read(path, dataset), idea, seed):
            return
        found = measured(dataset, idea, seed, options.data_dir, options.threads, watch.should_stop)
        with alone(options.out / f".{dataset}.lock"):
            results = read(path, dataset)  # other processes may have written meanwhile, of this idea, too
            runs = results.get(idea, [])
            runs += [None] * (seed + 1 - len(runs))
            runs[seed] = found
            write_atomically(path, written(dataset, results | {idea: runs}, given_up(path, dataset)))


def has(results: dict[str, Runs], idea: str, seed: int) -> bool:
    """Whether a file has the numbers of a seed."""
    runs = results.get(idea, [])
    return seed < len(runs) and runs[seed] is not None


def _run(dataset: str, options) -> bool:
    """Train what is missing, print the table; returns False if a training failed."""
    path, failed = options.out / f"{dataset}.json", False
    ideas, known = [idea for idea in IDEAS[dataset] if options.match in idea], read(path, dataset)
    tasks = [Task(dataset, idea, seed, options) for idea in ideas for seed in range(options.seeds)]
    tasks = [task for task in tasks if not has(known, task.idea, task.seed)]
    with runner_for(min(options.jobs, len(tasks) or 1), team=current_team()) as runner:
        for outcome in hand_out(runner, do, tasks):
            if outcome.error:
                failed = True
                _, idea, seed, _ = outcome.task
                print(f"{dataset}, {idea}, seed {seed}: no result. {outcome.error}", file=sys.stderr)
    _tell("")
    results = read(path, dataset)
    in_order = {idea: results[idea] for idea in IDEAS[dataset] if idea in results}
    print("\n".join([f"**{dataset}**", "", *table(dataset, in_order), ""]), flush=True)
    return not failed


if __name__ == "__main__":
    in_process_0(main)
