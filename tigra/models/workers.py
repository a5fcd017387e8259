"""Worker threads that process micro-batches, with results that do not depend on the number of threads.

A batch is split into micro-batches whose number and sizes depend only on the batch. Each is processed by one thread,
in NumPy and in kernels that release the GIL, with BLAS limited to one thread. The results are combined in the order
of the micro-batches, so they are identical bit for bit for any number of threads. This is the only parallelism in
tigra.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
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
        self.limiter: Any = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._end_in_child)

    def start(self) -> None:
        with self.lock:
            if self.n_users == 0:
                self.controller = self.controller or ThreadpoolController()  # finding the libraries is slow
                self.limiter = self.controller.limit(limits=1, user_api="blas")
            self.n_users += 1

    def stop(self) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                self.limiter.restore_original_limits()

    def _end_in_child(self) -> None:
        """After a fork: release the lock and the BLAS limit, whose holders exist only in the parent."""
        self.lock = threading.Lock()
        if self.n_users:
            self.n_users = 0
            self.limiter.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


class Workers:
    """Context manager with a thread pool for `map` and BLAS limited to one thread.

    Parameters
    ----------
    threads : int
        Number of worker threads, at least 1.

    Examples
    --------
    >>> with Workers(2) as workers:
    ...     list(workers.map(abs, [-1, -2, -3]))
    [1, 2, 3]
    """

    def __init__(self, threads: int):
        if not isinstance(threads, (int, np.integer)) or threads < 1:
            raise UsageError(f"threads must be a whole number of at least 1, got {threads!r}.")
        self.threads = threads

    def __enter__(self) -> Workers:
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self._process = os.getpid()
        _ONE_BLAS_THREAD.start()
        return self

    def __exit__(self, *_):
        if os.getpid() != self._process:  # forked: the threads and the BLAS limit belong to the parent
            return
        try:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)  # waits for running tasks
        finally:
            _ONE_BLAS_THREAD.stop()

    def map(self, function, *arguments):
        """Apply a function to the arguments; results come in the order of the arguments."""
        if os.getpid() != self._process:
            raise TigraError(
                "This process was forked while worker threads were busy, but they exist only in the parent."
                " Fork between epochs, or start the work again in the child."
            )
        if self._pool is None:
            return map(function, *arguments)
        return self._pool.map(function, *arguments)


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
    unit = VECTOR if largest % VECTOR == 0 else 1
    n_parts, n_units = -(-n_images // largest), -(-n_images // unit)
    edges = np.minimum(np.arange(n_parts + 1) * n_units // n_parts * unit, n_images)
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]
