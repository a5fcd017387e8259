"""Reproducing a table of the paper: run by run, each kept as soon as it is finished, then one Markdown table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tigra.datasets import load_dataset
from tigra.errors import TigraError, UsageError
from tigra.model_file import Model, check_writable, load_model, write_atomically
from tigra.nearest import nearest_neighbour
from tigra.run_records import are_numbers, effort_of, is_whole, one_or_range, spread
from tigra.runs import fit_run, recipe_for, resume_run, save_fitted, save_run, start_run
from tigra.sources import cache_folder
from tigra.splits import Split, Splits, generator
from tigra.tables import Row, Table
from tigra.training import Training, accuracy, split_hash
from tigra.version import __version__

SAVE_EVERY = 60  # seconds between saves of an unfinished run
QUICK_IMAGES = 300  # of each kind on which a quick run is measured, at most


class Stopped(Exception):
    """The run was told to stop; what it has learned is in its model file."""


class Watch(NamedTuple):
    """What a caller wants to see and to say while runs go on.

    show : called with (text, done, of how many); should_stop : asked after every step, and before every `look`
    """

    show: Callable[[str, int, int], None] = lambda text, done=0, total=0: None
    should_stop: Callable[[], bool] = lambda: False

    def look(self, text: str, done: int = 0, total: int = 0) -> None:
        """Show it, and raise Stopped if that is wanted: where nothing is lost by it."""
        if self.should_stop():
            raise Stopped
        self.show(text, done, total)


class Experiment:
    """The runs of one table, in a folder: a JSON file for each finished run, and the model it trained.

    folder : where records and models are kept; those of an earlier start are used again, unless their settings differ
    quick : few epochs and images, to try the machinery
    seeds : how many runs of each row, at most, if not as many as the table says
    where : data_dir of `load_dataset`
    only : keys of the rows to run, if not all
    finished : nothing will be run: without `seeds` a row has all the runs that the folder has, more than the table
        asks for, too
    """

    def __init__(self, table: Table, folder, quick=False, seeds=None, threads=1, where=None, only=(), finished=False):
        self.table, self.folder, self.quick, self.seeds = table, Path(folder), quick, seeds
        self.threads, self.where, self.finished = threads, where, finished
        keys = [row.key for row in table.rows]
        for key in only:
            if key not in keys:
                raise UsageError(f"This table has no row {key!r}; it has {', '.join(keys)}.")
        self.rows = [row for row in table.rows if row.key in (only or keys)]

    def runs(self) -> list[tuple[Row, int]]:
        """Every run there is to do: (row, number of the seed or fold)."""
        return [(row, number) for row in self.rows for number in self.numbers(row)]

    def numbers(self, row: Row) -> list[int]:
        """Seeds or folds of a row's runs."""
        is_limited = row.over == "fold" or row.is_fixed
        if self.seeds is not None:
            return list(range(min(self.seeds, row.runs) if is_limited else self.seeds))
        wanted = range(1 if self.quick else row.runs)
        kept = [number for number in self._kept_numbers(row) if number < row.runs or not is_limited]
        return sorted({*wanted, *kept}) if self.finished else list(wanted)

    def _kept_numbers(self, row: Row) -> list[int]:
        """Seeds or folds of a row of which the folder has a file."""
        before, after = f"{row.key}-{row.over}-", self.path(row, 0).name.rpartition("-0")[2]
        names = [path.name for path in self.folder.glob(f"{before}*{after}")]
        numbers = [name.removeprefix(before).removesuffix(after) for name in names]
        return [int(number) for number in numbers if number.isdecimal()]

    def finished_rows(self) -> list[Row]:
        """Rows of which at least one run is finished."""
        return [row for row in self.rows if any(self.record(row, number) for number in self.numbers(row))]

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
            "transformations": self.table.quick_transformations if self.quick else self.table.transformations,
        }
        return json.loads(json.dumps(settings))

    def path(self, row: Row, number: int, ending: str = ".json") -> Path:
        """The file of a run."""
        return self.folder / f"{row.key}-{row.over}-{number}{'-quick' if self.quick else ''}{ending}"

    def record(self, row: Row, number: int) -> dict | None:
        """What a finished run found, or None; a file that is damaged or of other settings counts as none."""
        try:
            record = json.loads(self.path(row, number).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        is_ours = isinstance(record, dict) and record.get("settings") == self.settings(row, number)
        return record if is_ours and is_whole(record, self.table.tests[row.dataset]) else None

    def left_out(self) -> list[Path]:
        """Files of runs that count as none: they are damaged, or of other settings than today's."""
        paths = [self.path(row, number) for row, number in self.runs() if self.record(row, number) is None]
        return [path for path in paths if path.exists()]

    def run(self, row: Row, number: int, watch: Watch = Watch()) -> dict:  # noqa: B008
        """Do one run, or go on with it, and keep its record; Stopped is raised when the watch says so."""
        settings = self.settings(row, number)
        self.folder.mkdir(parents=True, exist_ok=True)
        check_writable(self.path(row, number), "the record")  # now, not after an hour of training
        watch.look(f"loading {row.dataset}")
        splits = self._load(settings, {}, watch)
        if row.method == "nearest":
            found = self._nearest(splits)
        elif row.method == "deepscat":
            found = self._fit(row, number, settings, splits, watch)
        else:
            found = self._train(row, number, settings, splits, watch)
        record = {"row": row.key, "number": number, "tigra": __version__, "settings": settings, **found}
        write_atomically(self.path(row, number), (json.dumps(record, indent=1) + "\n").encode())
        return record

    def _load(self, settings, changes, watch) -> Splits:
        options = _as_given(settings["data"] | changes)
        return load_dataset(
            settings["dataset"], data_dir=self.where, threads=self.threads, on_progress=watch.look, **options
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
        path = self.path(row, number, ".npz")
        kept = _kept_model(path, settings, splits)
        if kept:
            kept.network.cache = cache_folder()  # an earlier start may have scattered some test images
            return self._found(kept.network, effort_of(kept.training), settings, splits, watch)
        started = time.monotonic()
        model = fit_run(splits, settings["recipe"], self.threads, watch.look)
        effort = {"seconds": round(time.monotonic() - started, 3), "threads": self.threads}
        save_fitted(model, splits, path, settings=settings, **effort)
        return self._found(model, effort, settings, splits, watch)

    def _train(self, row, number, settings, splits, watch) -> dict:
        path = self.path(row, number, ".npz")
        kept = _kept_model(path, settings, splits)
        if kept and kept.resume is None:  # trained to the end, but stopped before its accuracy was written down
            return self._found(kept.network, effort_of(kept.training), settings, splits, watch)
        training, seconds = self._started(kept, settings, splits, path)
        started = last_save = time.monotonic()
        training.should_stop, n_epochs = watch.should_stop, training.options.epochs
        training.on_step = lambda step, n_steps: watch.show(
            f"epoch {len(training.history) + 1}/{n_epochs}",
            len(training.history) * n_steps + step,
            n_epochs * n_steps,
        )

        def keep():
            spent = {"seconds": round(seconds + time.monotonic() - started, 3), "threads": self.threads}
            save_run(training, splits, path, settings=settings, **spent)
            return spent

        for _ in training.run():
            if time.monotonic() - last_save > SAVE_EVERY:
                keep()
                last_save = time.monotonic()
        spent = keep()
        if not training.is_finished:
            raise Stopped
        effort = {"epochs": len(training.history), "best_epoch": training.best_epoch.number} | spent
        return self._found(training.network, effort, settings, splits, watch)

    def _started(self, kept, settings, splits, path) -> tuple[Training, float]:
        """A training, new or the one that an earlier start left unfinished; and the seconds it has had."""
        if kept:
            try:
                return resume_run(kept, splits, path, self.threads), effort_of(kept.training)["seconds"]
            except TigraError:
                pass  # none that helps: begin anew
        return start_run(splits, settings["recipe"], settings["data"].get("seed", 0), self.threads), 0.0

    def _found(self, model, effort, settings, splits, watch) -> dict:
        """What is written down of a model that was trained or fitted."""
        return {
            "protocol": splits.protocol,
            "architecture": model.options["architecture"],
            "parameters": model.n_parameters,
            **effort,
            "accuracy": self._measured(model, settings, splits, watch),
        }

    def _measured(self, model, settings, splits, watch) -> dict:
        """Accuracies; a stop is heeded, because the model is kept and only this is done again."""
        tests = {}
        for name, changes in settings["tests"].items():
            same = changes.items() <= splits.options.items()
            made = splits if same else self._load(settings, changes, watch)
            rounds = settings["transformations"] if made.transform else 1
            tests[name] = []
            for n in range(rounds):
                watch.look(f"testing, {name}")
                test = made.fresh_test(generator(0, f"evaluate {n}"))
                tests[name].append(self._accuracy(model, test, watch, f"testing, {name}", n, rounds))
        parts = {"train": splits.train, "valid": splits.valid, "test_upright": splits.test_upright}
        found = {name: self._accuracy(model, part, watch, f"measuring, {name}") for name, part in parts.items()}
        return found | {"test": tests}

    def _accuracy(self, model, split, watch, what, before=0, rounds=1) -> float:
        split = Split(*(part[:QUICK_IMAGES] for part in split)) if self.quick else split
        return accuracy(
            model, split, self.threads, lambda done, total: watch.look(what, before * total + done, rounds * total)
        )

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
            lines += ["", *self._protocols(rows), ""]
        return "\n".join(lines[:-1])

    def _cells(self, row: Row, tests: list[str]) -> list[str]:
        records = [record for n in self.numbers(row) if (record := self.record(row, n))]
        accuracies = [record["accuracy"] for record in records]
        cells = [row.words, row.paper or "-"]
        cells += [spread([100 * statistics.mean(a["test"][t]) for a in accuracies if t in a["test"]]) for t in tests]
        cells += [
            spread([100 * a[part] for a in accuracies if part in a]) for part in ("test_upright", "valid", "train")
        ]
        plural = "s" if len(records) != 1 else ""
        cells += [f"{len(records)} {row.over}{plural}"]
        cells += [one_or_range([record.get(key) for record in records]) for key in ("parameters", "epochs")]
        return [*cells, f"{statistics.mean(r['seconds'] for r in records):.0f}" if records else "-"]

    def _protocols(self, rows) -> list[str]:
        """One for each way in which runs were made; folds are all made in one way."""
        found = [(row, n, record) for row in rows for n in self.numbers(row) if (record := self.record(row, n))]
        texts = [
            record["protocol"].replace(f", fold {n},", ", each object in turn,")
            if row.over == "fold"
            else record["protocol"]
            for row, n, record in found
        ]
        return [f"Protocol: {text}." for text in dict.fromkeys(texts)]

    def n_threads(self) -> str:
        """On how many threads the finished runs were trained: a number, or a range.

        Those of another start count as they were, not as they would be today.
        """
        return one_or_range([record.get("threads") for row, n in self.runs() if (record := self.record(row, n))])


def _as_given(data: dict) -> dict:
    """Options as `load_dataset` wants them: JSON has made lists of tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}


def _kept_model(path, settings: dict, splits: Splits) -> Model | None:
    """The model that an earlier start left, finished or not, if it is of these settings and images."""
    try:
        model = load_model(path)
    except TigraError:
        return None
    facts = model.training
    same = facts.get("settings") == settings and facts.get("split_hash") == split_hash(splits)
    return model if same and "seconds" in facts and are_numbers(effort_of(facts)) else None
