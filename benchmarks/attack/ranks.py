"""Attack by `kill -9` on the processes of `mpiexec -n R tigra train`: one of them, at a random moment.

A try starts a training in two to four processes, kills one of them, goes on as a user would with another number of
processes, and lets it finish. Half of the kills are at any moment, which on a busy machine is mostly before the first
save; the others come after it. After a kill mpiexec must end, all its processes must be gone, and the model file must
be absent or complete. In the end it must have the bits of an undisturbed run in one process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from benchmarks.attack import kill
from benchmarks.attack.cage import Broken
from benchmarks.attack.outcome import Outcome, Progress, repeat

TRAIN = [*kill.TRAIN[:4], "--epochs", "30", "--batch-size", "40"]
PATIENCE = 600.0  # seconds, since the machine may be busy, after which processes that have not ended are said to hang
SIZES = 2, 3, 4


def launcher() -> str | None:
    """The mpiexec that belongs to this Python, or to the system; None if MPI or mpi4py is missing."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    return shutil.which("mpiexec", path=os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]))


def environment() -> dict[str, str]:
    """Variables with which Open MPI starts more processes than cores, as any user."""
    more = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return os.environ | more | {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


def attack(seconds: float, seed: int, progress: Progress) -> Outcome:
    """Kill processes for some seconds."""
    if launcher() is None:
        print("ranks: skipped, since there is no MPI; install it with: pip install mpi4py mpich")
        return Outcome()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kill.draw_pictures(folder / kill.PICTURES)
        expected = kill.undisturbed(TRAIN, folder)
        kills: Counter[str] = Counter()
        outcome = repeat(lambda number: attempt(expected, number, folder, kills), seconds, seed, progress, "ranks")
        outcome.hits = kills
        return outcome


def attempt(command: kill.Command, seed: int, folder: Path, kills: Counter[str]) -> None:
    """Kill a process, go on with another number of processes, and compare."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place, size = Path(name), int(rng.choice(SIZES))
        victim = int(rng.integers(size)), 2 * command.seconds * rng.random(), bool(rng.integers(2))
        if started(size, command.words, folder, place, victim):
            words, phase = kill._next_words(command.words, place)
            kills.update([f"process {'1+' if victim[0] else '0'}, {phase}"])
        else:
            words = []  # the run ended first
        if words:
            started(int(rng.choice((1, *SIZES))), words, folder, place)
        if (place / kill.MODEL).read_bytes() != command.model:
            raise Broken("the model has other bits than that of an undisturbed run")


def started(
    size: int, words: list[str], folder: Path, place: Path, victim: tuple[int, float, bool] | None = None
) -> bool:
    """Run a command in `size` processes; kill one of them, given as (rank, seconds, whether after the first save).

    Returns
    -------
    bool
        Whether a process was killed.
    """
    for old in place.glob("rank-*"):
        old.unlink()
    command = [launcher(), "-n", str(size), sys.executable, "-m", "benchmarks.attack.ranks", folder, place, *words]
    with (
        open(folder / kill.LOG, "wb") as log,
        subprocess.Popen(  # in a session of its own, to end all of them in the end
            command, env=environment(), stdout=log, stderr=log, start_new_session=True
        ) as launched,
    ):
        try:
            killed = victim is not None and _killed(launched, size, place, *victim)
            status = launched.wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise Broken(f"it hangs: {(folder / kill.LOG).read_text(errors='replace')[-250:]}") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(launched.pid, signal.SIGKILL)
    if not killed:
        kill._check_status(status, folder)
    elif status == 0:
        raise Broken("mpiexec says that all is well, though a process was killed")
    _await_end(place)
    return killed


def _killed(launched, size: int, place: Path, rank: int, moment: float, is_saved: bool) -> bool:
    """Kill a process some time after all have begun, or after the first save; False if the command ends before."""

    def has_begun() -> bool:
        return (place / kill.MODEL).exists() if is_saved else len(list(place.glob("rank-*"))) == size

    end = time.monotonic() + PATIENCE
    while not has_begun() and launched.poll() is None and time.monotonic() < end:
        time.sleep(0.001)
    end = time.monotonic() + moment
    while time.monotonic() < end and launched.poll() is None:
        time.sleep(0.001)
    if launched.poll() is not None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(int((place / f"rank-{rank}").read_text()), signal.SIGKILL)
        return True
    return False


def _await_end(place: Path) -> None:
    """Raise Broken if a process outlives mpiexec."""
    end = time.monotonic() + PATIENCE
    for path in place.glob("rank-*"):
        while Path(f"/proc/{path.read_text()}/cmdline").exists() and _is_ours(path) and time.monotonic() < end:
            time.sleep(0.01)
        if _is_ours(path):
            raise Broken(f"{path.name} is still there")


def _is_ours(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return b"benchmarks.attack.ranks" in Path(f"/proc/{path.read_text()}/cmdline").read_bytes()
    return False


def serve(folder: str, place: str, *words: str) -> None:
    """One of the processes: tell the process number, and run the command, which saves after every step."""
    rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
    made = Path(place, f".{rank}")
    made.write_text(str(os.getpid()))
    made.rename(Path(place, f"rank-{rank}"))
    kill._work(list(words), Path(folder), Path(place))


if __name__ == "__main__":
    serve(*sys.argv[1:])
