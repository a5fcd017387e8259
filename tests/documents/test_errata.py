"""The paper's printed errors: each test shows the printed form failing and ours passing (docs/errata.md).

Printed forms are dense matrices and plain loops, written here; "ours" is the package's own code. One
image at a time: maps y and z, and the random upstream gradients g = dE/dz, are (maps, nodes).
"""

from types import SimpleNamespace

import numpy as np
import pytest

from tigra import (
    DynamicPool,
    GraphSignal,
    SpectralConv,
    Statistics,
    build_network,
    grid_graph,
    load_dataset,
)
from tigra.gradcheck.checks import numerical_gradient, relative_error, values_of
from tigra.graph.polynomials import laplacian_powers
from tigra.models.loss import negative_log_likelihood, softmax

GRID, N_NODES = (3, 4), 12
TABLE_1 = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"  # [tab:arch_part2], MNIST-012


def columns_kept(matrix, nodes):
    """A|_N of section 4.1: columns with an index in N stay, the others become 0; nodes is 1[N]."""
    return matrix * nodes[None, :]


def rows_kept(matrix, nodes):
    """[A|_N]^T, the transpose."""
    return columns_kept(matrix, nodes).T


def gradients(layer, signal, upstream):
    """What backward gives, and central differences of E = sum(upstream * output): two dictionaries."""
    layer.forward(signal)
    ours = {"input": layer.backward(upstream), **layer.grads}

    def energy():
        return float(np.sum(upstream * values_of(layer.forward(signal))))

    arrays = {"input": signal.values, **layer.params}
    return ours, {name: numerical_gradient(energy, array) for name, array in arrays.items()}


def conv_case(n_in=2, n_out=3, degree=2):
    """A spectral layer, its input as a pooling leaves it (0 outside the sets), and its gradients."""
    rng = np.random.default_rng(0)
    layer = SpectralConv(grid_graph(GRID), rng.standard_normal((n_out, degree + 1)), rng.standard_normal(n_in))
    active = np.stack([rng.permutation(N_NODES) < 7 for _ in range(n_in)])[:, :, None]
    signal = GraphSignal(rng.standard_normal((n_in, N_NODES, 1)) * active, active)
    upstream = rng.standard_normal((n_out, N_NODES, 1))
    ours, truth = gradients(layer, signal, upstream)
    powers = [np.linalg.matrix_power(layer.graph.laplacian.toarray(), m) for m in range(degree + 1)]
    filters = np.tensordot(layer.params["alpha"], powers, axes=1)  # F_i, Eq. (10) [eq:pol_filt_1]
    y, z, sets, g = (a[..., 0] for a in (signal.values, layer.forward(signal).values, active, upstream))
    operators = {"beta": layer.params["beta"], "powers": powers, "filters": filters, "sets": sets}
    return SimpleNamespace(y=y, z=z, g=g, **operators, ours=ours, truth=truth)


def statistics_case(max_order, n_inactive=0, use=(1, 1)):
    """A statistics layer on one map, its gradients, and dE/dmean, dE/dvariance (times `use`) of each order."""
    rng = np.random.default_rng(0)
    layer = Statistics(grid_graph(GRID), max_order)
    active = np.arange(N_NODES).reshape(1, -1, 1) >= n_inactive
    signal = GraphSignal(rng.standard_normal(active.shape) * active, active)
    g = rng.standard_normal((max_order + 1, 2)) * use
    ours, truth = gradients(layer, signal, g.reshape(-1, 1))
    z, ours, truth = (array.reshape(N_NODES) for array in (signal.values, ours["input"], truth["input"]))
    return SimpleNamespace(graph=layer.graph, z=z, g_mean=g[:, 0], g_variance=g[:, 1], ours=ours, truth=truth)


def printed_laplacian(graph):
    """Eq. (1) [eq:laplacian] entry by entry, as printed: no minus sign, no edge weight."""
    printed = np.eye(graph.n_nodes)
    for i, j in np.argwhere(graph.adjacency.toarray()):
        printed[i, j] = (graph.degrees[i] * graph.degrees[j]) ** -0.5
    return printed


def test_laplacian_without_the_minus_sign_has_no_frequency_zero():
    graph = grid_graph(GRID, boundary="free")
    printed, ours = printed_laplacian(graph), graph.laplacian.toarray()
    smoothest = np.sqrt(graph.degrees)  # D^1/2 1, the eigenvector of lambda_0 = 0
    assert np.abs(printed @ smoothest - 2 * smoothest).max() < 1e-12  # printed: frequency 2, not 0
    assert np.abs(ours @ smoothest).max() < 1e-12
    printed_spectrum, spectrum = np.linalg.eigvalsh(printed), np.linalg.eigvalsh(ours)
    assert printed_spectrum[0] > 0.1 and abs(spectrum[0]) < 1e-12
    np.testing.assert_allclose(printed_spectrum, 2 - spectrum[::-1], atol=1e-12)  # low and high swapped


def test_laplacian_without_the_minus_sign_contradicts_the_filtered_signal():
    rng = np.random.default_rng(0)
    graph = grid_graph(GRID, neighbours=4)  # section 5.1: zeros outside, every degree is 4
    alpha, image = rng.standard_normal(2), rng.standard_normal(GRID)
    around, y = np.pad(image, 1), image.ravel()
    neighbours = around[:-2, 1:-1] + around[2:, 1:-1] + around[1:-1, :-2] + around[1:-1, 2:]
    eq_23 = (alpha[0] * image + alpha[1] * image - alpha[1] / 4 * neighbours).ravel()
    assert relative_error(alpha[0] * y + alpha[1] * printed_laplacian(graph) @ y, eq_23) > 0.1
    signal = GraphSignal(y.reshape(1, -1, 1), np.ones((1, y.size, 1), bool))
    ours = SpectralConv(graph, alpha[None], np.ones(1)).forward(signal)
    np.testing.assert_allclose(ours.values.ravel(), eq_23, atol=1e-12)


def test_laplacian_without_the_edge_weights_fails_on_a_weighted_graph():
    graph = grid_graph(GRID, boundary="free", diagonal_weight=0.25)
    smoothest = np.sqrt(graph.degrees)
    assert np.abs((2 * np.eye(N_NODES) - printed_laplacian(graph)) @ smoothest).max() > 0.1  # sign corrected
    assert np.abs(graph.laplacian @ smoothest).max() < 1e-12


def test_largest_eigenvalue_is_two_only_on_a_bipartite_graph():
    graphs = [grid_graph((4, 4), neighbours, boundary="free") for neighbours in (4, 8)]
    four, eight = (np.linalg.eigvalsh(graph.laplacian.toarray()) for graph in graphs)
    assert abs(four[-1] - 2) < 1e-12  # a chessboard: bipartite
    assert eight[-1] < 1.5  # the graph of the paper's experiments
    for graph in graphs:  # ours: L - I stays within [-1, 1], which is all that Chebyshev polynomials need
        assert np.linalg.norm(graph.shifted_laplacian.toarray(), ord=2) < 1 + 1e-12


def test_filter_of_degree_m_reaches_nodes_exactly_m_hops_away():
    pixel = np.eye(49)[24].reshape(1, 49, 1)  # the middle of a 7x7 grid
    hops = np.abs(np.indices((7, 7)) - 3).max(axis=0).ravel()  # a diagonal step is one hop
    response = np.abs(laplacian_powers(grid_graph((7, 7)), pixel, degree=2)[2, 0, :, 0])
    assert response[hops == 2].min() > 0.01  # "less than M-hop away" would give 0 here
    assert response[hops > 2].max() == 0


def test_set_indexed_by_a_filter_does_not_exist_when_filters_outnumber_input_maps():
    c = conv_case(n_in=3, n_out=6)  # Table 1: SC[3, 3] below SC[6, 3]
    with pytest.raises(IndexError):
        for i in range(6):  # Eq. (11) [eq:pol_filt_2]: N_i^{l-1} with i = 1..6, but there are three sets
            rows_kept(c.filters[i], c.sets[i]) @ c.y[0]
    for name in ("alpha", "beta", "input"):
        assert relative_error(c.ours[name], c.truth[name]) < 1e-7, name


def test_kept_columns_without_the_transpose_do_not_limit_the_output():
    c = conv_case()
    for i, f in enumerate(c.filters):
        eq_11 = [rows_kept(f, c.sets[k]) @ c.y[k] for k in range(2)]
        untransposed = [columns_kept(f, c.sets[k]) @ c.y[k] for k in range(2)]
        for k in range(2):
            np.testing.assert_allclose(eq_11[k], c.sets[k] * (f @ c.y[k]), atol=1e-12)  # masks the output
            np.testing.assert_allclose(untransposed[k], f @ (c.sets[k] * c.y[k]), atol=1e-12)  # the input
        assert relative_error(c.beta @ untransposed, c.z[i]) > 0.01
        np.testing.assert_allclose(c.z[i], c.beta @ eq_11, atol=1e-12)


def test_alpha_of_the_printed_shape_lacks_filters_and_the_highest_power():
    second = build_network(TABLE_1, (28, 28), n_classes=3).layers[2].params
    printed = np.zeros((3, 3))  # R^{K_{l-1} x M} for SC[6, 3] after SC[3, 3]
    for i, m in [(5, 0), (0, 3)]:  # the sixth filter, the power M = 3
        with pytest.raises(IndexError):
            printed[i, m]
    assert second["alpha"].shape == (6, 4)
    assert second["beta"].shape == (3,)  # as printed


def test_pooling_loop_to_max_keeps_all_of_omega_or_runs_out_of_nodes():
    rng = np.random.default_rng(0)
    z, omega = rng.standard_normal(N_NODES), rng.permutation(N_NODES) < 8

    def algorithm_1(n_active, bound):
        kept = np.zeros(N_NODES, bool)
        for _ in range(bound(n_active, omega.sum())):
            candidates = np.flatnonzero(omega & ~kept)
            kept[candidates[np.argmax(z[candidates])]] = True  # raises when no node is left
        return kept

    np.testing.assert_array_equal(algorithm_1(5, max), omega)  # printed: nothing is pooled
    with pytest.raises(ValueError, match="empty"):
        algorithm_1(10, max)  # printed, J > |Omega|
    for n_active in (5, 10):
        ours = DynamicPool(n_active).forward(GraphSignal(z.reshape(1, -1, 1), omega.reshape(1, -1, 1)))
        np.testing.assert_array_equal(ours.active.ravel(), algorithm_1(n_active, min))


def test_alpha_gradient_without_the_transpose_is_wrong():
    c = conv_case()

    def eq_15(kept):  # [eq:der1], its product with dE/dz read as a sum over nodes
        terms = [sum(c.beta[k] * kept(power, c.sets[k]) @ c.y[k] for k in range(2)) for power in c.powers]
        return np.array([[c.g[i] @ term for term in terms] for i in range(3)])

    assert relative_error(eq_15(columns_kept), c.truth["alpha"]) > 0.1  # as printed
    assert relative_error(eq_15(rows_kept), c.truth["alpha"]) < 1e-7
    assert relative_error(c.ours["alpha"], c.truth["alpha"]) < 1e-7


def test_beta_gradient_without_the_sum_over_filters_is_wrong():
    c = conv_case()

    def eq_16(i, kept):  # [eq:der2], for one filter i
        return np.array([c.g[i] @ (kept(c.filters[i], c.sets[k]) @ c.y[k]) for k in range(2)])

    for i in range(3):
        assert relative_error(eq_16(i, columns_kept), c.truth["beta"]) > 0.1  # as printed
        assert relative_error(eq_16(i, rows_kept), c.truth["beta"]) > 0.1  # only the mask corrected
    assert relative_error(sum(eq_16(i, columns_kept) for i in range(3)), c.truth["beta"]) > 0.1  # only the sum
    assert relative_error(sum(eq_16(i, rows_kept) for i in range(3)), c.truth["beta"]) < 1e-7
    assert relative_error(c.ours["beta"], c.truth["beta"]) < 1e-7


def test_map_gradient_lacks_the_sum_over_filters_but_its_mask_is_right():
    c = conv_case()

    def eq_17(i, kept):  # [eq:der_fm], for one filter i
        return np.array([c.beta[k] * kept(c.filters[i], c.sets[k]) @ c.g[i] for k in range(2)])[..., None]

    for i in range(3):
        assert relative_error(eq_17(i, columns_kept), c.truth["input"]) > 0.1  # as printed
    assert relative_error(sum(eq_17(i, rows_kept) for i in range(3)), c.truth["input"]) > 0.05  # transposed
    assert relative_error(sum(eq_17(i, columns_kept) for i in range(3)), c.truth["input"]) < 1e-7
    assert relative_error(c.ours["input"], c.truth["input"]) < 1e-7


def test_mean_gradient_without_the_sign_is_wrong():
    c = statistics_case(max_order=0, n_inactive=4, use=(1, 0))  # order 0: t = z
    printed = np.full(N_NODES, c.g_mean[0] / N_NODES)  # Eq. (18) [eq:der_stat1]
    assert relative_error(printed, c.truth) > 0.5
    assert relative_error(np.sign(c.z) * printed, c.truth) < 1e-7
    assert relative_error(c.ours, c.truth) < 1e-7
    assert np.all(c.ours[:4] == 0)  # sign(0) = 0, as the text below Eq. (20) asks


def test_variance_gradient_has_no_sum_over_nodes_and_no_factor_n_minus_1_over_n():
    c = statistics_case(max_order=0, n_inactive=4, use=(0, 1))
    t, n, mean, g = c.z, N_NODES, np.abs(c.z).mean(), c.g_variance[0]
    printed = np.full(n, 2 * (n - 1) / n**2 * np.sum(t - mean) * g)  # Eq. (19) [eq:der_stat2]
    assert relative_error(printed, c.truth) > 0.5
    assert abs(np.sum(np.abs(t) - mean)) < 1e-12  # with abs(t), the printed sum is 0
    assert relative_error(2 / n * (t - mean) * g, c.truth) > 0.1  # without the sum, abs and sign still missing
    element = 2 / n * np.sign(t) * (np.abs(t) - mean) * g
    assert relative_error((n - 1) / n * element, c.truth) == pytest.approx(1 / n, rel=1e-6)  # the factor alone
    assert relative_error(element, c.truth) < 1e-7
    assert relative_error(c.ours, c.truth) < 1e-7


def test_mean_and_variance_gradients_are_two_parts_of_one_sum():
    mean, variance, both = (statistics_case(max_order=2, use=use) for use in [(1, 0), (0, 1), (1, 1)])
    for part in (mean, variance):  # Eqs. (18) and (19) each claim to be dE/dt
        assert relative_error(part.truth, both.truth) > 0.1
    assert relative_error(both.ours, both.truth) < 1e-7


def test_statistics_gradient_holds_chebyshev_polynomials_not_their_derivatives():
    c = statistics_case(max_order=3)
    spectrum, chi = np.linalg.eigh(c.graph.shifted_laplacian.toarray())
    polynomials = [np.polynomial.Chebyshev.basis(k) for k in range(4)]
    matrices = [chi @ np.diag(polynomial(spectrum)) @ chi.T for polynomial in polynomials]
    derivatives = [chi @ np.diag(polynomial.deriv()(spectrum)) @ chi.T for polynomial in polynomials]
    t = matrices @ c.z
    assert np.abs(t).min() > 1e-3  # away from the kink of abs
    deviation = np.abs(t) - np.abs(t).mean(axis=1, keepdims=True)
    grad_t = np.sign(t) / N_NODES * (c.g_mean[:, None] + 2 * deviation * c.g_variance[:, None])
    assert relative_error(np.einsum("kvw,kw->v", derivatives, grad_t), c.truth) > 0.1  # "derivatives of"
    assert relative_error(np.einsum("kvw,kw->v", matrices, grad_t), c.truth) < 1e-7  # Eq. (20)
    assert relative_error(c.ours, c.truth) < 1e-7


def test_one_ring_of_padding_makes_shifts_exact_for_degree_one_only():
    def gap(graph, degree, nodes):
        """How far L^degree fails to move along when a pixel moves two rows down, on some nodes."""
        pixel = np.eye(49)[[3 * 7 + 3, 5 * 7 + 3]].reshape(2, 49, 1)
        still, moved = laplacian_powers(graph, pixel, degree)[degree].reshape(2, 7, 7)
        return np.abs(np.roll(still, 2, axis=0) - moved)[nodes].max()

    ring = grid_graph((7, 7), neighbours=4, boundary="free")  # a 5x5 image in a ring of zeros
    assert np.all(ring.degrees.reshape(7, 7)[1:6, 1:6] == 4)  # the image's degrees, as in section 5.1
    assert gap(ring, 1, np.s_[3:6, 1:6]) < 1e-12  # on the image: the base case of the proof
    assert gap(ring, 2, np.s_[3:6, 1:6]) > 0.01  # not so the inductive step: the ring's degrees are 3
    assert gap(grid_graph((7, 7), neighbours=4), 2, np.s_[2:]) < 1e-12  # ours: all degrees are 4


def test_last_layer_of_table_1_has_ten_outputs_for_three_classes():
    images = load_dataset("mnist-012").train.images[:20]
    network = build_network(TABLE_1, (28, 28), n_classes=3)
    printed = network.forward(network.signal(network.prepare(images)), until=-2)  # (10, 20), before the ReLU
    assert softmax(printed)[3:].sum(axis=0).mean() > 0.1  # probability of classes that do not exist
    assert network.scores(images).shape == (20, 3)
    assert network.layers[-1].params["weight"].shape == (3, 10)


@pytest.mark.slow
def test_softmax_is_saturated_at_the_printed_start_values():
    train = load_dataset("mnist-012").train
    images, labels = train.images[:100], train.labels[:100]

    def start(**options):
        """Mean loss, and median probability of the favoured class, over five seeds."""
        networks = [build_network(TABLE_1, (28, 28), 3, seed, **options) for seed in range(5)]
        for network in networks:
            network.calibrate(images)
        scores = [network.scores(images).T for network in networks]
        losses = [negative_log_likelihood(score, labels)[0] for score in scores]
        return np.mean(losses), np.median([softmax(score).max(axis=0) for score in scores])

    chance = np.log(3)
    (raw, _), (standardised, favoured) = (start(dense_init="paper", standardise=s) for s in (False, True))
    assert raw > 2 * chance and standardised > 10 * chance and favoured > 0.99
    (raw, _), (standardised, favoured) = (start(dense_init="default", standardise=s) for s in (False, True))
    assert abs(raw - chance) < 0.05 and abs(standardised - chance) < 0.2 and favoured < 0.5
