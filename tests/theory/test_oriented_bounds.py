"""Theorems 1 to 3, oriented: cross products on a torus, the gap of dot and cross, and a search beyond their bounds.

The long search: python -m tests.theory.test_oriented_bounds TRIALS SEED
"""

import math
import sys

import numpy as np
import pytest

from tests.graph.test_orientation import AROUND
from tests.theory.test_equivariance import PLACES, random_angle, random_image
from tests.theory.test_isometries import EVERY, SHAPE, SHIFTS, TURNS, torus
from tigra.errors import UsageError
from tigra.graph import grid_graph, orientation
from tigra.theory import oriented_bounds
from tigra.theory.isometries import Isometry, shift
from tigra.theory.oriented_bounds import (
    product_rotation_bound,
    product_rotation_gap,
    product_shift_bound,
    product_shift_gap,
)
from tigra.theory.smooth_images import SmoothImage

GRAPHS = [{"neighbours": 4}, {"diagonal_weight": 1.0}, {"diagonal_weight": 0.25}, {"diagonal_weight": 3.0}]
BOTH = pytest.mark.parametrize("product", ["dot", "cross"])


# --- Theorem 1 ------------------------------------------------------------------------------------------


def oriented_torus():
    height, width = SHAPE
    order = [[(i + d) % height * width + (j + r) % width for d, r in AROUND] for i, j in np.ndindex(SHAPE)]
    return torus(SHAPE).with_rotation(order)


@pytest.mark.parametrize("g", EVERY.values(), ids=EVERY)
def test_theorem_1_oriented_holds_for_every_isometry_of_the_torus(g, rng):
    graph, (a, b) = oriented_torus(), rng.standard_normal((2, 1, 36, 2))
    sense = 1 if any(g == other for other in (TURNS | SHIFTS).values()) else -1
    assert g.sense(graph) == sense
    for product, sign in ((orientation.cross, sense), (orientation.dot, 1)):
        moved, expected = product(graph, a[:, g.nodes], b[:, g.nodes]), product(graph, a, b)[:, g.nodes]
        np.testing.assert_allclose(moved, sign * expected, atol=1e-12)


def test_an_isometry_that_keeps_the_order_at_some_nodes_only_has_no_sense():
    graph = torus(SHAPE)
    order = oriented_torus().rotation.tolist()
    mixed = graph.with_rotation([order[0][::-1], *order[1:]])
    assert shift(SHAPE, (0, 1)).sense(mixed) == 0 and shift(SHAPE, (0, 0)).sense(mixed) == 1
    swapped = np.arange(36)
    swapped[[0, 1]] = 1, 0
    assert Isometry(SHAPE, swapped).sense(oriented_torus()) == 0  # no isometry at all
    with pytest.raises(UsageError, match="with_rotation"):
        shift(SHAPE, (0, 1)).sense(graph)


# --- Theorems 2 and 3 -----------------------------------------------------------------------------------


def search(n_trials, seed):
    """The largest gap / bound by product and movement; raises where a gap is above its bound."""
    rng, closest = np.random.default_rng(seed), {}
    for _ in range(n_trials):
        a, b, graph = random_image(rng), random_image(rng), GRAPHS[rng.integers(len(GRAPHS))]
        gamma, pixels = random_angle(rng), rng.uniform(-2, 2, 2) * rng.integers(0, 2, 2)
        bounds = product_rotation_bound(a, b, gamma, **graph), product_shift_bound(a, b, pixels, **graph)
        for product in ("dot", "cross"):
            gaps = (
                product_rotation_gap(product, a, b, gamma, PLACES, **graph).max(),
                product_shift_gap(product, a, b, pixels, PLACES, **graph).max(),
            )
            for kind, gap, bound in zip(("rotation", "shift"), gaps, bounds, strict=True):
                assert gap <= bound * (1 + 1e-9) + 1e-12, (product, kind, a, b, gamma, pixels, graph)
                if bound > 1e-9:
                    closest[product, kind] = max(closest.get((product, kind), 0.0), float(gap / bound))
    return closest


def test_random_search_finds_no_gap_above_its_bound():
    closest = search(120, seed=0)  # 10,000 with another seed found nothing either
    assert len(closest) == 4
    for (_, kind), reached in closest.items():
        assert reached > (0.08 if kind == "rotation" else 0.3)  # not far above the truth


@BOTH
def test_the_bound_of_rotations_is_within_a_factor_of_four_for_crossing_waves(product):
    """Found by climbing: 4 neighbours, a long wave and a short one."""
    places = {"dot": [-0.06, -0.05, 2.65, -2.77, 4.69, 4.72], "cross": [1.16, -1.14, -2.6, 3.31, 4.67, 4.73]}[product]
    a, b = (SmoothImage.of_waves([1.0], [places[i : i + 2]], [places[4 + i // 2]]) for i in (0, 2))
    gap = product_rotation_gap(product, a, b, 0.04, [[0, 0]], neighbours=4)[0]
    bound = product_rotation_bound(a, b, 0.04, neighbours=4)
    assert bound / 4 < gap < bound


@pytest.mark.parametrize(
    "graph, frequency, order, moment, length",  # moment: sum_o v_o abs(o)^(order + 1), length: of the gradient
    [
        ({"neighbours": 4}, 0.5, 3, 2.0, 0.5 + 0.5**3 / 6 * math.sqrt(2)),  # v_o = 1/2
        ({"neighbours": 4}, 6.0, 1, 2.0, math.sqrt(2)),  # the short wave: abs(f) <= 1
        ({"diagonal_weight": 1.0}, 0.5, 3, 20 / 6, 0.5 + 0.5**3 / 18 * math.hypot(1 + 32**0.5, 1)),  # v_o = 1/6
        ({}, 0.3, 5, 4 / 3 + 32 / 12, 0.3 + 0.3**3 / 6 * math.hypot(2 / 3 + 8**0.5 / 3, 2 / 3)),  # 1/3 and 1/12
    ],
)
def test_rotation_bound_of_two_waves_by_hand(graph, frequency, order, moment, length):
    """Both waves equal: e G + G e. Their turning is the largest cos^(n-1) sin."""
    wave, angle = SmoothImage.of_waves([1.0], [[frequency, 0.0]], [0.0]), np.linspace(0, np.pi / 2, 200001)
    across = float((np.cos(angle) ** (order - 1) * np.sin(angle)).max())
    turning = 0.1 * math.hypot(1, order * across) * frequency**order / math.factorial(order) * moment
    assert product_rotation_bound(wave, wave, 0.1 + np.pi, **graph) == pytest.approx(2 * turning * length, rel=1e-6)


def test_shift_bound_of_two_waves_by_hand():
    wave = SmoothImage.of_waves([1.0], [[0.1, 0.0]], [0.0])
    length = 0.1 + 0.1**3 / 6 * math.sqrt(2)  # 4 neighbours: v_o = 1/2
    assert product_shift_bound(wave, wave, (2.3, 0.4), neighbours=4) == pytest.approx(2 * 0.3 * 0.1 * length**2)


@BOTH
@pytest.mark.parametrize("graph, order", [(GRAPHS[0], 4), (GRAPHS[1], 4), (GRAPHS[2], 6)])
def test_gap_falls_with_the_fourth_power_of_the_spacing_and_the_sixth_with_diagonals_of_a_quarter(
    product, graph, order
):
    a = SmoothImage.of_waves([1.0, 0.5], [[0.9, 0.2], [-0.3, 1.1]], [0.2, 1.0])
    b = SmoothImage.of_waves([1.0, 0.7], [[0.1, -0.8], [1.0, 0.4]], [1.2, 2.0])
    images = [[image.at_spacing(d) for image in (a, b)] for d in (0.2, 0.1)]
    gaps = [product_rotation_gap(product, *pair, 0.4, [[0, 0]], **graph)[0] for pair in images]
    assert math.log2(gaps[0] / gaps[1]) == pytest.approx(order, abs=0.15)
    bounds = [product_rotation_bound(*pair, 0.4, **graph) for pair in images]
    assert math.log2(bounds[0] / bounds[1]) == pytest.approx(order, abs=0.15)


@BOTH
def test_gap_is_that_of_whole_images(product, rng):
    """Patches against the plain way: sample whole moved images, take the product, look at one pixel."""
    a, b, graph = random_image(rng), random_image(rng), grid_graph((7, 7), diagonal_weight=0.25)
    rows, columns = np.meshgrid(np.arange(-3.0, 4), np.arange(-3.0, 4), indexing="ij")

    def middle(rows, columns):
        maps = [image(rows, columns).reshape(1, -1, 1) for image in (a, b)]
        return getattr(orientation, product)(graph, *maps)[0, 24, 0]

    c, s = np.cos(0.3), np.sin(0.3)
    turned = middle(2 + c * rows + s * columns, -1 - s * rows + c * columns)
    expected = abs(turned - middle(2 + rows, -1 + columns))
    np.testing.assert_allclose(product_rotation_gap(product, a, b, 0.3, [[2, -1]]), expected, atol=1e-12)
    expected = abs(middle(2 + rows - 1.3, -1 + columns + 0.4) - middle(2 + rows - 1, -1 + columns))
    np.testing.assert_allclose(product_shift_gap(product, a, b, (1.3, -0.4), [[2, -1]]), expected, atol=1e-12)


@BOTH
@pytest.mark.parametrize("graph", GRAPHS)
def test_graph_isometries_have_no_gap(product, graph, rng):
    a, b = random_image(rng), random_image(rng)
    for quarters in range(-3, 5):
        gap = product_rotation_gap(product, a, b, quarters * np.pi / 2, PLACES, **graph)
        assert gap.max() < 1e-11 and product_rotation_bound(a, b, quarters * np.pi / 2, **graph) < 1e-9
    assert product_shift_gap(product, a, b, (3, -7), PLACES, **graph).max() == 0
    assert product_shift_bound(a, b, (3, -7), **graph) == 0


def test_constants_of_the_bounds_are_maxima_over_all_directions(rng):
    angles = np.linspace(0, 2 * np.pi, 20001)
    units = np.stack([np.cos(angles), np.sin(angles)])
    for graph in GRAPHS:
        offsets, weights = oriented_bounds._gradient_weights(**{"neighbours": 8, "diagonal_weight": 1.0} | graph)
        np.testing.assert_allclose((weights[:, None] * offsets).T @ offsets, np.eye(2), atol=1e-12)
        for power in (0, 1, 3):
            expected = ((weights * np.hypot(*offsets.T) ** power) @ np.abs(offsets @ units)).max()
            assert oriented_bounds._spread(offsets, weights, power) == pytest.approx(expected, rel=1e-6)
    image = random_image(rng) + SmoothImage.of_waves([2.0], [[0.6, 0.8]], [0.0])
    for order in range(4):
        along = max(image.largest_derivative((0.3, -0.2), *order * [u]) for u in units.T[::50])
        assert along <= image.largest_along(order, (0.3, -0.2)) * (1 + 1e-12)
    wave = SmoothImage.of_waves([2.0], [[0.6, 0.8]], [0.0])
    assert wave.largest_along(3) == pytest.approx(wave.largest_derivative(*3 * [(0.6, 0.8)]))


def test_unknown_products_are_refused(rng):
    image = random_image(rng)
    with pytest.raises(UsageError, match="'dot' or 'cross', got 'curl'"):
        product_rotation_gap("curl", image, image, 0.1, [[0, 0]])


if __name__ == "__main__":
    n_trials, seed = map(int, sys.argv[1:])
    for (product, kind), reached in search(n_trials, seed).items():
        print(f"{product}, {kind}: no gap above its bound, at most {reached:.3f} of it")
