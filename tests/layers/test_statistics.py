"""Statistics and their standardisation against the definitions."""

import numpy as np
import pytest

from tigra import (
    GraphSignal,
    Logarithm,
    ShapeError,
    Standardise,
    Statistics,
    UsageError,
    grid_graph,
)


def by_definition(graph, z, max_order):
    """phi_i = [mu_0, var_0, mu_1, ...] of abs(T_k(L - I) z_i), T_k by its recursion on dense matrices."""
    shifted = graph.laplacian.toarray() - np.eye(graph.n_nodes)
    matrices = [np.eye(graph.n_nodes), shifted]
    for _ in range(2, max_order + 1):
        matrices.append(2 * shifted @ matrices[-1] - matrices[-2])
    features = []
    for i in range(len(z)):
        for k in range(max_order + 1):
            magnitudes = np.abs(matrices[k] @ z[i])
            mean = magnitudes.sum(axis=0) / graph.n_nodes
            features += [mean, ((magnitudes - mean) ** 2).sum(axis=0) / graph.n_nodes]
    return np.array(features)


@pytest.mark.parametrize("boundary", ["padded", "free"])
@pytest.mark.parametrize("max_order", [0, 1, 2, 10])
def test_features_are_mean_and_variance_of_the_magnitudes(boundary, max_order, rng):
    graph = grid_graph((4, 5), diagonal_weight=0.25, boundary=boundary)
    z = rng.standard_normal((3, 20, 2))
    features = Statistics(graph, max_order).forward(GraphSignal(z, np.ones((1, 20, 2), bool)))
    assert features.shape == (3 * (2 * max_order + 2), 2)
    np.testing.assert_allclose(features, by_definition(graph, z, max_order), rtol=1e-12, atol=1e-14)


def test_maps_on_another_graph_are_refused(rng):
    with pytest.raises(ShapeError, match=r"\(K, 20, B\)"):
        Statistics(grid_graph((4, 5)), 2).forward(GraphSignal(np.zeros((1, 16, 1)), np.ones((1, 16, 1), bool)))


def test_negative_order_is_refused():
    with pytest.raises(UsageError, match="K_max"):
        Statistics(grid_graph((2, 2)), -1)


def test_calibrated_features_have_mean_0_and_deviation_1(rng):
    features = rng.standard_normal((4, 200)) * [[1e-4], [1.0], [1e3], [5.0]] + [[3.0], [0.0], [-7.0], [1e3]]
    layer = Standardise.init(4, "float64")
    assert layer.needs_calibration
    layer.calibrate(features)
    standardised = layer.forward(features)
    assert not layer.needs_calibration
    np.testing.assert_allclose(standardised.mean(axis=1), 0, atol=1e-9)
    np.testing.assert_allclose(standardised.std(axis=1), 1, rtol=1e-9)


def test_standardising_does_not_depend_on_the_batch(rng):
    features = rng.standard_normal((4, 10))
    layer = Standardise.init(4, "float64")
    layer.calibrate(features)
    whole = layer.forward(features)
    np.testing.assert_array_equal(whole[:, 3:4], layer.forward(features[:, 3:4]))


@pytest.mark.parametrize("constant", [0.0, 1e-3, 7.1])
def test_a_feature_that_does_not_vary_is_only_centred(constant):
    layer = Standardise.init(1, "float32")
    layer.calibrate(np.full((1, 50), constant, np.float32))
    assert layer.state["deviation"][0] == 1
    assert abs(float(layer.forward(np.full((1, 1), constant, np.float32))[0, 0])) < 1e-6


def test_offsets_of_logarithms_are_shares_of_how_much_features_vary(rng):
    features = np.abs(rng.standard_normal((4, 200))) * [[1.0], [10.0], [1e-3], [0.0]]
    layer = Logarithm.init(4, "float64", share=0.1)
    assert layer.needs_calibration
    layer.calibrate(features)
    deviation = features.std(axis=1)
    np.testing.assert_allclose(layer.state["offset"], [*0.1 * deviation[:3], 1], rtol=1e-12)
    floored = Logarithm.init(4, "float64", share=0.1, deviation_floor=0.2)
    floored.calibrate(features)  # features 0 and 2 are means, 1 and 3 variances
    largest = deviation[[0, 1, 0, 1]]
    np.testing.assert_allclose(floored.state["offset"], np.hypot(0.1 * deviation, 0.2 * largest), rtol=1e-12)
    whole = layer.forward(features)
    np.testing.assert_allclose(whole, np.log(features + layer.state["offset"][:, None]), rtol=1e-12)
    np.testing.assert_array_equal(whole[:, 3:4], layer.forward(features[:, 3:4]))


def test_offsets_of_logarithms_are_positive_however_small_the_share():
    layer = Logarithm.init(2, "float32", share=1e-60)
    layer.calibrate(np.array([[0.0, 1.0], [0.0, 1.0]]))
    assert (layer.state["offset"] > 0).all() and np.isfinite(layer.forward(np.zeros((2, 1), np.float32))).all()


def test_logarithms_refuse_what_has_none():
    for offset in (np.array([1.0, 0.0]), np.array([1.0, np.inf]), np.ones(3), np.ones(2, int), [1.0, 1.0]):
        with pytest.raises(ShapeError, match="positive offset for each feature, an even number"):
            Logarithm(offset)
    for wrong in ({"share": -0.1}, {"share": np.nan}, {"deviation_floor": 2}, {"deviation_floor": "0.1"}):
        with pytest.raises(UsageError, match="share and deviation_floor from 0 to 1"):
            Logarithm(np.ones(2), **wrong)
    with pytest.raises(ShapeError, match=r"expects features \(2, B\), got \(3, 1\)"):
        Logarithm(np.ones(2)).forward(np.ones((3, 1)))
