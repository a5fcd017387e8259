"""Trains the same networks with teams of different sizes; started by mpiexec, with the number of processes at most.

Prints one line for each network: its name and the sizes of the teams that gave other bits than one process alone. Then
one about a process that fails, and one about runs that are handed out.
"""

import sys
import time

import numpy as np
from mpi4py import MPI

import tigra
from tigra.errors import TrainingError
from tigra.experiments.mpi_runs import MPIRunner
from tigra.experiments.runner import hand_out
from tigra.options import FitOptions
from tigra.processes.team import MPITeam, Team, TeamError
from tigra.training.training import Training

NETWORKS = {
    "plain": "SC[2, 2]-DP[90]-SC[2, 2]-DP[60]-S[3]-FC[4]",
    "oriented": "OC[2, 2]-GC[2]-OC[2, 2]-DP[9]-S[1]-FC[4]",
    "harmonic": "HRC[1, 2]-HCN[2]-HRC[2, 2]",
}
OPTIONS = FitOptions(epochs=2, batch_size=24, jitter=0.5)


def splits():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=56)
    images = (rng.random((56, 14, 14)) * (1 + labels)[:, None, None] / 2).astype(np.float32)
    images[0] = 0
    return (images[:40], labels[:40]), (images[40:], labels[40:])


def training(text, team, threads):
    network = tigra.build_network(text, (14, 14), 2)
    type(network).micro_batch = 8  # three parts in a batch, two in the last one
    return Training(network, splits(), OPTIONS, threads, team=team)


def bits(run):
    arrays, numbers = run.snapshot()
    return {name: array.tobytes() for name, array in arrays.items()}, numbers


def trained(text, team, threads=1):
    run = training(text, team, threads)
    for _ in run.run():
        pass
    return bits(run)


def stopped(text, team):
    """A run that stops in its second epoch."""
    run = training(text, team, 1)
    run.should_stop = lambda: bool(run.history) and run.step == 1
    for _ in run.run():
        pass
    return run


def continued(text, before, team):
    """The bits of a run that goes on where another one stopped."""
    run = training(text, team, 2)
    run.restore(*before.snapshot())
    for _ in run.run():
        pass
    return bits(run)


def is_same(text, team, alone, half):
    """Whether a team ends, stops and goes on with the bits of one process, so with those of any other team."""
    ends = all(trained(text, team, threads) == alone for threads in (1, 2))
    return ends and bits(stopped(text, team)) == bits(half) and continued(text, half, team) == alone


def main():
    world = MPI.COMM_WORLD
    for name, text in NETWORKS.items():
        alone, half, wrong = trained(text, Team()), stopped(text, Team()), []
        for size in range(2, world.size + 1):
            comm = world.Split(0 if world.rank < size else 1)
            if world.rank < size:
                same = is_same(text, MPITeam(comm), alone, half)
                wrong += [] if all(comm.allgather(same)) else [size]
            world.Barrier()
        if world.rank == 0:
            print(name, wrong, flush=True)
    team = MPITeam(world)
    run = training(NETWORKS["oriented"], team, 1)
    if team.rank == team.size - 1:
        run.train[0].network = None  # this process cannot prepare its images
    try:
        list(run.run())
    except TeamError as error:
        if team.rank == 0:
            print(error, "step", run.step, flush=True)
    if team.rank > 0:
        team.receive()(team)
        return
    with MPIRunner(team) as runner:
        outcomes = list(hand_out(runner, work, range(team.size + 1)))
    ranks = {outcome.result for outcome in outcomes if not outcome.error}
    print(sorted(ranks), [str(outcome.error) for outcome in outcomes if outcome.error])


def work(task, watch):
    """Stands in for a run; every process gets one, and the last one fails."""
    if task == MPI.COMM_WORLD.size:
        raise TrainingError("The loss rose.")
    time.sleep(0.5)
    return MPI.COMM_WORLD.rank


if __name__ == "__main__":
    sys.exit(main())
