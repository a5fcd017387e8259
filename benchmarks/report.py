"""Tables in Markdown, and the numbers behind them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.harness import Times, ratio


@dataclass
class Report:
    """What one benchmark has to say; tables appear as soon as they are complete.

    numbers : path such as "step/MNIST-rot/1/tigra" -> best, median, ...; for the JSON file and the targets
    """

    name: str
    numbers: dict = field(default_factory=dict)
    out: object = None

    def say(self, text: str = "") -> None:
        """Print a line."""
        print(text, file=self.out or sys.stdout, flush=True)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence]) -> None:
        """Print a table with its title."""
        self.say(f"\n**{title}**\n")
        self.say(markdown(columns, rows))

    def race(self, title: str, path: str, times: dict[str, Times], ours: str = "tigra") -> None:
        """Best and median of all contestants, and how many times longer than ours they take."""
        rows = []
        for name, taken in times.items():
            self.numbers[f"{path}/{name}"] = taken.numbers | {"ratio": ratio(taken, times[ours])}
            rows.append(
                (
                    name,
                    duration(taken.best),
                    duration(taken.median),
                    f"{ratio(taken, times[ours]):.2f}",
                    len(taken.seconds),
                )
            )
        self.table(title, ("contestant", "best", "median", "median / ours", "rounds"), rows)


def markdown(columns, rows) -> str:
    """A Markdown table.

    >>> print(markdown(("a", "b"), [(1, 2)]))
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def duration(seconds: float) -> str:
    """Three digits and a unit.

    >>> duration(0.01234), duration(2.5), duration(3e-6)
    ('12.3 ms', '2.50 s', '3.00 us')
    """
    unit, value = next(
        (unit, seconds * n) for unit, n in (("s", 1), ("ms", 1e3), ("us", 1e6)) if seconds * n >= 1 or n == 1e6
    )
    return f"{value:.{max(0, 2 - (value >= 10) - (value >= 100))}f} {unit}"
