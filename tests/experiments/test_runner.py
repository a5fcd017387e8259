"""Runs are handed out to processes: each is claimed once, and a failure concerns nobody else."""

import os
import pickle
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.running import run
from tigra.errors import DatasetError, TrainingError
from tigra.experiments.reproduction import Experiment
from tigra.experiments.runner import Processes, Runner, hand_out
from tigra.experiments.runs import Stopped, Watch
from tigra.files.claims import claim

pytestmark = pytest.mark.slow


def work(task, watch):
    """Stands in for a run."""
    if task == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "diverges":
        raise TrainingError("The loss rose.")
    if task == "waits":
        while not watch.should_stop():
            time.sleep(0.01)
        raise Stopped
    return os.getpid()


def test_a_process_that_dies_or_fails_does_not_stop_the_others_and_a_stop_reaches_all():
    started, asked = ["dies", "diverges", "one", "two", "waits", "waits"], []
    ended = {}
    with pytest.raises(Stopped), Processes(2, Watch(should_stop=lambda: bool(asked))) as runner:
        for outcome in hand_out(runner, work, started):
            ended[outcome.task] = outcome
            if len(ended) == 4:
                asked.append(True)
    assert "process died" in str(ended["dies"].error) and "loss rose" in str(ended["diverges"].error)
    assert os.getpid() not in {ended["one"].result, ended["two"].result}


def test_in_turn_errors_of_one_run_go_by_and_those_of_all_end_it():
    def fails(task, watch):
        if task == 2:
            raise DatasetError("There is no MNIST.")
        return work(task, watch)

    outcomes = hand_out(Runner(), fails, ["diverges", 1, 2, 3])
    assert isinstance(next(outcomes).error, TrainingError) and next(outcomes).result == os.getpid()
    with pytest.raises(DatasetError):
        next(outcomes)


def test_a_claim_is_held_by_one_process_and_lost_by_a_dead_one(tmp_path):
    path = tmp_path / "lock"
    hold = f"import sys, time; sys.path.insert(0, '.'); from tigra.files.claims import claim\n\
with claim({str(path)!r}) as mine:\n print(mine, flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "True\n"
        with claim(path) as mine:
            assert not mine and path.exists()
        other.kill()
    with claim(path) as mine:
        assert mine
    assert not path.exists()


def test_reproduce_leaves_runs_alone_that_another_process_has_claimed(tmp_path, monkeypatch):
    found = {"accuracy": {"test": {"cubic": [0.5]}}, "seconds": 1.0}
    monkeypatch.setattr(Experiment, "run", lambda self, *run: pickle.loads(pickle.dumps(self)) and found)
    words = ["reproduce", "mnist-012", "--quick", "--row", "paper", "--row", "best", "--out", tmp_path]
    with claim(tmp_path / "paper-seed-0-quick.lock"):
        first = run(*words)
    assert "as printed" not in first.stderr.splitlines()[0] and "best, seed 0 (2/2): 50.00 % (cubic)" in first.stderr
    assert "another process is doing 2 of these runs, first TIGraNet, as printed" in first.stderr  # nothing was saved
    assert list(tmp_path.iterdir()) == []
    assert "(1/2): 50.00 % (cubic)" in run(*words).stderr
