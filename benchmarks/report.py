"""Tables in Markdown, and the numbers behind them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from benchmarks.harness import Times, ratio


@dataclass
class Report:
    """What one benchmark has to say; tables appear as soon as they are complete.

    numbers : path such as "step/MNIST-rot/1/tigra" -> best, median, ...; for the JSON file and the targets
    text : what was written so far, for RESULTS.md
    on_table : called after every table, to save the numbers
    """

    name: str
    numbers: dict = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    on_table: Callable[[], None] = lambda: None

    def say(self, text: str = "") -> None:
        """Print a line that is of interest only now."""
        print(text, file=sys.stdout, flush=True)

    def write(self, text: str) -> None:
        """Print a paragraph that belongs to the results."""
        self.say(f"\n{text}")
        self.text.append(text)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence]) -> None:
        """Print a table with its title."""
        self.write(f"**{title}**\n\n{markdown(columns, rows)}")
        self.on_table()

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
