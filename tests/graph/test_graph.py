import numpy as np
import pytest
from scipy import sparse

import tigra
from tigra import GraphError, UsageError, grid_graph
from tigra.graph import Graph
from tigra.graph.polynomials import laplacian_step

SHAPES = [(1, 1), (1, 4), (3, 1), (2, 2), (4, 5)]


def grid_by_loops(shape, neighbours, diagonal_weight):
    """Adjacency of a grid, pixel by pixel."""
    height, width = shape
    adjacency = np.zeros((height * width, height * width))
    for i in range(height):
        for j in range(width):
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    inside = 0 <= i + di < height and 0 <= j + dj < width
                    is_diagonal = di != 0 and dj != 0
                    if inside and (di, dj) != (0, 0) and (neighbours == 8 or not is_diagonal):
                        weight = diagonal_weight if is_diagonal else 1.0
                        adjacency[i * width + j, (i + di) * width + j + dj] = weight
    return adjacency


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("neighbours, diagonal_weight", [(4, 1.0), (8, 1.0), (8, 0.25)])
def test_grid_has_an_edge_to_each_neighbour(shape, neighbours, diagonal_weight):
    expected = grid_by_loops(shape, neighbours, diagonal_weight)
    for boundary in ("padded", "free"):
        graph = grid_graph(shape, neighbours, diagonal_weight, boundary)
        np.testing.assert_array_equal(graph.adjacency.toarray(), expected)


def test_two_by_two_grid_by_hand():
    graph = grid_graph((2, 2))
    expected = np.full((4, 4), -1 / 8)
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_array_equal(graph.laplacian.toarray(), expected)
    np.testing.assert_array_equal(graph.shifted_laplacian.toarray(), expected - np.eye(4))
    assert np.all(graph.degrees == 8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("boundary", ["padded", "free"])
def test_laplacian_is_the_definition_symmetric_with_spectrum_in_0_to_2(shape, boundary):
    graph = grid_graph(shape, diagonal_weight=0.3, boundary=boundary)
    adjacency, degrees = graph.adjacency.toarray(), graph.degrees
    expected = np.zeros_like(adjacency)
    for i in range(len(degrees)):
        for j in range(len(degrees)):
            if i == j and degrees[i] != 0:
                expected[i, j] = 1
            elif adjacency[i, j]:
                expected[i, j] = -adjacency[i, j] / np.sqrt(degrees[i] * degrees[j])
    laplacian = graph.laplacian.toarray()
    np.testing.assert_allclose(laplacian, expected, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(laplacian, laplacian.T)
    eigenvalues = np.linalg.eigvalsh(laplacian)
    assert eigenvalues.min() > -1e-12 and eigenvalues.max() < 2 + 1e-12


def test_padded_grid_is_the_middle_of_a_larger_free_grid():
    middle = (np.arange(5 * 6).reshape(5, 6)[1:-1, 1:-1]).ravel()
    large = grid_graph((5, 6), boundary="free").adjacency.toarray()
    graph = grid_graph((3, 4), boundary="padded")
    np.testing.assert_array_equal(graph.adjacency.toarray(), large[np.ix_(middle, middle)])
    np.testing.assert_array_equal(graph.degrees, large[middle].sum(axis=1))


def test_isolated_node_has_a_row_of_zeros():
    graph = Graph([[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    np.testing.assert_array_equal(graph.laplacian.toarray(), [[1, -1, 0], [-1, 1, 0], [0, 0, 0]])


@pytest.mark.parametrize("kind", [np.array, sparse.coo_array, sparse.csc_matrix, sparse.lil_matrix])
def test_any_symmetric_matrix_will_do(kind):
    graph = Graph(kind(np.array([[0.0, 3.0], [3.0, 0.0]])))
    np.testing.assert_array_equal(graph.laplacian.toarray(), [[1, -1], [-1, 1]])
    assert graph.laplacian.format == graph.shifted_laplacian.format == "csr"


@pytest.mark.parametrize(
    "adjacency, message",
    [
        ([[0, 1], [2, 0]], "not symmetric"),
        ([[0, np.nan], [np.nan, 0]], "finite"),
        ([[0, np.inf], [np.inf, 0]], "finite"),
        ([[0, -1], [-1, 0]], "non-negative"),
        ([[1, 1], [1, 0]], "self-loops"),
        ([[0, 1, 0], [1, 0, 0]], "square"),
        (np.zeros((0, 0)), "not empty"),
        ("abc", "adjacency"),
        ([[0, 1j], [1j, 0]], "complex"),
    ],
)
def test_what_is_not_an_undirected_graph_is_refused(adjacency, message):
    with pytest.raises(GraphError, match=message):
        Graph(adjacency)


@pytest.mark.parametrize("degrees, message", [([1, 2, 3], "shape"), ([0.5, 1], "at least"), ([np.inf, 1], "finite")])
def test_degrees_below_the_edge_weights_are_refused(degrees, message):
    with pytest.raises(GraphError, match=message):
        Graph([[0, 1], [1, 0]], degrees)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"shape": (3,)}, "height, width"),
        ({"shape": (3, 0)}, "positive"),
        ({"shape": (3, 2.5)}, "integers"),
        ({"shape": 9}, "height, width"),
        ({"neighbours": 6}, "4 or 8"),
        ({"diagonal_weight": 0.0}, "neighbours=4"),
        ({"diagonal_weight": float("nan")}, "positive"),
        ({"boundary": "round"}, "padded"),
        ({"dilation": 0}, "dilation must be a whole number of pixels of at least 1"),
        ({"dilation": 1.5}, "got 1.5"),
        ({"dilation": 2, "boundary": "free"}, "1 on a grid with a free boundary, got 2"),
    ],
)
def test_impossible_grids_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        grid_graph(**{"shape": (3, 3)} | arguments)


@pytest.mark.parametrize("shape, dilation", [((5, 4), 2), ((7, 3), 3), ((2, 6), 2), ((1, 3), 5)])
@pytest.mark.parametrize("options", [{"neighbours": 4}, {"diagonal_weight": 0.25}])
def test_a_dilated_grid_is_made_of_interleaved_grids(shape, dilation, options, rng):
    graph, places = grid_graph(shape, dilation=dilation, **options), np.arange(shape[0] * shape[1]).reshape(shape)
    expected = np.zeros((places.size, places.size))
    for i, j in np.ndindex(min(dilation, shape[0]), min(dilation, shape[1])):
        part = places[i::dilation, j::dilation]
        expected[np.ix_(part.ravel(), part.ravel())] = grid_graph(part.shape, **options).laplacian.toarray()
    np.testing.assert_allclose(graph.laplacian.toarray(), expected, rtol=1e-14)
    x, y, out = rng.standard_normal((3, 2, places.size, 3))
    laplacian_step(graph, x, y, 2, -1, 0.5, out=out)
    np.testing.assert_allclose(out, 2 * expected @ x - x + 0.5 * y, rtol=1e-12, atol=1e-12)
    assert grid_graph(**graph.arguments).dilation == dilation


@pytest.mark.parametrize("weight", [1e-200, 1e200])
def test_the_laplacian_does_not_depend_on_the_unit_of_the_weights(weight):
    np.testing.assert_allclose(Graph([[0, weight], [weight, 0]]).laplacian.toarray(), [[1, -1], [-1, 1]], rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_degrees_of_a_free_grid_are_the_sums_of_its_weights(shape):
    graph = grid_graph(shape, diagonal_weight=0.3, boundary="free")
    np.testing.assert_allclose(graph.degrees, graph.adjacency.sum(axis=1), rtol=1e-12)


@pytest.mark.slow
def test_a_huge_grid_costs_nothing_until_its_matrix_is_asked_for():
    assert "adjacency" not in vars(grid_graph((2048, 2048)))


def test_graph_is_public():
    assert tigra.Graph is Graph
