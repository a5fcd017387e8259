"""Kernels compiled and interpreted, in both precisions: shared by the tests of kernels."""

import numpy as np
import pytest

BOTH = pytest.mark.parametrize("form", ["compiled", "interpreted"])
DTYPES = pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-5)])  # float32: 1e-7 an operation


def form_of(function, form):
    return function if form == "compiled" else function.py_func


def blank(*shape, dtype):
    return np.full(shape, np.nan, dtype)


def every_kernel(module):
    return {name for name, value in vars(module).items() if hasattr(value, "py_func")}
