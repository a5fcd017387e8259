"""Records of runs of `tigra reproduce`: check them and format them for tables."""

from __future__ import annotations

import json

import numpy as np

LARGEST = 2**53  # largest exact whole float; no count of a run comes near


def spread(values: list[float]) -> str:
    """Format mean and standard deviation.

    >>> spread([1.0, 2.0]), spread([5.0]), spread([])
    ('1.50 +- 0.71', '5.00', '-')
    """
    if not values:
        return "-"
    return f"{np.mean(values):.2f}" + (f" +- {np.std(values, ddof=1):.2f}" if len(values) > 1 else "")


def one_or_range(values: list) -> str:
    """Format a number that is the same in all runs, or its range."""
    known = sorted({value for value in values if value is not None})
    return "-" if not known else f"{known[0]}" if len(known) == 1 else f"{known[0]}-{known[-1]}"


def effort_of(facts: dict) -> dict:
    """Return epochs, seconds, CPU seconds and threads from a model file, as a record has them."""
    of_training = {"epochs": len(facts["history"]), "best_epoch": facts.get("best_epoch")} if "history" in facts else {}
    return of_training | {name: facts[name] for name in ("seconds", "cpu_seconds", "threads") if name in facts}


def are_numbers(effort: dict) -> bool:
    """Return True if all values are usable numbers."""
    return all(type(value) in (int, float) and 0 <= value <= LARGEST for value in effort.values())


def is_whole(record: dict, names) -> bool:
    """Return True if a record has everything that the table needs; an edited or damaged file may not.

    `names` are those of the tests, the first of which every run has.
    """
    found = record.get("accuracy")
    if not isinstance(found, dict) or not isinstance(found.get("test"), dict):
        return False
    tests, names = found["test"], list(names)
    shares = [value for name, value in found.items() if name != "test"]
    shares += [value for values in tests.values() if isinstance(values, list) for value in values]
    effort = "seconds", "cpu_seconds", "parameters", "epochs", "best_epoch", "threads"
    return (
        all(isinstance(values, list) and values for values in tests.values())
        and names[0] in tests
        and set(tests) <= set(names)
        and all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
        and are_numbers({name: record.get(name, 0) for name in effort})
        and type(record.get("seconds")) in (int, float)
        and isinstance(record.get("protocol"), str)
        and record["protocol"].isprintable()  # it is shown on a terminal
        and _is_json(record)
    )


def _is_json(record: dict) -> bool:
    """Return True if a record can be printed with --json; Python also reads NaN and 1e999, which JSON forbids."""
    try:
        json.dumps(record, allow_nan=False)
    except (ValueError, RecursionError):
        return False
    return True
