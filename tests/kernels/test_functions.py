"""Exponential, logarithm, cosine and powers against decimal arithmetic; the same bits compiled and interpreted."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from tests.kernels.forms import every_kernel
from tigra.kernels import functions
from tigra.kernels.functions import cosine_of_turn, exp, log, whole_power


def units_off(results, exact):
    """Largest distance from the exact values, in units in the last place."""
    pairs = zip(results.tolist(), exact, np.spacing(np.abs(results)).tolist(), strict=True)
    return max(abs(Decimal(got) - wanted) / Decimal(unit) for got, wanted, unit in pairs)


@pytest.mark.parametrize("dtype, low, high", [(np.float64, -745, 709.7), (np.float32, -103, 88.7)])
def test_exp_is_right_to_the_last_place(dtype, low, high, rng):
    x = np.concatenate([rng.uniform(-3, 3, 300), rng.uniform(low, high, 300), 10 ** rng.uniform(-18, 0, 100)])
    x = x.astype(dtype)
    with localcontext(prec=40):
        assert units_off(exp(x), [Decimal(value).exp() for value in x.tolist()]) < 1
    assert exp(x).dtype == dtype


@pytest.mark.parametrize("dtype, exponent", [(np.float64, 300), (np.float32, 37)])
def test_log_is_right_to_the_last_place(dtype, exponent, rng):
    near_1 = 1 + rng.choice([-1, 1], 100) * 10 ** rng.uniform(-6, -1, 100)
    x = np.concatenate([rng.uniform(0.5, 2, 300), 10 ** rng.uniform(-exponent, exponent, 300), near_1])
    x = x.astype(dtype)
    x = x[x != 1]
    with localcontext(prec=40):
        assert units_off(log(x), [Decimal(value).ln() for value in x.tolist()]) < 1
    assert log(x).dtype == dtype


def test_the_ends_of_the_range():
    x = np.array([np.nan, np.inf, -np.inf, 710.0, -745.1, -746.0, 0.0])
    np.testing.assert_array_equal(exp(x), [np.nan, np.inf, 0, np.inf, 5e-324, 0, 1])
    x = np.array([np.nan, np.inf, -np.inf, -1.0, 0.0, -0.0, 1.0])
    np.testing.assert_array_equal(log(x), [np.nan, np.inf, np.nan, np.nan, -np.inf, -np.inf, 0])
    np.testing.assert_allclose(log(np.array([5e-324, 1e-310])), [math.log(5e-324), math.log(1e-310)], rtol=1e-15)
    assert exp(np.zeros((2, 0))).shape == (2, 0)


def test_any_layout_is_taken(rng):
    x = rng.uniform(0.1, 2, (3, 4))
    for array in (x.T, x[:, ::2], x[1], x[0, 0]):
        np.testing.assert_allclose(exp(array), np.exp(array), rtol=1e-15)
        np.testing.assert_allclose(log(array), np.log(array), rtol=1e-14)


@pytest.mark.parametrize("name", ["_exp", "_log"])
def test_compiled_and_interpreted_give_the_same_bits(name, rng):
    kernel = getattr(functions, name)
    for x in rng.uniform(0.01, 20, 200):
        assert kernel(x) == kernel.py_func(x)
    assert {"fill_exp", "fill_log", "_exp", "_log"} == every_kernel(functions)


def test_the_cosine_of_the_schedules():
    shares = np.linspace(0, 1, 101)
    np.testing.assert_allclose([cosine_of_turn(s) for s in shares], np.cos(np.pi * shares), rtol=0, atol=4e-16)


def test_whole_powers():
    assert [whole_power(0.9, n) for n in range(3)] == [1.0, 0.9, 0.9 * 0.9]
    assert whole_power(0.999, 12345) == pytest.approx(0.999**12345, rel=1e-13)
