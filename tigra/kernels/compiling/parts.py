"""Kernels that call kernels: what is called becomes a part of its caller, and is compiled there only.

Numba compiles a function that another one calls for itself: it optimises it, makes machine code of it, and a wrapper
for calls from Python. Then it does all this again inside the caller, and again inside the caller's caller. Here, a
called kernel is only translated to LLVM code, once for its types. Its caller, or the caller's caller, which Python
calls, links this code and compiles all of it together. That halves the time of compilation, and leaves the results
and the speed of the kernels as they are.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

from numba.core import compiler, types
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher

UNUSED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # ways into a function that nobody takes

_noted: dict | None = None  # by `noted_calls`

if not all(hasattr(JITCodeLibrary, name) for name in ("_ensure_finalized", "_raise_if_finalized")):
    raise ImportError("this numba links code in another way")


class Kernel(CPUDispatcher):
    """A kernel as Python calls it; kernels that call it get its part."""

    def __init__(self, py_func, locals=None, targetoptions=None):
        super().__init__(py_func, locals or {}, {**(targetoptions or {}), "no_cfunc_wrapper": True}, KernelCompiler)
        self.part = Part(py_func, locals or {}, {**(targetoptions or {}), **UNUSED}, PartCompiler)

    def compile(self, sig):
        """Compile for these types, or load what was compiled earlier."""
        with _no_collection():
            return super().compile(sig)

    def _compile_for_args(self, *args, **kws):
        """What numba calls if a kernel is not yet compiled for arguments; returns what it calls in its place."""
        if _noted is None:
            return super()._compile_for_args(*args, **kws)
        _noted[self, tuple(map(self.typeof_pyval, args))] = None
        return _nothing

    def get_call_template(self, args, kws):
        """Tell numba's typing what a call returns; a constant has the type of a variable."""
        return self.part.get_call_template([types.unliteral(kind) for kind in args], kws)

    def get_overload(self, sig):
        """The key under which numba finds the code for a call."""
        return self.part.get_overload(sig)


class Part(CPUDispatcher):
    """A kernel as kernels call it: LLVM code, without an entry for Python."""

    def add_overload(self, cres) -> None:
        """Keep the code for these types, with the parts that it calls itself."""
        key = object()  # numba has the compiled function here
        self.targetctx.insert_user_function(key, cres.fndesc, [cres.library, *cres.library.linked])
        self.overloads[tuple(cres.signature.args)] = cres._replace(entry_point=key)


class KernelCompiler(compiler.Compiler):
    """Numba's compiler, which links parts."""

    def compile_extra(self, func):
        """Compile a function."""
        self.state.library = KernelLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class KernelLibrary(JITCodeLibrary):
    """Machine code of a kernel and its parts."""

    def finalize(self) -> None:
        """Link each library behind all that call it: LLVM leaves out what nobody has called so far."""
        libraries: list = vars(self)["_linking_libraries"]
        libraries[:] = list(dict.fromkeys(reversed(libraries)))[::-1]
        super().finalize()


class PartCompiler(compiler.Compiler):
    """Numba's compiler, up to LLVM code."""

    def compile_extra(self, func):
        """Translate a function."""
        self.state.flags.no_compile = True
        self.state.library = PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class PartLibrary(JITCodeLibrary):
    """LLVM code of a part, to be linked into that of its callers."""

    def finalize(self) -> None:
        """Nothing is added from here on; callers do the rest."""
        self._raise_if_finalized()
        self._finalized = True

    @property
    def linked(self) -> list:
        """The code of all that this part calls, directly or through one another."""
        return self._linking_libraries


@contextlib.contextmanager
def noted_calls() -> Iterator[dict]:
    """Note which kernels would have to be compiled, and for which types, instead of compiling and calling them.

    Yields a dictionary whose keys are (kernel, types), in the order of the calls. What a kernel should have filled has
    any content. Only for processes that do nothing else.
    """
    global _noted
    _noted = {}
    try:
        yield _noted
    finally:
        _noted = None


def _nothing(*_) -> None:
    """Stand in for a kernel."""


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the search for garbage, which takes a tenth of the compilation and finds next to nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
