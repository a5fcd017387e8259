"""Harmonic networks: filters, equivariance, batch normalisation in parts, texts, learning and files."""

import numpy as np
import pytest

import tigra
from tigra import (
    ArchitectureError,
    ShapeError,
    UsageError,
    build_network,
    count_parameters,
)
from tigra.baselines import (
    HarmonicConv,
    InvariantHead,
    MeanPool,
    ModulusNorm,
    ModulusReLU,
)
from tigra.baselines.harmonic.harmonic_conv import ring_basis
from tigra.model_file import load_model, save
from tigra.models.batch_statistics import meeting_places
from tigra.models.loss import negative_log_likelihood
from tigra.models.workers import Workers

PAPER = "HRC[1, 10]-HCN[10]-HRC[10, 10]-HRC[10, 20]-HCN[20]-HRC[20, 20]"
SMALL = "HRC[1, 3]-HCN[3]-HRC[3, 3]-HRC[3, 4]-HCN[4]-HRC[4, 4]"


def as_complex(z):
    """(orders, parts, C, H, W, B) -> complex (orders, C, H, W, B)."""
    return z[:, 0] + 1j * z[:, 1]


@pytest.mark.parametrize("real", [True, False])
def test_harmonic_convolution_is_the_sum_over_25_pixels_as_written(real, rng):
    layer = HarmonicConv(rng.standard_normal((2, 4, 2, 3)), rng.uniform(0, 6, (2, 2, 3)), real, unit=0.3)
    y = rng.standard_normal((2, 6, 5, 2) if real else (2, 2, 2, 6, 5, 2))
    complex_y = y[None].astype(complex) if real else as_complex(y)
    wide = np.pad(complex_y, ((0, 0), (0, 0), (2, 2), (2, 2), (0, 0)))
    turn = np.exp(-1j * layer.params["phase"])
    filters = {m: np.einsum("aij,aco->ijco", ring_basis(m), 0.3 * layer.params["radial"][m]) * turn[m] for m in (0, 1)}
    filters[-1] = filters[1].conj()
    expected = np.zeros((2, 3, 6, 5, 2), complex)
    for o in (0, 1):
        for n in range(len(wide)):
            for i, j in np.ndindex(5, 5):
                expected[o] += np.einsum("chwb,co->ohwb", wide[n, :, i : i + 6, j : j + 5], filters[o - n][i, j])
    np.testing.assert_allclose(as_complex(layer.forward(y)), expected, atol=1e-11)  # entries of B are up to 62


def test_rings_are_those_of_the_definition():
    """One ring, point by point, in plain loops; B_0 is real, and large because points are added, not averaged."""
    total, radius = np.zeros((5, 5), complex), 1 + 2 * 2.5 / 3
    for n in range(101):
        angle = 2 * np.pi * n / 101
        row, column = -radius * np.sin(angle), radius * np.cos(angle)
        weights = np.array(
            [[np.exp(-2 * ((i - row) ** 2 + (j - column) ** 2)) for j in range(-2, 3)] for i in range(-2, 3)]
        )
        total += np.exp(-1j * angle) * weights / weights.sum()
    np.testing.assert_allclose(ring_basis(1)[2], total, atol=1e-11)
    assert np.abs(ring_basis(0).imag).max() == 0 and 62 < np.abs(ring_basis(0)).max() < 63


def test_a_turned_image_gives_turned_maps_with_a_phase(rng):
    layer = HarmonicConv.init(1, 3, rng, "float64", real=True)
    x = rng.standard_normal((1, 6, 6, 2))
    z = as_complex(layer.forward(x))
    turned = as_complex(layer.forward(np.rot90(x, axes=(1, 2)).copy()))
    np.testing.assert_allclose(turned[0], np.rot90(z[0], axes=(1, 2)), atol=1e-11)
    np.testing.assert_allclose(turned[1], -1j * np.rot90(z[1], axes=(1, 2)), atol=1e-11)


def trained_by_hand(architecture, shape, rng):
    """A network whose batch normalisation has seen a batch."""
    network = build_network(architecture, shape, 3, dtype="float64")
    replica = network.replica(training=True)
    x = replica.signal(network.prepare(rng.uniform(size=(4, *shape))))
    for place, layer in enumerate(replica.layers):
        if layer.uses_batch_statistics:
            network.layers[place].observe(layer.measure(x))
        x = layer.forward(x)
    return network


@pytest.mark.parametrize("architecture, shape", [(SMALL, (8, 8)), (PAPER, (14, 14)), ("HRC[1, 2]", (5, 5))])
def test_scores_do_not_change_when_the_image_turns_by_right_angles(architecture, shape, rng):
    network = trained_by_hand(architecture, shape, rng)
    images = rng.uniform(size=(3, *shape))
    scores = network.scores(images)
    assert scores.std() > 1e-3
    for quarters in (1, 2, 3):
        np.testing.assert_allclose(network.scores(np.rot90(images, quarters, axes=(1, 2))), scores, atol=1e-9)
    assert np.abs(network.scores(images[:, ::-1]) - scores).max() > 1e-3  # a mirror is no turn


def test_the_papers_network_is_built_as_specified():
    network = build_network(PAPER, (50, 50), 8)
    assert network.n_parameters == count_parameters(PAPER, (50, 50), 8) == 8568
    assert network.options["architecture"] == PAPER
    counts = [(type(layer).__name__, layer.n_parameters) for layer in network.layers]
    assert counts == [
        ("StandardisePixels", 0), ("HarmonicConv", 100), ("ModulusReLU", 20), ("HarmonicConv", 1000),
        ("ModulusNorm", 40), ("MeanPool", 0), ("HarmonicConv", 2000), ("ModulusReLU", 40), ("HarmonicConv", 4000),
        ("ModulusNorm", 80), ("HarmonicConv", 1280), ("InvariantHead", 8),
    ]  # fmt: skip


def test_what_is_written_out_is_the_same_network():
    full = "HRC[1, 3]-HCN[3]-HRC[3, 3]-HBN[3]-MP[2]-HRC[3, 4]-HCN[4]-HRC[4, 4]-HBN[4]"
    np.testing.assert_array_equal(build_network(full, (8, 8), 3).parameters, build_network(SMALL, (8, 8), 3).parameters)


@pytest.mark.parametrize(
    "text, message",
    [
        ("HRC[2, 3]", r"HRC\[2, 3\] at position 1 expects 2 maps, .* gives 1; write HRC\[1, 3\]"),
        ("HRC[1, 3]-HCN[4]", r"HCN\[4\] at position 11 expects 4 maps, .* gives 3; write HCN\[3\]"),
        ("HCN[1]-HRC[1, 3]", r"HCN\[1\] at position 1 takes harmonics"),
        ("HRC[1, 3]-FC[4]", r"FC\[4\] at position 11 takes features, but gets harmonics; only HRC, HCN"),
        ("HRC[1, 3]-HBN[3]-MP[9]", "at least 9x9"),
    ],
)
def test_texts_that_make_no_sense_are_refused(text, message):
    with pytest.raises(ArchitectureError, match=message):
        build_network(text, (8, 8), 3)


def test_start_values_are_those_of_the_original(rng):
    layer = HarmonicConv.init(20, 30, rng, "float64")
    radial = layer.unit * layer.params["radial"]
    assert radial.std() == pytest.approx(0.7 * np.sqrt(2 / (4 * 20 * 30)), rel=0.05)
    assert layer.params["phase"].min() >= 0 and 6.2 < layer.params["phase"].max() < 2 * np.pi
    bias, limit = ModulusReLU.init(10, rng, "float64").params["bias"], np.sqrt(6 / 22)
    assert 0.8 * limit < np.abs(bias).max() <= limit and bias.min() < 0 < bias.max()
    norm = ModulusNorm.init(2, "float64")
    assert (norm.params["gamma"] == 1).all() and (norm.params["beta"] == 0).all()
    np.testing.assert_array_equal(InvariantHead.init(3, "float64").params["bias"], 0.01)


def test_small_numbers_are_floored_as_specified():
    """Squares of moduli at 1e-4 between convolutions and 1e-12 in the head; 1e-3 is added to variances."""
    z = np.zeros((2, 2, 1, 1, 2, 1))
    z[0, 0, 0, 0] = [[1e-3], [0.3]]  # r: 0.01 and 0.3
    y = ModulusReLU(np.full((2, 1), 0.01)).forward(z)[0, 0].ravel()
    np.testing.assert_allclose(y, [2e-3, 0.31], rtol=1e-12)
    norm = ModulusNorm.init(1, "float64")
    norm.params["beta"][:] = 2
    norm.is_training = True
    variance = 0.145**2
    y = norm.forward(z)[0, 0].ravel()
    expected = (2 + np.array([-0.145, 0.145]) / np.sqrt(variance + 1e-3)) / [0.01, 0.3] * [1e-3, 0.3]
    np.testing.assert_allclose(y, expected, rtol=1e-12)
    np.testing.assert_allclose(InvariantHead(np.zeros(1)).forward(np.zeros_like(z)), [[2e-6]], rtol=1e-12)


def test_arrays_and_maps_that_do_not_fit_are_refused(rng):
    shape = (2, 2, 2, 4, 4, 1)
    for wrong in (
        np.zeros((2, 2, 3, 4, 4, 1)), np.zeros((2, 4, 4, 1)), np.zeros(shape, int), np.zeros(shape, np.float16),
        np.zeros((2, 2, 2, 4, 4, 0)), "z",
    ):  # fmt: skip
        for layer in (
            HarmonicConv(np.zeros((2, 4, 2, 1)), None),
            ModulusReLU(np.zeros((2, 2))),
            ModulusNorm.init(2, "float64"),
            InvariantHead(np.zeros(2)),
        ):
            with pytest.raises(ShapeError, match=r"expects real planes of shape \(2, 2, 2, H, W, B\), float32"):
                layer.forward(wrong)
    with pytest.raises(ShapeError, match="needs radial"):
        HarmonicConv(np.zeros((2, 3, 2, 1)), None)
    with pytest.raises(ShapeError, match="needs a bias"):
        ModulusReLU(np.zeros(2))
    with pytest.raises(ShapeError, match="needs gamma and beta"):
        ModulusNorm(np.zeros((2, 2)), np.zeros((2, 3)), *[np.zeros((2, 2))] * 2, np.zeros(1))
    with pytest.raises(UsageError, match="at least one pixel"):
        MeanPool(0)


def test_normalised_moduli_have_mean_0_and_variance_1(rng):
    layer = ModulusNorm.init(3, "float64")
    layer.params["beta"][:] = 50  # so that nothing is cut off
    layer.is_training = True
    z = rng.standard_normal((2, 2, 3, 4, 5, 6))
    moduli = np.sqrt(np.square(layer.forward(z)).sum(axis=1)) - 50
    np.testing.assert_allclose(moduli.mean(axis=(2, 3, 4)), 0, atol=1e-12)
    np.testing.assert_allclose(moduli.var(axis=(2, 3, 4)), 1, rtol=0.02)  # 1e-3 is added to a variance of 0.4


def test_running_averages_are_true_means_from_the_first_step_on(rng):
    layer = ModulusNorm.init(1, "float64")
    z = rng.standard_normal((2, 2, 1, 4, 4, 3))
    r = np.sqrt(np.maximum(np.square(z).sum(axis=1), 1e-4))
    for _ in range(3):  # the same batch again and again: its own mean, whatever the step
        layer.observe(layer.measure(z))
        mean = layer.state["running_mean"] / layer.state["total"]
        np.testing.assert_allclose(mean, r.mean(axis=(2, 3, 4)), rtol=1e-12)
    fixed = layer.forward(z)
    layer.is_training = True
    np.testing.assert_allclose(fixed, layer.forward(z), rtol=1e-10)
    layer.observe(layer.measure(2 * z))  # three steps ago counts 0.99^3 times as much as now
    weights = 0.99 ** np.arange(4)
    mean = layer.state["running_mean"] / layer.state["total"]
    expected = weights @ [2, 1, 1, 1] / weights.sum() * r.mean(axis=(2, 3, 4))
    np.testing.assert_allclose(mean, expected, rtol=1e-2)  # the floor does not double
    assert layer.state["total"][0] == pytest.approx(1 - 0.99**4, rel=1e-12)


def test_a_batch_in_parts_has_the_gradient_of_the_whole_batch(rng):
    """70 images are three micro-batches; the reference takes them at once."""
    images, labels = rng.uniform(size=(70, 6, 6)), rng.integers(0, 3, 70)
    network = build_network("HRC[1, 2]-HCN[2]-HRC[2, 2]", (6, 6), 3, dtype="float64")
    network.calibrate(images)
    whole = network.replica(training=True)
    loss, grad = negative_log_likelihood(whole.forward(whole.signal(network.prepare(images))), labels)
    whole.backward(grad)
    results = []
    for threads in (1, 2, 4):
        twin = network.with_parameters(network.learned)
        split = tigra.Split(images, labels)
        splits = tigra.Splits("parts", split, split, split, split, list("012"), None)
        training = tigra.Training(twin, splits, tigra.FitOptions(epochs=1, batch_size=70), threads)
        with Workers(threads) as workers:
            replicas = [twin.replica(False, training=True) for _ in range(threads)]
            got_loss, _, gradient = training.gradient(np.arange(70), workers, replicas)
        assert got_loss == pytest.approx(float(loss), rel=1e-12)
        np.testing.assert_allclose(gradient, whole.gradients, atol=1e-10)
        results.append((gradient.copy(), twin.learned))
    for gradient, learned in results[1:]:
        np.testing.assert_array_equal(gradient, results[0][0])
        np.testing.assert_array_equal(learned, results[0][1])


def test_training_is_the_same_for_any_number_of_threads_and_can_be_resumed(small_splits, tmp_path):
    def started(threads):
        network = build_network("HRC[1, 2]-HCN[2]-HRC[2, 2]", (14, 14), 3)
        options = tigra.FitOptions(epochs=3, batch_size=40, learning_rate=0.01)
        return tigra.Training(network, small_splits, options, threads)

    one, two = started(1), started(2)
    for _ in one.run():
        pass
    assert meeting_places(one.network) == [4]
    runs = two.run()
    next(runs)
    runs.close()  # stopped after one epoch, and kept in a file
    save(two.best_network(), tmp_path / "half.npz", resume=two.snapshot())
    model = load_model(tmp_path / "half.npz")
    again = tigra.Training(model.network, small_splits, two.options, 2)
    again.restore(*model.resume)
    for _ in again.run():
        pass
    np.testing.assert_array_equal(again.current, one.current)
    np.testing.assert_array_equal(again.network.learned, one.network.learned)
    assert one.network.layers[4].state["total"][0] > 0
    save(one.best_network(), tmp_path / "whole.npz")
    loaded = tigra.load(tmp_path / "whole.npz")
    images = small_splits.test.images
    np.testing.assert_array_equal(loaded.scores(images), one.network.scores(images, threads=2))


@pytest.mark.slow
def test_it_learns(small_splits):
    network = build_network(SMALL, (14, 14), 3)
    for epoch in tigra.fit(network, small_splits, threads=2, epochs=25, batch_size=12, learning_rate=0.05):
        last = epoch
    assert last.accuracy > 0.8
    turned = network.predict(np.rot90(small_splits.train.images, axes=(1, 2)).copy())
    np.testing.assert_array_equal(turned, network.predict(small_splits.train.images))
