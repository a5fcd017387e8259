"""The progress line."""

import io
import sys

from tigra_cli.shared.output import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_writes_over_one_line_on_a_terminal_and_estimates_the_time_left(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    clock = iter(range(100))
    monkeypatch.setattr("tigra_cli.shared.output.time.monotonic", lambda: next(clock))
    progress = Progress()
    for done in range(1, 5):
        progress.show("training", done, 10)
    progress.clear()
    written = sys.stderr.getvalue()
    assert written.count("\r") == 5 and "\n" not in written and "training  6 s left" in written
    assert written.endswith("\r\x1b[2K")


def test_progress_is_silent_elsewhere(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress = Progress()
    progress.show("training", 1, 10)
    progress.clear()
    assert sys.stderr.getvalue() == ""
