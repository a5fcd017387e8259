"""The same bits on every processor: a short pass of benchmarks.processors, and that it would notice others."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import processors
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
    assert processors.compare({"name": {}}, quick=True) == (number != 4)


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


def test_settings_can_be_listed_and_are_checked(capsys):
    assert processors.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == list(processors.settings())
    assert len(processors.settings()) == 4 * 3 * 4
    with pytest.raises(SystemExit):
        processors.main(["nothing"])
    assert "unknown setting 'nothing'" in capsys.readouterr().err
