"""Records of the measurements, one file for each set, and the tables that they make."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.practice.contenders import CONTENDERS
from benchmarks.practice.sets import SETS
from tigra.errors import UsageError
from tigra.files.atomic import write_atomically
from tigra.files.claims import alone

Records = dict[str, dict[str, dict[str, Any]]]  # by contender and seed
NUMBERS = "upright", "turned", "seconds"


def read(folder: Path, name: str) -> Records:
    """The records of a set; raises UsageError if the file is damaged."""
    path = folder / f"{name}.json"
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        runs = [run for by_seed in found.values() for run in by_seed.values()]
        is_whole = all(float(run[key]) >= 0 and isinstance(run["digest"], str) for run in runs for key in NUMBERS)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise UsageError(f"{path} is no file of this benchmark, or damaged; move it away, or choose another --out.")
    return found


def add(folder: Path, name: str, contender: str, seed: int, run: dict[str, Any]) -> None:
    """Write a measurement at once; other processes may be writing, too."""
    with alone(folder / f".{name}.lock"):
        records = read(folder, name)
        check_pictures(records, name, seed, run["digest"])
        records.setdefault(contender, {})[str(seed)] = run
        order = [known for known in CONTENDERS if known in records]
        content = {known: dict(sorted(records[known].items(), key=lambda item: int(item[0]))) for known in order}
        write_atomically(folder / f"{name}.json", (json.dumps(content, indent=1) + "\n").encode())


def check_pictures(records: Records, name: str, seed: int, digest: str) -> None:
    """Raise UsageError if the pictures are not those that others were measured on."""
    known = {by_seed[str(seed)]["digest"] for by_seed in records.values() if str(seed) in by_seed}
    if known - {digest}:
        raise UsageError(
            f"The pictures of {name}, seed {seed}, differ from those of the records ({digest}, not {min(known)}):"
            " other versions of Pillow or of the fonts. Choose another --out."
        )


# --- tables ---------------------------------------------------------------------------------------------------


def spread(values: list[float]) -> str:
    """Mean and, of several values, standard deviation.

    >>> spread([90.0, 92.0]), spread([81.5])
    ('91.0 ± 1.4', '81.5')
    """
    mean = f"{statistics.mean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


def comparable(records: Records) -> Records:
    """The runs of the seeds that tigra has been measured with: other seeds are other pictures, maybe harder ones.

    >>> comparable({"tigra": {"0": {"turned": 90.0}}, "mlp": {"0": {"turned": 50.0}, "1": {"turned": 20.0}}})["mlp"]
    {'0': {'turned': 50.0}}
    """
    seeds = records.get("tigra") or {seed: {} for runs in records.values() for seed in runs}
    return {name: {seed: run for seed, run in runs.items() if seed in seeds} for name, runs in records.items()}


def table(folder: Path, tests: tuple[str, ...]) -> list[str]:
    """Lines of Markdown: every contender on every set, means over the seeds of these numbers.

    Cells say how many seeds there are if they are fewer than tigra's.
    """
    found = {name: records for name in SETS if (records := comparable(read(folder, name)))}
    lines = [f"| | {' | '.join(found)} |", "| --- |" + " ---: |" * len(found)]
    for name, contender in CONTENDERS.items():
        cells = [
            _cell(list(records.get(name, {}).values()), tests, len(records.get("tigra", {})))
            for records in found.values()
        ]
        if set(cells) != {"-"}:
            lines.append(f"| {contender.words} | {' | '.join(cells)} |")
    return lines


def _cell(runs: list[dict[str, Any]], tests: tuple[str, ...], n_seeds: int = 0) -> str:
    """Means of some numbers of the runs, and how many runs there are if they are fewer than n_seeds.

    >>> _cell([{"upright": 90.0, "turned": 80.0}, {"upright": 92.0, "turned": 81.0}], ("upright", "turned"), 3)
    '91.0 / 80.5 (2)'
    """
    if not runs:
        return "-"
    means = " / ".join(f"{statistics.mean(run[test] for run in runs):.1f}" for test in tests)
    return f"{means} ({len(runs)})" if len(runs) < n_seeds else means


def overview(folder: Path) -> list[str]:
    """Lines of Markdown: accuracy on turned pictures, of tigra and of the best peers, for each set."""
    lines = [
        "| set | | tigra 0.1 | tigra | best peer, upright training | best peer, turned copies | seeds |",
        "| --- | --- | ---: | ---: | --- | --- | ---: |",
    ]
    for name, recipe in SETS.items():
        records = comparable(read(folder, name))
        if records:
            ours = [_mean(records, contender) for contender in ("tigra-0.1", "tigra")]
            peers = [_best(records, is_turned) for is_turned in (False, True)]
            lines.append(
                f"| `{name}` | {recipe.words} | {' | '.join(ours + peers)} | {len(records.get('tigra', {}))} |"
            )
    return lines


def _mean(records: Records, contender: str) -> str:
    runs = records.get(contender, {}).values()
    return spread([run["turned"] for run in runs]) if runs else "-"


def _best(records: Records, is_turned: bool) -> str:
    """The peer with the highest mean, and its name."""
    peers = [n for n, one in CONTENDERS.items() if one.is_turned == is_turned and not n.startswith("tigra")]
    means = {n: statistics.mean(run["turned"] for run in records[n].values()) for n in peers if records.get(n)}
    if not means:
        return "-"
    best = max(means, key=means.__getitem__)
    n_seeds = len(records[best])
    few = f", {n_seeds} seed{'s' * (n_seeds > 1)}" if n_seeds < len(records.get("tigra", {})) else ""
    return f"{_mean(records, best)} ({CONTENDERS[best].words.split(',')[0]}{few})"
