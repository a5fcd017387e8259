"""Readers find each equation on a line that a default training runs, and "See it fail" in the derivations holds."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tigra.gradcheck import cases
from tigra.gradcheck.checks import check_layer
from tigra.graph import operators

ROOT = Path(__file__).parents[2]
DERIVATIONS = (ROOT / "docs" / "derivations.md").read_text(encoding="utf-8")
OF_TRAINING = [
    "(1)",
    "(10)",
    "(11)",
    "(12)",
    "(13)",
    "(14)",
    "(15)",
    "(16)",
    "(17)",
    "(18)",
    "(19)",
    "(20)",
    "eq:laplacian",
    "eq:pol_filt_1",
    "eq:pol_filt_2",
    "eq:lincomb",
    "eq:omega",
    "alg:pool",
    "eq:der1",
    "eq:der2",
    "eq:der_fm",
    "eq:der_stat1",
    "eq:der_stat2",
]
TRAIN = """
import json, sys
import tigra
from tigra.datasets import Split
package = tigra.__path__[0]
lines = set()

def trace(frame, event, _):
    name = frame.f_code.co_filename
    if not name.startswith(package):
        return None
    if event == "line":
        lines.add((name, frame.f_lineno))
    return trace

splits = tigra.load_dataset("mnist-012")
train, valid = (Split(part.images[:4, 4:24:2, 4:24:2], part.labels[:4]) for part in (splits.train, splits.valid))
recipe = tigra.RECIPES["mnist-012"]["best"].with_changes({"architecture": "SC[3, 3]-DP[50]-SC[6, 3]-DP[30]-S[3]-FC[5]"})
sys.settrace(trace)
network = tigra.build_network(**recipe.network, image_shape=(10, 10), n_classes=3)
list(tigra.fit(network, (train, valid), epochs=1))
sys.settrace(None)
print(json.dumps(sorted(lines)))
"""


@pytest.mark.slow
def test_every_equation_stands_on_a_line_that_a_default_training_runs():
    """Kernels are interpreted here, so that their lines can be watched."""
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    result = subprocess.run([sys.executable, "-c", TRAIN], capture_output=True, text=True, check=True, env=environment)
    found = set()
    for name, number in json.loads(result.stdout):
        line = Path(name).read_text(encoding="utf-8").splitlines()[number - 1]
        code, _, comment = line.partition("  # ")
        above = Path(name).read_text(encoding="utf-8").splitlines()[number - 2]
        comment += above.partition("  # ")[2] if above.rstrip().partition("  # ")[0].endswith(":") else ""
        found |= set(re.findall(r"(?:eq|alg):\w+", comment))
        for numbers in re.findall(r"Eqs?\. ((?:\(\d+\)(?:, )?)+)", comment):
            found |= set(re.findall(r"\(\d+\)", numbers))
    assert set(OF_TRAINING) - found == set()


def rows_of_see_it_fail():
    """(file, before, after, case, error) of the table."""
    table = DERIVATIONS.split("**See it fail.**")[1].split("\n\n")[1]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    return [
        (file.strip("`"), before.strip("`"), after.strip("`"), case, float(error))
        for file, before, after, case, error in rows
    ]


@pytest.mark.parametrize("file, before, after, case, error", rows_of_see_it_fail())
def test_see_it_fail_holds_row_by_row(monkeypatch, file, before, after, case, error):
    """The change is made to the file's text, and the changed functions, interpreted, stand in for the real ones."""
    text = (ROOT / file).read_text(encoding="utf-8")
    assert text.count(before) == 1, "the change must be to one line"
    broken = ModuleType("broken")
    exec(compile(text.replace(before, after).replace("@kernel\n", ""), file, "exec"), vars(broken))
    for place in (operators, cases):
        for name, value in vars(broken).items():
            if getattr(value, "__module__", None) == "broken" and hasattr(place, name):
                monkeypatch.setattr(place, name, value)
    worst = max(check.error for check in check_layer(case))
    assert worst == pytest.approx(error, rel=0.1)
