"""Whole networks: a training step (forward, loss, backward, Adam), and inference, against every peer."""

from __future__ import annotations

from functools import partial

from benchmarks.contenders import (
    NO_TORCH,
    NOT_COMPILED,
    check_in_double,
    checked_peers,
    checked_tigra,
)
from benchmarks.harness import Contestant, Times, take_turns
from benchmarks.machine import set_threads, thread_counts, torch_or_none
from benchmarks.problems import Problem, Settings
from benchmarks.report import Report, duration

TITLES = {"step": "training step", "inference": "inference"}


def run(settings: Settings, report: Report) -> None:
    """Training steps and inference at every size, on every number of threads; who is missing is part of the results."""
    if torch_or_none() is None:
        report.write(NO_TORCH)
    elif not settings.compiled:
        report.write(NOT_COMPILED)
    for size in settings.sizes:
        set_threads(1)
        check_in_double(size, settings, report.say)
        problem = Problem(size)
        ours: dict[str, dict[int, Times]] = {what: {} for what in settings.networks}
        for threads in settings.threads:
            for what, times in _race(problem, settings, threads, report).items():
                ours[what][threads] = times["tigra"]
        for what, times in ours.items():
            _threads_against_one(report, f"{what}/{size.name}", TITLES[what], times)


def _race(problem: Problem, settings: Settings, threads: int, report: Report) -> dict[str, dict[str, Times]]:
    """Steps and inference on one number of threads: times by name of the contestant."""
    size, raced = problem.size, {}
    peers = checked_peers(problem, settings, threads, report.write)
    tigra = checked_tigra(problem, threads)
    set_threads(threads)
    report.write(f"Threads: tigra {threads} (each with 1 of BLAS), peers: {thread_counts()}")
    for what in settings.networks:
        contestants = _contestants(what, tigra, peers, problem, settings, threads)
        raced[what] = take_turns(contestants, settings.rounds, settings.shortest_turn, settings.rest, settings.longest)
        report.race(
            f"{TITLES[what]}, {size.name}, {size.shape[0]}x{size.shape[1]}, batch {size.batch}, threads: {threads}",
            f"{what}/{size.name}/{threads}",
            raced[what],
        )
    tigra.close()
    return raced


def _contestants(what, tigra, peers, problem, settings, threads) -> list[Contestant]:
    """tigra first; the dense operators, which take seconds, in few rounds."""
    before = partial(set_threads, threads)
    rows, labels = problem.rows, problem.labels
    if what == "step":
        contestants = [Contestant("tigra", tigra.timed_step, partial(set_threads, 1), own_clock=True)]
        calls = [partial(peer.step, rows, labels) for peer in peers]
    else:
        contestants = [Contestant("tigra", tigra.scores, partial(set_threads, 1))]
        calls = [partial(peer.scores, rows) for peer in peers]
    for peer, call in zip(peers, calls, strict=True):
        most = settings.slow_rounds if getattr(peer, "takes_seconds", False) else settings.rounds
        contestants.append(Contestant(peer.name, call, before, most_rounds=most))
    return contestants


def _threads_against_one(report: Report, path: str, title: str, ours: dict[int, Times]) -> None:
    """How much faster tigra is on several threads."""
    for threads, times in ours.items():
        if threads > 1 and 1 in ours:
            gain = ours[1].median / times.median
            report.numbers[f"{path}/{threads} threads against 1"] = {"ratio": gain}
            report.write(
                f"tigra, {title}: {duration(ours[1].median)} on 1 thread, {gain:.2f} times faster on {threads}."
            )
