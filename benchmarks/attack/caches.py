"""Damage caches of every kind: results stay right, nothing is raised, and the cache heals.

Four kinds of cache are filled once, in a temporary folder: compiled kernels, decoded pictures, digests of picture
files, and features of DeepScat. Each try brings one of them back, damages it, and uses it twice. Beside the cache that
is used there is one of the same kind for something else, whose files are tempting: whole, but wrong. Checksums
are not forged (docs/reliability.md, threat model). Damaged machine code that is believed may end the whole process.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.attack.cache_kinds import Digests, Features, Kernels, Pictures
from benchmarks.attack.mutations import mutated
from benchmarks.attack.outcome import Outcome, Progress, repeat
from tigra.errors import CacheWarning

SHARES = {Pictures: 0.35, Digests: 0.25, Features: 0.35, Kernels: 0.05}  # kernels take longest


def attack(seconds: float, seed: int, progress: Progress) -> Outcome:
    """Damage caches for `seconds`; try n depends on seed + n only."""
    with tempfile.TemporaryDirectory() as folder:
        kinds = [kind(Path(folder, kind.__name__)) for kind in SHARES]
        for kind in kinds:
            kind.use()  # fills the cache
            shutil.copytree(kind.cache, kind.whole)

        def attempt(number: int) -> None:
            rng = np.random.default_rng(number)
            kind = kinds[int(rng.choice(len(kinds), p=list(SHARES.values())))]
            shutil.rmtree(kind.cache, ignore_errors=True)
            shutil.copytree(kind.whole, kind.cache)
            what = damage(kind, rng)
            try:
                check(kind)
            except Exception as error:
                raise RuntimeError(f"{type(kind).__name__}, {what}: {type(error).__name__}: {error}") from error

        return repeat(attempt, seconds, seed, progress, "caches")


def check(kind) -> None:
    """Use a damaged cache twice; results are right both times, and nobody is told more than that it was damaged."""
    for _ in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            np.testing.assert_equal(kind.use(), kind.expected)
        if strange := [warning for warning in told if not issubclass(warning.category, CacheWarning)]:
            raise AssertionError(f"warning: {strange[0].message}")
    if told:
        raise AssertionError(f"not healed: {told[0].message}")


def damage(kind, rng: np.random.Generator) -> str:
    """Damage the files of a cache, with or without knowledge of their format; return what was done."""
    if rng.random() < 0.4:
        return kind.damage(rng)
    files = [path for path in sorted(kind.damaged.rglob("*")) if path.is_file()]
    name, act = list(DAMAGE.items())[int(rng.integers(len(DAMAGE)))]
    act([files[int(place)] for place in rng.permutation(len(files))], rng)
    return name


def _mutate_one(files: list[Path], rng: np.random.Generator) -> None:
    files[0].write_bytes(mutated(files[0].read_bytes(), rng))


def _mutate_all(files: list[Path], rng: np.random.Generator) -> None:
    for path in files:
        path.write_bytes(mutated(path.read_bytes(), rng))


def _empty_all(files: list[Path], rng: np.random.Generator) -> None:
    for path in files:
        path.write_bytes(b"")


def _swap(files: list[Path], rng: np.random.Generator) -> None:
    """Two files in each other's place: of the same kind, if there are."""
    first = files[0]
    second = next((path for path in files[1:] if path.suffix == first.suffix), files[-1])
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])


def _delete(files: list[Path], rng: np.random.Generator) -> None:
    for path in files[: int(rng.integers(1, len(files) + 1))]:
        path.unlink()


def _folder_instead(files: list[Path], rng: np.random.Generator) -> None:
    files[0].unlink()
    files[0].mkdir()


def _noise_beside(files: list[Path], rng: np.random.Generator) -> None:
    """Files that no one asked for, such as a journal that belongs to nothing."""
    for ending in ("-journal", "-wal", ".tmp.0123456789abcdef", "~"):
        with contextlib.suppress(OSError):
            files[0].with_name(files[0].name + ending).write_bytes(rng.bytes(int(rng.integers(2000))))


DAMAGE = {
    "a file mutated": _mutate_one,
    "all files mutated": _mutate_all,
    "all files emptied": _empty_all,
    "two files swapped": _swap,
    "files deleted": _delete,
    "a folder instead of a file": _folder_instead,
    "strange files beside": _noise_beside,
}
