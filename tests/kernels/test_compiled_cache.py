"""Compiled kernels on disk: what is damaged is never used and never fatal, and is compiled anew."""

import importlib.util
import os
import pickle
import shutil
import warnings
from pathlib import Path

import pytest

from tigra import CacheWarning
from tigra.kernels import decorator, grid
from tigra.kernels.compiling import cache as compiled_cache
from tigra.kernels.oriented import coarsening, frames

SOURCE = """
from tigra.kernels.decorator import kernel

@kernel
def twice(x):
    return 2 * x
"""
DAMAGE = {
    "emptied": lambda content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "flipped": lambda content: content[:-200] + bytes([content[-200] ^ 1]) + content[-199:],
}


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(compiled_cache, "_told", [])
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with a module whose kernel was compiled for whole numbers and for floats."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "doubling.py").write_text(SOURCE)
    twice = loaded(folder)
    assert twice(2) == 4 and twice(1.5) == 3.0 and hits(twice) == 0
    return folder


@pytest.fixture
def folder(compiled):
    """The folder, which is brought back afterwards: numba's names depend on the path."""
    kept = {path: path.read_bytes() for path in (compiled / "__pycache__").iterdir()}
    yield compiled
    shutil.rmtree(compiled / "__pycache__")
    (compiled / "__pycache__").mkdir()
    for path, content in kept.items():
        path.write_bytes(content)


def loaded(folder):
    spec = importlib.util.spec_from_file_location("doubling", folder / "doubling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


def hits(function):
    return sum(function.stats.cache_hits.values())


def files(folder, ending):
    return sorted((folder / "__pycache__").glob(f"*{ending}"))


def check_healed(folder, *numbers):
    """The next process finds what was compiled for these, and says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = loaded(folder)
        assert [again(x) for x in numbers] == [2 * x for x in numbers] and hits(again) == len(numbers)


def test_compiled_kernels_are_found_again(folder):
    assert len(files(folder, ".nbi")) == 1 and len(files(folder, ".nbc")) == 2
    check_healed(folder, 2, 1.5)


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_damaged_files_are_compiled_anew_with_one_note(folder, ending, damage):
    for path in files(folder, ending):
        path.write_bytes(DAMAGE[damage](path.read_bytes()))
    twice = loaded(folder)
    with pytest.warns(CacheWarning, match="were damaged") as told:
        assert twice(2) == 4
    assert len(told) == 1 and hits(twice) == 0
    check_healed(folder, 2)


def test_entries_in_each_others_place_are_not_used(folder):
    first, second = files(folder, ".nbc")
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1]), second.write_bytes(contents[0])
    twice = loaded(folder)
    assert twice(2) == 4 and twice(1.5) == 3.0 and hits(twice) == 0
    check_healed(folder, 2, 1.5)


def test_code_of_other_sources_is_not_used(folder, monkeypatch):
    """A process that was killed while it saved may leave an index that points to older code."""
    stamp = compiled_cache.CheckedFile._label
    monkeypatch.setattr(compiled_cache.CheckedFile, "_label", lambda self, key: ("other", *stamp(self, key)))
    twice = loaded(folder)
    assert twice(2) == 4 and hits(twice) == 0


def test_files_of_plain_numba_are_replaced_without_a_word(folder):
    (index,) = files(folder, ".nbi")
    index.write_bytes(pickle.dumps("0.60.0", protocol=-1) + b"whatever follows")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twice = loaded(folder)
        assert twice(2) == 4 and hits(twice) == 0
    check_healed(folder, 2)


def test_plain_numba_takes_our_index_for_another_version(folder, monkeypatch):
    monkeypatch.setattr(decorator, "CheckedCache", None)  # as with a numba whose cache we do not know
    twice = loaded(folder)
    assert twice(2) == 4 and hits(twice) == 0
    assert loaded(folder)(2) == 4


def test_a_cache_that_cannot_be_written_or_read_costs_time_only(folder):
    for path in files(folder, ".nb?"):
        path.unlink()
        path.mkdir()  # stands in the way, even of root
        (path / "file").touch()
    assert loaded(folder)(2) == 4


def test_leftovers_of_killed_processes_go(folder):
    (index,) = files(folder, ".nbi")
    old, new = (index.with_name(f"{index.name}.tmp.{name}") for name in ("old", "new"))
    old.touch(), new.touch()
    os.utime(old, (0, 0))
    index.unlink()
    assert loaded(folder)(2) == 4
    assert new.exists() and not old.exists()


@pytest.mark.parametrize("name", ["stencils", "compiling/columns", "compiling/registers", "compiling/vectors"])
def test_kernels_with_stencils_are_compiled_anew_after_a_change_of_what_they_are_made_of(name, monkeypatch):
    digest, end = decorator._digest, Path("kernels", *f"{name}.py".split("/")).parts
    kernels = grid.grid_moments, grid.grid_powers, frames.frame_powers, coarsening.smooth_block_means
    before = [decorator.imported_stamp(kernel.py_func) for kernel in kernels]
    monkeypatch.setattr(
        decorator, "_digest", lambda path, *rest: digest(path, *rest) + "!" * (Path(path).parts[-len(end) :] == end)
    )
    after = [decorator.imported_stamp(kernel.py_func) for kernel in kernels]
    assert all(one != other for one, other in zip(before, after, strict=True))
