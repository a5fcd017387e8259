"""The spectral domain against its definitions, dense matrices and SciPy's sparse eigenvalues."""

import numpy as np
import pytest
from scipy.sparse.linalg import eigsh

from tigra.errors import GraphError, ShapeError, UsageError
from tigra.graph import Graph, grid_graph
from tigra.graph.polynomials import laplacian_powers
from tigra.theory.fourier import (
    MOST_NODES,
    FourierBasis,
    convolve,
    filter_matrix,
    polynomial_response,
    spectral_filter,
    translate_to,
)


def random_graph(n_nodes=20):
    weights = np.triu(np.random.default_rng(5).random((n_nodes, n_nodes)), 1)
    weights[weights < 0.6] = 0
    return Graph(weights + weights.T)


GRAPHS = {
    "sines": grid_graph((4, 5)),
    "sines, square, diagonal 1/4": grid_graph((5, 5), diagonal_weight=0.25),
    "sines, 4 neighbours": grid_graph((6, 4), neighbours=4),
    "sines, a row": grid_graph((1, 20)),
    "cosines, a row": grid_graph((1, 20), boundary="free"),
    "cosines, a column": grid_graph((7, 1), neighbours=4, boundary="free"),
    "eigenvectors, free grid": grid_graph((4, 5), boundary="free"),
    "eigenvectors, random": random_graph(),
    "eigenvectors, isolated nodes": Graph(np.diag([1.0, 0.0, 2.0], 1) + np.diag([1.0, 0.0, 2.0], -1)),
    "eigenvectors, one node": grid_graph((1, 1), boundary="free"),
}
EACH_GRAPH = pytest.mark.parametrize("name", GRAPHS)


@EACH_GRAPH
def test_basis_is_orthonormal_sorted_and_diagonalises_the_laplacian(name):
    basis, laplacian = FourierBasis(GRAPHS[name]), GRAPHS[name].laplacian.toarray()
    assert basis.kind == name.split(",")[0]
    chi, n_nodes = basis.vectors, len(laplacian)
    np.testing.assert_allclose(chi.T @ chi, np.eye(n_nodes), atol=1e-12)
    np.testing.assert_allclose(laplacian @ chi, chi * basis.eigenvalues, atol=1e-12)
    assert np.all(np.diff(basis.eigenvalues) > -1e-12)
    np.testing.assert_allclose(basis.eigenvalues, np.linalg.eigvalsh(laplacian), atol=1e-12)
    for vector in chi.T:  # the convention for signs
        assert vector[np.flatnonzero(np.abs(vector) > 1e-9)[0]] > 0


@EACH_GRAPH
def test_transform_and_inverse_are_the_sums_that_define_them(name, rng):
    basis = FourierBasis(GRAPHS[name])
    n_nodes, chi = basis.graph.n_nodes, basis.vectors
    y = rng.standard_normal(n_nodes)
    y_hat = [sum(y[n] * chi[n, i] for n in range(n_nodes)) for i in range(n_nodes)]  # Eq. (3)
    np.testing.assert_allclose(basis.transform(y), y_hat, atol=1e-12)
    back = [sum(y_hat[i] * chi[n, i] for i in range(n_nodes)) for n in range(n_nodes)]  # Eq. (4)
    np.testing.assert_allclose(basis.inverse(np.array(y_hat)), back, atol=1e-12)
    np.testing.assert_allclose(back, y, atol=1e-12)


@EACH_GRAPH
def test_parseval_and_batches(name, rng):
    basis = FourierBasis(GRAPHS[name])
    y = rng.standard_normal((basis.graph.n_nodes, 3))
    y_hat = basis.transform(y)
    np.testing.assert_allclose(y_hat.T @ y_hat, y.T @ y, atol=1e-11)  # inner products, so norms as well
    for b in range(3):
        np.testing.assert_allclose(y_hat[:, b], basis.transform(y[:, b]), atol=1e-13)
        np.testing.assert_allclose(basis.inverse(y_hat)[:, b], y[:, b], atol=1e-12)


@EACH_GRAPH
def test_polynomial_filters_are_spectral_filters_and_commute_with_every_other(name, rng):
    basis, alpha = FourierBasis(GRAPHS[name]), rng.uniform(-1, 1, (2, 5))
    y = rng.standard_normal((basis.graph.n_nodes, 2))
    powers = laplacian_powers(basis.graph, y[None], 4)[:, 0]
    responses = polynomial_response(alpha, basis.eigenvalues)
    for coefficients, response in zip(alpha, responses, strict=True):
        expected = np.tensordot(coefficients, powers, axes=1)  # Eq. (10) [eq:pol_filt_1]
        np.testing.assert_allclose(spectral_filter(basis, response, y), expected, atol=1e-11)
        np.testing.assert_allclose(filter_matrix(basis, response) @ y, expected, atol=1e-11)

    def heat(frequencies):
        return np.exp(-2 * frequencies)

    one, other = filter_matrix(basis, heat), filter_matrix(basis, responses[0])
    np.testing.assert_allclose(one @ other, other @ one, atol=1e-12)
    np.testing.assert_allclose(
        spectral_filter(basis, heat, other @ y), other @ spectral_filter(basis, heat, y), atol=1e-11
    )


@EACH_GRAPH
def test_convolution_and_translation_are_the_sums_that_define_them(name, rng):
    basis = FourierBasis(GRAPHS[name])
    n_nodes, chi = basis.graph.n_nodes, basis.vectors
    y1, y2 = rng.standard_normal((2, n_nodes))
    hat1, hat2 = chi.T @ y1, chi.T @ y2
    expected = [sum(hat1[i] * hat2[i] * chi[n, i] for i in range(n_nodes)) for n in range(n_nodes)]  # Eq. (5)
    np.testing.assert_allclose(convolve(basis, y1, y2), expected, atol=1e-12)
    node = n_nodes // 2
    moved = np.sqrt(n_nodes) * sum(hat1[i] * chi[node, i] * chi[:, i] for i in range(n_nodes))  # Eq. (8)
    np.testing.assert_allclose(translate_to(basis, y1, node), moved, atol=1e-12)
    delta = np.eye(n_nodes)[node]
    np.testing.assert_allclose(moved, np.sqrt(n_nodes) * convolve(basis, y1, delta), atol=1e-12)


@pytest.mark.parametrize("n_signals", [1, 3, 4])  # 4 is the number of nodes: there a wrong axis would go unseen
def test_one_signal_is_convolved_with_each_of_a_batch(n_signals):
    basis, kernel = FourierBasis(grid_graph((2, 2))), np.array([1.0, 2.0, 3.0, 4.0])
    signals = np.eye(4)[:, :n_signals]
    expected = np.stack([convolve(basis, kernel, signal) for signal in signals.T], axis=1)
    for one in (kernel, kernel[:, None]):
        np.testing.assert_allclose(convolve(basis, one, signals), expected, atol=1e-14)
        np.testing.assert_allclose(convolve(basis, signals, one), expected, atol=1e-14)
    pairs = convolve(basis, signals, signals)
    for b, signal in enumerate(signals.T):
        np.testing.assert_allclose(pairs[:, b], convolve(basis, signal, signal), atol=1e-14)
    with pytest.raises(ShapeError, match="as many signals in y1"):
        convolve(basis, np.ones((4, 2)), np.ones((4, 5)))


def test_equal_frequencies_of_sines_stand_in_the_order_of_rows_and_columns():
    """On a square grid the pairs (i, j) and (j, i) share a frequency: (i, j) with the smaller i comes first."""
    side = 5
    basis, place = FourierBasis(grid_graph((side, side))), np.arange(1, side + 1)
    sine = np.sqrt(2 / (side + 1)) * np.sin(np.pi * np.outer(place, place) / (side + 1))
    found = [np.abs(np.kron(sine, sine).T @ vector).argmax() for vector in basis.vectors.T]  # row and column of each
    equal = np.flatnonzero(np.diff(basis.eigenvalues) < 1e-9)
    assert len(equal) >= side * (side - 1) // 2
    assert all(found[i] < found[i + 1] for i in equal)


def test_translated_kernel_is_a_column_of_the_filter(rng):
    basis, alpha = FourierBasis(grid_graph((5, 6))), rng.uniform(-1, 1, 4)
    response = polynomial_response(alpha, basis.eigenvalues)
    kernel = basis.inverse(response)
    for node in (0, 14, 29):
        column = np.sqrt(30) * filter_matrix(basis, response)[:, node]
        np.testing.assert_allclose(translate_to(basis, kernel, node), column, atol=1e-12)


def test_convolution_depends_on_the_eigenvectors_signs_but_filters_do_not(rng):
    """What [eq:conv] and [eq:transl] leave open (docs/errata.md, section 2)."""
    graph = random_graph()
    ours, other = FourierBasis(graph), FourierBasis(graph)
    other.vectors = ours.vectors * np.where(np.arange(20) == 3, -1, 1)  # chi_3 with the other sign
    y1, y2 = rng.standard_normal((2, 20))
    assert np.abs(convolve(ours, y1, y2) - convolve(other, y1, y2)).max() > 0.01
    assert np.abs(translate_to(ours, y1, 4) - translate_to(other, y1, 4)).max() > 0.01
    np.testing.assert_allclose(spectral_filter(ours, np.exp, y1), spectral_filter(other, np.exp, y1), atol=1e-12)


def test_large_grids_have_the_frequencies_that_a_sparse_solver_finds(rng):
    graph = grid_graph((61, 67), diagonal_weight=0.3)
    basis = FourierBasis(graph)
    assert graph.n_nodes > MOST_NODES
    found = eigsh(graph.laplacian, k=6, which="LA", return_eigenvectors=False)
    np.testing.assert_allclose(basis.eigenvalues[-6:], np.sort(found), atol=1e-9)  # the solver's own accuracy
    y, alpha = rng.standard_normal(graph.n_nodes), rng.uniform(-1, 1, 5)
    expected = np.tensordot(alpha, laplacian_powers(graph, y.reshape(1, -1, 1), 4), axes=1).ravel()
    filtered = spectral_filter(basis, polynomial_response(alpha, basis.eigenvalues), y)
    np.testing.assert_allclose(filtered, expected, atol=1e-11)
    with pytest.raises(GraphError, match="at most 2500 nodes, got 4087"):
        basis.vectors  # noqa: B018
    with pytest.raises(GraphError, match="at most 2500 nodes"):
        filter_matrix(basis, np.exp)
    with pytest.raises(GraphError, match="padded grids have a fast transform"):
        FourierBasis(grid_graph((61, 67), boundary="free"))


def test_pygsp_has_the_same_numbers(rng):
    pygsp = pytest.importorskip("pygsp", reason="PyGSP is an oracle only, and not a requirement")
    graph = random_graph()
    theirs = pygsp.graphs.Graph(graph.adjacency.toarray(), lap_type="normalized")
    theirs.compute_fourier_basis()
    ours, y = FourierBasis(graph), rng.standard_normal(20)
    np.testing.assert_allclose(ours.eigenvalues, theirs.e, atol=1e-10)
    np.testing.assert_allclose(np.abs(ours.transform(y)), np.abs(theirs.gft(y)), atol=1e-10)  # signs are free
    heat = pygsp.filters.Heat(theirs, 2.0, normalize=False)
    expected = heat.filter(y, method="exact").ravel()
    response = heat.evaluate(ours.eigenvalues).ravel()
    np.testing.assert_allclose(spectral_filter(ours, response, y), expected, atol=1e-10)
    column = np.sqrt(20) * heat.localize(7, method="exact").ravel() / np.sqrt(20)
    np.testing.assert_allclose(translate_to(ours, ours.inverse(response), 7), column, atol=1e-10)


@pytest.mark.parametrize("signal", [np.ones((4, 5)), np.ones(19), np.ones((20, 2, 1)), np.array(["a"] * 20)])
def test_signals_of_another_shape_are_refused(signal):
    basis = FourierBasis(grid_graph((4, 5)))
    with pytest.raises(ShapeError, match="nodes first"):
        basis.transform(signal)


def test_other_wrong_arguments_are_refused():
    basis = FourierBasis(grid_graph((4, 5)))
    for node in (-1, 20, 1.0, "a"):
        with pytest.raises(UsageError, match="from 0 to 19"):
            translate_to(basis, np.ones(20), node)
    with pytest.raises(ShapeError, match="20 frequencies"):
        spectral_filter(basis, np.ones(3), np.ones(20))
    with pytest.raises(ShapeError, match="coefficients"):
        polynomial_response(np.ones((2, 2, 2)), [0.0])
