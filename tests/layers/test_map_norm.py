"""Batch normalisation of maps and of features: against plain loops, in parts of a batch, with running averages."""

import numpy as np
import pytest

from tests.layers import oriented_loops as loops
from tests.layers.test_oriented_conv import TURNS, signal
from tigra.errors import ShapeError, UsageError
from tigra.graph import GraphSignal, grid_graph
from tigra.layers import FeatureNorm, MapNorm

RNG = np.random.default_rng
GAMMA, BETA = np.array([1.2, 0.7, -0.5]), np.array([0.8, -0.4, 0.3])


def training_layer(diffusion=0, graph=None, dtype=np.float64):
    layer = MapNorm(graph or grid_graph((4, 5)), GAMMA.astype(dtype), BETA.astype(dtype), diffusion)
    layer.is_training = True
    return layer


def maps(rng, shape=(4, 5), n_batch=3):
    """Maps of different mean and spread, with an empty background."""
    x = rng.standard_normal((3, *shape, n_batch)) * np.array([1.0, 0.1, 30.0])[:, None, None, None] + 0.1
    return x * (rng.random((1, *shape, n_batch)) < 0.7)


@pytest.mark.parametrize("dilation", [1, 2])
def test_forward_equals_the_loops(dilation):
    graph, x = grid_graph((4, 5), diagonal_weight=0.25, dilation=dilation), maps(RNG(0))
    for diffusion in (0, 2):
        layer = training_layer(diffusion, graph)
        z, active = layer.forward(signal(x))
        assert active.all()
        for k in range(3):
            expected = loops.map_norm(x[k], GAMMA[k], BETA[k])
            for _ in range(diffusion):
                filtered = [loops.laplacian(expected[..., b], 0.25, dilation) for b in range(3)]
                expected = expected - np.stack(filtered, axis=-1) / 2
            np.testing.assert_allclose(z[k], expected.reshape(20, 3), rtol=1e-11, atol=1e-12)


def test_running_averages_are_means_of_all_steps_and_constants_at_test():
    rng = RNG(1)
    layer, batches = training_layer(), [maps(rng) for _ in range(3)]
    for x in batches:
        layer.observe(layer.measure(signal(x)))
    weights = 0.9 ** np.arange(3)[::-1]
    layer.is_training = False
    for k in range(3):
        mean = weights @ [x[k].mean() for x in batches] / weights.sum()
        variance = weights @ [x[k].var() for x in batches] / weights.sum()
        expected = loops.map_norm(batches[0][k], GAMMA[k], BETA[k], mean, variance).reshape(20, 3)
        np.testing.assert_allclose(layer.forward(signal(batches[0])).values[k], expected, rtol=1e-11, atol=1e-12)
    assert layer.state["total"][0] == pytest.approx(1 - 0.9**3, rel=1e-12)
    fresh = MapNorm.init(layer.graph, 3, "float64")  # before the first step: mean 0, variance 1
    z = fresh.forward(signal(batches[0])).values
    np.testing.assert_allclose(z, np.maximum(signal(batches[0]).values, 0), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_training", [True, False])
def test_an_empty_background_stays_exactly_0_for_either_sign_of_h(dtype, is_training):
    x = maps(RNG(2)).astype(dtype)
    layer = training_layer(dtype=dtype)
    layer.observe(layer.measure(signal(x)))
    layer.is_training = is_training
    z = layer.forward(signal(x)).values
    shift = layer._cache[5]
    assert shift.min() < 0 < shift.max() and (z < 0).any() and (z > 0).any()
    assert (z[signal(x).values == 0] == 0).all()
    blank = signal(np.zeros((3, 4, 5, 2), dtype))
    assert not training_layer(dtype=dtype).forward(blank).values.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dilation", [1, 2])
def test_turned_and_shifted_maps_give_turned_and_shifted_responses_to_the_last_bit(dtype, dilation):
    """With running statistics. In training, sums over nodes are rounded in another order."""
    rng = RNG(3)
    layer = training_layer(2, grid_graph((12, 12), diagonal_weight=0.25, dilation=dilation), dtype)
    x = np.zeros((3, 12, 12, 2), dtype)
    x[:, 5:7, 5:8] = rng.standard_normal((3, 2, 3, 2))
    layer.observe(layer.measure(signal(x)))
    layer.is_training = False

    def normed(y):
        return layer.forward(signal(y)).values.reshape(x.shape)

    for name, turn in (*TURNS.items(), ("mirrored", lambda m: m[:, :, ::-1])):
        np.testing.assert_array_equal(normed(turn(x)), turn(normed(x)), err_msg=name)
    np.testing.assert_array_equal(normed(np.roll(x, (1, -1), (1, 2))), np.roll(normed(x), (1, -1), (1, 2)))


def in_parts(layer, parts, upstream):
    """Outputs and gradients of the parts of a batch, each in a replica, with the sums of all of them."""
    replicas = [layer.replica() for _ in parts]
    total = sum(replica.measure(part) for replica, part in zip(replicas, parts, strict=True))
    outputs = []
    for replica, part in zip(replicas, parts, strict=True):
        replica.given = total
        outputs.append(replica.forward(part))
    back = sum(replica.measure_back(g) for replica, g in zip(replicas, upstream, strict=True))
    grads = []
    for replica, g in zip(replicas, upstream, strict=True):
        replica.given_back = back
        grads.append(replica.backward(g))
    learned = {name: sum(replica.grads[name] for replica in replicas) for name in layer.params}
    return outputs, grads, learned


@pytest.mark.parametrize("diffusion", [0, 1])
def test_maps_of_a_batch_in_parts_are_those_of_the_whole_batch(diffusion):
    rng = RNG(4)
    x, g = maps(rng, n_batch=7), rng.standard_normal((3, 20, 7))
    layer = training_layer(diffusion)
    z = layer.forward(signal(x)).values
    grad_x = layer.backward(g)
    places = np.split(np.arange(7), [3, 4])
    parts = [signal(x[..., place]) for place in places]
    outputs, grads, learned = in_parts(layer, parts, [np.ascontiguousarray(g[..., place]) for place in places])
    np.testing.assert_allclose(np.concatenate([part.values for part in outputs], -1), z, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.concatenate(grads, -1), grad_x, rtol=0, atol=1e-11)  # scaled by up to 10
    for name, grad in layer.grads.items():
        np.testing.assert_allclose(learned[name], grad, rtol=1e-12, atol=1e-12)


def test_features_have_mean_0_and_variance_1_in_training_and_running_ones_at_test():
    rng = RNG(5)
    layer, x = FeatureNorm(3, "float64"), rng.standard_normal((3, 11)) * [[1.0], [50.0], [0.2]] + [[0], [3.0], [-1]]
    layer.is_training = True
    found = layer.forward(x)
    for f in range(3):
        mean = sum(x[f]) / 11
        variance = sum((value - mean) ** 2 for value in x[f]) / 11
        expected = [(value - mean) / np.sqrt(variance + 1e-5) for value in x[f]]
        np.testing.assert_allclose(found[f], expected, rtol=1e-10, atol=1e-12)
    g = rng.standard_normal((3, 11))
    grad = layer.backward(g)
    places = np.split(np.arange(11), [4, 9])
    outputs, grads, _ = in_parts(layer, [x[:, place] for place in places], [g[:, place] for place in places])
    np.testing.assert_allclose(np.concatenate(outputs, -1), found, rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.concatenate(grads, -1), grad, rtol=0, atol=1e-12)
    for _ in range(2):
        layer.observe(layer.measure(x))
    layer.is_training = False
    np.testing.assert_allclose(layer.forward(x), found, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(layer.forward(x[:, :1]), layer.forward(x)[:, :1])


def test_running_averages_of_features_ignore_a_batch_of_one_image():
    layer, x = FeatureNorm(2, "float64"), RNG(6).standard_normal((2, 8))
    layer.observe(layer.measure(x[:, :7]))
    before = {name: array.copy() for name, array in layer.state.items()}
    layer.observe(layer.measure(x[:, 7:]))  # its variance is 0, and not that of the features
    assert all((layer.state[name] == array).all() for name, array in before.items())
    layer.observe(layer.measure(x[:, 6:]))
    assert (layer.state["running_variance"] != before["running_variance"]).all()


def test_wrong_arguments_are_refused():
    graph = grid_graph((2, 2))
    for gamma, beta in ((np.ones(2), np.ones(3)), (np.ones((1, 2)), np.ones((1, 2))), (1.0, 2.0)):
        with pytest.raises(ShapeError, match=r"MapNorm needs gamma and beta \(K,\)"):
            MapNorm(graph, gamma, beta)
    for wrong in (-1, 0.5, "2"):
        with pytest.raises(UsageError, match="diffusion must be a whole number of steps >= 0"):
            MapNorm(graph, np.ones(2), np.zeros(2), wrong)
    with pytest.raises(ShapeError, match=r"MapNorm expects real maps.* \(2, 4, B\)"):
        MapNorm.init(graph, 2, "float64").forward(GraphSignal(np.ones((3, 4, 1)), np.ones((1, 4, 1), bool)))
    layer = FeatureNorm(2, "float32")
    assert layer.forward(np.ones((2, 3), np.float16)).dtype == np.float16  # as in training
    layer.state |= {"running_mean": np.ones(2), "running_variance": np.ones(1), "total": np.ones(1)}
    np.testing.assert_allclose(layer.forward(np.array([[2.0], [3.0]])), [[1], [2]], rtol=1e-5)  # broadcast
    layer.state["total"] = np.ones(0)
    with pytest.raises(IndexError):
        layer.forward(np.ones((2, 1)))
    layer = FeatureNorm(2, "float64")
    for layer.is_training in (True, False):
        for wrong in (np.ones((3, 2)), np.ones(2)):
            with pytest.raises(ShapeError, match=r"FeatureNorm expects features \(2, B\)"):
                layer.forward(wrong)
