"""Images as smooth functions f(row, column), with bounds on their derivatives (paper, section 5.2).

The theorems on rotations by any angle treat an image as a function on the plane, of which pixels are samples. Here
such functions are sums of plane waves and of round Gaussian bumps. Every derivative has a formula and a bound that
holds everywhere. The unit of length is one pixel. `at_spacing` samples the same scene more finely or coarsely.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermeval

from tigra.errors import UsageError
from tigra.theory.isometries import finite_array, finite_number

N_FACTORS = 7  # bounds are known for derivatives of order 0 to 6


class SmoothImage(NamedTuple):
    """f(x) = sum_q height_q cos(frequency_q . x + phase_q) + sum_r bump_r exp(-|x - centre_r|^2 / (2 width_r^2)).

    Attributes
    ----------
    heights, frequencies, phases : arrays of shapes (Q,), (Q, 2) and (Q,)
        Plane waves; frequencies (down, right) are in radians per pixel.
    bumps, centres, widths : arrays of shapes (R,), (R, 2) and (R,)
        Gaussian bumps.

    Examples
    --------
    >>> ripple = SmoothImage.of_waves([1.0], [[0.0, np.pi / 2]], [0.0])
    >>> ripple(np.zeros(3), np.arange(3)).round(3) + 0.0
    array([ 1.,  0., -1.])
    >>> float(ripple.largest_derivative((0, 1), (0, 1)).round(3))  # (pi / 2)^2
    2.467
    """

    heights: np.ndarray
    frequencies: np.ndarray
    phases: np.ndarray
    bumps: np.ndarray
    centres: np.ndarray
    widths: np.ndarray

    @classmethod
    def of_waves(cls, heights, frequencies, phases) -> SmoothImage:
        """Return a sum of plane waves."""
        heights = finite_array(heights, (None,), "the heights (Q,) of waves")
        n = len(heights)
        frequencies = finite_array(frequencies, (n, 2), f"a frequency (down, right) for each of {n} waves")
        return cls(heights, frequencies, finite_array(phases, (n,), f"a phase for each of {n} waves"), *_nothing())

    @classmethod
    def of_bumps(cls, bumps, centres, widths) -> SmoothImage:
        """Return a sum of Gaussian bumps."""
        bumps = finite_array(bumps, (None,), "the heights (R,) of bumps")
        n = len(bumps)
        centres = finite_array(centres, (n, 2), f"a centre (row, column) for each of {n} bumps")
        widths = finite_array(widths, (n,), f"the widths of {n} bumps")
        if np.min(widths, initial=1.0) <= 0:
            raise UsageError(f"The widths of bumps must be positive, got {widths}.")
        return cls(*_nothing(), bumps, centres, widths)

    def __add__(self, other: SmoothImage) -> SmoothImage:  # type: ignore[override]  # of functions, not of tuples
        return SmoothImage(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def __call__(self, rows, columns) -> np.ndarray:
        """Return f at any places."""
        return self.derivative(0, 0, rows, columns)

    def derivative(self, n_down: int, n_right: int, rows, columns) -> np.ndarray:
        """Return the partial derivative, n_down times down and n_right times to the right, at any places."""
        rows, columns = np.broadcast_arrays(np.asarray(rows, float), np.asarray(columns, float))
        value = np.zeros(rows.shape)
        quarter = (n_down + n_right) * np.pi / 2  # each derivative of a cosine adds pi/2 to its phase
        for height, (down, right), phase in zip(self.heights, self.frequencies, self.phases, strict=True):
            value += height * down**n_down * right**n_right * np.cos(down * rows + right * columns + phase + quarter)
        for bump, centre, width in zip(self.bumps, self.centres, self.widths, strict=True):
            down, right = (rows - centre[0]) / width, (columns - centre[1]) / width
            value += bump / (-width) ** (n_down + n_right) * _hermite(n_down, down) * _hermite(n_right, right)
        return value

    def at_spacing(self, spacing: float) -> SmoothImage:
        """Return the same scene with pixels `spacing` times as far apart: f(spacing x)."""
        if (spacing := finite_number(spacing, "The distance between pixels")) <= 0:
            raise UsageError(f"The distance between pixels must be a positive number, got {spacing!r}.")
        return self._replace(
            frequencies=self.frequencies * spacing, centres=self.centres / spacing, widths=self.widths / spacing
        )

    def largest_derivative(self, *directions) -> float:
        """Return a bound, valid everywhere, on the derivative along all these directions (down, right).

        For waves, each derivative is a factor frequency . direction. For bumps, a symmetric form is largest if all
        its arguments are equal, and then the derivative is one Hermite function, for any direction.
        """
        along = finite_array(np.empty((0, 2)) if directions == () else directions, (None, 2), "pairs (down, right)")
        _check_order(len(along))
        waves = np.abs(self.heights) @ np.abs(np.prod(self.frequencies @ along.T, axis=1))
        lengths, order = np.prod(np.hypot(*along.T)), len(along)
        return waves + lengths * HERMITE_PEAKS[order] * np.sum(np.abs(self.bumps) / self.widths**order)

    def largest_along(self, order: int, *directions) -> float:
        """Return a bound, valid everywhere, on the derivative order times along any unit vector u.

        With directions (down, right), also once along each of them, as in `largest_derivative`.
        """
        along = finite_array(np.empty((0, 2)) if directions == () else directions, (None, 2), "pairs (down, right)")
        _check_order(order + len(along))
        of_waves = np.abs(np.prod(self.frequencies @ along.T, axis=1)) * np.hypot(*self.frequencies.T) ** order
        lengths, order = np.prod(np.hypot(*along.T)), order + len(along)
        bumps = lengths * HERMITE_PEAKS[order] * np.sum(np.abs(self.bumps) / self.widths**order)
        return float(np.abs(self.heights) @ of_waves + bumps)

    def largest_turning(self, order: int) -> float:
        """Return a bound, valid everywhere, on the derivative order - 1 times along any unit vector u and once across.

        A wave at the angle psi to u gives a factor cos^(order-1) psi sin psi, which has a known maximum. A bump is
        round, a product of two Gaussians along and across u, so its derivative is a product of two Hermite functions.
        """
        _check_order(order, least=1)
        factor = ((order - 1) / order) ** ((order - 1) / 2) / order**0.5
        waves = factor * np.abs(self.heights) @ np.hypot(*self.frequencies.T) ** order
        return waves + HERMITE_PEAKS[order - 1] * HERMITE_PEAKS[1] * np.sum(np.abs(self.bumps) / self.widths**order)


def _check_order(order, least: int = 0) -> None:
    if not isinstance(order, (int, np.integer)) or not least <= order < N_FACTORS:
        raise UsageError(f"Bounds are known for derivatives of order {least} to {N_FACTORS - 1}, got {order!r}.")


def _nothing() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.zeros(0), np.zeros((0, 2)), np.zeros(0)


def _hermite(order: int, t) -> np.ndarray:
    """Return He_order(t) exp(-t^2 / 2), up to sign the order-th derivative of exp(-t^2 / 2)."""
    return hermeval(t, [0] * order + [1]) * np.exp(-(t**2) / 2)


def _hermite_peaks() -> list[float]:
    """Return max abs(He_n(t)) exp(-t^2 / 2) for n = 0, 1, ..., at t = 0 or where He_n' - t He_n = -He_{n+1} is 0."""
    peaks = []
    for order in range(N_FACTORS):
        places = np.polynomial.hermite_e.hermeroots([0] * (order + 1) + [1])
        peaks.append(float(np.abs(_hermite(order, np.append(places, 0.0))).max()))
    return peaks


HERMITE_PEAKS = _hermite_peaks()
