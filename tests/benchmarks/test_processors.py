"""The same bits on every processor: a short pass of benchmarks.processors, and that it would notice others."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import processors
from tigra.experiments.recipes import RECIPES
from tigra.kernels.functions import exp
from tigra.kernels.products import times

ROOT = Path(__file__).parents[2]

KERNELS = """
from tests.benchmarks.test_processors import kernel_bits
print(kernel_bits())
"""


def kernel_bits():
    """A few bits of a product and of the exponential, in one compiled version of each."""
    rng = np.random.default_rng(0)
    w, x = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 40), (40, 29)))
    return (times(w, x, np.empty((7, 29), np.float32)).tobytes() + exp(x).tobytes()).hex()


@pytest.mark.slow
def test_training_and_prediction_have_the_same_bits_with_other_libraries():
    environment = processors.settings()["Sandybridge / no AVX2 / host"]
    here = processors.digests(quick=True)
    assert set(here) == {"images", "mnist-012 paper", "mnist-012 best"}
    assert processors.in_setting(environment, quick=True) == here


@pytest.mark.slow
def test_kernels_have_the_same_bits_without_fused_multiply_adds(tmp_path):
    environment = os.environ | processors.KERNELS["nehalem"] | {"NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", KERNELS]
    done = subprocess.run(words, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == kernel_bits()


@pytest.mark.parametrize("number, words", [(4, processors.NOT_HERE), (9, "ended by signal 9; not compared")])
def test_only_missing_instructions_are_blamed_on_the_processor(monkeypatch, number, words):
    ended = subprocess.CompletedProcess([], -number, "", "")
    monkeypatch.setattr(subprocess, "run", lambda *words, **more: ended)
    assert processors.in_setting({}, quick=True) == words
    answers = iter([{"images": "a"}, words])
    monkeypatch.setattr(processors, "in_setting", lambda environment, quick: next(answers))
    assert processors.compare({"name": {}}, processors.Results(None, quick=True)) == (number != 4)


def test_other_bits_are_reported(monkeypatch, capsys):
    answers = iter([{"images": "a", "net": "b"}, {"images": "a", "net": "c"}, processors.NOT_HERE, "Error: x"])
    monkeypatch.setattr(processors, "in_setting", lambda environment, quick: next(answers))
    names = list(processors.settings())[:3]
    assert processors.main(names) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == [
        "OTHER BITS: net",
        processors.NOT_HERE,
        "Error: x",
    ]


@pytest.mark.parametrize("dataset, name", [(dataset, name) for dataset in RECIPES for name in RECIPES[dataset]])
def test_every_recipe_can_be_trained_on_the_digits(dataset, name):
    options, fit = processors.settled(dataset, RECIPES[dataset][name])
    assert options.background in ("black", "border") and (fit.epochs, fit.batch_size) == (1, 8)


def test_a_stopped_run_goes_on_and_other_processors_are_compared(monkeypatch, tmp_path, capsys):
    path, names, asked = tmp_path / "results", list(processors.settings())[:2], []

    def in_setting(environment, quick):
        asked.append(environment)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return {"images": "a"}

    monkeypatch.setattr(processors, "in_setting", in_setting)
    with pytest.raises(KeyboardInterrupt):
        processors.main([*names, "--results", str(path)])
    assert processors.main([*names, "--results", str(path)]) == 0 and len(asked) == 4
    monkeypatch.setattr(processors, "this_cpu", lambda: "another")
    monkeypatch.setattr(processors, "in_setting", lambda environment, quick: {"images": "b"})
    capsys.readouterr()
    assert processors.main([names[0], "--results", str(path)]) == 1
    verdicts = [line.rsplit(": ", 1)[1] for line in capsys.readouterr().out.splitlines()]
    assert verdicts == ["images"] * 3 + ["equal bits (1 digests)"]  # the other processor's three, then its own
    monkeypatch.setattr(processors, "code_digest", lambda: "other code")
    assert processors.main([names[0], "--results", str(path)]) == 0


def test_settings_can_be_listed_and_are_checked(capsys):
    assert processors.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == list(processors.settings())
    assert len(processors.settings()) == 4 * 3 * 4
    with pytest.raises(SystemExit):
        processors.main(["nothing"])
    assert "unknown setting 'nothing'" in capsys.readouterr().err
