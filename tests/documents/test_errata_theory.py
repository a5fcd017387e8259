"""Section 5.2 as printed, and where it fails: Theorems 2 and 3, Lemmas 1 and 2 (docs/errata.md).

As in test_errata.py, printed forms are written here, and "ours" is the package's own code. The printed bounds end in
o(da^2) + o(db^2); a number needs a bound without them, so they are left out, and everything is in pixels.
"""

from functools import partial

import numpy as np

from tigra.graph import grid_graph
from tigra.graph.polynomials import laplacian_powers
from tigra.images.transforms import rotate
from tigra.theory.bounds import (
    linear_rotation_bound,
    rotation_bound,
    rotation_gap,
    shift_bound,
    shift_gap,
    spacing_for,
)
from tigra.theory.smooth_images import SmoothImage

FOUR = {"neighbours": 4}  # "for simplicity, we prove for the 4-nn graph case"
HERE = [[0.0, 0.0]]


def printed_rotation_bound(alpha, gamma, z_bar):
    """Theorem 2 [eq:filt_diff_rot]."""
    steps = sum(abs(a) * 2.0 ** (k - 3) for k, a in enumerate(alpha) if k >= 1)
    return steps * abs((1 - np.sin(gamma) - np.cos(gamma)) * z_bar)


def printed_shift_bound(alpha, z_bar):
    """Theorem 3 [eq:filt_diff]."""
    return sum(abs(a) * 2.0 ** (k - 3) for k, a in enumerate(alpha) if k >= 1) * z_bar


def second_derivatives(image, reach=8.0, n=321):
    """bar Z of [eq:sec_der] with da = db = 1: the largest abs(f_aa) + abs(f_bb), on a fine net."""
    rows, columns = np.meshgrid(*2 * [np.linspace(-reach, reach, n)], indexing="ij")
    return (np.abs(image.derivative(2, 0, rows, columns)) + np.abs(image.derivative(0, 2, rows, columns))).max()


def third_derivatives(image, reach=8.0, n=321):
    """bar Z of [eq:trans_z] with da = db = 1."""
    rows, columns = np.meshgrid(*2 * [np.linspace(-reach, reach, n)], indexing="ij")
    orders = (3, 0), (0, 3), (1, 2), (2, 1)
    return sum(np.abs(image.derivative(*order, rows, columns)) for order in orders).max()


def neighbour_sum(image):
    """The sum over each pixel's four neighbours, zeros outside."""
    framed = np.pad(image, 1)
    return framed[:-2, 1:-1] + framed[2:, 1:-1] + framed[1:-1, :-2] + framed[1:-1, 2:]


def pattern_response(f):
    """L f at v_5, from the five pixels of the paper's pattern, [eq:response_mb] without alpha_1."""
    return f(0.0, 0.0) - (f(-1.0, 0.0) + f(1.0, 0.0) + f(0.0, -1.0) + f(0.0, 1.0)) / 4


def rising_wave(spacing):
    """A wave whose derivatives at 0 are not 0, sampled every `spacing`."""
    return SmoothImage.of_waves([1.0], [[0.7, 0.4]], [0.3]).at_spacing(spacing)


def shift_along_a(image, xi):
    """F(y_g) - F(y) at v_5, signed, for alpha = (0, 1) and y_g(a, b) = f(a + xi, b), the direction that
    [eq:response_mafter] needs."""
    return pattern_response(lambda a, b: image(a + xi, b)) - pattern_response(image)


def test_rotation_bound_fails_at_any_resolution_when_pixels_are_not_square():
    """f = a^2, pixels h apart along a and 2h along b: gap and bound are both multiples of h^2, so no o(h^2) helps."""
    gamma, alpha = np.pi / 4, [0.0, 1.0]

    def neighbours(da, db):
        return np.array([[da, 0], [-da, 0], [0, db], [0, -db]])

    def gap(da, db):
        a, b = neighbours(da, db).T
        return abs(np.mean((np.cos(gamma) * a - np.sin(gamma) * b) ** 2) - np.mean(a**2))  # degree 1, f(v_5) = 0

    for h in (1.0, 1e-2, 1e-4):
        printed = printed_rotation_bound(alpha, gamma, 2 * h**2)  # f_aa = 2, f_bb = 0
        np.testing.assert_allclose([gap(h, 2 * h) / h**2, printed / h**2], [0.75, 0.2071], rtol=1e-3)
        lengths = np.linalg.norm(neighbours(h, 2 * h), axis=1)
        assert gap(h, 2 * h) < gamma * np.mean(lengths**2)  # the bound with second derivatives, D_2 = 1
        assert gap(h, h) < 1e-12 * h**2  # square pixels: no gap at all
    parabola = SmoothImage.of_waves([-200.0], [[0.1, 0.0]], [0.0])  # nearly a^2; tigra's pixels are square
    assert rotation_gap(parabola, gamma, alpha, HERE, **FOUR)[0] < rotation_bound(parabola, gamma, alpha, **FOUR) < 1e-3


def test_taylor_remainders_are_of_second_order_and_cancel_only_in_pairs():
    """R_2 of [eq:points_o] for f = exp(a) at a_5 = 0, where f_aa = 1."""
    for h in (0.1, 1e-2, 1e-3):
        right = np.expm1(h) - h  # R_2(a_6), with the slope at a_5
        left = np.expm1(-h) + np.exp(-h) * h  # R_2(a_4), with the slope at a_4
        assert right > 0.46 * h**2 and -left > 0.46 * h**2  # printed: o(h^2), so their share of h^2 should vanish
        assert max(right, -left) <= np.exp(h) * h**2 / 2  # at most half of the largest f_aa, times h^2
        assert abs(right + left) < h**3  # the two have opposite signs: Z keeps its o(h^2)


def test_rotation_bound_without_mixed_derivatives_fails_at_degree_one():
    def clover(a, b, soft=0.05):
        """r^2 sin(4 theta), smooth at 0: at its centre f_aa = f_bb = 0 along both axes, but f_ab is not."""
        return 4 * a * b * (a**2 - b**2) / (a**2 + b**2 + soft**2)

    a, b = np.meshgrid(*2 * [np.linspace(-2, 2, 401)], indexing="ij")
    h, middle = 1e-3, clover(a, b)
    f_aa = (clover(a + h, b) + clover(a - h, b) - 2 * middle) / h**2
    f_bb = (clover(a, b + h) + clover(a, b - h) - 2 * middle) / h**2
    f_ab = (clover(a + h, b + h) + clover(a - h, b - h) - clover(a + h, b - h) - clover(a - h, b + h)) / (4 * h**2)
    z_bar = (np.abs(f_aa) + np.abs(f_bb)).max()
    for gamma in (0.05, 0.1, 0.2, 0.3):
        gap = rotation_gap(clover, gamma, [0.0, 1.0], HERE, **FOUR)[0]
        assert gap > 1.2 * printed_rotation_bound([0.0, 1.0], gamma, z_bar)
        ours = gamma * (np.hypot(f_aa - f_bb, 2 * f_ab) / 2).max()  # section 18, n = 2: half the eigenvalues' distance
        assert gap < ours


def test_rotation_bound_without_cross_terms_fails_under_linear_interpolation():
    corners = np.array([[1.0, 0, 1], [0, 0, 0], [1, 0, 1]])  # a^2 b^2 at -1, 0, 1
    z_bar = 2.0 + 2.0  # of a^2 b^2 on [-1, 1]^2, at the corners
    response = (grid_graph((3, 3), **FOUR).laplacian @ rotate(corners[None], 45, "linear").ravel())[4]
    assert abs(response) > 1.2 * printed_rotation_bound([0.0, 1.0], np.pi / 4, z_bar)  # 0.5 against 0.41
    s = np.sin(np.pi / 4) + np.cos(np.pi / 4)
    ours = linear_rotation_bound(SmoothImage.of_waves([4.0], [[1.0, 0.0]], [0.0]), np.pi / 4, 1.0)  # max f_aa = 4
    assert abs(response) < ours and np.isclose(ours, s * (s - 1))


def test_rotation_bound_without_the_factor_k_fails_at_higher_degrees():
    """L does not commute with g, so the inductive step may not pull g through it [eq:ind_rot]."""
    cases = [(3, (2.58, 3.12), 0.4, 1.08), (4, (2.55, np.pi), 0.3, 1.19)]
    cases += [(degree, (2.62, np.pi), 0.1, 1.15) for degree in (8, 12)]
    for degree, frequency, gamma, ratio in cases:
        assert max(frequency) <= np.pi  # what pixels can show: above, a wave looks like a coarser one
        wave, alpha = SmoothImage.of_waves([1.0], [frequency], [0.0]), np.eye(degree + 1)[degree]
        gap = rotation_gap(wave, gamma, alpha, HERE, **FOUR)[0]
        assert gap > ratio * printed_rotation_bound(alpha, gamma, second_derivatives(wave)), degree
        assert gap < rotation_bound(wave, gamma, alpha, **FOUR)


def test_laplacian_of_the_gap_has_a_minus_sign_before_the_neighbours():
    laplacian = grid_graph((7, 7), **FOUR).laplacian

    def filtered(image):
        return (laplacian @ image.ravel()).reshape(image.shape)

    def turned(image):
        return rotate(image[None], 30, "linear", clip=False)[0]

    image = np.random.default_rng(0).standard_normal((7, 7))
    gap = filtered(turned(image)) - turned(filtered(image))  # degree 1, signed
    next_gap, size = filtered(gap), np.abs(gap)
    assert np.abs(gap + neighbour_sum(gap) / 4 - next_gap).max() > 0.5  # [eq:rot_fin_diff] as printed
    assert np.abs(size + neighbour_sum(size) / 4 - np.abs(next_gap)).max() > 0.3  # nor is it true of absolute values
    np.testing.assert_allclose(gap - neighbour_sum(gap) / 4, next_gap, atol=1e-12)
    assert np.all(np.abs(next_gap) <= size + neighbour_sum(size) / 4 + 1e-12)  # [eq:rot_fin_diff_int] is right


def test_rotation_factor_must_take_the_size_of_the_sine_and_the_closest_quarter_turn():
    for quarters in (2, 3):  # "this is indeed true, as Delta_F = 0": sin and cos say 2
        gamma = quarters * np.pi / 2
        assert np.isclose(abs(1 - np.sin(gamma) - np.cos(gamma)), 2)
    bowl = (np.arange(-1.0, 2)[:, None] ** 2 + np.arange(-1.0, 2) ** 2) / 2
    laplacian = grid_graph((3, 3), **FOUR).laplacian
    for gamma in (0.1, 0.5, np.pi / 4):
        gaps = [
            abs((laplacian @ (rotate(bowl[None], d, "linear")[0] - bowl).ravel())[4])
            for d in np.degrees([gamma, -gamma])
        ]
        s = np.sin(gamma) + np.cos(gamma)
        np.testing.assert_allclose(gaps, (s - 1) / 4 * 2, rtol=1e-9)  # the mirror image: the same gap, bar Z = 2
        assert printed_rotation_bound([0, 1.0], -gamma, 2.0) > 1.05 * printed_rotation_bound([0, 1.0], gamma, 2.0)
    wave = SmoothImage.of_waves([1.0], [[1.0, 2.0]], [0.3])
    assert rotation_bound(wave, 0.4, [0, 1.0]) == rotation_bound(wave, -0.4, [0, 1.0])
    assert rotation_bound(wave, np.pi, [0, 1.0]) < 1e-12 and rotation_bound(wave, 1.5 * np.pi, [0, 1.0]) < 1e-12


def test_rotation_about_another_point_does_not_leave_the_response_where_it_is():
    """g bar (F(y)(v)) = F(y)(v) is true for a turn about v; ten pixels off, F(y) has moved by several pixels."""
    image, gamma, alpha = SmoothImage.of_waves([1.0], [[0.4, 0.3]], [0.0]), 0.5, [0.0, 1.0]
    c, s = np.cos(gamma), np.sin(gamma)

    def turned(rows, columns):  # about (0, -10)
        return image(c * rows + s * (columns + 10), -s * rows + c * (columns + 10) - 10)

    def filtered(f, places):
        rows, columns = np.asarray(places, float).T
        around = f(rows + 1, columns) + f(rows - 1, columns) + f(rows, columns + 1) + f(rows, columns - 1)
        return f(rows, columns) - around / 4

    gap = abs(filtered(turned, HERE) - filtered(image, HERE))[0]
    assert gap > printed_rotation_bound(alpha, gamma, second_derivatives(image))
    place = [[c * 0 + s * 10, c * 10 - 10]]  # where the turn takes v from: there, our bound holds
    assert abs(filtered(turned, HERE) - filtered(image, place))[0] < rotation_bound(image, gamma, alpha, **FOUR)


def test_shift_gap_of_degree_one_without_the_factor_xi_is_wrong():
    for spacing in (0.1, 1e-2):
        image = rising_wave(spacing)
        printed = pattern_response(partial(image.derivative, 1, 0))  # [eq:response_mafter] less [eq:response_mb]
        a, b = (1, 0), (0, 1)
        printed_bound = (image.largest_derivative(a, a, a) + image.largest_derivative(a, b, b)) / 4
        for xi in (0.1, 0.3, -0.4):
            gap = shift_along_a(image, xi)
            assert abs(gap - printed) > 0.6 * abs(printed)
            np.testing.assert_allclose(gap, xi * printed, rtol=spacing)  # the rest is of higher order
            bound = shift_bound(image, (xi, 0.0), [0.0, 1.0], **FOUR)
            assert abs(gap) < bound and np.isclose(bound, abs(xi) * printed_bound)  # ours has the factor


def test_shift_gap_of_degree_one_has_a_minus_sign_before_the_third_derivatives():
    for spacing in (0.1, 1e-2):
        image = rising_wave(spacing)
        first = pattern_response(partial(image.derivative, 1, 0))  # right-hand side of [eq:trans_diff]
        third = (image.derivative(3, 0, 0.0, 0.0) + image.derivative(1, 2, 0.0, 0.0)) / 4  # of [eq:horizontal_trans]
        assert abs(first - third) > 1.9 * abs(third)  # printed: the two are equal
        np.testing.assert_allclose(first, -third, rtol=spacing)
        np.testing.assert_allclose(shift_along_a(image, 0.3), -0.3 * third, rtol=spacing)


def test_shift_gap_of_each_degree_is_bounded_by_the_printed_value_not_equal_to_it():
    wave, places = SmoothImage.of_waves([1.0], [[2.0, 1.5]], [0.3]), np.random.default_rng(0).uniform(-9, 9, (200, 2))
    for degree in range(1, 6):
        alpha = np.eye(degree + 1)[degree]
        gaps = shift_gap(wave, (0.3, -0.4), alpha, places, **FOUR)
        printed = printed_shift_bound(alpha, third_derivatives(wave))
        assert gaps.min() < 0.01 * printed  # "=" of [eq:trans_triv_diff]
        assert gaps.max() <= printed  # "<=" is true


def test_induction_for_shifts_needs_the_exponent_of_the_lower_degree():
    wave, places = SmoothImage.of_waves([1.0], [[2.9, 2.8]], [0.3]), np.random.default_rng(0).uniform(-9, 9, (200, 2))
    z_bar = third_derivatives(wave)
    for degree in range(2, 7):
        lower, upper = (
            shift_gap(wave, (0.3, -0.4), np.eye(k + 1)[k], places, **FOUR).max() for k in (degree - 1, degree)
        )
        theorem = printed_shift_bound(np.eye(degree + 1)[degree], z_bar)
        read_as_m, read_as_m_minus_1 = (2.0 ** (k - 3) * z_bar for k in (degree, degree - 1))
        assert 2 * read_as_m == 2 * theorem  # the step ends at twice the bound of Theorem 3
        assert 2 * read_as_m_minus_1 == theorem
        assert lower <= read_as_m_minus_1 and 1.9 * lower < upper <= 2 * lower  # the doubling itself is right


def test_shift_bound_without_degree_zero_fails():
    ramp = SmoothImage.of_waves([50.0], [[0.0, 0.02]], [-np.pi / 2])  # nearly f = column
    alpha, shift = [1.0], (0.0, 0.4)
    gap = shift_gap(ramp, shift, alpha, HERE, **FOUR)[0]
    assert gap > 0.39 and printed_shift_bound(alpha, third_derivatives(ramp)) == 0
    alpha = [1.0, 1.0]  # nor does a higher degree help: bar Z is made of third derivatives
    gap = shift_gap(ramp, shift, alpha, HERE, **FOUR)[0]
    assert gap > 100 * printed_shift_bound(alpha, third_derivatives(ramp))
    assert gap < shift_bound(ramp, shift, alpha, **FOUR) < 1.01 * gap


def test_bounds_fail_at_the_border():
    """A flat image has bar Z = 0, but its edge is a step: half a pixel to the right, and responses change there."""
    graph, flat = grid_graph((9, 9), **FOUR), np.ones((9, 9))
    moved = np.hstack([np.full((9, 1), 0.5), np.ones((9, 8))])  # zeros come in: half of the first column
    still, shifted = (laplacian_powers(graph, y.reshape(1, -1, 1), 1)[1].reshape(9, 9) for y in (flat, moved))
    gap = np.abs(still - shifted)
    assert printed_shift_bound([0.0, 1.0], 0.0) == 0
    assert gap[0, 0] == gap[-1, 0] == gap.max() == 0.375  # corners: 1/2 of the node, less 1/4 of a neighbour's 1/2
    assert np.all(gap[1:-1, 0] == 0.25) and np.all(gap[:, 1] == 0.125)
    constant = SmoothImage.of_waves([1.0], [[0.0, 0.0]], [0.0])
    assert gap[:, 2:].max() == 0 == shift_bound(constant, (0, 0.5), [0.0, 1.0], **FOUR)  # what no border reaches


def test_gap_may_shrink_when_pixels_get_coarser_only_bounds_may_not():
    wave, alpha, gamma = SmoothImage.of_waves([1.0], [[1.0, 0.0]], [0.0]), [0.0, 1.0, -0.6], np.pi / 4
    spacings = [1.8, 2.12]  # below pi: pixels show the wave as it is, at both
    fine, coarse = (rotation_gap(wave.at_spacing(d), gamma, alpha, HERE, **FOUR)[0] for d in spacings)
    np.testing.assert_allclose([fine, coarse], [0.0193, 0.0023], atol=5e-5)  # Lemma 1: fine is smaller, or equal
    ours = [rotation_bound(wave.at_spacing(d), gamma, alpha, **FOUR) for d in np.linspace(0.1, 8, 50)]
    assert np.all(np.diff(ours) > 0)


def test_resolution_bound_with_the_derivatives_of_one_node_and_without_the_coefficients_fails():
    def printed_spacing(image, gamma, tolerance):  # [eq:response_pattern_r], f_aa and f_bb at v_5
        factor = abs(1 - np.sin(gamma) - np.cos(gamma))
        seconds = [abs(image.derivative(*order, 0.0, 0.0)) for order in ((2, 0), (0, 2))]
        return min(np.sqrt(tolerance / 2 / max(second * factor, 1e-300)) for second in seconds)

    gamma = np.pi / 4
    flat_in_the_middle = SmoothImage.of_waves([1.0, -0.25], [[1.0, 0.0], [2.0, 0.0]], [0.0, 0.0])  # f_aa(0) = 0
    wave = SmoothImage.of_waves([1.0], [[0.8, 0.1]], [0.0])
    for image, alpha, tolerance in [(flat_in_the_middle, [0.0, 1.0], 0.01), (wave, [0.0, 500.0], 0.5)]:
        spacing = min(printed_spacing(image, gamma, tolerance), 1.0)
        gap = rotation_gap(image.at_spacing(spacing), gamma, alpha, HERE, **FOUR)[0]
        assert gap > 1.5 * tolerance
        ours = image.at_spacing(spacing_for(tolerance, image, gamma, alpha, **FOUR))
        assert rotation_gap(ours, gamma, alpha, HERE, **FOUR)[0] < tolerance
