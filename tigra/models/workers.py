"""Worker threads that process micro-batches, with results that do not depend on the number of threads.

A batch is split into micro-batches whose number and sizes depend only on the batch. Each is processed by one thread,
in NumPy and in kernels that release the GIL, with BLAS limited to one thread. The results are combined in the order
of the micro-batches, so they are identical bit for bit for any number of threads. `tigra.processes.team` does the same
with processes.

Starting threads takes longer than a prediction. So predictions leave their threads waiting for the next one, and the
epochs of a training do so, too.
"""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from tigra.errors import TigraError, UsageError

VECTOR = 8  # 32-bit numbers in a SIMD register
MICRO_BATCH = 32  # images; a map of 28x28 nodes in float32 then takes 100 kB and fits into the L2 cache


class _OneBlasThread:
    """Limits BLAS to one thread while at least one `Workers` is active, in any order of start and end."""

    def __init__(self):
        self.lock, self.n_users = threading.Lock(), 0
        self.controller: Any = None
        self.n_modules = 0  # imported when the controller looked for libraries
        self.before: list[tuple[Any, int]] = []  # libraries, and their numbers of threads outside
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._end_in_child)

    def start(self) -> None:
        with self.lock:
            if self.n_users == 0:
                if self.n_modules != len(sys.modules):  # finding libraries is slow; imports may have loaded some
                    self.controller, self.n_modules = ThreadpoolController(), len(sys.modules)
                blas = [library for library in self.controller.lib_controllers if library.user_api == "blas"]
                self.before = [(library, library.num_threads) for library in blas]
                for library, n_threads in self.before:  # `controller.limit` does the same, and takes longer
                    if n_threads != 1:
                        library.set_num_threads(1)
            self.n_users += 1

    def stop(self) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                self._restore()

    def _restore(self) -> None:
        for library, n_threads in self.before:
            if n_threads != 1:
                library.set_num_threads(n_threads)

    def _end_in_child(self) -> None:
        """After a fork: release the lock and the BLAS limit, whose holders exist only in the parent."""
        self.lock = threading.Lock()
        if self.n_users:
            self.n_users = 0
            self._restore()


_ONE_BLAS_THREAD = _OneBlasThread()
_WAITING: dict[int, ThreadPoolExecutor] = {}  # number of threads -> pool that predictions have left
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WAITING.clear)  # its threads exist only in the parent


class Workers:
    """Context manager with a thread pool for `map` and BLAS limited to one thread.

    Parameters
    ----------
    threads : int
        Number of worker threads, at least 1.
    leaves_threads : bool
        Whether the threads wait for the next `Workers` of this kind and number, or end with this one.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     list(workers.map(abs, [-1, -2, -3]))
    [1, 2, 3]
    """

    def __init__(self, threads: int, leaves_threads: bool = False):
        if not isinstance(threads, (int, np.integer)) or threads < 1:
            raise UsageError(f"threads must be a whole number of at least 1, got {threads!r}.")
        self.threads, self.leaves_threads = threads, leaves_threads

    def __enter__(self) -> Workers:
        self._pool: ThreadPoolExecutor | None = None  # until there are several tasks
        self._tasks: list[Future] = []
        self._process = os.getpid()
        _ONE_BLAS_THREAD.start()
        return self

    def __exit__(self, *_):
        if os.getpid() != self._process:  # forked: the threads and the BLAS limit belong to the parent
            return
        try:
            if self._pool is not None:
                wait([task for task in self._tasks if not task.cancel()])
                if not self.leaves_threads or _WAITING.setdefault(self.threads, self._pool) is not self._pool:
                    self._pool.shutdown()
        finally:
            _ONE_BLAS_THREAD.stop()

    def end_waiting(self) -> None:
        """End the threads that are left waiting, and give back what they have allocated."""
        pool = _WAITING.pop(self.threads, None)
        if pool is not None:
            pool.shutdown()

    def map(self, function, *arguments):
        """Apply a function to the arguments; results come in the order of the arguments."""
        if os.getpid() != self._process:
            raise TigraError(
                "This process was forked while worker threads were busy, but they exist only in the parent."
                " Fork between epochs, or start the work again in the child."
            )
        calls = list(zip(*arguments, strict=False))
        if self.threads == 1 or len(calls) == 1:
            return (function(*call) for call in calls)
        if self._pool is None:
            waiting = _WAITING.pop(self.threads, None) if self.leaves_threads else None
            self._pool = waiting or ThreadPoolExecutor(self.threads)
        here = calls[-1:] if len(calls) <= self.threads else []  # this thread would only wait: one less to wake up
        tasks = [self._pool.submit(function, *call) for call in calls[: len(calls) - len(here)]]
        self._tasks = [task for task in self._tasks if not task.done()] + tasks
        tasks = tasks + [_done(function, call) for call in here]
        return (task.result() for task in tasks)


def _done(function, call) -> Future:
    """A task that this thread has done; its error is raised in its turn, whatever the number of threads."""
    task: Future = Future()
    try:
        task.set_result(function(*call))
    except Exception as error:
        task.set_exception(error)
    return task


def micro_batches(n_images: int, largest: int = MICRO_BATCH) -> list[slice]:
    """Split a batch into nearly equal parts whose boundaries are multiples of 8 images.

    A SIMD register holds 8 numbers, and a part that starts in the middle of one is slower.

    Parameters
    ----------
    n_images : int
        Size of the batch.
    largest : int
        Largest size of a part.

    Returns
    -------
    list of slice
        The parts, in order.

    Examples
    --------
    >>> [(part.start, part.stop) for part in micro_batches(100)]
    [(0, 24), (24, 48), (48, 72), (72, 100)]
    """
    if n_images <= largest:
        return [slice(0, n_images)]
    unit = VECTOR if largest % VECTOR == 0 else 1
    n_parts, n_units = -(-n_images // largest), -(-n_images // unit)
    edges = np.minimum(np.arange(n_parts + 1) * n_units // n_parts * unit, n_images)
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]
