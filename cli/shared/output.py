"""Output of commands: tables, JSON, and a progress line on terminals."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Iterator

import click


def say(text: str, err: bool = False, nl: bool = True) -> None:
    """Print text; every command prints through this, so that no file or model can send commands to the terminal."""
    click.echo(safe(text), err=err, nl=nl)


def safe(text: str) -> str:
    """Return text for the terminal, with all but line ends escaped that cannot be printed."""
    if text.replace("\n", "").isprintable():
        return text
    from tigra.errors import printable  # importing tigra would slow down `tigra --help`

    return printable(text, keep="\n")


def print_json(content: dict) -> None:
    """Print one JSON object on standard output."""
    say(json.dumps(content, indent=2, allow_nan=False))


@contextlib.contextmanager
def cache_notes() -> Iterator[None]:
    """Show warnings about caches as notes, without a line of code."""
    usual = warnings.showwarning

    def show(message, category, *place):
        if category.__name__ == "CacheWarning":  # by its name: importing tigra would slow down `tigra --help`
            say(f"Note: {message}", err=True)
        else:
            usual(message, category, *place)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def percent(fraction: float) -> str:
    """Format a fraction as a percentage.

    >>> percent(0.975)
    '97.5 %'
    """
    return f"{100 * fraction:.1f} %"


def table(rows: list[tuple], header: tuple | None = None) -> str:
    """Format rows as columns, two spaces apart; columns of numbers are right-aligned.

    >>> print(table([("a", 1), ("bcd", 20)], header=("name", "n")))
    name   n
    a      1
    bcd   20
    """
    rows = ([header] if header else []) + list(rows)
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(isinstance(row[i], (int, float)) for row in rows[bool(header) :]) for i in range(len(widths))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    )


def duration(seconds: float) -> str:
    """Format a number of seconds.

    >>> duration(8.2), duration(75), duration(7300)
    ('8 s', '1 min 15 s', '2 h 01 min')
    """
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


class Progress:
    """A progress line on standard error; shows nothing if that is not a terminal.

    Use it as a context manager: the line is removed at the end, also after an error.
    """

    def __init__(self):
        self.is_live = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self.phase = ""
        self.started: tuple[float, int] | None = None  # (time, number done) at the first report
        self.last_shown = float("-inf")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_):
        self.clear()

    def show(self, text: str, done: int = 0, total: int = 0, phase: str = "") -> None:
        """Show text and the time left, estimated since the first call of this phase with done > 0."""
        now = time.monotonic()
        if phase != self.phase:
            self.phase, self.started = phase, None
        if done and self.started is None:
            self.started = now, done
        if not self.is_live or (now - self.last_shown < 0.1 and done != total):
            return
        self.last_shown = now
        if self.started and done > self.started[1]:
            left = (now - self.started[0]) / (done - self.started[1]) * (total - done)
            text += f"  {duration(left)} left"
        self._write(text[: shutil.get_terminal_size().columns - 1])

    def clear(self) -> None:
        """Remove the line."""
        if self.is_live:
            self._write("")

    def _write(self, text: str) -> None:
        try:
            click.echo("\r\x1b[2K" + safe(text), err=True, nl=False)
        except OSError:  # the terminal was closed; keep working
            self.is_live = False
