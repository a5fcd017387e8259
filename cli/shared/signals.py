"""Handlers for Ctrl-C, termination signals and closed terminals."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator


def _numbers(*names: str) -> list[int]:
    """Return signals by name; not every system has SIGHUP."""
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


def _end_at_once() -> None:
    """End the process without waiting for threads: files are written under temporary names, so none is broken."""
    with contextlib.suppress(OSError):
        os.write(2, b"\nStopped at once; what was saved before is complete.\n")
    os._exit(130)


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Make a termination signal or a closed terminal stop a command as Ctrl-C does, with cleanup.

    Ctrl-C while the command is stopping ends it at once.
    """
    received = []

    def stop(number, _):
        received.append(number)
        if len(received) == 1:
            raise KeyboardInterrupt
        if number == signal.SIGINT:
            _end_at_once()

    usual = signal.SIG_DFL, signal.default_int_handler
    heeded = {number: signal.getsignal(number) for number in _numbers("SIGINT", "SIGTERM", "SIGHUP")}
    heeded = {number: handler for number, handler in heeded.items() if handler in usual}
    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in heeded.items():
            signal.signal(number, handler)


class StopSignals:
    """Context manager in which Ctrl-C, a termination signal or a closed terminal only request a stop.

    The run stops after the current step and is saved. Pressing Ctrl-C again ends the process at once, without saving.
    """

    def __init__(self) -> None:
        self.received: list[int] = []

    def __enter__(self) -> StopSignals:
        numbers = _numbers("SIGINT", "SIGTERM", "SIGHUP")
        heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # nohup
        self.previous = {number: signal.signal(number, self._note) for number in heeded}
        return self

    def _note(self, number, _):
        if self.received and number == signal.SIGINT:
            _end_at_once()
        self.received.append(number)

    def asked(self) -> bool:
        """Return True if a signal has arrived."""
        return bool(self.received)

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)
