"""The harness of the attacks: it finds what fails, says how to repeat it, and damages every way it says."""

import sys
import types

import numpy as np
import pytest

from benchmarks.attack import __main__ as command
from benchmarks.attack.mutations import MUTATIONS, mutated
from benchmarks.attack.outcome import repeat


def attack(seconds, seed, progress):
    def attempt(number):
        if number % 3 == 2:
            raise ValueError("broken\nby the attack")

    outcome = repeat(attempt, seconds, seed, progress, "trial")
    outcome.hits.update(["odd"] * (seed % 2))
    return outcome


@pytest.fixture
def trial(monkeypatch):
    monkeypatch.setitem(sys.modules, "benchmarks.attack.trial", types.SimpleNamespace(attack=attack))
    monkeypatch.setattr(command, "NAMES", ["trial"])


def test_failures_are_counted_and_can_be_repeated(trial, capsys):
    assert command.main(["trial", "--seconds", "0", "--seed", "2"]) == 1
    told = "trial: 1 tried, 0 survived, 1 failed\n  trial, seed 2: ValueError: broken by the attack\n"
    assert capsys.readouterr().out == told
    assert command.main(["--seconds", "0", "--seed", "3"]) == 0
    assert capsys.readouterr().out == "trial: 1 tried, 1 survived, 0 failed\n  hits: 1 (1 odd)\n"


def test_tries_go_on_until_the_time_is_over():
    calls = []
    outcome = attack(0.05, 0, lambda *call: calls.append(call))
    assert outcome.tried > 3 and outcome.survived + len(outcome.failures) == outcome.tried
    assert [calls[2], calls[-1][1:]] == [("trial", 3, 1), (outcome.tried, len(outcome.failures))]


@pytest.mark.parametrize("words", [["nothing"], ["--seed", "-1"], ["--seconds", "nan"]])
def test_wrong_words_are_refused(trial, words, capsys):
    with pytest.raises(SystemExit):
        command.main(words)
    assert "error" in capsys.readouterr().err


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_mutations_damage_and_depend_on_the_generator_only(mutation):
    content = bytes(range(1, 256)) * 40
    made = [mutation(content, np.random.default_rng(seed)) for seed in range(20)]
    assert made == [mutation(content, np.random.default_rng(seed)) for seed in range(20)]
    assert sum(other != content for other in made) > 15
    mutation(b"", np.random.default_rng(0))  # nothing to damage, nothing raised


def test_mutated_files_are_of_many_kinds():
    assert len({mutated(b"a file of the cache", np.random.default_rng(seed)) for seed in range(100)}) > 60
