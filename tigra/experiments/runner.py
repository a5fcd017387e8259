"""Hand out runs: in turn, to processes of this machine, or to those of MPI (`tigra.experiments.mpi_runs`).

A runner has slots, each of which does one run at a time. `hand_out` gives every slot its next run as soon as it is free
and yields outcomes as they come.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from tigra.errors import DatasetError, ModelFileError, UsageError
from tigra.experiments.runs import Stopped, Watch
from tigra.processes.team import MPITeam, Team

PEEK = 0.2  # seconds between two looks at whether to stop
FATAL = UsageError, DatasetError, ModelFileError, OSError  # the other runs would fail in the same way

Work = Callable[[Any, Watch], Any]  # called with a task and a watch


class Outcome(NamedTuple):
    """What became of a task: a result, or the error that ended it."""

    task: Any
    result: Any = None
    error: Exception | None = None


class Runner:
    """Does runs one after the other in this process; base class of the other runners.

    Parameters
    ----------
    watch : Watch
        Callbacks for progress and for stopping.
    """

    def __init__(self, watch: Watch = Watch()):  # noqa: B008
        self.watch = watch
        self.slots: list[Executor] = [InTurn(watch)]

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_) -> None:
        self.ask_to_stop()  # after an error or Ctrl-C some may still be at work
        for slot in self.slots:
            slot.shutdown()

    def submit(self, slot: Executor, work: Work, task: Any) -> Future:
        """Start a task in a slot."""
        return slot.submit(work, task)  # type: ignore[call-arg]  # InTurn

    def ask_to_stop(self) -> None:
        """Ask all runs to save what they have and to stop; they raise Stopped."""

    def replace(self, slot: Executor) -> Executor:
        """Return the slot to use after its process has died."""
        return slot


class InTurn(Executor):
    """Runs a task when it is submitted, in this thread."""

    def __init__(self, watch: Watch):
        self.watch = watch

    def submit(self, work, task) -> Future:  # type: ignore[override]
        """Do the task; the returned future is done."""
        future: Future = Future()
        try:
            future.set_result(work(task, self.watch))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes(Runner):
    """Hands out runs to processes of this machine; one that dies does not take the others with it.

    Parameters
    ----------
    jobs : int
        Number of processes.
    watch : Watch
        Callbacks for progress and for stopping, called in this process.
    """

    def __init__(self, jobs: int, watch: Watch = Watch()):  # noqa: B008
        self.watch = watch
        self.context = multiprocessing.get_context("spawn")  # threads and BLAS do not survive a fork
        self.stopping = self.context.Event()
        self.slots = [self.replace(None) for _ in range(jobs)]

    def submit(self, slot: Executor, work: Work, task: Any) -> Future:
        """Start a task in the process of a slot."""
        return slot.submit(_work, work, task)

    def ask_to_stop(self) -> None:
        """Ask all processes to save and to stop."""
        self.stopping.set()

    def replace(self, slot: Executor | None) -> Executor:
        """A new process."""
        if slot is not None:
            slot.shutdown(wait=False)
        return ProcessPoolExecutor(1, self.context, _begin, (self.stopping,))


def runner_for(jobs: int, watch: Watch = Watch(), team: Team | None = None) -> Runner:  # noqa: B008
    """The runner for a number of processes, of which 1 is this one, or for a team that has more than one."""
    if isinstance(team, MPITeam):
        from tigra.experiments.mpi_runs import MPIRunner

        return MPIRunner(team, watch)
    return Runner(watch) if jobs == 1 else Processes(jobs, watch)


def hand_out(runner: Runner, work: Work, tasks: Sequence) -> Iterator[Outcome]:
    """Do all tasks; yields an outcome when a task has ended, whichever is first.

    Parameters
    ----------
    runner : Runner
        Where to do them.
    work : callable
        Called with a task and a watch. For other processes it is a function of a module, and tasks can be pickled.
    tasks : sequence
        The tasks, handed out in this order.

    Yields
    ------
    Outcome
        The task, and its result or error. An error of one run does not end the others.

    Raises
    ------
    Stopped
        If the watch asked to stop; every run has saved what it can.
    UsageError, DatasetError, ModelFileError, OSError
        If a run failed for a reason that concerns all.
    """
    waiting, free, busy = deque(tasks), list(runner.slots), dict[Future, tuple[Executor, Any]]()
    ending: Exception | None = None
    while busy or (waiting and ending is None):
        while waiting and free and ending is None:
            slot, task = free.pop(0), waiting.popleft()
            busy[runner.submit(slot, work, task)] = slot, task
            if runner.watch.should_stop():
                break
        for future in wait(busy, PEEK, FIRST_COMPLETED).done:
            slot, task = busy.pop(future)
            error: Any = future.exception()
            if isinstance(error, BrokenProcessPool):
                runner.slots[runner.slots.index(slot)] = slot = runner.replace(slot)
            free.append(slot)
            if isinstance(error, (Stopped, *FATAL)):
                ending = ending or error
            else:
                yield Outcome(task, None if error else future.result(), _explained(error))
        if ending is None and runner.watch.should_stop() and (busy or waiting):
            ending = Stopped()
        if ending is not None:
            runner.ask_to_stop()
    if ending is not None:
        raise ending


def _explained(error: Exception | None) -> Exception | None:
    if isinstance(error, BrokenProcessPool):
        return RuntimeError("Its process died, killed or out of memory; the same command continues it.")
    return error


# --- in a process that does runs ------------------------------------------------------------------------

_stopping: Any = None  # set when the runs are to stop
_at_work = threading.Lock()  # held during a run


def _begin(stopping) -> None:
    """Prepare a new process: it heeds its parent only, and ends with it."""
    global _stopping
    _stopping = stopping
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # a terminal or a batch system sends them to all processes
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    _stopping.set()  # a run saves what it has
    with _at_work:
        os._exit(1)


def _work(work: Work, task: Any) -> Any:
    with _at_work:
        return work(task, Watch(should_stop=_stopping.is_set))
