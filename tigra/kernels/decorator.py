"""The decorator that compiles a loop; the only module that imports numba."""

from numba import njit


def kernel(function):
    """Compile a function, and keep the result on disk where there is a folder to write to.

    Divisions follow NumPy, without a test for 0, which would keep loops from being vectorised.
    """
    options = {"nogil": True, "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return njit(**options)(function)
