"""Reproducing a table of the paper: run by run, each kept as soon as it is finished, then one Markdown table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tigra.datasets import load_dataset
from tigra.deepscat import DeepScat
from tigra.errors import TigraError, UsageError
from tigra.model_file import load_model, write_atomically
from tigra.nearest import nearest_neighbour
from tigra.runs import fit_run, recipe_for, resume_run, save_fitted, save_run, start_run
from tigra.splits import Splits, generator
from tigra.tables import Row, Table
from tigra.training import Training, accuracy
from tigra.version import __version__

SAVE_EVERY = 60  # seconds between saves of an unfinished run


class Stopped(Exception):
    """The run was told to stop; what it has learned is in its model file."""


class Watch(NamedTuple):
    """What a caller wants to see and to say while runs go on.

    show : called with (text, done, of how many); should_stop : asked after every step
    """

    show: Callable[[str, int, int], None] = lambda text, done=0, total=0: None
    should_stop: Callable[[], bool] = lambda: False


class Experiment:
    """The runs of one table, in a folder: a JSON file for each finished run, and the model it trained.

    folder : where records and models are kept; those of an earlier start are used again, unless their settings differ
    quick : few epochs and images, to try the machinery
    seeds : how many runs of each row, at most, if not as many as the table says
    where : data_dir of `load_dataset`
    only : keys of the rows to run, if not all
    """

    def __init__(self, table: Table, folder, quick=False, seeds=None, threads=1, where=None, only=()):
        self.table, self.folder, self.quick, self.seeds = table, Path(folder), quick, seeds
        self.threads, self.where = threads, where
        keys = [row.key for row in table.rows]
        for key in only:
            if key not in keys:
                raise UsageError(f"This table has no row {key!r}; it has {', '.join(keys)}.")
        self.rows = [row for row in table.rows if row.key in (only or keys)]

    def runs(self) -> list[tuple[Row, int]]:
        """Every run there is to do: (row, number of the seed or fold)."""
        return [(row, number) for row in self.rows for number in range(self.n_runs(row))]

    def n_runs(self, row: Row) -> int:
        """How many runs a row has."""
        if self.seeds is None:
            return 1 if self.quick else row.runs
        return min(self.seeds, row.runs) if row.over == "fold" else self.seeds

    def settings(self, row: Row, number: int) -> dict:
        """All that decides a run's numbers, as JSON knows it: a record with other settings is out of date."""
        data = row.data | (self.table.quick_data if self.quick else {})
        data = data | ({"fold": number} if row.over == "fold" else {"seed": number})
        recipe = None if row.method == "nearest" else recipe_for(row.dataset, row.recipe, row.method)
        if recipe and "fit" in recipe and self.quick:
            recipe = recipe | {"fit": recipe["fit"] | self.table.quick_fit}
        settings = {
            "method": row.method,
            "dataset": row.dataset,
            "data": data,
            "recipe": recipe,
            "tests": self.table.tests[row.dataset],
            "transformations": self.table.transformations,
        }
        return json.loads(json.dumps(settings))

    def path(self, row: Row, number: int, ending: str = ".json") -> Path:
        """The file of a run."""
        return self.folder / f"{row.key}-{row.over}-{number}{'-quick' if self.quick else ''}{ending}"

    def record(self, row: Row, number: int) -> dict | None:
        """What a finished run found, or None; a file that is damaged or of other settings counts as none."""
        try:
            record = json.loads(self.path(row, number).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        is_valid = isinstance(record, dict) and record.get("settings") == self.settings(row, number)
        return record if is_valid and "accuracy" in record else None

    def run(self, row: Row, number: int, watch: Watch = Watch()) -> dict:  # noqa: B008
        """Do one run, or go on with it, and keep its record; Stopped is raised when the watch says so."""
        settings = self.settings(row, number)
        seed = settings["data"].get("seed", 0)
        watch.show(f"loading {row.dataset}", 0, 0)
        splits = self._load(settings, {})
        if row.method == "nearest":
            found = self._nearest(splits)
        elif row.method == "deepscat":
            found = self._fit(row, number, settings, splits, watch)
        else:
            found = self._train(row, number, settings, splits, seed, watch)
        record = {"row": row.key, "number": number, "tigra": __version__, "settings": settings, **found}
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(row, number), (json.dumps(record, indent=1) + "\n").encode())
        return record

    def _load(self, settings, changes) -> Splits:
        return load_dataset(
            settings["dataset"], data_dir=self.where, threads=self.threads, **_as_given(settings["data"] | changes)
        )

    def _nearest(self, splits: Splits) -> dict:
        started = time.monotonic()
        labels = nearest_neighbour(*splits.train, splits.test.images)
        share = float((labels == splits.test.labels).mean())
        return {
            "protocol": splits.protocol,
            "seconds": round(time.monotonic() - started, 3),
            "accuracy": {"test": {next(iter(self.table.tests[splits.name])): [share]}},
        }

    def _fit(self, row, number, settings, splits, watch) -> dict:
        def show(what, done, total):
            if watch.should_stop():
                raise Stopped
            watch.show(what, done, total)

        started = time.monotonic()
        model = fit_run(splits, settings["recipe"], self.threads, show)
        spent = time.monotonic() - started
        self.folder.mkdir(parents=True, exist_ok=True)
        save_fitted(model, splits, self.path(row, number, ".npz"))
        return {
            "protocol": splits.protocol,
            "architecture": model.options["architecture"],
            "parameters": model.n_parameters,
            "seconds": round(spent, 3),
            "threads": self.threads,
            "accuracy": self._measured(model, settings, splits, watch),
        }

    def _train(self, row, number, settings, splits, seed, watch) -> dict:
        model = self.path(row, number, ".npz")
        training, seconds = self._started(settings, splits, seed, model)
        started = last_save = time.monotonic()
        training.should_stop, n_epochs = watch.should_stop, training.options.epochs
        training.on_step = lambda step, n_steps: watch.show(
            f"epoch {len(training.history) + 1}/{n_epochs}",
            len(training.history) * n_steps + step,
            n_epochs * n_steps,
        )
        self.folder.mkdir(parents=True, exist_ok=True)

        def keep():
            spent = seconds + time.monotonic() - started
            save_run(training, splits, model, settings=settings, seconds=spent)
            return spent

        for _ in training.run():
            if time.monotonic() - last_save > SAVE_EVERY:
                keep()
                last_save = time.monotonic()
        spent = keep()
        if not training.is_finished:
            raise Stopped
        return {
            "protocol": splits.protocol,
            "architecture": training.network.options["architecture"],
            "parameters": training.network.n_parameters,
            "epochs": len(training.history),
            "best_epoch": training.best_epoch.number,
            "seconds": round(spent, 3),
            "threads": self.threads,
            "accuracy": self._measured(training.network, settings, splits, watch),
        }

    def _started(self, settings, splits, seed, path) -> tuple[Training, float]:
        """A training, new or the one that an earlier start left unfinished; and the seconds it has had."""
        try:
            model = load_model(path)
            if model.resume is not None and model.training.get("settings") == settings:
                return resume_run(model, splits, path, self.threads), float(model.training["seconds"])
        except (TigraError, KeyError, TypeError, ValueError):
            pass  # none, or none that helps: begin anew
        return start_run(splits, settings["recipe"], seed, self.threads), 0.0

    def _measured(self, model, settings, splits, watch) -> dict:
        """Accuracies on all parts. Only DeepScat heeds a stop here: its features take long, and are kept on disk."""

        def measured(what, split):
            def show(done, total):
                if isinstance(model, DeepScat) and watch.should_stop():
                    raise Stopped
                watch.show(f"testing: {what}", done, total)

            return accuracy(model, split, self.threads, show)

        tests = {}
        for name, changes in settings["tests"].items():
            watch.show(f"testing: {name}", 0, 0)
            made = self._load(settings, changes)
            rounds = settings["transformations"] if made.transform else 1
            tests[name] = [measured(name, made.fresh_test(generator(0, f"evaluate {n}"))) for n in range(rounds)]
        parts = {"train": splits.train, "valid": splits.valid, "test_upright": splits.test_upright}
        return {name: measured(name, part) for name, part in parts.items()} | {"test": tests}

    def markdown(self) -> str:
        """The table of what is finished."""
        lines = []
        for dataset, tests in self.table.tests.items():
            rows = [row for row in self.rows if row.dataset == dataset]
            if not rows:
                continue
            names = list(tests)
            header = ["", "paper", *(f"test, {name}" for name in names), "upright test", "valid", "train"]
            header += ["runs", "parameters", "epochs", "seconds"]
            lines += ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
            lines += ["| " + " | ".join(self._cells(row, names)) + " |" for row in rows]
            lines += ["", *self._protocols(rows)]
        return "\n".join(lines)

    def _cells(self, row: Row, tests: list[str]) -> list[str]:
        records = [record for n in range(self.n_runs(row)) if (record := self.record(row, n))]
        accuracies = [record["accuracy"] for record in records]
        cells = [row.words, row.paper or "-"]
        cells += [spread([100 * statistics.mean(a["test"][t]) for a in accuracies if t in a["test"]]) for t in tests]
        cells += [
            spread([100 * a[part] for a in accuracies if part in a]) for part in ("test_upright", "valid", "train")
        ]
        plural = "s" if len(records) != 1 else ""
        cells += [f"{len(records)} {row.over}{plural}"]
        cells += [_one([record.get(key) for record in records]) for key in ("parameters", "epochs")]
        return [*cells, f"{statistics.mean(r['seconds'] for r in records):.0f}" if records else "-"]

    def _protocols(self, rows) -> list[str]:
        found = [self.record(row, 0) for row in rows]
        return [f"Protocol: {text}." for text in dict.fromkeys(record["protocol"] for record in found if record)]


def spread(values: list[float]) -> str:
    """Mean and standard deviation.

    >>> spread([1.0, 2.0]), spread([5.0]), spread([])
    ('1.50 +- 0.71', '5.00', '-')
    """
    if not values:
        return "-"
    return f"{np.mean(values):.2f}" + (f" +- {np.std(values, ddof=1):.2f}" if len(values) > 1 else "")


def _one(values: list) -> str:
    """A number that is the same in all runs, or its range."""
    known = sorted({value for value in values if value is not None})
    return "-" if not known else f"{known[0]}" if len(known) == 1 else f"{known[0]}-{known[-1]}"


def _as_given(data: dict) -> dict:
    """Options as `load_dataset` wants them: JSON has made lists of tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
