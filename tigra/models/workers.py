"""Worker threads that take micro-batches through a network, with results that do not depend on them.

The one parallelism of tigra: a batch is cut into micro-batches, whose number and sizes depend on
the batch alone; each is worked off by one thread, in NumPy and in kernels that release the GIL,
with BLAS held to one thread; what comes out is put together in the order of the micro-batches.
So the same numbers come out, bit for bit, for any number of threads.
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

VECTOR = 8  # numbers of 32 bits that the processor works on at a time
MICRO_BATCH = 32  # images; a map of 28x28 nodes in float32 then takes 100 kB, and stays in the L2 cache


class _OneBlasThread:
    """Holds BLAS to one thread while at least one `Workers` is at work, whoever starts or ends first."""

    def __init__(self):
        self.lock, self.n_users = threading.Lock(), 0
        self.controller: Any = None
        self.limiter: Any = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._end_in_child)

    def start(self) -> None:
        with self.lock:
            if self.n_users == 0:
                self.controller = self.controller or ThreadpoolController()  # looking for libraries takes a while
                self.limiter = self.controller.limit(limits=1, user_api="blas")
            self.n_users += 1

    def stop(self) -> None:
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                self.limiter.restore_original_limits()

    def _end_in_child(self) -> None:
        """The threads that hold BLAS, or the lock, live in the parent alone: a forked process has BLAS as it was."""
        self.lock = threading.Lock()
        if self.n_users:
            self.n_users = 0
            self.limiter.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


class Workers:
    """A pool of threads for `map`, and BLAS on one thread, while the context lasts.

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
        if os.getpid() != self._process:  # forked: neither the threads nor the hold on BLAS came along
            return
        try:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)  # waits for what has begun
        finally:
            _ONE_BLAS_THREAD.stop()

    def map(self, function, *arguments):
        """function over the arguments, results in their order."""
        if os.getpid() != self._process:
            raise TigraError(
                "This process was forked while worker threads were busy, and they live in the parent alone."
                " Fork between epochs, or start the work anew in the child."
            )
        if self._pool is None:
            return map(function, *arguments)
        return self._pool.map(function, *arguments)


def micro_batches(n_images: int, largest: int = MICRO_BATCH) -> list[slice]:
    """Cut n_images into parts of at most `largest`, as equal as can be with whole multiples of 8 images.

    A processor's vector holds 8 numbers, and a run of images that begins in the middle of one is slower.

    >>> [(part.start, part.stop) for part in micro_batches(100)]
    [(0, 24), (24, 48), (48, 72), (72, 100)]
    """
    unit = VECTOR if largest % VECTOR == 0 else 1
    n_parts, n_units = -(-n_images // largest), -(-n_images // unit)
    edges = np.minimum(np.arange(n_parts + 1) * n_units // n_parts * unit, n_images)
    return [slice(int(start), int(stop)) for start, stop in pairwise(edges)]
