"""Teams: processes that share the micro-batches of a training, on one machine or many, through MPI.

Every process holds the whole network and runs the same code. It computes a contiguous share of the micro-batches. What
they find is put together in the order of the micro-batches, so the results are identical bit for bit for any number of
processes and threads. Gradients are added by columns: each process gets all rows of its columns, adds them in order,
and sends the sums to all. A plain sum over processes (Allreduce) would add in another order.
"""

from __future__ import annotations

import os
import pickle
import platform
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tigra.errors import TrainingError
from tigra.kernels.workspace import Workspace

PATIENCE = 0.0005  # seconds of looking for a message all the time, before a waiting process sleeps in between
LONG_PATIENCE = 0.05  # the same for many bytes, which arrive in pieces, each when both processes look for it
NAPS = 0.00005, 0.001  # seconds of the shortest and the longest sleep
LATE = 0.1  # a sleep takes at most this share of the time that the process has waited
GO_ON, STOP = 0, 1


class TeamError(TrainingError):
    """A process of a team failed; the others still have the state after the last step."""


def shares(n: int, size: int) -> list[slice]:
    """Contiguous, nearly equal shares of n things.

    >>> shares(5, 2)
    [slice(0, 2, None), slice(2, 5, None)]
    """
    edges = [rank * n // size for rank in range(size + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


class Team:
    """A team of one: this process.

    Attributes
    ----------
    rank, size : int
        Number of this process, from 0, and number of processes.
    cores : int
        Number of cores for this process.
    """

    rank, size = 0, 1

    @property
    def cores(self) -> int:
        """Number of cores that this process may use."""
        return len(_usable())

    def share(self, n: int) -> slice:
        """This process's share of n things."""
        return shares(n, self.size)[self.rank]

    def gather(self, compute: Callable[[], list]) -> list:
        """Call `compute` in every process; returns their lists joined in the order of the processes, to all of them.

        If it fails in one process, all raise TeamError.
        """
        return compute()

    def add_rows(self, rows: np.ndarray, n_rows: int, total: np.ndarray | None = None) -> np.ndarray:
        """Add to `total`, if given, the rows of all processes in their order; each has its share of `n_rows`.

        The result may be a view of `rows`, and the next call may overwrite it.
        """
        for row in rows:
            if total is None:
                total = row
            else:
                total += row
        assert total is not None, "a batch has at least one image"
        return total

    def agree(self, stop: bool) -> bool:
        """Whether to stop: what process 0 says."""
        return stop

    def rest(self, is_over: bool = False) -> None:
        """Say that a step is done: process 0 may end before the next `agree`, which comes unless the run is over."""


class MPITeam(Team):
    """All processes of an MPI communicator; each must call the same methods in the same order.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm
        The communicator. It is duplicated, so that other messages do not interfere.
    """

    def __init__(self, comm):
        from mpi4py import MPI

        self.comm = comm.Dup()
        self.rank, self.size = comm.rank, comm.size
        self.machine = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        allowed = set().union(*self.machine.allgather(_usable()))
        self._cores = max(1, len(allowed) // self.machine.size)
        self.seconds = 0.0  # spent in exchanges of gradients, for benchmarks
        self._places: list[str] = self.comm.allgather(platform.node())
        self._space = Workspace()
        self._others_wait = False  # in `agree`
        self._is_busy = False  # between `agree` and `rest`

    @property
    def cores(self) -> int:
        """Number of cores of this machine for this process, if its processes share them evenly."""
        return self._cores

    def gather(self, compute: Callable[[], list]) -> list:
        """As of the base class; errors travel with the results."""
        own: tuple[list | None, str]
        try:
            own = compute(), ""
        except Exception as error:
            cause: Exception | None = error
            own = None, f"{type(error).__name__}: {error}".rstrip(".")
        else:
            cause = None
        found = self._all(own)
        for rank, (items, trouble) in enumerate(found):
            if items is None:
                self._is_busy = self._others_wait = False  # all leave the run
                raise TeamError(f"Process {rank} on {self._places[rank]} failed, {trouble}.") from cause
        return [item for items, _ in found for item in items]

    def add_rows(self, rows: np.ndarray, n_rows: int, total: np.ndarray | None = None) -> np.ndarray:
        """As of the base class; each process adds its share of the columns."""
        started = time.perf_counter()
        n_columns, columns = rows.shape[1], shares(rows.shape[1], self.size)
        widths = [part.stop - part.start for part in columns]
        heights = [part.stop - part.start for part in shares(n_rows, self.size)]
        mine, height, width = columns[self.rank], heights[self.rank], widths[self.rank]
        sent = self._space.array("sent", (height * n_columns,), rows.dtype)
        for part, w in zip(columns, widths, strict=True):
            sent[height * part.start : height * part.stop].reshape(height, w)[:] = rows[:, part]
        # shares are contiguous, so what is received are all rows in their order
        received = self._space.array("received", (n_rows, width), rows.dtype)
        parts = (sent, [height * w for w in widths]), (received, [h * width for h in heights])
        self._wait(self.comm.Ialltoallv(*parts), LONG_PATIENCE)
        own = super().add_rows(received, n_rows, None if total is None else total[mine])
        result = self._space.array("result", (n_columns,), rows.dtype)
        self._wait(self.comm.Iallgatherv(np.ascontiguousarray(own), (result, widths)), LONG_PATIENCE)
        self.seconds += time.perf_counter() - started
        return result

    def agree(self, stop: bool) -> bool:
        """As of the base class; the other processes wait here without taking a core."""
        word = np.array([STOP if stop else GO_ON])
        self._wait(self.comm.Ibcast(word))
        self._is_busy = self._others_wait = word[0] == GO_ON
        return bool(word[0] == STOP)

    def rest(self, is_over: bool = False) -> None:
        """As of the base class."""
        self._is_busy, self._others_wait = False, not is_over

    def first_on_machine(self, load: Callable[[], Any]) -> Any:
        """Call `load` in one process of each machine first, which may fill a cache, then in the others."""
        try:
            if self.machine.rank > 0:
                self._wait(self.machine.Ibarrier())
            return load()
        finally:
            if self.machine.rank == 0:
                self.machine.Ibarrier().Wait()

    # --- process 0 has jobs for the others -------------------------------------------------------

    def send(self, job: Any) -> None:
        """Send a job to the other processes, which wait in `receive`."""
        content = np.frombuffer(pickle.dumps(job), np.uint8)
        self.comm.Ibcast(np.array([len(content)])).Wait()  # as in `receive`: Bcast does not match it
        self.comm.Bcast(content)

    def receive(self) -> Any:
        """Wait for a job of process 0."""
        length = np.empty(1, int)
        self._wait(self.comm.Ibcast(length))
        content = np.empty(length[0], np.uint8)
        self.comm.Bcast(content)
        return pickle.loads(content.tobytes())

    def dismiss(self) -> None:
        """End the other processes; after an error within a step, which they cannot leave, by force."""
        if self._is_busy:
            self.comm.Abort(1)
        if self._others_wait:
            self.agree(True)
        self.send(None)

    def _all(self, own: Any) -> list:
        """The objects of all processes, in their order."""
        content, lengths = np.frombuffer(pickle.dumps(own), np.uint8), np.empty(self.size, int)
        self._wait(self.comm.Iallgather(np.array([len(content)]), lengths))
        joined = np.empty(lengths.sum(), np.uint8)
        self._wait(self.comm.Iallgatherv(content, (joined, lengths)))
        return [pickle.loads(part.tobytes()) for part in np.split(joined, np.cumsum(lengths)[:-1])]

    @staticmethod
    def _wait(request, patience: float = PATIENCE) -> None:
        """Wait for a request without taking a core for long, which other processes may need.

        Calls of MPI that wait look for messages all the time. This gives way in between, and sleeps after some time,
        the longer it has waited.
        """
        start = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - start
            if waited > patience:
                time.sleep(min(max(LATE * waited, NAPS[0]), NAPS[1]))
            elif hasattr(os, "sched_yield"):
                os.sched_yield()


class SharedMap:
    """The `map` of workers, shared out to a team: each process does its share, and all get all results."""

    def __init__(self, team: Team, workers):
        self.team, self.workers = team, workers

    def map(self, function, items: Sequence) -> list:
        """Apply a function to the items."""
        mine = items[self.team.share(len(items))]
        return self.team.gather(lambda: list(self.workers.map(function, mine)))


def _usable() -> set[int]:
    try:
        return set(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return set(range(os.cpu_count() or 1))
