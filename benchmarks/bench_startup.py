"""Start-up: fresh processes, in turns; the first run of each, which fills caches, is not counted."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from benchmarks.harness import Contestant, take_turns
from benchmarks.problems import Settings
from benchmarks.report import Report

FIRST_STEP = """
import sys, tigra
from tigra.training import Training
splits = tigra.load_dataset("mnist-012")
network = tigra.build_network("SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]", (28, 28), 3)
stop = []
ask, tell = lambda: bool(stop), lambda what, done, total: stop.append(done)
training = Training(network, splits, tigra.FitOptions(), should_stop=ask, on_progress=tell)
assert list(training.run()) == [] and stop == [1]
"""
PROGRAMS = {
    "python -c pass": ["-c", "pass"],
    'python -c "import click"': ["-c", "import click"],
    "tigra --help": ["-c", "from tigra_cli.main import main; main()", "--help"],
    "import tigra": ["-c", "import tigra"],
    "first training step of mnist-012, warm cache": ["-c", FIRST_STEP],
}


def start(words: list[str]) -> None:
    """Run Python to its end; complain with its own words if it fails."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"A program of the start-up benchmark failed:\n{done.stderr}")


def run(settings: Settings, report: Report) -> None:
    """All programs; ratios against `import click`."""
    programs = dict(list(PROGRAMS.items())[: 2 if settings.scale == 0 else None])
    contestants = [Contestant(name, partial(start, words)) for name, words in programs.items()]
    times = take_turns(contestants, max(1, settings.rounds // 2), shortest_turn=0.0)
    report.race("Start-up of a fresh process", "startup", times, ours='python -c "import click"')
