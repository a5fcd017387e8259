"""Handlers for Ctrl-C, termination signals and closed terminals."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator


def _numbers(*names: str) -> list[int]:
    """Return signals by name; not every system has SIGHUP."""
    return [getattr(signal, name) for name in names if hasattr(signal, name)]


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Make a termination signal or a closed terminal stop a command as Ctrl-C does, with cleanup."""

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
    """Context manager in which Ctrl-C, a termination signal or a closed terminal only request a stop.

    The run stops after the current step and is saved. Pressing Ctrl-C again has no further effect.
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
        """Return True if a signal has arrived."""
        return bool(self.received)

    def __exit__(self, *_):
        for number, handler in self.previous.items():
            signal.signal(number, handler)
