"""The gap of dot and cross products of gradients for any rotation and shift, and bounds on it.

The counterpart of `tigra.theory.bounds` for `tigra.graph.orientation`. Images are smooth functions on the plane, and
pixels are their values at whole numbers. docs/theory.md states and proves the bounds. They hold one pixel or more away
from the border of the image.
"""

from __future__ import annotations

import math
from itertools import product as every

import numpy as np

from tigra.errors import UsageError
from tigra.graph import grid_graph, orientation
from tigra.theory.bounds import neighbour_weights
from tigra.theory.isometries import (
    closest_shift,
    closest_turn,
    finite_array,
    finite_number,
)
from tigra.theory.smooth_images import SmoothImage

PRODUCTS = {"dot": orientation.dot, "cross": orientation.cross}
PATCH = np.stack(np.meshgrid([-1.0, 0, 1], [-1.0, 0, 1], indexing="ij"), axis=-1).reshape(-1, 2)  # (down, right)

# --- the gap --------------------------------------------------------------------------------------------


def product_rotation_gap(
    product: str, a, b, gamma: float, places, neighbours: int = 8, diagonal_weight: float = 0.25
) -> np.ndarray:
    """Return abs(P(g a, g b)(v) - P(a, b)(v)) at each place v, with both images rotated about v.

    Parameters
    ----------
    product : {"dot", "cross"}
        P.
    a, b : callable
        Functions of (rows, columns), e.g. `SmoothImage`.
    gamma : float
        Angle in radians.
    places : array of shape (P, 2)
        Rows and columns, any real numbers.
    neighbours, diagonal_weight
        As for `tigra.grid_graph`.

    Returns
    -------
    array of shape (P,)

    Examples
    --------
    >>> ramps = lambda row, column: 2 * column, lambda row, column: row - column
    >>> float(product_rotation_gap("cross", *ramps, 0.3, [[0, 0]])[0].round(12))  # linear: no angle matters
    0.0
    """
    places, gamma = _checked_places(places), finite_number(gamma, "The angle")
    cosine, sine = math.cos(gamma), math.sin(gamma)
    turned = PATCH @ np.array([[cosine, -sine], [sine, cosine]])
    still, moved = places[:, None] + PATCH, places[:, None] + turned
    grid = neighbours, diagonal_weight
    return np.abs(_product(product, a, b, moved, *grid) - _product(product, a, b, still, *grid))


def product_shift_gap(
    product: str, a, b, shift, places, neighbours: int = 8, diagonal_weight: float = 0.25
) -> np.ndarray:
    """Return the gap between a shift (down, right) by real numbers and the closest one by whole pixels, at each place.

    Other parameters are those of `product_rotation_gap`.

    Examples
    --------
    >>> hill, ramp = lambda row, column: column**2, lambda row, column: row
    >>> product_shift_gap("cross", hill, ramp, (0, 2.25), [[0, 0]])  # the slope changes by 2 a pixel
    array([0.5])
    """
    places, (whole, rest) = _checked_places(places), closest_shift(shift)
    still, grid = places[:, None] + PATCH - whole, (neighbours, diagonal_weight)
    return np.abs(_product(product, a, b, still - rest, *grid) - _product(product, a, b, still, *grid))


def _product(product, a, b, places, neighbours, diagonal_weight) -> np.ndarray:
    """Return the product at the centres of patches (P, 9, 2) of places, with the values of the functions: (P,)."""
    if product not in PRODUCTS:
        raise UsageError(f"product must be 'dot' or 'cross', got {product!r}.")
    graph = grid_graph((3, 3), neighbours, diagonal_weight)
    of_a, of_b = (np.asarray(f(places[..., 0], places[..., 1]), dtype=np.float64).T[None] for f in (a, b))
    return PRODUCTS[product](graph, of_a, of_b)[0, 4]


# --- bounds ---------------------------------------------------------------------------------------------


def product_rotation_bound(
    a: SmoothImage, b: SmoothImage, gamma: float, neighbours: int = 8, diagonal_weight: float = 0.25
) -> float:
    """Return an upper bound on `product_rotation_gap` at any place, for both products: Theorem 2, oriented.

        e(a) G(b) + G(a) e(b),    e(f) = abs(gamma) min_n sqrt(A_n^2 + n^2 D_n^2) / n! sum_o v_o abs(o)^(n+1)

    gamma is reduced to [-pi/4, pi/4] first. G bounds the length of the discrete gradient D f = sum_o v_o o f(x + o).
    A_n bounds the n-th derivatives along a direction, and D_n those n - 1 times along and once across it. n is 1 to 3,
    or 1 to 5 if the diagonal weight is 1/4.
    """
    rest = abs(closest_turn(gamma)[1])
    offsets, weights = _gradient_weights(neighbours, diagonal_weight)
    orders = range(1, 6) if neighbours == 8 and diagonal_weight == 0.25 else range(1, 4)

    def turning(image) -> float:
        """e(f)."""
        lengths = np.hypot(*offsets.T)
        return rest * min(
            math.hypot(image.largest_along(n), n * image.largest_turning(n))
            / math.factorial(n)
            * float(weights @ lengths ** (n + 1))
            for n in orders
        )

    of_a, of_b = (_largest_gradient(image, offsets, weights) for image in (a, b))
    return turning(a) * of_b + of_a * turning(b)


def product_shift_bound(
    a: SmoothImage, b: SmoothImage, shift, neighbours: int = 8, diagonal_weight: float = 0.25
) -> float:
    """Return an upper bound on `product_shift_gap` at any place, for both products: Theorem 3, oriented.

        G(d_xi a) G(b) + G(a) G(d_xi b)

    xi is the remainder of the closest whole shift, d_xi the derivative along it, and G as in `product_rotation_bound`.
    """
    _, rest = closest_shift(shift)
    stencil = _gradient_weights(neighbours, diagonal_weight)
    (g_a, g_b), (s_a, s_b) = ([_largest_gradient(image, *stencil, *xi) for image in (a, b)] for xi in ((), (rest,)))
    return s_a * g_b + g_a * s_b


def _largest_gradient(image, offsets, weights, *directions) -> float:
    """Return a bound G on the length of the discrete gradient of f, or of its derivative along the directions.

    It holds for any orientation of the neighbours. The three bounds use the function itself, its first derivatives,
    and the third ones, by which the discrete gradient differs from the true one.
    """
    value, slope, third = (image.largest_along(n, *directions) for n in (0, 1, 3))
    return min(
        _spread(offsets, weights, 0) * value,
        _spread(offsets, weights, 1) * slope,
        slope + _spread(offsets, weights, 3) * third / 6,
    )


def _spread(offsets, weights, power: int) -> float:
    """Return the maximum over unit vectors s of sum_o v_o abs(s . o) abs(o)^power.

    With the signs of s . o it is s times one of finitely many vectors, so the longest of these is the maximum.
    """
    half = [i for i, (down, right) in enumerate(offsets) if (down, right) > (0, 0)]  # o and -o have one sign
    vectors = 2 * (weights * np.hypot(*offsets.T) ** power)[half, None] * offsets[half]
    signs = np.array(list(every((-1, 1), repeat=len(half))))
    return float(np.hypot(*(signs @ vectors).T).max())


def _gradient_weights(neighbours, diagonal_weight) -> tuple[np.ndarray, np.ndarray]:
    """Return (offsets (4 or 8, 2), weights v_o with sum_o v_o o o^T = I): D f(x) = sum_o v_o o f(x + o)."""
    offsets, weights = neighbour_weights(neighbours, diagonal_weight)
    return offsets, 2 * weights / (weights @ np.sum(offsets**2, axis=1))


def _checked_places(places) -> np.ndarray:
    return finite_array(places, (None, 2), "places (P, 2), a row and a column each")
