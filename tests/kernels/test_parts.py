"""Kernels that call kernels: a called one is translated once for its types, and compiled in its caller only."""

import gc
import importlib.util

import numpy as np
import pytest
from numba import TypingError

from tigra.kernels.compiling.parts import noted_calls
from tigra.kernels.decorator import OPTIONS, kernel

SOURCE = """
import numpy as np
from tigra.kernels.decorator import kernel

@kernel
def shifted(x, by):
    return x + by

@kernel
def twice(x, by):
    return shifted(x, by) + shifted(x, 1)

@kernel
def fill(x, by, out):
    scale = np.ones(1, x.dtype)
    for q in range(x.size):
        out[q] = scale[0] * (twice(x[q], by) + shifted(x[q], 2))

@kernel
def never(n):
    return min(n, 3) if 0 * n else n

@kernel
def at_most(n, limit):
    return min(n, limit)

@kernel
def both(n):
    return never(n) + at_most(n, 5)
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Function that imports the module above as a new process would."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "nested.py").write_text(SOURCE)

    def load():
        spec = importlib.util.spec_from_file_location("nested", tmp_path / "nested.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def check(fill):
    out = np.empty(3)
    fill(np.arange(3.0), 5, out)
    np.testing.assert_array_equal(out, [8.0, 11.0, 14.0])


def test_called_kernels_are_translated_once_and_not_compiled_for_python(load):
    module = load()
    check(module.fill)
    assert len(module.fill.overloads) == 1
    assert not module.twice.overloads and not module.shifted.overloads
    assert len(module.twice.part.overloads) == 1
    assert len(module.shifted.part.overloads) == 1  # constants 1 and 2 have the type of the variable


def test_called_kernels_can_be_called_from_python_before_and_after(load):
    module = load()
    assert module.shifted(1.0, 2) == 3.0
    check(module.fill)
    assert module.twice(1.0, 2) == 5.0 and module.shifted(1, 2) == 3


def test_a_compiled_kernel_is_loaded_with_its_parts(load):
    check(load().fill)
    module = load()
    check(module.fill)
    assert sum(module.fill.stats.cache_hits.values()) == 1
    assert not module.twice.part.overloads and not module.shifted.part.overloads


def test_what_one_part_no_longer_calls_is_there_for_another(load):
    """Parts are simplified before they are linked, and the linker leaves out what nobody has called so far."""
    assert load().both(7) == 12


def test_an_error_in_a_part_names_it(load):
    with pytest.raises(TypingError, match="shifted"):
        load().twice(1.0, "one")


def test_a_part_has_the_options_of_its_kernel(load):
    shifted = load().shifted
    assert OPTIONS.items() <= shifted.targetoptions.items() and OPTIONS.items() <= shifted.part.targetoptions.items()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_before(enabled):
    was_enabled, states = gc.isenabled(), []
    try:
        gc.enable() if enabled else gc.disable()
        assert kernel(lambda x: x + 1)(1) == 2
        states.append(gc.isenabled())
    finally:
        gc.enable() if was_enabled else gc.disable()
    assert states == [enabled]


def test_calls_can_be_noted_instead_of_made(load):
    fill, out = load().fill, np.zeros(3)
    with noted_calls() as noted:
        fill(np.arange(3.0), 5, out)
        fill(np.arange(3.0), 6, out)
        fill(np.arange(3.0, dtype=np.float32), 5, out)
    assert not out.any() and not fill.overloads
    assert [(kernel, types[0].dtype.name) for kernel, types in noted] == [(fill, "float64"), (fill, "float32")]
    (_, types), _ = noted
    fill.compile(types)
    check(fill)
    assert len(fill.overloads) == 1
