"""A short attack by kill -9, and what it would notice."""

import os
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.attack import kill
from benchmarks.attack.cage import Broken, forked


def test_a_forked_process_can_be_killed_and_tells_its_status(tmp_path):
    log = tmp_path / "log"
    assert forked(lambda: time.sleep(60), log, kill_after=0.01) is None
    assert forked(lambda: None, log) == 0 and forked(lambda: os._exit(5), log) == 5
    assert forked(lambda: 1 / 0, log) == 70 and "ZeroDivisionError" in log.read_text()


def test_a_process_is_killed_with_all_that_it_has_started(tmp_path):
    def work():
        (tmp_path / "pid").write_text(str(subprocess.Popen(["sleep", "60"]).pid))
        time.sleep(60)

    assert forked(work, tmp_path / "log", kill_after=0.5) is None
    state = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    end = time.monotonic() + 10
    while state.exists() and state.read_text().split()[2] != "Z" and time.monotonic() < end:
        time.sleep(0.01)
    assert not state.exists() or state.read_text().split()[2] == "Z"


def test_kills_are_told_apart_by_what_was_written():
    at_start = ("starting", "computing features")
    assert kill._hit(set(), *at_start) == "starting"
    assert kill._hit({"cache/images/.building-12345678/pixels.npy"}, *at_start) == "decoding"
    assert kill._hit({"cache/images/0f/pixels.npy"}, *at_start) == "computing features"
    assert (
        kill._hit({"cache/images/0f/pixels.npy", "cache/scattering/a.sqlite-journal"}, *at_start) == "caching features"
    )
    assert kill._hit({"out/model.npz", "out/.tigra-12345678"}, "training", "training") == "saving"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, kill.TURNS.index("new fit")])
def test_killed_runs_end_with_the_same_bits_and_leave_nothing(seed):
    before = os.getcwd(), os.environ.get("TIGRA_CACHE"), kill.runs.perform.__defaults__
    n_hits = 0
    for turn in range(5):  # a kill may come after the end of a process
        outcome = kill.attack(0.0, seed + turn * len(kill.TURNS), lambda *_: None)
        assert outcome.tried >= 1 and not outcome.failures
        assert outcome.hits.total() <= kill.MOST_KILLS * outcome.tried
        n_hits += outcome.hits.total()
        if n_hits:
            break
    assert n_hits
    assert before == (os.getcwd(), os.environ.get("TIGRA_CACHE"), kill.runs.perform.__defaults__)


@pytest.mark.slow
def test_other_bits_and_leftovers_are_found(tmp_path):
    kill.draw_pictures(tmp_path / kill.PICTURES)
    command = kill.undisturbed(kill.FIT, tmp_path)._replace(seconds=0.0)
    with pytest.raises(Broken, match="other bits"):
        kill.attempt(command._replace(model=b"another"), 0, tmp_path, Counter())
    with pytest.raises(Broken, match="left beside the cache: .*missing: .*gone"):
        kill.attempt(command._replace(cached={"gone"}), 0, tmp_path, Counter())
