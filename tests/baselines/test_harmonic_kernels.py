"""Loops of harmonic networks, compiled and interpreted, in both precisions, against plain sums; out starts as NaN."""

from pathlib import Path

import numpy as np
import pytest

from tests.kernels.forms import BOTH, DTYPES, blank, every_kernel, form_of
from tigra.baselines.harmonic import kernels as harmonic_kernels

FLOOR = 1e-4


def test_every_harmonic_kernel_is_tested_here():
    """The names that begin with _ are called by the others, in every test."""
    text = Path(__file__).read_text(encoding="utf-8")
    missing = {name for name in every_kernel(harmonic_kernels) if f"harmonic_kernels.{name}" not in text}
    assert {name for name in missing if not name.startswith("_")} == set()


class Framed:
    """Random complex planes (C, H, W, B) in frames of two pixels, and arrays for one row of sums."""

    def __init__(self, dtype, rng, n_maps=2, height=3, width=4, n_batch=2):
        self.shape = n_maps, height, width, n_batch
        self.planes = rng.standard_normal((2, *self.shape)).astype(dtype)
        wide = np.pad(self.planes, ((0, 0), (0, 0), (2, 2), (2, 2), (0, 0)))
        self.wide = wide[0].astype(float) + 1j * wide[1]
        self.frames = wide.reshape(2, n_maps, height + 4, -1)
        self.same, self.cross = (blank(2, 6, n_maps, width * n_batch, dtype=dtype) for _ in range(2))
        self.scratch = np.zeros((10, (width + 4) * n_batch), dtype)

    def pixel(self, i, down, right):
        """Row i of all planes, moved: complex (C, W, B)."""
        _, _, width, _ = self.shape
        return self.wide[:, i + 2 + down, 2 + right : 2 + right + width]

    def even(self, i, row, column):
        """The sum over all pixels that mirrors bring (row, column) to, rows and columns exchanged as well."""
        places = {(a * r, b * c) for r, c in ((row, column), (column, row)) for a in (-1, 1) for b in (-1, 1)}
        return sum(self.pixel(i, *place) for place in places)

    def odd(self, i, row, column, sign):
        """Right minus left, plus i sign times lower minus upper."""
        total = 0
        for side in {-row, row}:
            total = total + self.pixel(i, side, column) - self.pixel(i, side, -column)
            total = total + 1j * sign * (self.pixel(i, column, side) - self.pixel(i, -column, side))
        return total


EVEN = (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)
ODD = (0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)


@BOTH
@DTYPES
@pytest.mark.parametrize("sign", [1, -1])
def test_orbit_sums_add_mirrored_pixels(form, dtype, rtol, sign, rng):
    case = Framed(dtype, rng)
    for i in range(case.shape[1]):
        form_of(harmonic_kernels.orbit_sums, form)(
            *case.frames, i, case.shape[3], sign, case.same, case.cross, case.scratch
        )
        for orbit in range(6):
            for sums, expected in (
                (case.same, case.even(i, *EVEN[orbit])),
                (case.cross, case.odd(i, *ODD[orbit], sign)),
            ):
                got = sums[0, orbit].astype(float) + 1j * sums[1, orbit]
                np.testing.assert_allclose(got, expected.reshape(got.shape), atol=50 * rtol)  # up to eight terms


@BOTH
@pytest.mark.parametrize("sign", [1, -1])
def test_the_adjoint_of_orbit_sums_is_its_adjoint(form, sign, rng):
    """<g, A x> = <A^T g, x> with x and g random, the imaginary part as numbers of their own."""
    case = Framed(np.float64, rng)
    n_batch = case.shape[3]
    for i in range(case.shape[1]):
        harmonic_kernels.orbit_sums(*case.frames, i, n_batch, sign, case.same, case.cross, case.scratch)
        g_same, g_cross = rng.standard_normal((2, *case.same.shape))
        back, scratch = np.zeros_like(case.frames), np.full_like(case.scratch, 7.0)
        form_of(harmonic_kernels.orbit_sums_adjoint, form)(g_same, g_cross, i, n_batch, sign, *back, scratch)
        forward = np.sum(g_same * case.same) + np.sum(g_cross * case.cross)
        assert np.sum(back * case.frames) == pytest.approx(forward, rel=1e-12)


class Moduli:
    """Complex numbers (2, 2, C, P), some of them 0 or below the floor, with scales, offsets and a gradient."""

    def __init__(self, dtype, rng, n_places=1500):
        self.z = rng.standard_normal((2, 2, 3, n_places)).astype(dtype)
        self.z[..., :3] = 0
        self.z[..., 3:6] *= dtype(1e-3)
        self.scale, self.offset, self.shift, self.tilt = rng.uniform(-1, 1, (4, 2, 3)).astype(dtype)
        self.grad = rng.standard_normal(self.z.shape).astype(dtype)
        self.scratch = blank(4, 1024, dtype=dtype)
        wide = self.z.astype(float)
        self.r = np.sqrt(np.maximum(np.square(wide).sum(axis=1), FLOOR))
        self.a = self.scale[:, :, None] * self.r + self.offset[:, :, None]
        self.t = np.sum(wide * self.grad, axis=1)
        self.g_a = (self.a > 0) * self.t / self.r


@BOTH
@DTYPES
def test_modulus_relu_scales_numbers_by_their_modulus(form, dtype, rtol, rng):
    case = Moduli(dtype, rng)
    out = blank(*case.z.shape, dtype=dtype)
    form_of(harmonic_kernels.modulus_relu, form)(case.z, FLOOR, case.scale, case.offset, case.scratch, out)
    expected = (np.maximum(case.a, 0) / case.r)[:, None] * case.z
    np.testing.assert_allclose(out, expected, rtol=100 * rtol, atol=10 * rtol)  # a is a difference


@BOTH
@DTYPES
def test_modulus_sums_are_sums(form, dtype, rtol, rng):
    case, sums = Moduli(dtype, rng), blank(2, 2, 3, dtype=float)
    form_of(harmonic_kernels.modulus_sums, form)(case.z, FLOOR, case.scratch, sums)
    np.testing.assert_allclose(sums, [case.r.sum(axis=2), np.square(case.r).sum(axis=2)], rtol=10 * rtol)
    form_of(harmonic_kernels.modulus_gradient_sums, form)(
        case.z, FLOOR, case.scale, case.offset, case.grad, case.scratch, sums
    )
    expected = [case.g_a.sum(axis=2), (case.g_a * case.r).sum(axis=2)]
    np.testing.assert_allclose(sums, expected, rtol=10 * rtol, atol=1000 * rtol)  # 1500 terms of both signs


@BOTH
@DTYPES
def test_modulus_relu_gradient_is_its_formula(form, dtype, rtol, rng):
    case = Moduli(dtype, rng)
    out = blank(*case.z.shape, dtype=dtype)
    slopes = case.scale, case.offset, case.shift, case.tilt
    form_of(harmonic_kernels.modulus_relu_gradient, form)(case.z, FLOOR, *slopes, case.grad, case.scratch, out)
    f = np.maximum(case.a, 0) / case.r
    scale, shift, tilt = (array[:, :, None].astype(float) for array in (case.scale, case.shift, case.tilt))
    g_r = scale * case.g_a + shift + tilt * case.r - case.t * f / case.r
    slope = g_r / case.r * (np.square(case.z.astype(float)).sum(axis=1) > FLOOR)
    expected = f[:, None] * case.grad + slope[:, None] * case.z
    np.testing.assert_allclose(out, expected, rtol=100 * rtol, atol=100 * rtol)  # differences of near numbers
