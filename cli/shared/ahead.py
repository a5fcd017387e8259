"""Compile on a second core what a training needs later, while it starts with what it needs first.

Numba compiles one kernel at a time. So the first kernel of a training that is not in the cache on disk starts a helper,
another Python process; those that prepare images and calibrate the network are compiled before. The helper goes through
a step of the training without computing anything, to find out which kernels it calls and for which types. It compiles
them into the cache, the last one first. The training compiles them from the first one on, and looks into the cache
before each. So they meet somewhere in the middle, and neither ever waits for the other. Without the helper, or if it
fails, the training compiles everything.

The helper ends when its input does, and thus with the command, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tigra.processes.team import Team

LENGTH = 8  # bytes of the number that comes first
CODE = "import sys; sys.path[:] = {path!r}; from {module} import main; main()"


@contextlib.contextmanager
def compiling_ahead(run: Any, threads: int, modules: tuple[str, ...], team: Team) -> Iterator[None]:
    """Have a helper compile during the training of a network, if there are threads, cores and a cache for that.

    Parameters
    ----------
    run : Run
        What is trained.
    threads : int
        Threads that the user allows; the helper takes one.
    modules : tuple of str
        Modules of the user; they are imported once only, by the command, so there is no helper.
    team : Team
        Processes of the command.
    """
    from tigra.experiments.runs import NetworkRun
    from tigra.kernels.decorator import shares_kernels

    is_alone = team.size == 1 and not modules and isinstance(run, NetworkRun) and not run.is_finished
    if not is_alone or min(threads, team.cores) < 2 or not sys.executable or not shares_kernels():
        yield
        return
    from tigra.kernels.compiling.cache import when_missing

    training, (images, labels) = run.training, run.training.train
    n_images = min(training.options.batch_size, len(labels))
    helper = Helper((training.network, training.options, n_images, images.images[:1][0]))
    with helper, when_missing(helper.start):
        yield


class Helper:
    """A process that compiles; it ends with the context, if it is not done before.

    Parameters
    ----------
    job : tuple
        Arguments of `kernels_of_training`.
    """

    def __init__(self, job: tuple):
        self.process: subprocess.Popen | None = None
        self.content = b""
        with contextlib.suppress(Exception):  # a user's own layer may hold anything
            self.content = pickle.dumps(job)

    def start(self) -> None:
        """Start the process and send it its job."""
        if not self.content:
            return
        code = CODE.format(path=sys.path, module=__name__)
        quiet = subprocess.DEVNULL
        with contextlib.suppress(OSError):  # no process, or it has ended already
            self.process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
            )
            assert self.process.stdin
            self.process.stdin.write(len(self.content).to_bytes(LENGTH, "big") + self.content)
            self.process.stdin.flush()

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_) -> None:
        if self.process is not None:
            self.process.kill()
            with contextlib.suppress(OSError):
                self.process.stdin.close()  # type: ignore[union-attr]
            self.process.wait()


def main() -> None:
    """Compile what is asked for on the standard input; this runs in the helper."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command answers it
    length = int.from_bytes(sys.stdin.buffer.read(LENGTH), "big")
    content = sys.stdin.buffer.read(length)
    threading.Thread(target=_end_with_input, daemon=True).start()
    for kernel, types in reversed(kernels_of_training(*pickle.loads(content))):
        kernel.compile(types)


def _end_with_input() -> None:
    os.read(0, 1)
    os._exit(0)


def kernels_of_training(network, options, n_images: int, image) -> list[tuple]:
    """List the kernels of a step of training and of a validation that this process has not compiled.

    Parameters
    ----------
    network : Network
        The network, calibrated. It is spoilt.
    options : FitOptions
        Options of the training.
    n_images : int
        Images in a batch.
    image : array
        One of them.

    Returns
    -------
    list of (kernel, types)
        In the order in which the training calls them. `kernel.compile(types)` compiles one. The list ends early if a
        layer cannot go on with arrays that kernels have not filled.
    """
    import numpy as np

    from tigra.datasets.splits import Split
    from tigra.kernels.compiling.parts import noted_calls
    from tigra.models.loss import image_losses
    from tigra.models.workers import Workers
    from tigra.training import Training

    n_images = max(n_images, network.n_classes)
    some = Split(np.repeat(image[None], n_images, axis=0), np.arange(n_images) % network.n_classes)
    with np.errstate(all="ignore"), noted_calls() as noted, contextlib.suppress(Exception):
        training = Training(network, SimpleNamespace(train=some, valid=some), options)
        with Workers(1) as workers:
            replicas = [network.replica(keeps_results=False, training=True)]
            gradient = training.gradient(np.arange(n_images), workers, replicas)[2]
            training.optimizer.step(gradient, 0.0)
            image_losses(network.outputs(training.valid[0], workers), some.labels)
    return list(noted)
