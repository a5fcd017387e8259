"""Graph isometries: group laws, what they preserve, and Theorem 1 to the last bit."""

from itertools import product

import numpy as np
import pytest

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, grid_graph
from tigra.graph.polynomials import laplacian_powers
from tigra.theory.isometries import (
    Isometry,
    closest_shift,
    closest_turn,
    reflection,
    rotation,
    shift,
)

SHAPE = 6, 6
IDENTITY = shift(SHAPE, (0, 0))
TURNS = {f"{90 * k} degrees": rotation(SHAPE, k) for k in range(4)}
MIRRORED = {f"mirrored, {name}": g @ reflection(SHAPE, "vertical") for name, g in TURNS.items()}
SQUARE = TURNS | MIRRORED  # all eight symmetries of a square
SHIFTS = {str(pixels): shift(SHAPE, pixels) for pixels in [(0, 1), (2, -3), (-1, 5)]}
EVERY = SQUARE | SHIFTS
EACH = pytest.mark.parametrize("g", EVERY.values(), ids=EVERY)


def torus(shape):
    """The 8-neighbour grid whose borders meet: np.roll goes along its edges."""
    steps = [np.roll(np.eye(n), 1, axis=0) + np.roll(np.eye(n), -1, axis=0) + np.eye(n) for n in shape]
    return Graph(np.kron(*steps) - np.eye(shape[0] * shape[1]))


def filtered(graph, alpha, image):
    """F y = sum_m alpha_m L^m y, Eq. (10) [eq:pol_filt_1]."""
    signal = np.ascontiguousarray(image, dtype=float).reshape(1, -1, 1)
    return np.tensordot(alpha, laplacian_powers(graph, signal, len(alpha) - 1), axes=1).reshape(image.shape)


def test_group_laws_hold_for_every_pair_and_triple():
    for g, h in product(EVERY.values(), repeat=2):
        assert sorted((g @ h).nodes) == list(range(36))  # closed: again a permutation
        image = np.arange(36).reshape(SHAPE)
        np.testing.assert_array_equal((g @ h)(image), g(h(image)))
        assert (g @ h).inverse() == h.inverse() @ g.inverse()
    for g, h, k in product(list(EVERY.values())[::2], repeat=3):
        assert (g @ h) @ k == g @ (h @ k)


@EACH
def test_identity_and_inverse(g):
    assert g @ IDENTITY == g == IDENTITY @ g
    assert g @ g.inverse() == IDENTITY == g.inverse() @ g


def test_eight_symmetries_of_the_square_are_closed_and_shifts_commute():
    for g, h in product(SQUARE.values(), repeat=2):
        assert sum((g @ h) == k for k in SQUARE.values()) == 1
    for g, h in product(SHIFTS.values(), repeat=2):
        assert g @ h == h @ g
    quarter, mirror = rotation(SHAPE, 1), reflection(SHAPE, "vertical")
    assert quarter @ mirror != mirror @ quarter  # not an abelian group
    assert mirror @ quarter @ mirror == quarter.inverse()
    assert reflection(SHAPE, "horizontal") == rotation(SHAPE, 2) @ mirror


def test_they_move_images_as_numpy_does(rng):
    images = rng.standard_normal((2, 3, *SHAPE))
    np.testing.assert_array_equal(rotation(SHAPE, 1)(images), np.rot90(images, 1, axes=(2, 3)))
    np.testing.assert_array_equal(reflection(SHAPE, "vertical")(images), images[..., ::-1])
    np.testing.assert_array_equal(shift(SHAPE, (1, -2))(images), np.roll(images, (1, -2), axis=(2, 3)))


@EACH
def test_all_preserve_the_torus_and_those_of_the_square_the_grid_too(g):
    assert g.preserves(torus(SHAPE))
    is_of_the_square = any(g == other for other in SQUARE.values())
    for grid in (grid_graph(SHAPE), grid_graph(SHAPE, boundary="free"), grid_graph(SHAPE, neighbours=4)):
        assert g.preserves(grid) == is_of_the_square


def test_other_permutations_preserve_nothing():
    swapped = np.arange(36)
    swapped[[0, 1]] = 1, 0
    assert not Isometry(SHAPE, swapped).preserves(torus(SHAPE))
    weights = grid_graph(SHAPE).adjacency.toarray()
    weights[0, 1] = weights[1, 0] = 2.0
    assert not rotation(SHAPE, 1).preserves(Graph(weights))


@pytest.mark.parametrize("options", [{}, {"neighbours": 4}, {"boundary": "free"}, {"diagonal_weight": 0.3}])
def test_theorem_1_is_exact_to_the_last_bit_for_turns_and_mirror_images(options, rng):
    graph, image, alpha = grid_graph(SHAPE, **options), rng.standard_normal(SHAPE), rng.uniform(-1, 1, 5)
    for g in SQUARE.values():
        np.testing.assert_array_equal(filtered(graph, alpha, g(image)), g(filtered(graph, alpha, image)))


@EACH
def test_theorem_1_holds_on_the_torus_for_shifts_as_well(g, rng):
    image, alpha = rng.standard_normal(SHAPE), rng.uniform(-1, 1, 5)
    np.testing.assert_allclose(
        filtered(torus(SHAPE), alpha, g(image)), g(filtered(torus(SHAPE), alpha, image)), rtol=1e-12, atol=1e-12
    )


def test_theorem_1_is_exact_for_shifts_on_a_padded_grid_while_responses_keep_off_the_border(rng):
    """Degree M reaches M pixels: with M pixels of zeros around it before and after, a shift is exact."""
    shape, degree = (16, 16), 3
    graph, alpha = grid_graph(shape), rng.uniform(-1, 1, degree + 1)
    image = np.zeros(shape)
    image[5:10, 5:10] = rng.standard_normal((5, 5))
    moved = shift(shape, (3, -2))
    np.testing.assert_array_equal(filtered(graph, alpha, moved(image)), moved(filtered(graph, alpha, image)))
    far = shift(shape, (5, 0))  # the response goes around, the filter does not
    assert np.abs(filtered(graph, alpha, far(image)) - far(filtered(graph, alpha, image))).max() > 1e-3


def test_closest_isometries_leave_at_most_an_eighth_turn_and_half_a_pixel():
    for gamma in np.linspace(-10, 10, 101):
        k, rest = closest_turn(gamma)
        assert abs(k * np.pi / 2 + rest - gamma) < 1e-12 and abs(rest) <= np.pi / 4 + 1e-12
    whole, rest = closest_shift((2.75, -0.3))
    assert whole.tolist() == [3, 0] and np.allclose(rest, [-0.25, -0.3])


def test_what_is_no_isometry_is_refused():
    with pytest.raises(UsageError, match="needs a square grid, got 3x4 pixels; use half turns"):
        rotation((3, 4), 1)
    assert rotation((3, 4), 2) == rotation((3, 4), -2)
    with pytest.raises(UsageError, match="whole numbers"):
        shift(SHAPE, (0, 0.5))
    with pytest.raises(UsageError, match="once"):
        Isometry((1, 3), [0, 0, 1])
    for nodes in ([0.0, 1.0, 2.0], [[0], [1, 2]], [[0, 1, 2]], ["a", "b", "c"]):
        with pytest.raises(UsageError, match="each of the whole numbers"):
            Isometry((1, 3), nodes)
    for pixels in (3, None, (1, 2, 3)):
        with pytest.raises(UsageError, match="pair of whole numbers"):
            shift(SHAPE, pixels)
    with pytest.raises(UsageError, match="expects a graph of 36 nodes, got one of 16"):
        IDENTITY.preserves(grid_graph((4, 4)))
    for gamma in (np.inf, np.nan, None):
        with pytest.raises(UsageError, match="The angle"):
            closest_turn(gamma)
    with pytest.raises(ShapeError, match="shift"):
        closest_shift((1, 2, 3))
    with pytest.raises(UsageError, match="expects images"):
        IDENTITY(np.zeros((3, 3)))
    with pytest.raises(UsageError, match="can be combined"):
        IDENTITY @ rotation((4, 4), 1)
    with pytest.raises(UsageError, match="vertical"):
        reflection(SHAPE, "diagonal")
