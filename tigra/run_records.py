"""What is written down of a run of `tigra reproduce`: is it whole, and how it is shown in a table."""

from __future__ import annotations

import numpy as np


def spread(values: list[float]) -> str:
    """Mean and standard deviation.

    >>> spread([1.0, 2.0]), spread([5.0]), spread([])
    ('1.50 +- 0.71', '5.00', '-')
    """
    if not values:
        return "-"
    return f"{np.mean(values):.2f}" + (f" +- {np.std(values, ddof=1):.2f}" if len(values) > 1 else "")


def one_or_range(values: list) -> str:
    """A number that is the same in all runs, or its range."""
    known = sorted({value for value in values if value is not None})
    return "-" if not known else f"{known[0]}" if len(known) == 1 else f"{known[0]}-{known[-1]}"


def effort_of(facts: dict) -> dict:
    """What a model file says of the effort, as a record has it."""
    of_training = {"epochs": len(facts["history"]), "best_epoch": facts.get("best_epoch")} if "history" in facts else {}
    return of_training | {name: facts[name] for name in ("seconds", "threads") if name in facts}


def are_numbers(effort: dict) -> bool:
    """Whether all that a file says of the effort are numbers that can be added and shown."""
    return all(type(value) in (int, float) and 0 <= value < np.inf for value in effort.values())


def is_whole(record: dict) -> bool:
    """Whether a record has all that the table is made of; a file that was edited or damaged may not."""
    found = record.get("accuracy")
    if not isinstance(found, dict) or not isinstance(found.get("test"), dict):
        return False
    tests = found["test"].values()
    shares = [value for name, value in found.items() if name != "test"]
    shares += [value for values in tests if isinstance(values, list) for value in values]
    return (
        all(isinstance(values, list) and values for values in tests)
        and len(tests) > 0
        and all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
        and are_numbers({name: record.get(name, 0) for name in ("seconds", "parameters", "epochs", "threads")})
        and type(record.get("seconds")) in (int, float)
        and isinstance(record.get("protocol"), str)
    )
