"""tigra's folder recipe against HOG + SVM, LBP + SVM, an MLP and a ConvNet, on small sets, upright and turned.

    python -m benchmarks.practice [SET ...] [--contender NAME] [--seeds 3] [--seed N] [--jobs 1] [--out FOLDER]
                                  [--data-dir FOLDER] [--version-0-1 PYTHON] [--table] [--write PAGE]
                                  [--picture PNG]

Letters, shapes and textures are drawn on the spot, photographs come with scikit-learn; digits and objects need MNIST
and ETH-80 (`tigra data fetch`). Each result is written to FOLDER/SET.json at once and is not computed again. mpiexec
works, too. What cannot take part, because a package is missing, is left out with a message. docs/own-pictures.md has
the tables; `--table` prints those of the records without measuring anything.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

from tigra_cli.shared.processes import current_team, in_process_0

from benchmarks.practice import records
from benchmarks.practice.contenders import CONTENDERS, Conditions, absence, measured
from benchmarks.practice.picture import sheet
from benchmarks.practice.sets import SETS, make
from benchmarks.results import with_block
from tigra.errors import DatasetError, TigraError, UsageError
from tigra.experiments.runner import hand_out, runner_for
from tigra.experiments.runs import Watch
from tigra.files.atomic import write_atomically
from tigra.files.claims import claim

OUT = Path("docs/practice")


class Task(NamedTuple):
    """One contender on one set."""

    name: str
    contender: str
    seed: int
    options: argparse.Namespace

    @property
    def words(self) -> str:
        """For messages."""
        return f"{self.name}, {CONTENDERS[self.contender].words}, seed {self.seed}"


def do(task: Task, watch: Watch) -> dict | None:
    """Measure and record at once, unless it is recorded or another process is at it."""
    folder = task.options.out
    with claim(folder / f".{task.name}-{task.contender}-{task.seed}.lock") as is_mine:
        if not is_mine or is_recorded(task):
            return None
        pictures = make(task.name, task.seed, task.options.data_dir)
        records.check_pictures(records.read(folder, task.name), task.name, task.seed, pictures.digest)
        is_dark_on_light = SETS[task.name].is_dark_on_light
        conditions = Conditions(task.seed, is_dark_on_light, task.options.version_0_1, watch)
        run = measured(task.contender, pictures, conditions) | {"digest": pictures.digest}
        records.add(folder, task.name, task.contender, task.seed, run)
        return run


def is_recorded(task: Task) -> bool:
    """Whether the file of the set has this measurement."""
    return str(task.seed) in records.read(task.options.out, task.name).get(task.contender, {})


def parsed(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--contender", action="append", choices=list(CONTENDERS), help="only this one; repeatable")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--jobs", type=int, default=1, help="measurements at a time, each in a process of its own")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--data-dir", help="where MNIST and ETH-80 are")
    parser.add_argument("--version-0-1", metavar="PYTHON", help="Python of an environment that has tigra 0.1")
    parser.add_argument("--table", action="store_true", help="only print the tables of the records")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write the tables into the block of a page, too")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="only draw some pictures of every set")
    options = parser.parse_args(words)
    if unknown := set(options.sets) - set(SETS):
        parser.error(f"no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    if min(options.seeds, options.jobs) < 1:
        parser.error(f"--seeds and --jobs are numbers of at least 1, got {options.seeds} and {options.jobs}")
    return options


def tasks_of(options: argparse.Namespace) -> list[Task]:
    """What is to be measured, seed by seed; says what is left out."""
    contenders = options.contender or list(CONTENDERS)
    for contender in list(contenders):
        if reason := absence(contender, options.version_0_1):
            print(f"Left out {CONTENDERS[contender].words}: {reason}", file=sys.stderr)
            contenders.remove(contender)
    names = options.sets or list(SETS)
    for name in list(names):
        try:
            make(name, 0, options.data_dir, SETS[name].counts._replace(train=1, test=1))
        except (UsageError, DatasetError) as error:
            print(f"Left out {name}: {error}", file=sys.stderr)
            names.remove(name)
    seeds = range(options.seeds) if options.seed is None else [options.seed]
    return [Task(name, one, seed, options) for seed in seeds for name in names for one in contenders]


def run(options: argparse.Namespace) -> bool:
    """Measure what is missing; returns False if something failed."""
    options.out.mkdir(parents=True, exist_ok=True)
    tasks, all_well = [task for task in tasks_of(options) if not is_recorded(task)], True
    with runner_for(min(options.jobs, len(tasks) or 1), team=current_team()) as runner:
        for outcome in hand_out(runner, do, tasks):
            if outcome.error:
                all_well = False
                print(f"{outcome.task.words}: no result. {outcome.error}", file=sys.stderr, flush=True)
            elif outcome.result:
                numbers = "{upright:.1f} upright, {turned:.1f} turned, {seconds:.1f} s".format(**outcome.result)
                print(f"{outcome.task.words}: {numbers}", file=sys.stderr, flush=True)
    return all_well


def tables(folder: Path) -> str:
    """All tables as Markdown."""
    parts = {
        "Accuracy on turned pictures (%)": records.overview(folder),
        "Accuracy on upright / turned pictures (%)": records.table(folder, ("upright", "turned")),
        "CPU seconds to train": records.table(folder, ("seconds",)),
    }
    return "\n\n".join(f"**{title}**\n\n" + "\n".join(lines) for title, lines in parts.items())


def main(words: list[str] | None = None) -> None:
    """Measure what is not recorded yet, and print the tables."""
    options = parsed(words)
    try:
        if options.picture:
            return write_atomically(options.picture, sheet(options.data_dir), "--picture")
        all_well = options.table or run(options)
        print(tables(options.out), flush=True)
        if options.write:
            text = with_block(options.write.read_text(encoding="utf-8"), tables(options.out), "practice")
            write_atomically(options.write, text.encode(), "--write")
    except (TigraError, OSError) as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit(f"\nStopped; what is finished is in {options.out}, the same command goes on.")
    if not all_well:
        sys.exit(1)


if __name__ == "__main__":
    in_process_0(main)
