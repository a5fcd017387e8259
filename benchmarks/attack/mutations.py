"""Damage to the bytes of a file, as disks, full file systems, killed programs and vandals do it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def _place(content: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(content))) if content else 0


def emptied(content: bytes, rng: np.random.Generator) -> bytes:
    return b""


def truncated(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: _place(content, rng)]


def extended(content: bytes, rng: np.random.Generator) -> bytes:
    return content + rng.bytes(int(rng.integers(1, 100)))


def flipped(content: bytes, rng: np.random.Generator) -> bytes:
    """One to eight bits changed."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 9)) if content else 0):
        changed[_place(content, rng)] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwritten(content: bytes, rng: np.random.Generator) -> bytes:
    """Random bytes in place of some."""
    start, n = _place(content, rng), int(rng.integers(1, 200))
    return content[:start] + rng.bytes(len(content[start : start + n])) + content[start + n :]


def zeroed(content: bytes, rng: np.random.Generator) -> bytes:
    """A page of zeros, as after a power cut."""
    start, n = _place(content, rng), int(rng.integers(1, 4097))
    return content[:start] + bytes(len(content[start : start + n])) + content[start + n :]


def cut_out(content: bytes, rng: np.random.Generator) -> bytes:
    start, n = _place(content, rng), int(rng.integers(1, 200))
    return content[:start] + content[start + n :]


def doubled(content: bytes, rng: np.random.Generator) -> bytes:
    """A part that is there twice."""
    start, n = _place(content, rng), int(rng.integers(1, 200))
    return content[: start + n] + content[start:]


def swapped(content: bytes, rng: np.random.Generator) -> bytes:
    """Two parts of the same length in each other's place."""
    first, second = sorted((_place(content, rng), _place(content, rng)))
    n = min(int(rng.integers(1, 200)), second - first, len(content) - second)
    a, b = content[first : first + n], content[second : second + n]
    return content[:first] + b + content[first + n : second] + a + content[second + n :]


MUTATIONS: list[Callable[[bytes, np.random.Generator], bytes]] = [
    emptied,
    truncated,
    extended,
    flipped,
    overwritten,
    zeroed,
    cut_out,
    doubled,
    swapped,
]


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return content damaged in one or several ways; it may be the same by chance."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 3]))):
        content = MUTATIONS[int(rng.integers(len(MUTATIONS)))](content, rng)
    return content
