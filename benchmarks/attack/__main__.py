"""Try to break tigra: python -m benchmarks.attack [kill|ranks|files|caches|resources ...] [--seconds N] [--seed N]

Without a name all attacks run, each for --seconds. Try number n uses the seed --seed + n, so
`--seed S --seconds 0` repeats one try. The exit status is 1 if a try failed. Everything happens in temporary
folders. docs/reliability.md says what is attacked and what was found.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys

from benchmarks.attack.outcome import Outcome

NAMES = [
    name
    for name in ("kill", "ranks", "files", "caches", "resources")
    if importlib.util.find_spec(f"benchmarks.attack.{name}") is not None
]


def main(words: list[str] | None = None) -> int:
    """Run attacks, print their outcomes; return 1 if a try failed, else 0."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.attack", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N", help="for each attack; 60 by default")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first try; 0 by default")
    options = parser.parse_args(words)
    for name in options.names:
        if name not in NAMES:
            parser.error(f"unknown attack {name}; there are {', '.join(NAMES)}")
    if options.seed < 0 or not 0 <= options.seconds < float("inf"):
        parser.error("--seed and --seconds must be at least 0, and finite")
    failed = False
    for name in dict.fromkeys(options.names or NAMES):
        outcome = importlib.import_module(f"benchmarks.attack.{name}").attack(options.seconds, options.seed, show)
        report(name, outcome)
        failed |= bool(outcome.failures)
    return int(failed)


def show(what: str, tried: int, failed: int) -> None:
    """Show a live line, if standard error is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{what}: {tried} tried, {failed} failed\033[K", end="", file=sys.stderr, flush=True)


def report(name: str, outcome: Outcome) -> None:
    """Print the numbers of an attack and its failures."""
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    print(f"{name}: {outcome.tried} tried, {outcome.survived} survived, {len(outcome.failures)} failed", flush=True)
    if total := outcome.hits.total():
        parts = ", ".join(f"{count} {what}" for what, count in sorted(outcome.hits.items()))
        print(f"  hits: {total} ({parts})", flush=True)
    for line in outcome.failures:
        print(f"  {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
