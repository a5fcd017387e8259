"""Gradients, dot and cross products against plain loops; symmetries to the last bit; adjoints; rotation systems."""

import numpy as np
import pytest

from tests.kernels.forms import BOTH, DTYPES, blank, form_of
from tigra.errors import GraphError, ShapeError, UsageError
from tigra.graph import Graph, grid_graph
from tigra.graph import orientation as oriented
from tigra.kernels import orientation as kernels
from tigra.theory.isometries import reflection, rotation

AROUND = [(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)]  # (down, right), clockwise from east


def gradient_by_loops(image, weight, dilation=1):
    """(d_x, d_y) of one image, neighbour by neighbour."""
    height, width = image.shape
    found = np.zeros((2, height, width))
    for i in range(height):
        for j in range(width):
            for down, right in AROUND:
                row, column = i + dilation * down, j + dilation * right
                if 0 <= row < height and 0 <= column < width:
                    w = weight if down and right else 1.0
                    found[:, i, j] += w * np.array([right, down]) * image[row, column] / (2 + 4 * weight)
    return found


def cross_by_loops(order, a, b):
    """Sum over consecutive neighbours of (a_m - a_n)(b_m' - b_n) - (a_m' - a_n)(b_m - b_n): one signal (N,)."""
    found = np.zeros(len(a))
    for n, around in enumerate(order):
        for m, after in zip(around, [*around[1:], *around[:1]], strict=True):
            found[n] += (a[m] - a[n]) * (b[after] - b[n]) - (a[after] - a[n]) * (b[m] - b[n])
    return found


def signals(rng, graph, n=2, dtype=np.float64, n_maps=2, n_batch=3):
    return rng.standard_normal((n, n_maps, graph.n_nodes, n_batch)).astype(dtype)


def clockwise(shape, steps=AROUND):
    """The neighbours of each pixel inside the frame, clockwise on the screen."""
    height, width = shape
    return [
        [(i + d) * width + j + r for d, r in steps if 0 <= i + d < height and 0 <= j + r < width]
        for i in range(height)
        for j in range(width)
    ]


def ring_with_chords(rng, n=9):
    """A graph of unequal weights and degrees, with an order drawn at random."""
    weights = np.triu(rng.uniform(0.5, 2, (n, n)) * (rng.uniform(size=(n, n)) < 0.5), 1)
    weights[0, 1:] = 0  # node 0 has no neighbour but one
    weights[0, 1] = 1
    graph = Graph(weights + weights.T)
    order = [rng.permutation(graph.adjacency[[v]].indices).tolist() for v in range(n)]
    return graph.with_rotation(order), order


# --- the padded grid ----------------------------------------------------------------------------------------


@BOTH
@DTYPES
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (4, 1), (5, 4)])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_gradient_and_adjoint_are_those_of_plain_loops(form, dtype, rtol, shape, dilation, rng):
    y, g_x, g_y = rng.standard_normal((3, 2, shape[0] * shape[1], 2)).astype(dtype)
    weight, unit = dtype(0.25), dtype(1 / 3)
    d_x, d_y, back = (blank(*y.shape, dtype=dtype) for _ in range(3))
    form_of(kernels.grid_gradient, form)(shape[0], dilation, y, weight, unit, d_x, d_y)
    form_of(kernels.grid_gradient_adjoint, form)(shape[0], dilation, g_x, g_y, weight, unit, back)
    for k, b in np.ndindex(2, 2):
        expected = gradient_by_loops(y[k, :, b].reshape(shape), 0.25, dilation)
        np.testing.assert_allclose(d_x[k, :, b], expected[0].ravel(), rtol=rtol, atol=rtol)
        np.testing.assert_allclose(d_y[k, :, b], expected[1].ravel(), rtol=rtol, atol=rtol)
    found, given = (np.vdot(d_x, g_x) + np.vdot(d_y, g_y)), np.vdot(y, back)  # <D y, g> = <y, D^T g>
    assert found == pytest.approx(given, rel=10 * rtol, abs=10 * rtol)


@pytest.mark.parametrize("options", [{"diagonal_weight": 0.25}, {"neighbours": 4}, {"diagonal_weight": 0.3}])
def test_gradient_of_a_linear_function_is_its_slope(options):
    rows, columns = np.mgrid[:7.0, :7.0]
    graph = grid_graph((7, 7), **options)
    for dilation in (1, 2):  # in units of the dilated grid
        d_x, d_y = oriented.gradient(graph, (2 * columns - 3 * rows).reshape(1, -1, 1), dilation)
        np.testing.assert_allclose(d_x.reshape(7, 7)[2:-2, 2:-2], 2 * dilation, rtol=1e-12)
        np.testing.assert_allclose(d_y.reshape(7, 7)[2:-2, 2:-2], -3 * dilation, rtol=1e-12)


def test_products_are_those_of_the_gradients(rng):
    graph = grid_graph((4, 5), diagonal_weight=0.25)
    a, b = signals(rng, graph)
    dot, cross = oriented.dot(graph, a, b), oriented.cross(graph, a, b)
    for k, q in np.ndindex(2, 3):
        (a_x, a_y), (b_x, b_y) = (gradient_by_loops(x[k, :, q].reshape(4, 5), 0.25) for x in (a, b))
        np.testing.assert_allclose(dot[k, :, q], (a_x * b_x + a_y * b_y).ravel(), atol=1e-13)
        np.testing.assert_allclose(cross[k, :, q], (a_x * b_y - a_y * b_x).ravel(), atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight, dilation", [(0.25, 1), (0.3, 1), (0.25, 2)])
def test_products_and_their_gradients_follow_all_eight_symmetries_to_the_last_bit(dtype, weight, dilation, rng):
    """Theorem 1, oriented: D turns with the image, dot and cross commute; cross changes sign under reflections."""
    shape = (7, 7)
    graph = grid_graph(shape, diagonal_weight=weight)
    a, b, g = signals(rng, graph, 3, dtype)

    def numbers(*maps):
        a, b, g = maps
        yield oriented.dot(graph, a, b, dilation)
        yield from oriented.dot_adjoint(graph, a, b, g, dilation)
        yield oriented.cross(graph, a, b, dilation)
        yield from oriented.cross_adjoint(graph, a, b, g, dilation)

    upright, (d_x, d_y) = list(numbers(a, b, g)), oriented.gradient(graph, a, dilation)
    for quarters in range(4):
        for mirrored in (False, True):
            turn = rotation(shape, quarters)
            nodes = (turn @ reflection(shape, "vertical") if mirrored else turn).nodes
            signs = [1, 1, 1, *3 * [-1 if mirrored else 1]]
            for sign, expected, found in zip(signs, upright, numbers(*(x[:, nodes] for x in (a, b, g))), strict=True):
                np.testing.assert_array_equal(found, sign * expected[:, nodes])
            turned = oriented.gradient(graph, a[:, nodes], dilation)
            x, y = (-d_x if mirrored else d_x), d_y  # a mirrored image, then turned counter-clockwise: x to -y, y to x
            for _ in range(quarters):
                x, y = y, -x
            np.testing.assert_array_equal(turned, (x[:, nodes], y[:, nodes]))


@pytest.mark.parametrize("dilation", [1, 2])
def test_whole_pixel_shifts_are_exact_to_the_last_bit(dilation, rng):
    graph, images = grid_graph((12, 12), diagonal_weight=0.25), np.zeros((2, 1, 12, 12, 2), np.float32)
    images[..., 3:8, 4:9, :] = rng.standard_normal((2, 1, 5, 5, 2))
    moved = np.roll(images, (2, -1), axis=(2, 3))
    for product in (oriented.dot, oriented.cross):
        first = product(graph, *images.reshape(2, 1, 144, 2), dilation).reshape(1, 12, 12, 2)
        second = product(graph, *moved.reshape(2, 1, 144, 2), dilation).reshape(1, 12, 12, 2)
        np.testing.assert_array_equal(second, np.roll(first, (2, -1), axis=(1, 2)))
        assert np.abs(first).max() > 0.1


def test_cross_is_positive_clockwise_on_the_screen():
    rows, columns = np.mgrid[:3.0, :3.0].reshape(2, 1, 9, 1)
    graph = grid_graph((3, 3), diagonal_weight=0.25)
    other = Graph(graph.adjacency, graph.degrees).with_rotation(clockwise((3, 3)))
    for one in (graph, other):  # columns grow to the right, rows down
        assert oriented.cross(one, columns, rows)[0, 4, 0] > 0 > oriented.cross(one, rows, columns)[0, 4, 0]


# --- other graphs -------------------------------------------------------------------------------------------


@BOTH
@DTYPES
def test_cross_of_a_rotation_system_and_its_adjoint_are_those_of_plain_loops(form, dtype, rtol, rng):
    graph, order = ring_with_chords(rng)
    (a, b, g), (found, grad_a, grad_b) = signals(rng, graph, 3, dtype), blank(3, 2, graph.n_nodes, 3, dtype=dtype)
    arrays = graph.rotation.indptr, graph.rotation.neighbours
    form_of(kernels.rotation_cross, form)(*arrays, a, b, found)
    form_of(kernels.rotation_cross_adjoint, form)(*arrays, b, g, dtype(1), grad_a)
    form_of(kernels.rotation_cross_adjoint, form)(*arrays, a, g, dtype(-1), grad_b)
    for k, q in np.ndindex(2, 3):
        expected = cross_by_loops(order, a[k, :, q], b[k, :, q])
        np.testing.assert_allclose(found[k, :, q], expected, rtol=10 * rtol, atol=10 * rtol)
    for x, grad in ((a, grad_a), (b, grad_b)):  # the cross product is linear in each: <x, dE/dx> = E
        assert np.vdot(x, grad) == pytest.approx(np.vdot(g, found), rel=100 * rtol)


def test_four_straight_neighbours_give_the_cross_product_of_central_differences(rng):
    shape = (5, 6)
    grid = grid_graph(shape, neighbours=4)
    graph = Graph(grid.adjacency, grid.degrees).with_rotation(clockwise(shape, AROUND[::2]))
    a, b = signals(rng, graph)
    inside = np.arange(30).reshape(shape)[1:-1, 1:-1].ravel()
    found, expected = oriented.cross(graph, a, b), 4 * oriented.cross(grid, a, b)
    np.testing.assert_allclose(found[:, inside], expected[:, inside], atol=1e-12)


def test_the_area_of_the_neighbours_is_the_factor_for_linear_maps():
    shape = (5, 5)
    free = grid_graph(shape, diagonal_weight=0.25, boundary="free").with_rotation(clockwise(shape))
    rows, columns = np.mgrid[:5.0, :5.0].reshape(2, 1, 25, 1)
    assert oriented.cross(free, 3 * columns + rows, 2 * rows)[0, 12, 0] == pytest.approx(2 * 4 * 6)  # area 4, cross 6


def test_dot_of_other_graphs_is_the_sum_over_neighbours_and_close_to_that_of_gradients(rng):
    shape, steps = (9, 9), np.arange(9) - 4.0
    grid = grid_graph(shape, diagonal_weight=0.25)
    other = Graph(grid.adjacency, grid.degrees)
    a, b = (np.sin(0.02 * (u * steps[:, None] + v * steps) + 1).reshape(1, 81, 1) for u, v in [(1, 2), (3, -1)])
    weights, middle = grid.normalised_adjacency.toarray()[40], 40
    expected = weights @ ((a[0, :, 0] - a[0, middle, 0]) * (b[0, :, 0] - b[0, middle, 0]))
    found = oriented.dot(other, a, b)[0, middle, 0]
    assert found == pytest.approx(expected, rel=1e-12)
    assert found == pytest.approx(3 / 5 * oriented.dot(grid, a, b)[0, middle, 0], rel=0.02)


@pytest.mark.parametrize("kind", ["padded grid", "dilated grid", "free grid", "own graph"])
@pytest.mark.parametrize("name", ["dot", "cross"])
def test_adjoints_are_finite_differences(kind, name, rng):
    shape, dilation = (4, 5), 2 if kind == "dilated grid" else 1
    graph = grid_graph(shape, diagonal_weight=0.25)
    if kind == "free grid":
        graph = grid_graph(shape, boundary="free").with_rotation(clockwise(shape))
    if kind == "own graph":
        graph, _ = ring_with_chords(rng)
    a, b, g, step_a, step_b = signals(rng, graph, 5)
    product, adjoint = getattr(oriented, name), getattr(oriented, f"{name}_adjoint")

    def loss(t):
        return np.vdot(g, product(graph, a + t * step_a, b + t * step_b, dilation))

    grad_a, grad_b = adjoint(graph, a, b, g, dilation)
    slope = (loss(0.5) - loss(-0.5)) / 1  # exact for a quadratic function
    assert slope == pytest.approx(np.vdot(grad_a, step_a) + np.vdot(grad_b, step_b), rel=1e-10)
    assert abs(slope) > 1e-2


@pytest.mark.parametrize("keeps", [True, False])
def test_theorem_1_oriented_holds_node_by_node_on_a_graph_with_a_rotation_system(keeps, rng):
    """An isometry that keeps the cyclic order: cross moves with the signal. One that reverses it: with another sign."""
    n, spokes = 8, 8  # a wheel with a rim of 8: its turns keep the order, its mirror images reverse it
    weights = np.zeros((n + 1, n + 1))
    weights[:n, :n] = np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1)
    weights[:n, spokes] = weights[spokes, :n] = 0.5
    order = [[(v + 1) % n, spokes, (v - 1) % n] for v in range(n)] + [list(range(n))]
    graph = Graph(weights).with_rotation(order)
    a, b = signals(rng, graph)
    for turn in range(n):
        nodes = np.append(((1 if keeps else -1) * np.arange(n) + turn) % n, spokes)
        assert np.array_equal(weights[np.ix_(nodes, nodes)], weights)
        moved = oriented.cross(graph, a[:, nodes], b[:, nodes])
        expected = oriented.cross(graph, a, b)[:, nodes]
        np.testing.assert_allclose(moved, expected if keeps else -expected, atol=1e-12)
        np.testing.assert_allclose(
            oriented.dot(graph, a[:, nodes], b[:, nodes]), oriented.dot(graph, a, b)[:, nodes], atol=1e-12
        )
    mirrored = graph.with_rotation(graph.rotation.reversed())
    np.testing.assert_allclose(oriented.cross(mirrored, a, b), -oriented.cross(graph, a, b), atol=1e-12)


# --- what is refused ----------------------------------------------------------------------------------------

PATH = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    "order, message",
    [
        ([[1], [0, 2]], "list of 3 lists.*got list of length 2"),
        (7, "list of 3 lists.*got int"),
        ("abc", "list of 3 lists.*got str"),
        ([[1], [0, 0], [1]], r"every neighbour of node 1 once, \[0, 2\], got \[0, 0\]"),
        ([[1], [0], [1]], r"neighbour of node 1 once, \[0, 2\], got \[0\]; give them in cyclic order"),
        ([[1], [0, 2], [5]], "neighbour of node 2 once"),
        ([[1], [0, 2], ["1"]], "node 2 as integers"),
        ([[1], None, [1]], "node 1 as integers, got None"),
        ([[1.0], [0, 2], [1]], "node 0 as integers"),
    ],
)
def test_what_is_no_rotation_system_is_refused(order, message):
    with pytest.raises(GraphError, match=message):
        PATH.with_rotation(order)


def test_a_rotation_system_leaves_the_first_graph_alone_and_accepts_arrays():
    made = PATH.with_rotation([np.array([1]), np.array([2, 0]), np.array([1])])
    assert PATH.rotation is None and made.rotation.tolist() == [[1], [2, 0], [1]]
    assert Graph([[0.0]]).with_rotation([[]]).rotation.tolist() == [[]]


def test_missing_orientation_and_wrong_maps_are_refused(rng):
    grid, maps = grid_graph((3, 1)), rng.standard_normal((2, 3, 4))
    with pytest.raises(GraphError, match=r"graph.with_rotation\(order\)"):
        oriented.cross(PATH, maps, maps)
    for graph in (PATH, grid_graph((3, 1), boundary="free"), grid.with_rotation([[1], [0, 2], [1]])):
        with pytest.raises(GraphError, match="Only a padded grid has a gradient"):
            oriented.gradient(graph, maps)
    with pytest.raises(UsageError, match="dilation is for padded grids"):
        oriented.dot(PATH, maps, maps, dilation=2)
    for dilation in (0, 1.5):
        with pytest.raises(UsageError, match="whole number of pixels"):
            oriented.gradient(grid, maps, dilation)
    for other in (maps[:1], maps.astype(np.float32), maps[:, :2], maps[0]):
        with pytest.raises(ShapeError, match=r"one shape \(K, 3, B\)"):
            oriented.dot(grid, maps, other)
    with pytest.raises(ShapeError, match="float32 or float64"):
        oriented.gradient(grid, maps.astype(int))
