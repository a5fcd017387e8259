"""A short attack by files, and the ways in which the cage and the forgeries could fail to notice something."""

import os
import time

import numpy as np
import pytest

from benchmarks.attack import cage as cages
from benchmarks.attack import files, forgeries
from benchmarks.attack.cage import Broken, Cage
from tigra.errors import DatasetError


@pytest.fixture(scope="module")
def prey(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prey")
    return files.samples(folder), folder


@pytest.mark.slow
def test_damaged_and_forged_files_are_refused_or_read():
    outcome = files.attack(1.0, 0, lambda *_: None)
    assert outcome.tried >= 1 and not outcome.failures


def test_every_kind_of_file_is_attacked(prey):
    names = {sample.name for sample in prey[0]}
    assert len(names) == len(prey[0]) and {name.rpartition(".")[2] for name in names} >= {"npz", "png", "tgz", "json"}
    for sample in prey[0]:
        files._read(sample, sample.content, prey[1])  # intact, it is read


def test_a_foreign_error_and_a_message_with_escapes_are_found(prey, tmp_path):
    def fail(error):
        def read(path):
            raise error

        return [files.Sample("x", b"content", None, read)]

    files.attempt(fail(DatasetError("damaged")), 0, tmp_path)
    with pytest.raises(AssertionError, match="x: KeyError: 'a'"):
        files.attempt(fail(KeyError("a")), 0, tmp_path)
    with pytest.raises(AssertionError, match="control characters"):
        files.attempt(fail(DatasetError("\x1b[2J")), 0, tmp_path)


def test_forgeries_differ_from_the_file_and_depend_on_the_generator_only(prey):
    for sample in prey[0]:
        if sample.forge:
            made = [sample.forge(sample.content, np.random.default_rng(seed)) for seed in range(12)]
            assert made == [sample.forge(sample.content, np.random.default_rng(seed)) for seed in range(12)]
            assert len(set(made) - {sample.content}) > 6, sample.name


def test_forgeries_leave_the_values_that_they_put_in_as_they_are():
    before = repr(forgeries.VALUES)
    for seed in range(300):
        forgeries.forged_json(b'{"a": {}, "b": []}', np.random.default_rng(seed))
    assert repr(forgeries.VALUES) == before


def spend(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.parametrize(
    "deed, limit, message",
    [
        (lambda: 1 / 0, {}, "ZeroDivisionError: division by zero"),
        (lambda: os._exit(3), {}, "the process died"),
        (lambda: time.sleep(999), {"IDLE_SECONDS": 0.1}, "it hung after"),
        (lambda: spend(0.2), {"CPU_SECONDS": 0.1}, "it took 0.[0-9] s"),
        (lambda: np.ones(20 << 20).sum(), {"LARGEST": 50 << 20}, "it took [0-9]+ MB"),
    ],
)
def test_the_cage_finds_what_goes_wrong_and_goes_on(monkeypatch, deed, limit, message):
    with Cage(lambda number: deed() if number else None) as cage:
        cage.call(0)
        for name, value in limit.items():
            monkeypatch.setattr(cages, name, value)
        cage._end()  # the next process has the new limits
        with pytest.raises(Broken, match=message):
            cage.call(1)
        monkeypatch.undo()
        cage.call(0)


def test_forged_values_reach_every_part_of_a_record():
    content = b'{"a": {"b": [1, 2]}, "c": "d"}'
    made = {forgeries.forged_json(content, np.random.default_rng(seed)) for seed in range(60)}
    assert len(made) > 40 and any(b'"c": "d"' in text for text in made) and any(b'"b": [1, 2]' in text for text in made)
