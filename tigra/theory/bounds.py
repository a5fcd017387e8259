"""The equivariance gap of polynomial filters for any rotation and shift, and bounds on it (section 5.2).

The image is a smooth function f on the plane (`tigra.theory.smooth_images`). Pixels are its values at whole numbers.
The bounds differ from the printed ones, which fail (docs/errata.md). docs/derivations.md proves those computed here.
They hold where the filter does not reach the border of the image.
"""

from __future__ import annotations

import math

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import grid_graph
from tigra.graph.polynomials import laplacian_powers
from tigra.theory.isometries import (
    closest_shift,
    closest_turn,
    finite_array,
    finite_number,
)
from tigra.theory.smooth_images import SmoothImage

# --- the gap ------------------------------------------------------------------------------------------


def rotation_gap(image, gamma: float, alpha, places, neighbours=8, diagonal_weight=1.0) -> np.ndarray:
    """Return abs(F(g_gamma y)(v) - F(y)(v)) at each place v, with the image rotated about v, [eq:delta_F_quasi].

    Parameters
    ----------
    image : callable
        Function of (rows, columns), e.g. a `SmoothImage`.
    gamma : float
        Angle in radians. The closest graph isometry also rotates about v, and does not change F(y)(v).
    alpha : array of shape (M+1,)
        Coefficients of the filter F = sum_m alpha_m L^m.
    places : array of shape (P, 2)
        Rows and columns, any real numbers.
    neighbours, diagonal_weight
        As for `tigra.grid_graph`.

    Returns
    -------
    array of shape (P,)

    Examples
    --------
    >>> bowl = lambda row, column: row**2 + column**2
    >>> float(rotation_gap(bowl, 0.3, [0.0, 1.0], [[0, 0]])[0].round(12))  # round: no angle matters
    0.0
    """
    alpha, places = _checked_alpha(alpha), _checked_places(places)
    gamma = finite_number(gamma, "The angle")
    cosine, sine = math.cos(gamma), math.sin(gamma)
    still = _patch(alpha)
    turned = still @ np.array([[cosine, -sine], [sine, cosine]])  # (down, right) of the sampled places
    return np.abs(
        _responses(image, places[:, None] + turned, alpha, neighbours, diagonal_weight)
        - _responses(image, places[:, None] + still, alpha, neighbours, diagonal_weight)
    )


def shift_gap(image, shift, alpha, places, neighbours=8, diagonal_weight=1.0) -> np.ndarray:
    """Return abs(F(g_xi y)(v) - g_xibar(F(y))(v)) at each place v, [eq:delta_F_quasi_tr].

    This compares a shift by real numbers with the closest shift by whole pixels.

    Parameters
    ----------
    shift : (float, float)
        Shift (down, right) in pixels.
    image, alpha, places, neighbours, diagonal_weight
        As for `rotation_gap`.

    Returns
    -------
    array of shape (P,)

    Examples
    --------
    >>> ramp = lambda row, column: column
    >>> shift_gap(ramp, (0, 2.25), [1.0], [[0, 0]])  # the identity, and yet a gap: a quarter pixel is left
    array([0.25])
    """
    alpha, places = _checked_alpha(alpha), _checked_places(places)
    whole, rest = closest_shift(shift)
    still = places[:, None] + _patch(alpha) - whole
    return np.abs(
        _responses(image, still - rest, alpha, neighbours, diagonal_weight)
        - _responses(image, still, alpha, neighbours, diagonal_weight)
    )


def _patch(alpha) -> np.ndarray:
    """Return the pixels that a filter of degree M reaches, (down, right) from its centre: ((2M+1)^2, 2)."""
    reach = np.arange(-(len(alpha) - 1), len(alpha), dtype=float)
    return np.stack(np.meshgrid(reach, reach, indexing="ij"), axis=-1).reshape(-1, 2)


def _responses(image, places, alpha, neighbours, diagonal_weight) -> np.ndarray:
    """Return F at the centres of patches (P, (2M+1)^2, 2) of places, with the values of the function: (P,)."""
    degree = len(alpha) - 1
    values = np.asarray(image(places[..., 0], places[..., 1]), dtype=np.float64)
    graph = grid_graph((2 * degree + 1, 2 * degree + 1), neighbours, diagonal_weight)
    powers = laplacian_powers(graph, np.ascontiguousarray(values.T)[None], degree)
    return alpha @ powers[:, 0, values.shape[1] // 2]  # Eq. (10) [eq:pol_filt_1]; M hops end at the patch's edge


# --- bounds that hold -----------------------------------------------------------------------------------


def rotation_bound(image: SmoothImage, gamma: float, alpha, neighbours=8, diagonal_weight=1.0) -> float:
    """Return an upper bound on `rotation_gap` at any place: Theorem 2 corrected, docs/derivations.md section 18.

        sum_k abs(alpha_k) k 2^(k-1) abs(gamma) min_n D_n sum_o w_o abs(o)^n / (n-1)!

    gamma is reduced to [-pi/4, pi/4] first. w_o is the weight of the neighbour at o; all weights sum to 1. D_n bounds
    the n-th derivatives, n - 1 times along and once across a direction. n is 2 or 4, or also 6 if the diagonal weight
    is 1/4.

    Parameters
    ----------
    image : SmoothImage
        The image as a function, with one pixel as the unit of length.
    gamma : float
        Angle in radians.
    alpha : array of shape (M+1,)
        Coefficients of the filter.
    neighbours, diagonal_weight
        As for `tigra.graph.grid_graph`.

    Returns
    -------
    float
        The bound.
    """
    return min(_rotation_bounds(image, gamma, alpha, neighbours, diagonal_weight).values())


def shift_bound(image: SmoothImage, shift, alpha, neighbours=8, diagonal_weight=1.0) -> float:
    """Return an upper bound on `shift_gap` at any place: Theorem 3 corrected, docs/derivations.md section 18.

        abs(alpha_0) max abs(d_xi f) + sum_k abs(alpha_k) 2^(k-2) sum_o w_o max abs(d_xi d_o^2 f)

    xi is the remainder of the closest whole shift, at most half a pixel down and right. d_o is the derivative along o.

    Parameters
    ----------
    image : SmoothImage
        The image as a function, with one pixel as the unit of length.
    shift : (float, float)
        Shift (down, right) in pixels.
    alpha : array of shape (M+1,)
        Coefficients of the filter.
    neighbours, diagonal_weight
        As for `tigra.graph.grid_graph`.

    Returns
    -------
    float
        The bound.
    """
    alpha, (_, rest) = _checked_alpha(alpha), closest_shift(shift)
    offsets, weights = neighbour_weights(neighbours, diagonal_weight)
    third = sum(w * image.largest_derivative(rest, o, o) for o, w in zip(offsets, weights, strict=True))
    k = np.arange(1, len(alpha))
    return abs(alpha[0]) * image.largest_derivative(rest) + float(np.abs(alpha[1:]) @ 2.0 ** (k - 2)) * third


def spacing_for(tolerance: float, image: SmoothImage, gamma: float, alpha, neighbours=8, diagonal_weight=1.0) -> float:
    """Return the distance between pixels at which the rotation gap is below a tolerance.

    This is Lemma 2 [eq:response_pattern_r], corrected. With the n-th derivatives the bound grows like spacing^n, so
    each n allows (tolerance / bound)^(1/n). The result is their maximum.

    Parameters
    ----------
    tolerance : float
        Largest gap allowed.
    image : SmoothImage
        The image as a function, with one pixel as the unit of length.
    gamma : float
        Angle in radians.
    alpha : array of shape (M+1,)
        Coefficients of the filter.
    neighbours, diagonal_weight
        As for `tigra.graph.grid_graph`.

    Returns
    -------
    float
        The distance, in units of the current one; infinite if there is no gap.
    """
    if (tolerance := finite_number(tolerance, "The tolerance")) <= 0:
        raise UsageError(f"The tolerance must be a positive number, got {tolerance!r}.")
    bounds = _rotation_bounds(image, gamma, alpha, neighbours, diagonal_weight)
    return max((tolerance / bound) ** (1 / n) if bound > 0 else math.inf for n, bound in bounds.items())


def linear_rotation_bound(image: SmoothImage, gamma: float, alpha_1: float) -> float:
    """Return the corrected bound of the base case of Theorem 2: degree 1, 4 neighbours, linear interpolation.

    It is abs(alpha_1) / 4 * s (s - 1) (max abs(f_aa) + max abs(f_bb)) with s = abs(sin gamma) + cos gamma. The
    printed bound lacks the factor s, which the cross terms of the interpolation need.

    Parameters
    ----------
    image : SmoothImage
        The image as a function, with one pixel as the unit of length.
    gamma : float
        Angle in radians.
    alpha_1 : float
        Coefficient of the filter.

    Returns
    -------
    float
        The bound.
    """
    rest = closest_turn(gamma)[1]
    s = abs(math.sin(rest)) + math.cos(rest)
    second = image.largest_derivative((1, 0), (1, 0)) + image.largest_derivative((0, 1), (0, 1))
    return abs(finite_number(alpha_1, "alpha_1")) / 4 * s * (s - 1) * second


def _rotation_bounds(image, gamma, alpha, neighbours, diagonal_weight) -> dict[int, float]:
    """Return the bound with the n-th derivatives, for each n that the graph allows."""
    alpha = _checked_alpha(alpha)
    offsets, weights = neighbour_weights(neighbours, diagonal_weight)
    k = np.arange(len(alpha))
    steps = float(np.abs(alpha) @ (k * 2.0 ** (k - 1))) * abs(closest_turn(gamma)[1])
    orders = (2, 4, 6) if neighbours == 8 and diagonal_weight == 0.25 else (2, 4)
    lengths = np.hypot(*offsets.T)
    return {n: steps * image.largest_turning(n) * (weights @ lengths**n) / math.factorial(n - 1) for n in orders}


def neighbour_weights(neighbours, diagonal_weight) -> tuple[np.ndarray, np.ndarray]:
    """Return (offsets (4 or 8, 2), weights w_o that sum to 1): L y(v) = y(v) - sum_o w_o y(v + o)."""
    stencil = grid_graph((1, 1), neighbours, diagonal_weight).stencil
    assert stencil is not None  # the grid is padded
    straight, diagonal = [(-1, 0), (0, -1), (0, 1), (1, 0)], [(-1, -1), (-1, 1), (1, -1), (1, 1)]
    if neighbours == 4:
        return np.array(straight), np.full(4, stencil.straight)
    return np.array(straight + diagonal), np.repeat([stencil.straight, stencil.diagonal], 4)


def _checked_alpha(alpha) -> np.ndarray:
    alpha = finite_array(alpha, (None,), "the coefficients (M+1,) of one filter")
    if alpha.size == 0:
        raise ShapeError("Expected the coefficients (M+1,) of one filter, got none.")
    return alpha


def _checked_places(places) -> np.ndarray:
    return finite_array(places, (None, 2), "places (P, 2), a row and a column each")
