"""The same bits on every processor: a short pass of benchmarks.processors, and that it would notice others."""

import json
import os
import subprocess
import sys

import pytest

from benchmarks import processors

KERNELS = """
import hashlib, json
import numpy as np
from tigra.kernels.functions import exp, log
from tigra.kernels.products import times, times_transposed

rng, found = np.random.default_rng(0), {}
w, x, g = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 40), (40, 300), (7, 300)))
found["times"] = times(w, x, np.empty_like(g))
found["outer"] = times_transposed(g, x, np.empty_like(w))
found["exp"], found["log"] = exp(x), log(np.abs(x))
print(json.dumps({name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in found.items()}))
"""


@pytest.mark.slow
def test_training_and_prediction_have_the_same_bits_with_other_libraries():
    name = "Sandybridge / no AVX2 / host"
    here, other = (processors.in_setting(environment, quick=True) for environment in ({}, processors.settings()[name]))
    assert here == other and set(here) == {"images", "mnist-012 paper", "mnist-012 best"}


@pytest.mark.slow
def test_kernels_have_the_same_bits_without_fused_multiply_adds(tmp_path):
    found = []
    for environment in ({}, processors.KERNELS["nehalem"] | {"NUMBA_CACHE_DIR": str(tmp_path)}):
        done = subprocess.run(
            [sys.executable, "-c", KERNELS], env=os.environ | environment, capture_output=True, text=True, check=True
        )
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]


def test_other_bits_are_reported(monkeypatch, capsys):
    answers = iter(
        [{"images": "a", "net": "b"}, {"images": "a", "net": "c"}, "ended by signal 4: not here", "Error: x"]
    )
    monkeypatch.setattr(processors, "in_setting", lambda environment, quick: next(answers))
    names = list(processors.settings())[:3]
    assert processors.main(names) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ", 1)[1] for line in lines] == [
        "OTHER BITS: net",
        "ended by signal 4: not here",
        "Error: x",
    ]


def test_settings_can_be_listed_and_are_checked(capsys):
    assert processors.main(["--list"]) == 0
    assert capsys.readouterr().out.splitlines() == list(processors.settings())
    assert len(processors.settings()) == 4 * 3 * 4
    with pytest.raises(SystemExit):
        processors.main(["nothing"])
    assert "unknown setting 'nothing'" in capsys.readouterr().err
