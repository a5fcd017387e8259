"""`tigra train --folds K`: cross-validation, with mean and spread. The folds are handed out to processes."""

from __future__ import annotations

import contextlib
import json
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from tigra.datasets import load_dataset
from tigra.datasets.splits import Splits, split_hash
from tigra.errors import DatasetError, TigraError
from tigra.experiments.methods import Method, find_method
from tigra.experiments.own_data.folds import fold_protocol, fold_splits
from tigra.experiments.recipe import Recipe
from tigra.experiments.runner import hand_out, runner_for
from tigra.experiments.runs import Stopped, Watch, balanced_words, perform
from tigra.files.atomic import write_atomically
from tigra.files.claims import claim
from tigra.models.classifier import accuracy

from .options import import_modules
from .output import Progress, percent, print_json, say, table
from .processes import current_team

Accuracies = dict[str, float]  # by name of the test images
_loaded: dict[str, Splits] = {}  # data set of this process by its hash, since it may get several folds


class Folds(NamedTuple):
    """A cross-validation, with all that another process needs to do a part of it."""

    dataset: str
    data_dir: str | None
    settings: dict[str, Any]  # all that decides the numbers, ready for JSON
    threads: int
    modules: tuple[str, ...]
    folder: Path | None  # of the records of finished folds

    @classmethod
    def of(cls, ctx, dataset: str, method: Method, recipe, splits: Splits, threads: int, folder) -> Folds:
        """The cross-validation that a command asks for; its data set is loaded."""
        settings = {
            "method": method.name,
            "recipe": recipe.to_json(),
            "data": splits.options,
            "data_hash": split_hash(splits),
            "folds": ctx.params["folds"],
            "seed": ctx.params["seed"],
        }
        modules, data_dir = ctx.meta.get("modules", ()), ctx.params.get("data_dir")
        _loaded.clear()
        _loaded[settings["data_hash"]] = splits
        return cls(dataset, data_dir, settings, threads, modules, Path(folder) if folder else None)

    def splits(self) -> Splits:
        """The data set, loaded once in every process."""
        wanted = self.settings["data_hash"]
        if wanted not in _loaded:
            import_modules(self.modules)
            splits = load_dataset(self.dataset, data_dir=self.data_dir, threads=self.threads, **self.settings["data"])
            if split_hash(splits) != wanted:
                raise DatasetError(f"The images of {self.dataset} differ from process to process.")
            _loaded[wanted] = splits
        return _loaded[wanted]

    def train(self, number: int, watch: Watch) -> Accuracies:
        """Train a network for a fold, counted from 1, and test it."""
        method, seed = find_method(self.settings["method"]), self.settings["seed"]
        fold = next(islice(fold_splits(self.splits(), self.settings["folds"], seed), number - 1, None))
        run = method.start(fold, method.read_recipe(self.settings["recipe"]), seed, self.threads)
        perform(run, None, Watch(lambda what, *n: watch.show(f"fold {number}: {what}", *n), watch.should_stop))
        tests = {"test_upright": fold.test_upright} | ({"test_transformed": fold.test} if fold.transform else {})
        return {name: accuracy(run.model, test, self.threads) for name, test in tests.items()}

    def path(self, number: int, ending: str = ".json") -> Path:
        """The file of a fold in the folder of the records."""
        assert self.folder is not None
        return self.folder / f"fold-{number}-of-{self.settings['folds']}{ending}"

    def record(self, number: int) -> Accuracies | None:
        """What the folder has of a fold; None if that is nothing, damaged, or of other settings."""
        with contextlib.suppress(OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
            content = json.loads(self.path(number).read_text(encoding="utf-8"))
            values = {name: float(value) for name, value in content["accuracy"].items()}
            is_whole = values and all(0 <= value <= 1 for value in values.values())
            return values if is_whole and content["settings"] == json.loads(json.dumps(self.settings)) else None
        return None

    def keep(self, number: int, found: Accuracies) -> None:
        """Write the record of a fold."""
        content = {"settings": self.settings, "accuracy": found}
        write_atomically(self.path(number), (json.dumps(content, indent=1) + "\n").encode(), "--out")


class Task(NamedTuple):
    """One fold, counted from 1."""

    folds: Folds
    number: int


def do(task: Task, watch: Watch) -> Accuracies | None:
    """Do a fold, in this process or another one, and record it; None if somebody else does it."""
    folds, number = task
    if folds.folder is None:
        return folds.train(number, watch)
    with claim(folds.path(number, ".lock")) as is_mine:
        if not is_mine:
            return None
        if (found := folds.record(number)) is None:
            found = folds.train(number, watch)
            folds.keep(number, found)
        return found


def cross_validated(ctx: click.Context, folds: Folds, jobs: int, watch: Watch, progress: Progress) -> None:
    """Train a network for every fold, test it, and print mean and spread; exit with 1 if one failed."""
    numbers, failed = range(1, folds.settings["folds"] + 1), False
    next(fold_splits(folds.splits(), len(numbers), folds.settings["seed"]))  # too many folds are refused at once
    if folds.folder is not None:
        folds.folder.mkdir(parents=True, exist_ok=True)
    found: dict[int, Accuracies] = {}
    try:
        with runner_for(min(jobs, len(numbers)), watch, current_team()) as runner:
            for n_done, outcome in enumerate(hand_out(runner, do, [Task(folds, n) for n in numbers]), start=1):
                if outcome.error:
                    failed = True
                    _tell(outcome.task.number, outcome.error, progress)
                elif outcome.result:
                    found[outcome.task.number] = outcome.result
                progress.show(f"{n_done} of {len(numbers)} folds ended", n_done, len(numbers), phase="folds")
    except Stopped:
        progress.clear()
        kept = "nothing was saved" if folds.folder is None else f"finished folds are in {folds.folder}"
        again = "" if folds.folder is None else " Continue with the same command."
        say(f"Stopped after {len(found)} of {len(numbers)} folds; {kept}.{again}", err=True)
        ctx.exit(130)
    progress.clear()
    if folds.folder is not None:
        found = {n: result for n in numbers if (result := found.get(n) or folds.record(n))}
        if not failed and len(found) < len(numbers):
            say(f"Note: another process is doing {len(numbers) - len(found)} of the folds.", err=True)
    if len(found) < 2:
        raise click.ClickException(f"{len(found)} of {len(numbers)} folds have a result, which gives no spread.")
    _print(folds.splits(), [found[n] for n in sorted(found)], folds.settings, ctx.params["as_json"])
    ctx.exit(1 if failed else 0)


def _tell(number: int, error: Exception, progress: Progress) -> None:
    """Say why a fold has no result."""
    progress.clear()
    kind = "" if isinstance(error, (TigraError, RuntimeError)) else f"{type(error).__name__}: "
    say(f"Fold {number}: no result. {kind}{error}", err=True)


def _print(splits: Splits, found: list[Accuracies], settings: dict[str, Any], as_json: bool) -> None:
    for note in splits.notes:
        say(f"Note: {note}.", err=True)
    facts: dict[str, dict[str, Any]] = {}
    for name in found[0]:
        values = [one[name] for one in found]
        facts[name] = {"mean": float(np.mean(values)), "std": float(np.std(values, ddof=1)), "values": values}
    n_folds, protocol = settings["folds"], fold_protocol(splits, settings["folds"])
    recipe = find_method(settings["method"]).read_recipe(settings["recipe"])
    if isinstance(recipe, Recipe):
        protocol += balanced_words(recipe.fit.class_weights, splits.train.labels, len(splits.class_names))
    if as_json:
        of_data = {"dataset": splits.name, "folds": n_folds, "seed": settings["seed"], "protocol": protocol}
        print_json(of_data | {"notes": list(splits.notes), "accuracy": facts})
        return
    rows = [
        (name.replace("_", ", "), percent(fact["mean"]), percent(fact["std"]), ", ".join(map(percent, fact["values"])))
        for name, fact in facts.items()
    ]
    some = f"{n_folds} folds" if len(found) == n_folds else f"{len(found)} of {n_folds} folds"
    whole = ", every image tested once" if len(found) == n_folds else ""
    say(f"{splits.name}: mean and standard deviation over {some}{whole}")
    say(protocol)
    say(table(rows, header=("images", "accuracy", "+-", "folds")))
