"""Signals: Ctrl-C, termination, a terminal that vanishes. One place for all handlers."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


def _numbers(*names: str) -> list[int]:
    """Signals by name; not every system knows SIGHUP."""
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """A termination signal or a vanished terminal ends a command as Ctrl-C does, with everything cleaned up."""

    def stop(*_):
        raise KeyboardInterrupt

    heeded = [number for number in _numbers("SIGTERM", "SIGHUP") if signal.getsignal(number) is signal.SIG_DFL]
    for number in heeded:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in heeded:
            signal.signal(number, signal.SIG_DFL)


class StopSignals:
    """While this lasts, Ctrl-C, a termination signal or a vanished terminal only ask the run to stop.

    It stops after the step under way, and is saved; pressing Ctrl-C again changes nothing about that.
    """

    def __init__(self) -> None:
        self.received: list[int] = []

    def __enter__(self) -> StopSignals:
        numbers = _numbers("SIGINT", "SIGTERM", "SIGHUP")
        heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]  # nohup
        self.previous = {number: signal.signal(number, self._note) for number in heeded}
        return self

    def _note(self, number, _):
        self.received.append(number)

    def asked(self) -> bool:
        """Whether a signal has come."""
        return bool(self.received)

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)
