"""Reproduce a table of the paper: save each run when it is finished, then make a Markdown table."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from tigra.datasets import Split, Splits, load_dataset
from tigra.datasets.splits import split_hash
from tigra.errors import TigraError, UsageError
from tigra.experiments.methods import find_method
from tigra.experiments.recipe import Recipe
from tigra.experiments.records import (
    are_numbers,
    effort_of,
    is_whole,
    one_or_range,
    spread,
)
from tigra.experiments.resuming import resume
from tigra.experiments.runs import Run, Watch, perform
from tigra.experiments.tables import Row, Table
from tigra.files.atomic import check_writable, write_atomically
from tigra.files.cache import cache_folder
from tigra.files.claims import claim
from tigra.model_file import Model, load_model
from tigra.models.classifier import Classifier, accuracy
from tigra.seeding import generator
from tigra.training.views import Views
from tigra.version import __version__

SAVE_EVERY = 60  # seconds between saves of an unfinished run
QUICK_IMAGES = 300  # at most so many per split in a quick run


class Experiment:
    """The runs of one table, in a folder with a JSON file and a model for each finished run.

    Parameters
    ----------
    table : Table
        The table.
    folder : path
        Folder of records and models. Those of an earlier start are used again if their settings are equal.
    quick : bool
        Use few epochs and images, to test the setup.
    seeds : int, optional
        Number of runs per row; by default as in the table.
    threads : int
        Number of worker threads.
    where : path, optional
        `data_dir` of `load_dataset`.
    only : sequence of str
        Keys of the rows to run; empty for all.
    finished : bool
        Run nothing. Without `seeds`, a row then has all runs in the folder, even more than in the table.
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
        """Return all runs as (row, number of the seed or fold)."""
        return [(row, number) for row in self.rows for number in self.numbers(row)]

    def numbers(self, row: Row) -> list[int]:
        """Return the seeds or folds of a row."""
        is_limited = row.over == "fold" or row.is_fixed
        if self.seeds is not None:
            return list(range(min(self.seeds, row.runs) if is_limited else self.seeds))
        wanted = range(1 if self.quick else row.runs)
        kept = [number for number in self._kept_numbers(row) if number < row.runs or not is_limited]
        return sorted({*wanted, *kept}) if self.finished else list(wanted)

    def _kept_numbers(self, row: Row) -> list[int]:
        """Return the seeds or folds of a row that have a file in the folder."""
        before, after = f"{row.key}-{row.over}-", self.path(row, 0).name.rpartition("-0")[2]
        names = [path.name for path in self.folder.glob(f"{before}*{after}")]
        numbers = [name.removeprefix(before).removesuffix(after) for name in names]
        return [int(number) for number in numbers if number.isdecimal()]

    def finished_rows(self) -> list[Row]:
        """Return the rows with at least one finished run."""
        return [row for row in self.rows if any(self.record(row, number) for number in self.numbers(row))]

    def recipe(self, row: Row):
        """Return the recipe of a row as an object, so that old spellings in files compare equal."""
        recipe = find_method(row.method).recipe(row.dataset, row.recipe)
        if row.changes:
            recipe = recipe.with_changes(row.changes)
        if self.quick and isinstance(recipe, Recipe):
            recipe = recipe.with_changes(self.table.quick_fit)
        return recipe

    def settings(self, row: Row, number: int) -> dict:
        """Return all settings that affect the results of a run, ready for JSON."""
        data = row.data | (self.table.quick_data if self.quick else {})
        data = data | ({"fold": number} if row.over == "fold" else {"seed": number})
        recipe = self.recipe(row)
        settings = {
            "method": row.method,
            "dataset": row.dataset,
            "data": data,
            "recipe": None if recipe is None else recipe.to_json(),
            "tests": self.table.tests[row.dataset],
            "transformations": self.table.quick_transformations if self.quick else self.table.transformations,
        }
        return json.loads(json.dumps(settings | ({"views": row.views} if row.views > 1 else {})))

    def is_of(self, found, row: Row, number: int) -> bool:
        """Return True if the settings in a file are those of a run; recipes are compared as objects."""
        wanted = self.settings(row, number)
        if not isinstance(found, dict) or found | {"recipe": None} != wanted | {"recipe": None}:
            return False
        try:
            return self.recipe(row) == (found["recipe"] and find_method(row.method).read_recipe(found["recipe"]))
        except (TigraError, KeyError, TypeError, AttributeError):  # a file may contain anything
            return False

    def path(self, row: Row, number: int, ending: str = ".json") -> Path:
        """Return the path of a file of a run; rows that differ only in their test share models and their locks."""
        key = row.key if ending == ".json" else row.model_of or row.key
        return self.folder / f"{key}-{row.over}-{number}{'-quick' if self.quick else ''}{ending}"

    def record(self, row: Row, number: int) -> dict | None:
        """Return the record of a finished run; None if it is missing, damaged or of other settings."""
        try:
            record = json.loads(self.path(row, number).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        is_ours = isinstance(record, dict) and self.is_of(record.get("settings"), row, number)
        return record if is_ours and is_whole(record, self.table.tests[row.dataset]) else None

    def left_out(self) -> list[Path]:
        """Return the files of runs that are damaged or of other settings than the current ones."""
        paths = [self.path(row, number) for row, number in self.runs() if self.record(row, number) is None]
        return [path for path in paths if path.exists()]

    def run(self, row: Row, number: int, watch: Watch = Watch()) -> dict:  # noqa: B008
        """Do or continue one run and save its record; raise Stopped if the watch asks for it."""
        settings = self.settings(row, number)
        self.folder.mkdir(parents=True, exist_ok=True)
        check_writable(self.path(row, number), "the record")  # before an hour of training
        watch.look(f"loading {row.dataset}")
        splits = self._load(settings, {}, watch)
        trained = replace(row, views=1)  # views are a matter of the test alone
        model, facts = self._finished(trained, number, self.settings(trained, number), splits, watch)
        model.keep_features_in(cache_folder())  # an earlier start may have computed some
        looks = Views(model, row.views) if row.views > 1 else model
        record = {
            "row": row.key,
            "number": number,
            "tigra": __version__,
            "settings": settings,
            "protocol": splits.protocol + (f", {looks.words}" if isinstance(looks, Views) else ""),
            **facts,
            "accuracy": self._measured(looks, settings, splits, watch),
        }
        write_atomically(self.path(row, number), (json.dumps(record, indent=1) + "\n").encode())
        return record

    def claimed_run(self, row: Row, number: int, watch: Watch = Watch()) -> dict | None:  # noqa: B008
        """Do a run unless it is finished; None if another process is doing it or has just finished it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with claim(self.path(row, number, ".lock")) as is_mine:
            if not is_mine or self.record(row, number):
                return None
            return self.run(row, number, watch)

    def _load(self, settings, changes, watch) -> Splits:
        options = _as_given(settings["data"] | changes)
        return load_dataset(
            settings["dataset"], data_dir=self.where, threads=self.threads, on_progress=watch.look, **options
        )

    def _finished(self, row, number, settings, splits, watch) -> tuple[Classifier, dict]:
        """Return (model, facts) of a run: finished earlier, continued, or new."""
        path = self.path(row, number, ".npz")
        kept = self._kept_model(path, row, number, splits)
        if kept and kept.resume is None:  # trained, but stopped before its accuracy was saved
            model = kept.network
            facts = {"architecture": model.options.architecture, "parameters": model.n_parameters}
            return model, facts | effort_of(kept.training)
        run, before = self._started(kept, row, settings, splits, path)
        started = time.process_time()
        effort: dict[str, float] = {"threads": self.threads}

        def facts_so_far(seconds: float) -> dict:
            spent = {"seconds": seconds, "cpu_seconds": time.process_time() - started}  # of all threads
            effort.update((name, round(before[name] + spent[name], 3)) for name in spent if name in before)
            return {"settings": settings} | effort

        perform(run, path, watch, SAVE_EVERY, facts_so_far)
        facts = {name: value for name, value in run.facts.items() if name != "seed"}
        return run.model, facts | effort

    def _started(self, kept, row, settings, splits, path) -> tuple[Run, dict]:
        """Return (run, effort so far): the unfinished run of an earlier start, or a new one."""
        if kept:
            try:
                return resume(kept, splits, path, self.threads), effort_of(kept.training)
            except TigraError:
                pass  # unusable: start again
        seed = settings["data"].get("seed", 0)
        run = find_method(row.method).start(splits, self.recipe(row), seed, self.threads)
        return run, {"seconds": 0, "cpu_seconds": 0}

    def _kept_model(self, path, row: Row, number: int, splits: Splits) -> Model | None:
        """Return the model of an earlier start, finished or not, if settings and images are equal."""
        try:
            model = load_model(path)
        except TigraError:
            return None
        facts = model.training
        same = self.is_of(facts.get("settings"), row, number) and facts.get("split_hash") == split_hash(splits)
        return model if same and "seconds" in facts and are_numbers(effort_of(facts)) else None

    def _measured(self, model, settings, splits, watch) -> dict:
        """Measure the accuracies; may stop at any time, as the model is already saved."""
        tests: dict[str, list[float]] = {}
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
            model, split, self.threads, lambda _, done, total: watch.look(what, before * total + done, rounds * total)
        )

    def markdown(self) -> str:
        """Return the table of the finished runs."""
        return table_markdown(self.table, self.rows, self._records)

    def _records(self, row: Row) -> dict[int, dict]:
        return {n: record for n in self.numbers(row) if (record := self.record(row, n))}

    def n_threads(self) -> str:
        """Return the number of threads with which the finished runs were trained, or its range."""
        return one_or_range([record.get("threads") for row, n in self.runs() if (record := self.record(row, n))])


def table_markdown(table: Table, rows: Sequence[Row], records_of: Callable[[Row], dict[int, dict]]) -> str:
    """Return a Markdown table of finished runs, with the protocols below it.

    Parameters
    ----------
    table : Table
        The table.
    rows : sequence of Row
        Its rows to show.
    records_of : callable
        Function from a row to its records, by seed or fold.

    Returns
    -------
    str
        The table in Markdown, with the protocols below it.
    """
    lines = []
    for dataset, tests in table.tests.items():
        found = [(row, records_of(row)) for row in rows if row.dataset == dataset]
        if not found:
            continue
        header = ["", "paper", *(f"test, {name}" for name in tests), "upright test", "valid", "train"]
        header += ["runs", "parameters", "epochs", "seconds", "CPU seconds"]
        lines += ["| " + " | ".join(header) + " |", "| --- |" + " ---: |" * (len(header) - 1)]
        lines += ["| " + " | ".join(_cells(row, list(kept.values()), tests)) + " |" for row, kept in found]
        lines += ["", *_protocols(found), ""]
    return "\n".join(lines[:-1])


def _cells(row: Row, records: list[dict], tests: Iterable[str]) -> list[str]:
    accuracies = [record["accuracy"] for record in records]
    cells = [row.words, row.paper or "-"]
    cells += [spread([100 * statistics.mean(a["test"][t]) for a in accuracies if t in a["test"]]) for t in tests]
    cells += [spread([100 * a[part] for a in accuracies if part in a]) for part in ("test_upright", "valid", "train")]
    plural = "s" if len(records) != 1 else ""
    cells += [f"{len(records)} {row.over}{plural}"]
    cells += [one_or_range([record.get(key) for record in records]) for key in ("parameters", "epochs")]
    for key in ("seconds", "cpu_seconds"):
        known = [record[key] for record in records if key in record]
        cells.append(f"{statistics.mean(known):.0f}" if known else "-")
    return cells


def _protocols(found: list[tuple[Row, dict[int, dict]]]) -> list[str]:
    """Return one line per protocol; all folds share one."""
    texts = [
        record["protocol"].replace(f", fold {n},", ", each object in turn,")
        if row.over == "fold"
        else record["protocol"]
        for row, records in found
        for n, record in records.items()
    ]
    return [f"Protocol: {text}." for text in dict.fromkeys(texts)]


def _as_given(data: dict) -> dict:
    """Return options for `load_dataset`; JSON has turned tuples into lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
