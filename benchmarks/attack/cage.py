"""Processes in which attacks run, so that a hang, a crash or a kill ends only those."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

CPU_SECONDS = 5.0  # for one try; the processor's time, since other programs may take turns
IDLE_SECONDS = 10.0  # for one try that waits, while it neither works nor has to wait for the processor
PEEK = 0.25  # seconds between two looks at a process that does not answer
LARGEST = 1 << 30  # bytes of memory for one try
AT_ALL = 6 << 30  # bytes of address space beyond what the process has, to protect the machine


class Broken(Exception):
    """A promise that was not kept."""


def _memory(name: str) -> int:
    """Bytes of a line of /proc/self/status: VmRSS now, VmHWM at most, VmSize of addresses; 0 where there is none."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    return 0


def _activity(process: int | None) -> tuple[bool, float]:
    """Whether a process works or waits for its turn, and its processor time so far; (False, 0) if unknown."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        return words[0] == "R", (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return False, 0.0


def measured(work: Callable[[int], None], seed: int) -> None:
    """Call work(seed); raise Broken if it takes too long or too much memory."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the highest memory so far
    before, started = _memory("VmRSS"), time.process_time()
    work(seed)
    spent, peak = time.process_time() - started, _memory("VmHWM") - before
    if spent > CPU_SECONDS:
        raise Broken(f"it took {spent:.1f} s")
    if peak > LARGEST:
        raise Broken(f"it took {peak >> 20} MB")


class Cage:
    """A forked process that calls `work` with one seed after the other, watched by this one."""

    def __init__(self, work: Callable[[int], None]):
        self.work = work
        self.process: multiprocessing.process.BaseProcess | None = None

    def __enter__(self) -> Cage:
        return self

    def __exit__(self, *_) -> None:
        self._end()

    def call(self, seed: int) -> None:
        """Call work(seed) there; raise Broken if it raises, hangs, crashes or takes too much."""
        if self.process is None:
            self._start()
        try:
            self.pipe.send(seed)
            self._await()
            trouble = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise Broken("the process died") from error
        finally:
            if "trouble" not in locals() or trouble:
                self._end()  # its memory and state are not to be trusted
        if trouble:
            raise Broken(trouble)

    def _await(self) -> None:
        """Wait for the answer; raise Broken if the process works or sleeps for too long."""
        assert self.process is not None
        (_, at_start), idle = _activity(self.process.pid), 0.0
        while not self.pipe.poll(PEEK):
            is_ready, spent = _activity(self.process.pid)
            idle += 0.0 if is_ready else PEEK
            if spent - at_start > 2 * CPU_SECONDS or idle > IDLE_SECONDS:
                raise Broken(f"it hung after {spent - at_start:.1f} s of work")

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=self._serve, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def _serve(self, pipe) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _die_with_parent()
        self.pipe.close()
        limit = _memory("VmSize") + AT_ALL
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        _silence()
        while True:
            try:
                seed = pipe.recv()
            except EOFError:
                return
            try:
                measured(self.work, seed)
                pipe.send("")
            except BaseException as error:  # all that comes out of it is a finding
                pipe.send(f"{type(error).__name__}: {error}"[:500])

    def _end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
            self.process = None


def _die_with_parent() -> None:
    """Have the system kill this process when its parent ends, however that ends; Linux only."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _silence() -> None:
    """Send standard output and error of this process nowhere, also those of C libraries."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def forked(work: Callable[[], None], log: Path, kill_after: float | None = None) -> int | None:
    """Run work in a forked process, and kill it after some seconds; returns its exit status, None if killed.

    It has a session of its own, and is killed with all processes that it has started. Standard output and error go to
    `log`. A parent that has imported and compiled everything makes for a start in milliseconds.
    """
    process = os.fork()
    if process == 0:
        status = 70
        try:
            os.setsid()
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            work()
            status = 0
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            import traceback

            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    if kill_after is not None:
        end = time.monotonic() + kill_after
        while time.monotonic() < end:
            time.sleep(min(0.001, max(end - time.monotonic(), 0)))
        _kill_session(process)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status) if not os.WIFSIGNALED(status) else None


def _kill_session(process: int) -> None:
    """Kill a child with all processes of its session, or the child alone if it has not yet begun one."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(process, signal.SIGKILL)
