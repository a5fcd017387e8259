"""A short attack by kill -9, and what it would notice."""

import os
import time
from collections import Counter

import pytest

from benchmarks.attack import kill
from benchmarks.attack.cage import Broken, forked


def test_a_forked_process_can_be_killed_and_tells_its_status(tmp_path):
    log = tmp_path / "log"
    assert forked(lambda: time.sleep(60), log, kill_after=0.01) is None
    assert forked(lambda: None, log) == 0 and forked(lambda: os._exit(5), log) == 5
    assert forked(lambda: 1 / 0, log) == 70 and "ZeroDivisionError" in log.read_text()


@pytest.mark.slow
def test_killed_runs_end_with_the_same_bits_and_leave_nothing():
    before = os.getcwd(), os.environ.get("TIGRA_CACHE"), kill.runs.perform.__defaults__
    outcome = kill.attack(1.0, 0, lambda *_: None)
    assert outcome.tried >= 1 and not outcome.failures
    assert 1 <= outcome.hits.total() <= kill.MOST_KILLS * outcome.tried
    assert before == (os.getcwd(), os.environ.get("TIGRA_CACHE"), kill.runs.perform.__defaults__)


@pytest.mark.slow
def test_other_bits_and_leftovers_are_found(tmp_path):
    kill.draw_pictures(tmp_path / kill.PICTURES)
    command = kill.undisturbed(kill.FIT, tmp_path)._replace(seconds=0.0)
    with pytest.raises(Broken, match="other bits"):
        kill.attempt([command._replace(model=b"another")], 0, tmp_path, Counter())
    with pytest.raises(Broken, match="left beside the cache: .*missing: .*gone"):
        kill.attempt([command._replace(cached={"gone"})], 0, tmp_path, Counter())
