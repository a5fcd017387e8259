"""Commands in several processes, started by mpiexec: process 0 runs the command, the others do what it sends them."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .options import import_modules
from .output import say

if TYPE_CHECKING:
    from tigra.processes.team import Team

SHARED = "train", "reproduce", "predict"  # commands that can use several processes
# what MPICH and its relatives, Open MPI, and PMIx (Slurm) tell a process: its number, and how many there are
_RANKS = "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"
_SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"
_team: Any = None  # of this process, if it is not alone


def is_one_of_many() -> bool:
    """Return True if an MPI launcher started this process, and others with it."""
    sizes = [os.environ[name] for name in _SIZES if name in os.environ]
    return any(name in os.environ for name in _RANKS) and sizes[:1] != ["1"]


def current_team() -> Team:
    """Return the processes that run this command."""
    from tigra.processes.team import Team

    return _team or Team()


@contextlib.contextmanager
def several_processes() -> Iterator[bool]:
    """Connect the processes; yields True in process 0, and False in the others, once these have done their jobs."""
    global _team
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        if all(os.environ.get(name, "0") == "0" for name in _RANKS):
            text = f"Error: mpiexec started several processes, but MPI cannot be used ({error}); install"
            say(f"{text} it with: pip install 'tigra[mpi]'", err=True)
        sys.exit(1)
    if MPI.COMM_WORLD.size == 1:
        yield True
        return
    from tigra.processes.team import MPITeam

    _team = MPITeam(MPI.COMM_WORLD)
    if _team.rank == 0:
        try:
            yield True
        finally:
            sys.stdout.flush()
            _team.dismiss()
            _team = None
        return
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # process 0 answers them
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    _do_jobs()
    yield False


def in_process_0(command: Callable, *words, **extra) -> Any:
    """Call a command in this process, or in the first of those that mpiexec started; the others do what it sends."""
    if not is_one_of_many():
        return command(*words, **extra)
    with several_processes() as is_first:
        return command(*words, **extra) if is_first else None


def _do_jobs() -> None:
    """Do what process 0 sends; an error that it cannot know of ends all processes."""
    from tigra.errors import TigraError

    try:
        while (job := _team.receive()) is not None:
            with contextlib.suppress(TigraError):  # process 0 has the same, and shows it
                job(_team)
    except BaseException as error:
        say(f"Error: process {_team.rank} failed, {type(error).__name__}: {error}.", err=True)
        _team.comm.Abort(1)


@dataclass
class TrainingJob:
    """What another process needs to take part in a training."""

    dataset: str
    dataset_options: dict
    data_dir: str | None
    threads: int | None
    modules: tuple[str, ...]
    content: bytes  # the network, pickled apart: its layers may be of the modules
    data_hash: str

    def __call__(self, team) -> None:
        """Load the data and train."""
        found: list = []

        def prepare() -> list:
            found.append(team.first_on_machine(lambda: self._training(team)))
            return []

        team.gather(prepare)
        for _ in found[0].steps():
            pass

    def _training(self, team):
        import pickle

        from tigra.datasets import load_dataset
        from tigra.errors import DatasetError
        from tigra.training import Training

        import_modules(self.modules)
        network, options, state = pickle.loads(self.content)
        threads = self.threads or team.cores
        splits = load_dataset(self.dataset, data_dir=self.data_dir, threads=threads, **self.dataset_options)
        training = Training(network, splits, options, threads, team=team)
        if training.data_hash != self.data_hash:
            raise DatasetError(f"its images of {self.dataset} differ from those of process 0")
        training.restore(*state)
        return training


def share_training(ctx: click.Context, run: Any, dataset: str, threads: int) -> None:
    """Have the other processes take part in a run, if there are any."""
    import pickle

    from tigra.experiments.runs import NetworkRun

    team: Any = current_team()
    if team.size == 1 or run.is_finished:
        return
    if not isinstance(run, NetworkRun):
        raise click.UsageError("Only networks are trained in several processes; start this method without mpiexec.")
    training, splits = run.training, run.splits
    content = pickle.dumps((training.network, training.options, training.snapshot()))
    given = threads if ctx.get_parameter_source("threads").name == "COMMANDLINE" else None  # type: ignore[union-attr]
    words = dataset, splits.options, ctx.params.get("data_dir"), given, ctx.meta.get("modules", ())
    team.send(TrainingJob(*words, content, training.data_hash))
    team.gather(lambda: team.first_on_machine(list))
    training.team = team
