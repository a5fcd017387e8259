"""What an attack found, and the loop that all attacks share."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

Progress = Callable[[str, int, int], None]  # called with (description, number of tries, number of failures)


@dataclass
class Outcome:
    """Numbers of one attack.

    Attributes
    ----------
    tried, survived : int
        Number of tries, and of those after which everything was as promised.
    failures : list of str
        One line for each of the others, with the seed that repeats it.
    hits : Counter
        What the tries hit, and how often, if the attack counts it.
    """

    tried: int = 0
    survived: int = 0
    failures: list[str] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)


def repeat(attempt: Callable[[int], None], seconds: float, seed: int, progress: Progress, what: str) -> Outcome:
    """Call attempt(seed), attempt(seed + 1), ... for `seconds`, at least once; an exception is a failure.

    An attempt depends on its seed only, so `--seed S --seconds 0` repeats the failure of seed S alone.
    """
    outcome, end = Outcome(), time.monotonic() + seconds
    while not outcome.tried or time.monotonic() < end:
        number = seed + outcome.tried
        outcome.tried += 1
        try:
            attempt(number)
            outcome.survived += 1
        except Exception as error:  # whatever it is, it is what the attack looks for
            text = " ".join(str(error).split()) or "no message"
            outcome.failures.append(f"{what}, seed {number}: {type(error).__name__}: {text[:300]}")
        progress(what, outcome.tried, len(outcome.failures))
    return outcome
