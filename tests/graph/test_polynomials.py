"""Polynomials of the Laplacian against powers of the dense matrix."""

import numpy as np
import pytest

from tigra.graph import Graph, grid_graph
from tigra.graph.polynomials import (
    chebyshev,
    chebyshev_adjoint,
    laplacian_powers,
    laplacian_powers_adjoint,
)

GRAPHS = {
    "padded": grid_graph((4, 5)),
    "padded, diagonal 1/4": grid_graph((4, 5), diagonal_weight=0.25),
    "free": grid_graph((4, 5), boundary="free"),
    "4 neighbours": grid_graph((4, 5), neighbours=4),
    "a row": grid_graph((1, 20)),
    "not a grid": Graph(np.roll(np.eye(20), 1, axis=1) + np.roll(np.eye(20), -1, axis=1)),
}
EACH_GRAPH = pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)


def dense_chebyshev(graph, order):
    """T_k(L - I) as dense matrices, k = 0..order."""
    shifted = graph.laplacian.toarray() - np.eye(graph.n_nodes)
    matrices = [np.eye(graph.n_nodes), shifted]
    for _ in range(2, order + 1):
        matrices.append(2 * shifted @ matrices[-1] - matrices[-2])
    return matrices[: order + 1]


@EACH_GRAPH
def test_powers_are_those_of_the_dense_matrix(graph, rng):
    x, laplacian = rng.standard_normal((2, 20, 3)), graph.laplacian.toarray()
    powers = laplacian_powers(graph, x, degree=4)
    for m in range(5):
        np.testing.assert_allclose(powers[m], np.linalg.matrix_power(laplacian, m) @ x, rtol=1e-12, atol=1e-12)


@EACH_GRAPH
@pytest.mark.parametrize("degree", [0, 1, 4])
def test_adjoint_of_the_powers(graph, degree, rng):
    terms, laplacian = rng.standard_normal((degree + 1, 2, 20, 3)), graph.laplacian.toarray()
    expected = sum(np.linalg.matrix_power(laplacian, m) @ terms[m] for m in range(degree + 1))
    np.testing.assert_allclose(laplacian_powers_adjoint(graph, terms), expected, rtol=1e-12, atol=1e-12)


@EACH_GRAPH
@pytest.mark.parametrize("order", [0, 1, 2, 12])
def test_chebyshev_polynomials_and_their_adjoint(graph, order, rng):
    x, terms = rng.standard_normal((2, 20, 3)), rng.standard_normal((order + 1, 2, 20, 3))
    matrices = dense_chebyshev(graph, order)
    for t, matrix in zip(chebyshev(graph, x, order), matrices, strict=True):
        np.testing.assert_allclose(t, matrix @ x, rtol=1e-12, atol=1e-12)
    expected = sum(matrix @ term for matrix, term in zip(matrices, terms, strict=True))
    np.testing.assert_allclose(chebyshev_adjoint(graph, terms), expected, rtol=1e-12, atol=1e-11)


@EACH_GRAPH
def test_inputs_are_left_alone(graph, rng):
    x, terms = rng.standard_normal((2, 20, 3)), rng.standard_normal((4, 2, 20, 3))
    kept = x.copy(), terms.copy()
    list(chebyshev(graph, x, 3))
    laplacian_powers(graph, x, 3)
    chebyshev_adjoint(graph, terms)
    laplacian_powers_adjoint(graph, terms)
    np.testing.assert_array_equal(x, kept[0])
    np.testing.assert_array_equal(terms, kept[1])


@pytest.mark.parametrize("boundary", ["padded", "free"])
@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-13), (np.float32, 1e-5)])  # float32: 1e-7 an operation
def test_stencil_and_csr_give_the_same_numbers(boundary, dtype, tolerance, rng):
    grid = grid_graph((5, 4), diagonal_weight=0.25, boundary=boundary)
    listed = Graph(grid.adjacency, grid.degrees)
    assert grid.stencil is not None and listed.stencil is None
    x = rng.standard_normal((2, 20, 3)).astype(dtype)
    by_stencil, by_list = laplacian_powers(grid, x, 3), laplacian_powers(listed, x, 3)
    assert by_stencil.dtype == by_list.dtype == dtype
    np.testing.assert_allclose(by_stencil, by_list, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("boundary", ["padded", "free"])
def test_turning_the_signal_turns_its_powers_to_the_last_bit(boundary, rng):
    """The reason why ties in dynamic pooling survive a rotation; weights that are no binary fractions."""
    graph = grid_graph((6, 6), diagonal_weight=0.3, boundary=boundary)
    image = rng.standard_normal((6, 6))

    def powers(image):
        return laplacian_powers(graph, np.ascontiguousarray(image).reshape(1, 36, 1), 4).reshape(5, 6, 6)

    for move in (np.rot90, np.fliplr, np.flipud, np.transpose):
        np.testing.assert_array_equal(powers(move(image)), [move(power) for power in powers(image)])
