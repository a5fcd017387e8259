"""The decorator that compiles a loop; besides it, only `compiling` imports numba."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from numba import config, jit

try:
    from tigra.kernels.compiling.cache import CheckedCache
except (ImportError, AttributeError):  # a version of numba with another cache, which then keeps kernels by itself
    CheckedCache = None  # type: ignore[assignment,misc]
try:
    from tigra.kernels.compiling.parts import Kernel
except (ImportError, AttributeError):  # a version of numba with another compiler, which then does everything by itself
    Kernel = None  # type: ignore[assignment,misc]

OPTIONS = {"nopython": True, "nogil": True, "error_model": "numpy"}


def kernel(function):
    """Compile a function with numba, and cache the result on disk if possible.

    Division by 0 follows NumPy; a test for 0 would prevent vectorisation. The cached result is valid as long as the
    function's file and the files from which it imports kernels stay the same.
    """
    compiled = jit(**OPTIONS)(function) if Kernel is None or config.DISABLE_JIT else Kernel(function, {}, OPTIONS)
    try:
        if CheckedCache is None:
            compiled.enable_caching()
        elif hasattr(compiled, "_cache"):  # not with NUMBA_DISABLE_JIT
            compiled._cache = CheckedCache(function)
    except (RuntimeError, OSError):  # neither the package's folder nor the user's cache is writable
        return compiled
    if index := getattr(getattr(compiled, "_cache", None), "_cache_file", None):
        index._source_stamp = (index._source_stamp, imported_stamp(function))  # numba: the function's own file only
    return compiled


def shares_kernels() -> bool:
    """Whether processes find on disk what one of them has compiled, and can note what they will compile."""
    return None not in (Kernel, CheckedCache) and isinstance(getattr(kernel(_nothing), "_cache", None), CheckedCache)


def _nothing() -> None:
    """A kernel to try."""


def imported_stamp(function: Callable) -> str:
    """Digest of the files that the names in a function's module come from, directly or through one another.

    Only files of tigra and of the function's own package count.
    """
    packages = {name.split(".")[0] for name in (__name__, function.__module__)}
    found: dict[str, str] = {}
    waiting = [function.__globals__]
    while waiting:
        for value in list(waiting.pop().values()):
            name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if not isinstance(name, str) or name in found or name.split(".")[0] not in packages:
                continue
            module = sys.modules.get(name)
            path = getattr(module, "__file__", None)
            found[name] = _digest(path, os.stat(path).st_mtime_ns) if path else ""
            if name != __name__:  # the decorator's own imports change no kernel
                waiting.append(getattr(module, "__dict__", {}))
    found.pop(function.__module__, None)  # numba looks at this one
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()


@functools.cache
def _digest(path: str, changed: int) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
