"""Whole networks with oriented convolutions: what they tell apart, what they keep exactly, training, and files."""

import numpy as np
import pytest

import tigra
from tests.layers.test_oriented_conv import TURNS
from tigra.errors import ArchitectureError, GraphError, UsageError
from tigra.gradcheck.oriented_cases import wheel
from tigra.layers import Coarsen, Dense, DynamicPool, FeatureNorm, MapNorm, OrientedConv, ReLU, Statistics
from tigra.models.effects import check_effects, with_pooling_limited
from tigra.models.loss import negative_log_likelihood
from tigra.models.workers import Workers

TEXT = "OC[3, 2]-GC[2]-OC[4, 2]-DP[60]-S[2]-FC[6]"
EVERY = "OC[2, 2]-GC[2]-OC[3, 2]-GD[2]-OC[2, 1]-DP[20]-S[1]-FC[4]"
ORIENTED = {"diagonal_weight": 0.25, "batch_norm": True, "diffusion": 1}
QUARTERS = {name: (lambda images, turn=turn: turn(images[..., None])[..., 0]) for name, turn in TURNS.items()}


def oriented(text=TEXT, shape=(28, 28), dtype="float64", **options):
    return tigra.build_network(text, shape, 3, dtype=dtype, **ORIENTED | options)


def observe(network, images):
    """Set the running averages from images, layer by layer: responses become of order 1. Parameters stay the same."""
    x = network.signal(network.prepare(images))
    for layer in network.layers:
        if layer.uses_batch_statistics:
            layer.observe(layer.measure(x))
        x = layer.forward(x)


def moved(images, move):
    return np.ascontiguousarray(move(images))


def test_layers_follow_the_text_and_have_graphs_of_their_own():
    network = oriented("OC[2, 2]-GC[2]-OC[3, 2]-GD[2]-OC[2, 1]-DP[3]-S[1]-FC[4]", (9, 12))
    kinds = [*[OrientedConv, MapNorm, Coarsen], *2 * [OrientedConv, MapNorm]]
    assert [type(layer) for layer in network.layers] == [
        *kinds,
        DynamicPool,
        Statistics,
        FeatureNorm,
        Dense,
        ReLU,
        Dense,
    ]
    graphs = [layer.graph for layer in network.layers if hasattr(layer, "graph")]
    shapes = [(9, 12)] * 3 + [(5, 6)] * 5
    assert [graph.shape for graph in graphs] == shapes and [g.dilation for g in graphs] == [1] * 5 + [2] * 3
    assert network.graph.shape == (9, 12) and network.layers[7].by_size
    assert network.micro_batch == 24 and tigra.build_network("S[1]", (9, 12), 3).micro_batch == 32
    assert network.layers[1].diffusion == 1


def test_parameters_are_counted():
    first, second = 3 * (3 + 2) + 2 * 1 * 2 + 2 * 3, 4 * (9 + 6) + 2 * 3 * 6 + 2 * 4
    expected = first + second + (4 * 6 + 1) * 6 + (6 + 1) * 3
    assert tigra.count_parameters(TEXT, (28, 28), 3) == oriented().n_parameters == expected


def test_start_values_tell_a_digit_from_its_mirror_image_and_not_from_its_quarter_turns(mnist_012):
    digits = mnist_012.test_upright.images[:8]
    network = oriented()
    observe(network, digits)
    scores = network.scores(digits)
    assert np.abs(scores - scores.mean(axis=0)).max() > 0.01, "the scores must tell digits apart"
    for name, turn in QUARTERS.items():
        assert np.abs(network.scores(moved(digits, turn)) - scores).max() < 1e-12, name
    mirrored = [network.scores(moved(digits, m)) for m in (lambda x: x[:, :, ::-1], lambda x: x[:, ::-1])]
    assert np.abs(mirrored[0] - scores).max(axis=1).min() > 1e-4
    assert np.abs(mirrored[0] - mirrored[1]).max() < 1e-12  # one mirror image is the other one turned


def test_an_achiral_network_tells_neither(mnist_012):
    digits = mnist_012.test_upright.images[:8]
    more = {"mixing": "products", "active_set": "all", "diagonal_weight": 0.25, "diffusion": 1}
    network = tigra.build_network("SC[3, 2]-SC[4, 2]-DP[100]-S[2]-FC[6]", (28, 28), 3, dtype="float64", **more)
    network.calibrate(digits)
    scores = network.scores(digits)
    for name, move in {**QUARTERS, "mirror image": lambda x: x[:, :, ::-1]}.items():
        assert np.abs(network.scores(moved(digits, move)) - scores).max() < 1e-12, name


@pytest.mark.parametrize(
    "text, exact, inexact",
    [
        ("OC[2, 2]-OC[3, 2]-DP[40]-S[1]", [(1, 0), (-2, 3)], []),
        ("OC[2, 2]-GC[2]-OC[3, 2]-DP[15]-S[1]", [(2, 0), (-4, 2)], [(1, 0), (2, 3)]),
        ("OC[2, 2]-GC[2]-OC[3, 2]-GC[2]-OC[3, 2]-DP[9]-S[1]", [(4, 0), (-4, 4)], [(2, 0), (4, 1)]),
        ("OC[2, 2]-GD[2]-OC[3, 2]-GD[2]-OC[3, 2]-DP[40]-S[1]", [(1, 0), (2, -3)], []),
    ],
)
def test_shifts_are_exact_in_multiples_of_2_for_each_coarsening_and_always_with_dilation(text, exact, inexact, rng):
    side = 64
    images = np.zeros((2, side, side))
    images[:, 29:35, 30:35] = rng.random((2, 6, 5))
    network = oriented(text, (side, side))
    observe(network, images)
    pool = next(place for place, layer in enumerate(network.layers) if isinstance(layer, DynamicPool))

    def features_and_sets(shift):
        rolled = np.roll(images, shift, axis=(1, 2))
        active = network.forward(network.signal(network.prepare(rolled)), pool + 1).active
        coarse = int(np.sqrt(active.shape[1]))
        return network.features(rolled), active.reshape(len(active), coarse, coarse, 2), side // coarse

    features, sets, unit = features_and_sets((0, 0))
    assert sets.any() and not sets[:, 0].any()  # the empty background is exactly 0, and dropped
    for down, right in exact:
        again, moved_sets, _ = features_and_sets((down, right))
        np.testing.assert_allclose(again, features, rtol=0, atol=1e-12 * np.abs(features).max())
        np.testing.assert_array_equal(moved_sets, np.roll(sets, (down // unit, right // unit), axis=(1, 2)))
    for shift in inexact:
        assert np.abs(features_and_sets(shift)[0] - features).max() > 1e-6 * np.abs(features).max()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_batch_in_parts_has_the_gradient_of_the_whole_batch_for_any_number_of_threads(dtype, rng, monkeypatch):
    """20 images are three micro-batches; the reference takes them at once. Dense layers may stay on one thread."""
    images, labels = rng.uniform(size=(20, 10, 9)), rng.integers(0, 3, 20)
    network = oriented("OC[3, 2]-GC[2]-OC[4, 2]-S[1]-FC[5]", (10, 9), dtype)
    whole = network.replica(training=True)
    loss, grad = negative_log_likelihood(whole.forward(whole.signal(network.prepare(images))), labels)
    whole.backward(grad)
    split, results = tigra.Split(images, labels), []
    splits = tigra.Splits("parts", split, split, split, split, list("012"), None)
    for threads, short in ((1, 0), (2, 0), (2, 2**22), (3, 2**22)):
        monkeypatch.setattr("tigra.models.batch_statistics.SHORT_WORK", short)
        twin = network.with_parameters(network.learned)
        training = tigra.Training(twin, splits, tigra.FitOptions(epochs=1, batch_size=20), threads)
        with Workers(threads) as workers:
            replicas = [twin.replica(False, training=True) for _ in range(threads)]
            got_loss, _, gradient = training.gradient(np.arange(20), workers, replicas)
        if dtype == "float64":
            assert got_loss == pytest.approx(float(loss), rel=1e-12)
            np.testing.assert_allclose(gradient, whole.gradients, rtol=0, atol=1e-12)
        results.append((gradient.tobytes(), twin.learned.tobytes()))
    assert len(set(results)) == 1


@pytest.mark.parametrize("more", [{}, {"log_offset": 0.03}])
def test_it_trains_alike_on_any_number_of_threads_and_comes_back_from_a_file(more, small_splits, tmp_path):
    found = []
    for threads in (1, 2):
        network = oriented(EVERY, (14, 14), "float32", **more)
        *_, last = tigra.fit(network, small_splits, epochs=2, batch_size=20, threads=threads)
        found.append(network.learned)
    np.testing.assert_array_equal(*found)
    tigra.save(network, tmp_path / "oriented.npz")
    loaded, digits = tigra.load(tmp_path / "oriented.npz"), small_splits.test.images
    np.testing.assert_array_equal(loaded.scores(digits), network.scores(digits))
    np.testing.assert_array_equal(loaded.learned, network.learned)
    assert loaded.options == network.options and loaded.layers[1].state["total"][0] > 0
    assert np.isfinite(last.loss)
    np.testing.assert_allclose(network.scores(digits[:3]), network.scores(digits)[:3], rtol=1e-4)  # images stay apart


@pytest.mark.parametrize("n_images, batch_size", [(6, 1), (1, 6)])
def test_batches_of_one_image_are_refused_because_their_features_would_be_0(n_images, batch_size, rng):
    part, valid = ((rng.random((n, 6, 6)), np.arange(n) % 3) for n in (n_images, 6))
    message = f"at least 2 training images, got batch_size {batch_size} and {n_images} training .*without batch_norm"
    with pytest.raises(UsageError, match=message):
        next(tigra.fit(oriented("OC[2, 1]-S[0]", (6, 6)), (part, valid), epochs=1, batch_size=batch_size))
    plain = oriented("OC[2, 1]-S[0]", (6, 6), batch_norm=False)  # maps alone have many nodes for their variance
    assert np.isfinite(next(tigra.fit(plain, (part, valid), epochs=1, batch_size=batch_size)).loss)


def test_an_own_graph_needs_a_rotation_system_and_comes_back_with_it(tmp_path, rng):
    network = tigra.build_network("OC[2, 2]-DP[4]-S[1]", (1, 6), 3, graph=wheel(), batch_norm=True)
    images = rng.random((4, 1, 6))
    tigra.save(network, tmp_path / "wheel.npz")
    np.testing.assert_array_equal(tigra.load(tmp_path / "wheel.npz").scores(images), network.scores(images))
    bare = tigra.Graph(wheel().adjacency)
    with pytest.raises(GraphError, match=r"needs an orientation.*graph.with_rotation\(order\)"):
        tigra.build_network("OC[2, 2]-S[1]", (1, 6), 3, graph=bare)
    for graph in (wheel(), tigra.grid_graph((2, 3))):
        for text in ("GC[2]-S[1]", "OC[2, 2]-GD[2]-S[1]"):
            with pytest.raises(ArchitectureError, match=r"is for the grid of pixels, not for a custom graph"):
                tigra.build_network(text, (2, 3), 3, graph=graph)
    grid = tigra.grid_graph((6, 6), diagonal_weight=0.25, dilation=2)  # a graph of its own, too
    network = tigra.build_network("OC[2, 2]-S[1]", (6, 6), 3, graph=grid)
    tigra.save(network, tmp_path / "grid.npz")
    loaded, images = tigra.load(tmp_path / "grid.npz"), rng.random((4, 6, 6))
    assert loaded.graph.dilation == 2
    np.testing.assert_array_equal(loaded.scores(images), network.scores(images))


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(ArchitectureError, match=r"OC\[2, 2\] at position 1 needs boundary='padded', got 'free'"):
        tigra.build_network("OC[2, 2]-S[1]", (6, 6), 3, boundary="free")
    with pytest.raises(ArchitectureError, match=r"GD\[2\] at position 1 needs a padded grid"):
        tigra.build_network("GD[2]-S[1]", (6, 6), 3, boundary="free")
    for more in ({"standardise": False}, {"deviation_floor": 0.1}):
        with pytest.raises(UsageError, match="batch_norm scales the statistics by the batch: it needs"):
            tigra.build_network("OC[2, 2]-S[1]", (6, 6), 3, batch_norm=True, **more)
    with pytest.raises(UsageError, match="batch_norm has no effect here: it needs S layers"):
        check_effects({"batch_norm": True}, "C[2]-FC[3]")
    with pytest.raises(UsageError, match="diffusion has no effect"):
        tigra.build_network("SC[2, 2]-S[1]", (6, 6), 3, diffusion=1)
    assert not tigra.build_network("SC[2, 2]-DP[3]-S[1]", (6, 6), 3).layers[1].by_size


def test_pooling_is_limited_to_the_nodes_that_coarsening_leaves():
    text = with_pooling_limited("OC[2, 2]-DP[300]-GC[2]-OC[2, 2]-DP[300]-GC[2]-S[1]", 15 * 15)
    assert text == "OC[2, 2]-DP[112]-GC[2]-OC[2, 2]-DP[14]-GC[2]-S[1]"
    tigra.build_network(text, (15, 15), 2)


@pytest.mark.parametrize("text", ["OC[5, 3]-GC[2]-OC[7, 2]-GD[2]-OC[3, 2]-DP[4]-S[2]", "OC[4, 2]-GC[2]-OC[5, 1]-S[2]"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_an_image_alone_has_the_scores_that_it_has_in_a_batch(text, dtype, rng):
    network = tigra.build_network(text, (9, 13), 3, dtype=dtype, batch_norm=True, diffusion=2)
    for layer in network.layers:
        if isinstance(layer, MapNorm):
            layer.params["beta"][:] = rng.standard_normal(len(layer.params["beta"]))
    images = rng.random((5, 9, 13))
    alone = np.concatenate([network.scores(image[None]) for image in images])
    np.testing.assert_array_equal(alone, network.scores(images))
