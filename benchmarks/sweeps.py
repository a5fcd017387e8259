"""Time of eight short runs in one process and in two, with --jobs and with mpiexec.

    python -m benchmarks.sweeps [--rounds 3] [--epochs 4] [--out sweeps.json]

The runs are the folds of `tigra train mnist-012 --folds 8`, each with one thread. The ways take turns, so that other
programs on the machine disturb them alike. If these take most of its time, two processes are faster than one only
because they get twice the share. So the CPU seconds of all processes are measured, too: with 8 equal runs and no other
load, two processes can be faster by at most twice the CPU seconds of one process through theirs. docs/cluster.md has
the table.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.attack.ranks import environment, launcher
from tigra.files.atomic import write_atomically

N_RUNS, N_PROCESSES = 8, 2
ALONE = "one process"


def ways(epochs: int) -> dict[str, list[str]]:
    """Command lines by name; those with mpiexec are left out where it is missing."""
    words = ["train", "mnist-012", "--folds", str(N_RUNS), "--threads", "1", "--epochs", str(epochs)]
    alone, mpiexec = [sys.executable, "-m", "tigra", *words], launcher()
    found = {ALONE: alone, f"--jobs {N_PROCESSES}": [*alone, "--jobs", str(N_PROCESSES)]}
    if mpiexec is not None:
        found[f"mpiexec -n {N_PROCESSES}"] = [mpiexec, "-n", str(N_PROCESSES), *alone]
    return found


def measured(command: list[str]) -> dict:
    """Seconds, CPU seconds of all processes, and the machine's load at the start, of a command; and what it prints."""
    load, before, started = os.getloadavg()[0], _cpu_seconds(), time.perf_counter()
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "cpu": _cpu_seconds() - before, "load": load, "printed": done.stdout}


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(found: dict[str, list[dict]]) -> list[str]:
    """Lines of Markdown: medians over the rounds.

    >>> one, two = {"seconds": 8.0, "cpu": 8.0, "load": 0.5}, {"seconds": 4.0, "cpu": 10.0, "load": 1.0}
    >>> table({ALONE: [one], "two": [two]})[-1]
    '| two | 4.0 | 2.00 | 10.0 | 1.60 | 1.0 |'
    """
    lines = ["| | seconds | times faster | CPU seconds | at most, by these | load |", "| --- |" + " ---: |" * 5]
    for name, runs in found.items():
        pairs = list(zip(found[ALONE], runs, strict=False))  # a round may be unfinished
        faster = statistics.median(alone["seconds"] / run["seconds"] for alone, run in pairs)
        factor = 1 if name == ALONE else N_PROCESSES
        at_most = statistics.median(factor * alone["cpu"] / run["cpu"] for alone, run in pairs)
        seconds, cpu, load = (statistics.median(run[key] for run in runs) for key in ("seconds", "cpu", "load"))
        lines.append(f"| {name} | {seconds:.1f} | {faster:.2f} | {cpu:.1f} | {at_most:.2f} | {load:.1f} |")
    return lines


def main() -> None:
    """Measure in turns, write what was found after each, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("sweeps.json"))
    options = parser.parse_args()
    commands = ways(options.epochs)
    subprocess.run(ways(1)[ALONE], check=True, stdout=subprocess.DEVNULL)  # compiles the kernels
    found: dict[str, list[dict]] = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            found[name].append(measured(command))
            write_atomically(options.out, (json.dumps(found, indent=1) + "\n").encode())
    if len({run["printed"] for runs in found.values() for run in runs}) != 1:
        sys.exit("Error: the accuracies differ from way to way.")
    print("\n".join(table(found)))


if __name__ == "__main__":
    main()
