"""PairedConv against its equation as plain loops, and in whole networks."""

import numpy as np
import pytest

from tigra.datasets.loading import load_dataset
from tigra.errors import ArchitectureError, ShapeError, TigraError, UsageError
from tigra.graph import GraphSignal, grid_graph
from tigra.layers import DynamicPool, PairedConv, SpectralConv, Standardise
from tigra.model_file import load, save
from tigra.models.build import build_network, count_parameters
from tigra.seeding import balanced_order, generator
from tigra.training import fit

RNG = np.random.default_rng
NETWORK = "SC[3, 2]-DP[90]-SC[4, 2]-DP[60]-S[3]-FC[6]"


def gradient_product(laplacian, a, b):
    """sum_m w_nm (a_n - a_m) (b_n - b_m) + (1 - sum_m w_nm) a_n b_n, w = I - L: outside of a padded grid lies 0.

    Where degrees differ sum_m w_nm may lie above 1; the equation holds all the same.
    """
    w = np.eye(len(laplacian)) - laplacian
    g = (1 - w.sum(axis=1))[:, None] * a * b
    for n, m in np.argwhere(w != 0):
        g[n] += w[n, m] * (a[n] - a[m]) * (b[n] - b[m])
    return g


def by_loops(layer, signal):
    """The equation of the docstring, node by node."""
    y, sets = signal
    alpha, theta, s = layer.params["alpha"], layer.params["threshold"], layer.state["deviation"]
    laplacian = layer.graph.laplacian.toarray()
    n_out, n_in, n_powers = len(alpha), alpha.shape[2], alpha.shape[1] - layer.gradients
    z = np.zeros((n_out, *y.shape[1:]))
    omega = sets.any(axis=0)
    for i in range(n_out):
        for k in range(n_in):
            of_map = sets[k] if len(sets) > 1 else sets[0]
            mask = {"map": of_map, "union": omega, "all": np.ones_like(omega)}[layer.active_set]
            power = y[k]
            for m in range(n_powers):
                z[i] += mask * alpha[i, m, k] * power / s[i]
                power = laplacian @ power
            for j in range(layer.gradients):
                product = gradient_product(laplacian, y[k], y[(k + j) % n_in])
                z[i] += mask * alpha[i, n_powers + j, k] * product / s[i]
        z[i] = np.maximum(0, z[i] - abs(theta[i]))
        for _ in range(layer.diffusion):
            z[i] -= laplacian @ z[i] / 2
    return z


@pytest.mark.parametrize("active", ["map", "union", "all"])
@pytest.mark.parametrize("n_sets", [1, 3])
@pytest.mark.parametrize("gradients, diffusion", [(0, 0), (1, 0), (0, 1), (2, 0), (3, 3)])
@pytest.mark.parametrize("graph", [grid_graph((4, 5)), grid_graph((3, 4), boundary="free"), grid_graph((1, 6), 4)])
def test_forward_equals_the_loops(active, n_sets, gradients, diffusion, graph):
    rng = RNG(0)
    alpha = rng.standard_normal((3, 3 + gradients, 3))
    layer = PairedConv(graph, alpha, rng.standard_normal(3), active, gradients, diffusion)
    layer.state["deviation"][:] = [0.5, 1.0, 2.0]
    sets = rng.random((n_sets, graph.n_nodes, 3)) < 0.6
    signal = GraphSignal(rng.standard_normal((3, graph.n_nodes, 3)), sets)
    z, omega = layer.forward(signal)
    assert np.abs(z - by_loops(layer, signal)).max() < 1e-12
    expected = np.ones_like(omega) if active == "all" else sets.any(axis=0, keepdims=True)
    assert (omega == expected).all()


def test_full_mixing_is_a_special_case():
    rng, graph = RNG(1), grid_graph((5, 5))
    alpha, beta = rng.standard_normal((3, 3)), rng.standard_normal((3, 2))
    sets = rng.random((2, 25, 4)) < 0.5
    signal = GraphSignal(rng.standard_normal((2, 25, 4)) * sets, sets)
    full = SpectralConv(graph, alpha, beta).forward(signal).values
    pairs = PairedConv(graph, alpha[:, :, None] * beta[:, None, :], np.zeros(3)).forward(signal).values
    assert np.abs(pairs - np.maximum(full, 0)).max() < 1e-12


def test_calibration_makes_responses_of_order_one_and_is_kept(tmp_path):
    splits = load_dataset("mnist-012")
    network = build_network(NETWORK, (28, 28), 3, mixing="pairs", active_set="all")
    assert network.layers[0].needs_calibration
    network.calibrate(splits.train.images[:64])
    signal = network.signal(network.prepare(splits.train.images[:64]))
    for place in (0, 2):
        arriving = network.forward(signal, place)
        sums = network.layers[place].sums(arriving)
        assert np.allclose(np.sqrt((sums.astype(np.float64) ** 2).mean(axis=1)), 1, atol=1e-4)
    save(network, tmp_path / "pairs.npz")
    again = load(tmp_path / "pairs.npz")
    assert (again.layers[0].state["deviation"] == network.layers[0].state["deviation"]).all()
    assert (again.scores(splits.test.images[:5]) == network.scores(splits.test.images[:5])).all()


def test_calibration_sees_all_classes_of_images_that_lie_class_by_class(monkeypatch):
    images = np.repeat(np.linspace(0.1, 1, 8), 50)[:, None, None] * np.ones((400, 6, 6))  # a grey level for each class
    labels = np.repeat(np.arange(8), 50)
    seen = []
    monkeypatch.setattr(PairedConv, "calibrate", lambda self, signal: seen.append(signal.values[0, 0]))
    network = build_network("SC[2, 1]-S[1]", (6, 6), 8, mixing="pairs", dtype="float64", standardise=False)
    for seed in (0, 0, 1):
        network.calibrate(images, labels=labels, seed=seed)
    network.calibrate(images)  # without labels a random choice
    for sample in seen[:3]:
        np.testing.assert_array_equal(np.unique(sample.round(9), return_counts=True)[1], 8)
    assert np.unique(seen[3].round(9)).size > 4 and seen[3].size == 64
    chosen = [balanced_order(labels, generator(seed, "calibration sample"))[:64].tolist() for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]


def test_calibration_begins_anew_and_leaves_silent_filters_alone():
    rng, graph = RNG(5), grid_graph((4, 4))
    layer = PairedConv.init(graph, 2, 3, 2, rng, np.float64)
    assert np.allclose(layer.params["threshold"], [0, 0.2, 0.4])
    layer.params["alpha"][1] = 0
    signal = GraphSignal(rng.random((2, 16, 5)), np.ones((1, 16, 5), bool))
    layer.calibrate(signal)
    once = layer.state["deviation"].copy()
    assert once[1] == 1 and (once != 1).sum() == 2
    layer.calibrate(signal)
    assert np.allclose(layer.state["deviation"], once, rtol=1e-14)
    assert np.isfinite(layer.forward(signal).values).all()


def test_start_values_are_as_large_for_many_maps_and_powers_as_for_few():
    sizes = (200, 0, 0), (40, 199, 0), (100, 1, 90)  # maps, degree, products of gradients
    layers = [PairedConv.init(None, n_in, 4, m, RNG(0), np.float64, gradients=j) for n_in, m, j in sizes]
    for layer in layers:
        assert (layer.params["alpha"] ** 2).sum(axis=(1, 2)) == pytest.approx(1, abs=0.3)  # random, mean 1


def test_the_background_stays_exactly_zero():
    splits = load_dataset("mnist-012")
    network = build_network("SC[5, 2]-SC[5, 2]-S[1]", (28, 28), 3, mixing="pairs", active_set="all")
    digit = splits.train.images[:1]
    maps = network.forward(network.signal(network.prepare(digit)), 2).values[:, :, 0].reshape(5, 28, 28)
    near = np.zeros((28, 28), bool)
    for row, column in np.argwhere(digit[0] > 0):  # four powers of L reach four pixels
        near[max(0, row - 4) : row + 5, max(0, column - 4) : column + 5] = True
    assert (maps[:, ~near] == 0).all() and (~near).any() and (maps > 0).any()


@pytest.mark.slow
@pytest.mark.parametrize("mixing", ["pairs", "gradients", "products"])
@pytest.mark.parametrize("active", ["map", "union", "all"])
def test_scores_do_not_change_under_exact_symmetries(active, mixing):
    images = load_dataset("mnist-012").test_upright.images[:12]
    network = build_network(
        NETWORK, (28, 28), 3, dtype="float64", mixing=mixing, active_set=active, margin=9, smoothing=0.5
    )
    network.calibrate(images)
    scores = network.scores(images)
    for turned in (np.rot90(images, axes=(1, 2)), images[:, ::-1], images[:, :, ::-1], images.transpose(0, 2, 1)):
        assert np.abs(network.scores(np.ascontiguousarray(turned)) - scores).max() < 1e-9
    shifted = np.zeros_like(images)
    shifted[:, 2:, :-3] = images[:, :-2, 3:]
    inside = (images[:, -2:].sum(axis=(1, 2)) == 0) & (images[:, :, :3].sum(axis=(1, 2)) == 0)
    assert inside.sum() >= 5
    assert np.abs(network.scores(shifted) - scores)[inside].max() < 1e-9


@pytest.mark.parametrize("active", ["map", "union", "all"])
@pytest.mark.parametrize("boundary", ["padded", "free"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gradients, diffusion", [(0, 0), (1, 0), (2, 2)])
def test_turned_maps_give_turned_responses_bit_by_bit(active, boundary, dtype, gradients, diffusion):
    rng, shape = RNG(3), (2, 11, 11, 3)
    graph = grid_graph(shape[1:3], diagonal_weight=0.25, boundary=boundary)
    layer = PairedConv.init(graph, 2, 5, 3, rng, dtype, active, gradients, diffusion)
    layer.state["deviation"][:] = rng.uniform(0.5, 2, 5)
    sets = rng.random(shape) < 0.7
    y = rng.standard_normal(shape).astype(dtype) * sets

    def pooled(turn):
        signal = GraphSignal(*(np.ascontiguousarray(turn(part)).reshape(2, 121, 3) for part in (y, sets)))
        return DynamicPool(30).forward(layer.forward(signal)).values.reshape(5, *shape[1:])

    kept = pooled(lambda maps: maps)
    for turn in (lambda m: np.rot90(m, axes=(1, 2)), lambda m: m[:, ::-1], lambda m: m.transpose(0, 2, 1, 3)):
        assert (pooled(turn) == turn(kept)).all()


def test_sums_of_other_images_do_not_spoil_a_gradient():
    layer, rng = PairedConv(grid_graph((3, 3)), np.ones((2, 2, 1)), np.zeros(2)), RNG(4)
    one, other = (GraphSignal(rng.random((1, 9, 2)), np.ones((1, 9, 2), bool)) for _ in range(2))
    layer.forward(one)
    layer.sums(other)
    with pytest.raises(TigraError, match="needs a forward of its own"):
        layer.backward(np.ones((2, 9, 2)))


@pytest.mark.slow
def test_it_learns_and_threads_do_not_matter():
    splits = load_dataset("mnist-012")
    found = []
    for threads in (1, 3):
        more = {"mixing": "products", "active_set": "all", "smoothing": 1.0, "deviation_floor": 0.03, "diffusion": 1}
        network = build_network(NETWORK, (28, 28), 3, **more)
        *_, last = fit(network, splits, threads=threads, epochs=6, batch_size=37, learning_rate=0.01)
        found.append(network.parameters.tobytes())
    assert last.valid_accuracy > 0.6 and found[0] == found[1]


@pytest.mark.parametrize(
    "mixing, diffusion, boundary",
    [("pairs", 0, "padded"), ("gradients", 0, "free"), ("pairs", 1, "free"), ("products", 2, "free")],
)
def test_gradients_of_whole_networks_are_right_where_arrays_are_used_again(mixing, diffusion, boundary):
    images, rng = load_dataset("mnist-012").train.images[:5], RNG(6)
    more = {"mixing": mixing, "active_set": "all", "smoothing": 1.0, "diffusion": diffusion, "boundary": boundary}
    network = build_network(NETWORK, (28, 28), 3, dtype="float64", **more)
    for layer in (layer for layer in network.layers if isinstance(layer, PairedConv)):
        layer.params["threshold"] += 0.05  # the first starts at 0, where abs(theta) has no derivative
    network.calibrate(images)
    signal, replica = network.signal(network.prepare(images)), network.replica(keeps_results=False, training=True)
    upstream, direction = rng.standard_normal((3, 5)), rng.standard_normal(network.n_parameters)

    def energy(step):
        network.parameters += step * direction
        value = (upstream * network.forward(signal)).sum()
        network.parameters -= step * direction
        return value

    np.testing.assert_allclose(replica.forward(signal), network.forward(signal), rtol=1e-12)
    replica.backward(upstream)
    assert replica.gradients @ direction == pytest.approx((energy(1e-7) - energy(-1e-7)) / 2e-7, rel=1e-6)


def test_parameters_are_counted():
    expected = 3 * (3 * 1 + 1) + 4 * (3 * 3 + 1) + (4 * 8 + 1) * 6 + (6 + 1) * 3
    assert count_parameters(NETWORK, (28, 28), 3, mixing="pairs") == expected
    assert build_network(NETWORK, (28, 28), 3, mixing="pairs").n_parameters == expected


def test_gradients_have_weights_of_their_own_and_tell_an_edge_from_a_blob():
    expected = 3 * (4 * 1 + 1) + 4 * (4 * 3 + 1) + (4 * 8 + 1) * 6 + (6 + 1) * 3
    assert count_parameters(NETWORK, (28, 28), 3, mixing="gradients") == expected
    network = build_network(NETWORK, (28, 28), 3, mixing="gradients", active_set="all")
    assert network.n_parameters == expected and network.layers[0].gradients == 1 and network.layers[0].degree == 2
    ramp = np.tile(np.arange(5.0), (5, 1)).reshape(1, 25, 1)  # L is 0 inside, the gradient is not
    alpha = np.array([[[0.0], [1.0], [0.0]], [[0.0], [0.0], [1.0]]])
    layer = PairedConv(grid_graph((5, 5), neighbours=4), alpha, np.zeros(2), gradients=True)
    response = layer.forward(GraphSignal(ramp, np.ones((1, 25, 1), bool))).values.reshape(2, 5, 5)[:, 1:-1, 1:-1]
    assert np.allclose(response[0], 0) and np.allclose(response[1], 0.5)  # two of four neighbours differ by 1


def test_products_tell_whether_two_maps_rise_in_the_same_direction():
    expected = 3 * (4 * 1 + 1) + 4 * (5 * 3 + 1) + (4 * 8 + 1) * 6 + (6 + 1) * 3  # one map has no other
    assert count_parameters(NETWORK, (28, 28), 3, mixing="products") == expected
    network = build_network(NETWORK, (28, 28), 3, mixing="products", active_set="all")
    assert network.n_parameters == expected
    assert [(network.layers[place].gradients, network.layers[place].degree) for place in (0, 2)] == [(1, 2), (2, 2)]
    right = np.tile(np.arange(5.0), (5, 1))
    alpha = np.zeros((1, 4, 2))
    alpha[0, 3, 0] = 1  # the product of both maps, counted once
    layer = PairedConv(grid_graph((5, 5), neighbours=4), alpha, np.zeros(1), gradients=2)
    for second, expected in ((right, 0.5), (2 * right, 1.0), (right.T, 0.0), (-right, 0.0)):  # the rectifier cuts -0.5
        signal = GraphSignal(np.stack([right, second]).reshape(2, 25, 1), np.ones((1, 25, 1), bool))
        assert np.allclose(layer.forward(signal).values.reshape(5, 5)[1:-1, 1:-1], expected)


@pytest.mark.parametrize("w", [0, 0.25, 1])
def test_diffusion_leaves_of_a_chessboard_and_of_stripes_what_the_derivations_say(w):
    graph = grid_graph((7, 7), *((8, w) if w else (4,)))
    row, column = np.indices((7, 7))
    layer = PairedConv(graph, np.ones((1, 1, 2)), np.zeros(1), diffusion=1)
    for places, left in ((row + column, w / (1 + w)), (row, 1 / (2 * (1 + w)))):
        maps = np.stack([np.ones((7, 7)), 0.5 * (-1.0) ** places])  # a sum above 0: the rectifier changes nothing
        signal = GraphSignal(maps.reshape(2, 49, 1), np.ones((1, 49, 1), bool))
        kept = layer.forward(signal).values.reshape(7, 7)[1:-1, 1:-1]
        assert np.allclose(kept, (1 + left * maps[1])[1:-1, 1:-1], rtol=1e-14)


def test_products_counted_around_are_the_same_products_again():
    layer = PairedConv(grid_graph((3, 4)), np.ones((1, 6, 4)), np.zeros(1), gradients=4)
    signal = GraphSignal(RNG(7).standard_normal((4, 12, 2)), np.ones((1, 12, 2), bool))
    products = layer._terms(signal)[0][2:]
    for j in range(1, 4):
        for k in range(4):
            assert np.allclose(products[j, k], products[4 - j, (k + j) % 4], atol=1e-14)


def test_wrong_arguments_are_refused():
    graph = grid_graph((2, 2))
    with pytest.raises(UsageError, match="degree at least 1, got 0"):
        PairedConv(graph, np.ones((1, 2, 1)), np.zeros(1), gradients=True)
    for wrong in ("no", -1, 2, 1.0):
        with pytest.raises(UsageError, match=f"number of products from 0 to K_in = 1, got {wrong!r}"):
            PairedConv(graph, np.ones((1, 4, 1)), np.zeros(1), gradients=wrong)
    for wrong in (-1, 0.5, "2"):
        with pytest.raises(UsageError, match="diffusion must be a whole number"):
            PairedConv(graph, np.ones((1, 2, 1)), np.zeros(1), diffusion=wrong)
        with pytest.raises(UsageError, match="diffusion must be a whole number"):
            build_network("SC[1, 1]-S[1]", (4, 4), 2, mixing="pairs", diffusion=wrong)
    with pytest.raises(UsageError, match="from 0 to 100, got 101"):
        build_network("SC[1, 1]-S[1]", (4, 4), 2, mixing="pairs", diffusion=101)
    with pytest.raises(
        UsageError, match="diffusion has no effect with mixing='full', only with pairs, gradients, products"
    ):
        build_network("SC[1, 1]-S[1]", (4, 4), 2, mixing="full", diffusion=1)
    with pytest.raises(ArchitectureError, match="SC\\[1, 0\\] at position 1 has too low a degree"):
        build_network("SC[1, 0]-S[1]", (4, 4), 2, mixing="gradients")
    with pytest.raises(UsageError, match="'map', 'union' or 'all'"):
        PairedConv(graph, np.ones((1, 1, 1)), np.zeros(1), active_set="none")
    with pytest.raises(ShapeError, match=r"\(K_out, M\+1, K_in\)"):
        PairedConv(graph, np.ones((1, 1)), np.zeros(1))
    with pytest.raises(ShapeError, match="none of them 0"):
        PairedConv(graph, np.ones((1, 0, 1)), np.zeros(1))
    with pytest.raises(ShapeError, match="pairs of mean and variance, got 3"):
        Standardise.init(3, np.float64, deviation_floor=0.1)
    with pytest.raises(ShapeError, match=r"threshold of shape \(K_out,\)"):
        PairedConv(graph, np.ones((2, 1, 1)), np.zeros(1))
    with pytest.raises(UsageError, match="vector, full, pairs, gradients, products, got 'none'"):
        build_network("SC[1, 1]-S[1]", (4, 4), 2, mixing="none")
    with pytest.raises(UsageError, match="'all' goes with mixing 'pairs'"):
        build_network("SC[1, 1]-S[1]", (4, 4), 2, active_set="all")
    with pytest.raises(UsageError, match="deviation_floor must be a number from 0 to 1"):
        build_network("SC[1, 1]-S[1]", (4, 4), 2, deviation_floor=2)


def test_pooling_after_it_keeps_the_largest_responses():
    rng, graph = RNG(2), grid_graph((4, 4))
    layer = PairedConv(graph, rng.standard_normal((2, 2, 1)), np.zeros(2), "all")
    signal = layer.forward(GraphSignal(rng.random((1, 16, 1)), np.ones((1, 16, 1), bool)))
    kept = DynamicPool(3).forward(signal)
    assert (kept.active.sum(axis=1) <= 3).all() and kept.values.max() == signal.values.max()


def test_a_floor_keeps_weak_features_weak():
    features = np.array([[0.0, 2.0], [0.0, 8.0], [0.0, 0.02], [0.0, 0.08]])  # two maps, mean and variance of each
    plain, floored = Standardise.init(4, np.float64), Standardise.init(4, np.float64, deviation_floor=0.1)
    plain.calibrate(features)
    floored.calibrate(features)
    assert np.allclose(plain.state["deviation"], [1, 4, 0.01, 0.04])
    assert np.allclose(floored.state["deviation"], np.sqrt([1.01, 16.16, 0.0101, 0.1616]))
