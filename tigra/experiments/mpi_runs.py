"""Hand out runs to the processes of MPI (mpi4py.futures); process 0 hands out, and does runs, too, in a thread."""

from __future__ import annotations

import threading
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from tigra.experiments.runner import Runner, Work
from tigra.experiments.runs import Watch
from tigra.processes.team import MPITeam

STOP = 1  # tag of the message that asks a process to stop


class MPIRunner(Runner):
    """Runs in all processes of a team; the others must wait in `MPITeam.receive`.

    Parameters
    ----------
    team : MPITeam
        The processes; this is number 0.
    watch : Watch
        Callbacks for progress and for stopping, called in this process.
    """

    def __init__(self, team: MPITeam, watch: Watch = Watch()):  # noqa: B008
        from mpi4py.futures import MPICommExecutor

        self.team, self.watch, self.stopping = team, watch, threading.Event()
        team.send(ServeRuns())
        self.messages = team.comm.Dup()
        self.manager: Any = MPICommExecutor(team.comm, root=0)
        pool: Any = self.manager.__enter__()
        self.here = ThreadPoolExecutor(1)
        self.slots = [self.here, *(pool for _ in range(team.size - 1))]

    def __exit__(self, *error) -> None:
        self.ask_to_stop()
        self.here.shutdown()
        self.manager.__exit__(*error)

    def submit(self, slot: Executor, work: Work, task: Any) -> Future:
        """Start a task here or in another process."""
        if slot is self.here:
            return slot.submit(work, task, Watch(should_stop=self.stopping.is_set))
        return slot.submit(_work, work, task)

    def ask_to_stop(self) -> None:
        """Ask all processes to save and to stop."""
        if not self.stopping.is_set():
            self.stopping.set()
            for rank in range(1, self.team.size):
                self.messages.send(None, rank, STOP)


class ServeRuns:
    """The job of the other processes: do runs until process 0 has no more."""

    def __call__(self, team: MPITeam) -> None:
        """Serve process 0."""
        from mpi4py.futures import MPICommExecutor

        global _messages
        _messages = team.comm.Dup()
        with MPICommExecutor(team.comm, root=0):
            pass  # here the others work
        _messages.recv(source=0, tag=STOP)  # process 0 sends it at its end at the latest


_messages: Any = None  # of this process, if it serves


def _work(work: Work, task: Any) -> Any:
    return work(task, Watch(should_stop=lambda: _messages.Iprobe(source=0, tag=STOP)))
