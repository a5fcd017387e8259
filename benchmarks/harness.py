"""Timing: contestants take turns in one process; best, median, ratios of medians, fitted exponents."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

LONG = 1.0  # seconds; calls that take longer are their own warm-up
FEWEST_ROUNDS = 3  # however long they take, unless fewer are asked for


@dataclass
class Contestant:
    """Something to be timed.

    call : does the work once. With own_clock it returns the seconds that count, else all of the call counts
    before : called ahead of every turn and not timed, to set the number of threads, say
    most_rounds : fewer rounds for what takes seconds
    """

    name: str
    call: Callable
    before: Callable = lambda: None
    own_clock: bool = False
    most_rounds: int = 10**9


@dataclass
class Times:
    """Seconds of one call, over the rounds."""

    seconds: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def numbers(self) -> dict:
        """What goes into the JSON file."""
        return {"best": self.best, "median": self.median, "rounds": len(self.seconds)}


def take_turns(
    contestants,
    rounds: int,
    shortest_turn: float = 0.05,
    rest: float = 0.0,
    longest: float = float("inf"),
    clock=time.perf_counter,
) -> dict[str, Times]:
    """Times of each contestant by name.

    Everyone warms up first: a call that compiles and allocates, and one that tells how many calls make a
    turn of at least `shortest_turn` seconds. Then they take turns, `rounds` times. A turn begins with `rest`
    seconds of sleep and a call that is not timed: threads of BLAS and OpenMP go on waiting in a loop for a
    while after their work, and would take the cores from whoever comes next. So each runs in its own steady
    state, with its own data in the cache. (What takes seconds does without that call.) Who needs more than `longest`
    seconds for all rounds has fewer of them.
    """
    once = {}
    for contestant in contestants:
        contestant.before()
        _timed(contestant, 1, clock)
        once[contestant.name] = _timed(contestant, 1, clock)
    n_calls = {name: max(1, min(1000, round(shortest_turn / max(seconds, 1e-7)))) for name, seconds in once.items()}
    times = {contestant.name: Times() for contestant in contestants}
    n_rounds = {
        c.name: min(c.most_rounds, _affordable(once[c.name], shortest_turn, rest, longest)) for c in contestants
    }
    for number in range(rounds):
        for contestant in contestants:
            if number < n_rounds[contestant.name]:
                contestant.before()
                time.sleep(rest)
                if once[contestant.name] < LONG:
                    _timed(contestant, 1, clock)
                times[contestant.name].seconds.append(_timed(contestant, n_calls[contestant.name], clock))
    return times


def _affordable(seconds: float, shortest_turn: float, rest: float, longest: float) -> float:
    """How many rounds of a call fit into `longest` seconds; a few in any case."""
    warm_up = seconds if seconds < LONG else 0
    return max(FEWEST_ROUNDS, longest // (rest + warm_up + max(seconds, shortest_turn)))


def _timed(contestant: Contestant, n_calls: int, clock) -> float:
    """Mean seconds of n_calls in a row."""
    if contestant.own_clock:
        return sum(contestant.call() for _ in range(n_calls)) / n_calls
    started = clock()
    for _ in range(n_calls):
        contestant.call()
    return (clock() - started) / n_calls


def ratio(peer: Times, ours: Times) -> float:
    """How many times longer the peer takes, by the medians."""
    return peer.median / ours.median


def fitted_sizes(sizes, share: float = 0.5) -> list:
    """The sizes in the upper `share` of their logarithmic range.

    >>> fitted_sizes([1, 10, 100, 1000])
    [100, 1000]
    """
    logs = np.log(np.asarray(sizes, float))
    lowest = logs.max() - share * (logs.max() - logs.min()) - 1e-9
    return [size for size, log in zip(sizes, logs, strict=True) if log >= lowest]


def exponent(sizes, seconds, share: float = 0.5) -> float:
    """Slope of log(seconds) over log(size), by least squares over the upper `share` of the logarithmic range.

    >>> round(exponent([1, 10, 100, 1000], [5, 7, 80, 800]), 3)
    1.0
    """
    upper = np.isin(sizes, fitted_sizes(sizes, share))
    logs, log_seconds = np.log(np.asarray(sizes, float)), np.log(np.asarray(seconds, float))
    return float(np.polyfit(logs[upper], log_seconds[upper], 1)[0])


class Mismatch(AssertionError):
    """A contestant computes something else; PyTorch raises plain AssertionErrors where it merely cannot run."""


def relative_error(got, wanted) -> float:
    """Norm of the difference, divided by the norm of what is wanted."""
    got, wanted = np.asarray(got, np.float64), np.asarray(wanted, np.float64)
    return float(np.linalg.norm(got - wanted) / max(np.linalg.norm(wanted), 1e-300))


def assert_same(what: str, got, wanted, tolerance: float) -> float:
    """A fast wrong answer is no result: raise Mismatch unless the relative error is within the tolerance."""
    if np.shape(got) != np.shape(wanted):
        raise Mismatch(f"{what}: shape {np.shape(got)} instead of {np.shape(wanted)}.")
    error = relative_error(got, wanted)
    if not error <= tolerance:  # NaN is wrong, too
        raise Mismatch(f"{what}: relative error {error:.1e}, allowed {tolerance:.0e}.")
    return error
