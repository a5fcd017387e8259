"""The decorator that compiles a loop; the only module that imports numba."""

from numba import njit


def kernel(function):
    """Compile a function with numba, and cache the result on disk if possible.

    Division by 0 follows NumPy; a test for 0 would prevent vectorisation.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        return njit(**options)(function)
