"""Time of a training step against processes and threads, and a model of what a network would cost.

    python -m benchmarks.cluster [--sizes 1 2 3 4] [--threads 1 2] [--steps 20] [--out cluster.json]

Every combination is started by mpiexec. A step is timed from the outside, the exchange of gradients inside it. The
quickest of all steps counts: on a shared machine the others tell how busy it was. The last table is the model of the
cost: docs/cluster.md explains it.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import tigra
from benchmarks.attack.ranks import environment, launcher
from tigra.files.atomic import write_atomically
from tigra.models.batch_statistics import meeting_places
from tigra.models.workers import micro_batches
from tigra.options import FitOptions
from tigra.processes.team import MPITeam, shares
from tigra.training.training import Training

NETWORKS = {
    "wide": "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]",
    "oriented": "OC[12, 2]-GC[2]-OC[24, 2]-OC[24, 2]-GC[2]-OC[32, 2]-S[2]-FC[64]",
}
BATCH, SIDE, N_CLASSES = 128, 28, 10
LINKS = {"10 Gbit/s": (1.25e9, 30e-6), "100 Gbit/s": (12.5e9, 3e-6)}  # bytes per second, seconds per message
BATCHES, SIZES = (BATCH, 800), (1, 2, 4, 8, 16, 32)  # of the model
FORMAT = "{:.1f}"


def measure(name: str, threads: int, n_steps: int) -> dict:
    """Seconds of a step and of its exchange, in one of the processes that mpiexec has started."""
    from mpi4py import MPI

    team = MPITeam(MPI.COMM_WORLD)
    rng = np.random.default_rng(0)
    images, labels = (
        rng.random((BATCH * n_steps, SIDE, SIDE), np.float32),
        rng.integers(N_CLASSES, size=BATCH * n_steps),
    )
    network = tigra.build_network(NETWORKS[name], (SIDE, SIDE), N_CLASSES)
    options = FitOptions(epochs=1, batch_size=BATCH)
    training = Training(network, ((images, labels), (images[:8], labels[:8])), options, threads, team=team)
    spent, exchanged, last = [], [], time.perf_counter()
    for _ in training.steps():
        now = time.perf_counter()
        spent.append(now - last)
        exchanged.append(team.seconds)
        last, team.seconds = now, 0.0
    own = {
        "network": name,
        "parameters": network.n_parameters,
        "micro_batch": network.micro_batch,
        "meetings": len(meeting_places(network)),
        "processes": team.size,
        "threads": threads,
        "step": min(spent[1:-1]),
        "exchange": min(exchanged[1:-1]),
    }
    return max(team.gather(lambda: [own]), key=lambda one: one["step"]) | {"rank": team.rank}


def exchange_bytes(n_parameters: int, n_parts: int, size: int, itemsize: int = 4) -> int:
    """Bytes that the busiest process sends in a step: rows of gradients, then its sums to each other process.

    >>> exchange_bytes(1000, 4, 2)  # two rows of half of the columns, and half of the sums
    6000
    """
    largest = max(part.stop - part.start for part in shares(n_parts, size))
    columns = -(-n_parameters // size)
    return itemsize * columns * (size - 1) * (largest + 1)


def rounds(size: int, n_meetings: int = 0) -> int:
    """Messages, one after the other, that a process waits for in a step.

    Gradients go to each other process, and so do their sums. Small messages are passed on, in the logarithm of the
    number of processes: a word of process 0 and two for the losses, and four for each layer with batch statistics.

    >>> rounds(1), rounds(2), rounds(8, n_meetings=5)
    (0, 5, 83)
    """
    return 2 * (size - 1) + (3 + 4 * n_meetings) * math.ceil(math.log2(size))


def predicted(
    alone: float, n_parameters: int, n_parts: int, size: int, link: tuple[float, float], n_meetings: int = 0
) -> float:
    """Seconds of a step: the largest share of the micro-batches, and the exchange over a link.

    >>> predicted(1.0, 1000, 4, 4, (1e9, 0.0)) - 0.25 < 1e-4
    True
    """
    largest = max(part.stop - part.start for part in shares(n_parts, size))
    n_bytes, (speed, latency) = exchange_bytes(n_parameters, n_parts, size), link
    return alone * largest / n_parts + n_bytes / speed + rounds(size, n_meetings) * latency


def tables(found: list[dict]) -> list[str]:
    """Lines of Markdown: what was measured, and what the model says for networks of machines."""
    lines = ["| network | parameters | processes | threads | step, ms | exchange, ms | speed-up |"]
    lines += ["| --- |" + " ---: |" * 6]
    for one in found:
        step, exchange = (FORMAT.format(1000 * one[key]) for key in ("step", "exchange"))
        cells = one["network"], one["parameters"], one["processes"], one["threads"], step, exchange
        lines.append("| " + " | ".join(map(str, cells)) + f" | {_alone(found, one) / one['step']:.2f} |")
    lines += ["", "| network | batch | link | " + " | ".join(map(str, SIZES)) + " |", "| --- | ---: | --- |"]
    lines[-1] += " ---: |" * len(SIZES)
    for name in dict.fromkeys(one["network"] for one in found):
        one = next(one for one in found if one["network"] == name)
        lines += [_row(one, _alone(found, one), batch, link) for batch in BATCHES for link in LINKS]
    return lines


def _row(one: dict, alone: float, batch: int, link: str) -> str:
    """Milliseconds by number of processes, as far as there are micro-batches for them; time grows with the batch."""
    n_parts, alone = len(micro_batches(batch, one["micro_batch"])), alone * batch / BATCH
    words = one["parameters"], n_parts
    times = [predicted(alone, *words, size, LINKS[link], one["meetings"]) for size in SIZES if size <= n_parts]
    cells = [f"{1000 * seconds:.0f}" for seconds in times] + [""] * (len(SIZES) - len(times))
    return f"| {one['network']} | {batch} | {link} | " + " | ".join(cells) + " |"


def _alone(found: list[dict], one: dict) -> float:
    """Seconds of a step of the same network in one process with one thread."""
    return next(o["step"] for o in found if (o["network"], o["processes"], o["threads"]) == (one["network"], 1, 1))


def main() -> None:
    """Start all combinations, write what they found, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("cluster.json"))
    parser.add_argument("--measure", choices=list(NETWORKS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        found = measure(options.measure, options.threads[0], options.steps)
        if found.pop("rank") == 0:
            print(json.dumps(found))
        return
    if launcher() is None:
        sys.exit("Error: there is no MPI; install it with: pip install mpi4py mpich")
    found = []
    for name in NETWORKS:
        for size in options.sizes:
            for threads in options.threads:
                words = ["--measure", name, "--threads", str(threads), "--steps", str(options.steps)]
                command = [
                    launcher(),
                    "-n",
                    str(size),
                    sys.executable,
                    "-m",
                    "mpi4py",
                    "-m",
                    "benchmarks.cluster",
                    *words,
                ]
                done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
                found.append(json.loads(done.stdout))
                write_atomically(options.out, (json.dumps(found, indent=1) + "\n").encode())
    print("\n".join(tables(found)))


if __name__ == "__main__":
    main()
