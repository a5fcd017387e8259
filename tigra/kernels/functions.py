"""Exponential, logarithm and cosine with the same bits on every processor.

NumPy and the C library choose among versions for AVX-512, AVX2 and older processors, whose last bits differ. Here
every operation is an addition, a multiplication, a division or a fused multiply-add, each correctly rounded. Errors
are below one unit in the last place.
"""

from __future__ import annotations

import math

import numpy as np

from tigra.kernels.compiling.registers import fma
from tigra.kernels.decorator import kernel

LN2_HIGH, LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10  # the first has 21 zero bits at its end
LARGEST_EXP, LEAST_EXP = 709.782712893384, -745.2  # beyond: infinity and 0
OF_EXP = tuple(1 / math.factorial(n) for n in range(13, 1, -1))  # Taylor series of exp, without 1 + r
OF_LOG = tuple(2 / (2 * n + 1) for n in range(12, 0, -1))  # series of 2 artanh(s) / s in s^2, without 2
OF_SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(10, 0, -1))  # series of sin(u) / u in u^2, less 1


def exp(x: np.ndarray) -> np.ndarray:
    """Exponential of an array, in its dtype.

    Examples
    --------
    >>> exp(np.array([0.0, 1.0, -np.inf]))
    array([1.        , 2.71828183, 0.        ])
    """
    x, out = np.ascontiguousarray(x), np.empty(np.shape(x), x.dtype)
    fill_exp(x.reshape(-1), out.reshape(-1))
    return out


def log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of an array, in its dtype.

    Examples
    --------
    >>> log(np.array([1.0, 2.0, 0.0]))
    array([0.        , 0.69314718,       -inf])
    """
    x, out = np.ascontiguousarray(x), np.empty(np.shape(x), x.dtype)
    fill_log(x.reshape(-1), out.reshape(-1))
    return out


def cosine_of_turn(share: float) -> float:
    """cos(pi share) for a share from 0 to 1, in plain Python.

    Examples
    --------
    >>> cosine_of_turn(0.0), cosine_of_turn(0.5), cosine_of_turn(1.0)
    (1.0, 0.0, -1.0)
    """
    u = math.pi * (0.5 - share)  # cos(pi s) = sin(pi/2 - pi s)
    series = 0.0
    for coefficient in OF_SINE:
        series = (series + coefficient) * (u * u)
    return u + u * series


def whole_power(base: float, exponent: int) -> float:
    """base ** exponent for a whole exponent >= 0, by repeated squaring; the C library's `pow` has several versions.

    Examples
    --------
    >>> whole_power(3.0, 5)
    243.0
    """
    result = 1.0
    while exponent:
        if exponent % 2:
            result *= base
        base, exponent = base * base, exponent // 2
    return result


@kernel
def fill_exp(x, out):
    """Fill out with exp(x); both (P,)."""
    for q in range(x.size):
        out[q] = _exp(np.float64(x[q]))


@kernel
def fill_log(x, out):
    """Fill out with log(x); both (P,)."""
    for q in range(x.size):
        out[q] = _log(np.float64(x[q]))


@kernel
def _exp(x):
    """exp(x) = 2^k exp(r) with abs(r) <= log(2) / 2, for float64."""
    if x != x or x > LARGEST_EXP:
        return x + np.inf
    if x < LEAST_EXP:
        return 0.0
    k = np.floor(x * 1.4426950408889634 + 0.5)
    r = fma(-k, LN2_LOW, fma(-k, LN2_HIGH, x))
    series = 0.0
    for coefficient in OF_EXP:
        series = fma(series, r, coefficient)
    return math.ldexp(1.0 + fma(series, r * r, r), int(k))


@kernel
def _log(x):
    """log(x) = k log(2) + log(1 + f) with 1 + f from sqrt(1/2) to sqrt(2), for float64 (method of fdlibm)."""
    if x != x or x < 0:
        return np.nan
    if x == 0:
        return -np.inf
    if x == np.inf:
        return x
    mantissa, k = math.frexp(x)
    if mantissa < 0.7071067811865476:
        mantissa, k = 2 * mantissa, k - 1
    f = mantissa - 1.0
    s = f / (2.0 + f)  # log(1 + f) = 2 artanh(s) = f - (f^2/2 - s (f^2/2 + series))
    half = 0.5 * f * f
    series = 0.0
    for coefficient in OF_LOG:
        series = fma(series, s * s, coefficient)
    return fma(k, LN2_HIGH, -((half - fma(s, fma(series, s * s, half), k * LN2_LOW)) - f))
