"""Convolutional networks: their texts, their parameters, plain loops, learning, and every command's needs."""

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
from tigra.baselines import Conv, Flatten, MaxPool, StandardisePixels
from tigra.layers import Dense, ReLU

SMALL = "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]"
LARGE = "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]"


@pytest.mark.parametrize(
    "text, side, n_classes, expected",
    [(SMALL, 28, 3, 9_621), (LARGE, 26, 9, 433_729), (LARGE, 34, 9, 673_729), (LARGE, 50, 8, 1_393_628)],
)
def test_the_papers_convnets_have_as_many_parameters_as_specified(text, side, n_classes, expected):
    network = build_network(text, (side, side), n_classes)
    assert network.n_parameters == count_parameters(text, (side, side), n_classes) == expected
    assert network.options["architecture"] == text


def test_layers_follow_the_text_and_what_goes_without_saying_is_added():
    kinds = [type(layer) for layer in build_network("C[2]-P[2]-FC[4]", (6, 6), 2).layers]
    assert kinds == [StandardisePixels, Conv, ReLU, MaxPool, Flatten, Dense, ReLU, Dense]
    kinds = [type(layer) for layer in build_network("C[2]", (6, 6), 2, standardise=False).layers]
    assert kinds == [Conv, ReLU, Flatten, Dense]


@pytest.mark.parametrize(
    "text, message",
    [
        ("P[2]-C[3]", r"C\[3\] at position 6 needs planes of at least 3x3 pixels, got 2x3"),
        ("P[5]-FC[2]", r"P\[5\] at position 1 needs planes of at least 5x5 pixels, got 4x6"),
        ("P[16]-FC[2]", "at most 15"),
        ("C[3]-SC[2, 1]-S[1]", r"SC\[2, 1\] at position 6 takes maps, but gets planes"),
        ("SC[2, 1]-C[3]", r"C\[3\] at position 10 takes planes, but gets maps"),
        ("C[3]-S[2]", r"S\[2\] at position 6 takes maps"),
        ("FC[3]", "takes features, but gets an image"),
        ("C[3]-HCN[3]", "takes harmonics, but gets planes; C, P and ST layers come first"),
        ("C[3]-FC[99999999]", "parameters"),
    ],
)
def test_layers_that_do_not_fit_together_are_refused(text, message):
    with pytest.raises(ArchitectureError, match=message):
        build_network(text, (4, 6), 2)


def test_convolution_is_the_sum_as_written(rng):
    weight, bias, x = rng.standard_normal((2, 3, 3, 3)), rng.standard_normal(2), rng.standard_normal((3, 5, 4, 2))
    z = Conv(weight, bias).forward(x)
    for o, i, j, b in np.ndindex(z.shape):
        assert z[o, i, j, b] == pytest.approx(bias[o] + np.sum(weight[o] * x[:, i : i + 3, j : j + 3, b]), rel=1e-12)


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((2, 4, 4, 1)),
        np.zeros((3, 2, 4, 1)),
        np.zeros((3, 4, 4, 0)),
        np.zeros((3, 4, 4, 1), np.float16),
        np.zeros((3, 4, 4)),
        "x",
        None,
    ],
)
def test_planes_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ShapeError, match=r"Conv expects real planes of shape \(3, H, W, B\), H and W at least 3"):
        Conv(np.zeros((1, 3, 3, 3)), np.zeros(1)).forward(wrong)
    with pytest.raises(ShapeError, match="real planes"):
        Conv(np.zeros((1, 3, 3, 3)), np.zeros(1)).forward(np.zeros((3, 4, 4, 1), int))


def test_filters_of_another_shape_and_pools_without_a_size_are_refused():
    with pytest.raises(ShapeError, match=r"weight \(O, C, size, size\)"):
        Conv(np.zeros((1, 3, 3, 2)), np.zeros(1))
    for size in (0, 16, 2.5, "2"):
        with pytest.raises(UsageError, match="1 to 15 pixels"):
            MaxPool(size)


def test_start_values_of_he_and_of_the_paper():
    he = build_network(LARGE, (26, 26), 9, dense_init="he")
    weights = [layer.params["weight"] for layer in he.layers if isinstance(layer, Dense)]
    for weight in weights:  # the last one as well
        limit = np.sqrt(6 / weight.shape[1])
        assert 0.98 * limit < np.abs(weight).max() <= limit
    paper = build_network(LARGE, (26, 26), 9, dense_init="paper")
    for layer in paper.layers:
        if isinstance(layer, Dense):
            assert 0.9 < np.abs(layer.params["weight"]).max() <= 1 and layer.params["bias"].any()
        if isinstance(layer, Conv):
            limit = np.sqrt(6 / layer.params["weight"][0].size)
            assert 0.95 * limit < np.abs(layer.params["weight"]).max() <= limit and not layer.params["bias"].any()


def test_pixels_are_standardised_by_the_training_set(small_splits):
    network = build_network("C[2]-FC[4]", (14, 14), 3)
    tigra.Training(network, small_splits, tigra.FitOptions(epochs=1))
    state, pixels = network.layers[0].state, small_splits.train.images
    assert state["mean"] == pytest.approx(pixels.mean(), rel=1e-5)  # float32
    assert state["deviation"] == pytest.approx(pixels.std(), rel=1e-5)
    network.layers[0].calibrate(np.full(5, 0.3))
    assert state["deviation"] == 1  # equal pixels are only centred


def test_a_convnet_learns_twenty_digits_by_heart(small_splits):
    few = tigra.Split(small_splits.train.images[:20], small_splits.train.labels[:20])
    network = build_network("C[4]-P[2]-C[6]-FC[16]", (14, 14), 3, dense_init="he")
    options = {"epochs": 60, "batch_size": 20, "learning_rate": 0.01}
    for epoch in tigra.fit(network, tigra.Splits("few", few, few, few, few, list("012"), None), **options):
        last = epoch
    assert last.accuracy == 1 and last.loss < 0.05


def test_float32_agrees_with_float64(small_splits):
    images = small_splits.train.images[:8]
    double = build_network("C[4]-P[2]-C[6]-FC[16]", (14, 14), 3, dtype="float64", dense_init="he")
    single = build_network("C[4]-P[2]-C[6]-FC[16]", (14, 14), 3, dense_init="he")
    np.testing.assert_allclose(single.scores(images), double.scores(images), rtol=1e-4, atol=1e-5)  # float32


def test_a_trained_convnet_is_saved_and_loaded_with_any_number_of_threads(small_splits, tmp_path):
    results = []
    for threads in (1, 2, 3):
        network = build_network("C[4]-P[2]-FC[8]", (14, 14), 3)
        list(tigra.fit(network, small_splits, threads=threads, epochs=2, batch_size=40))
        tigra.save(network, tmp_path / "net.npz")
        results.append(tigra.load(tmp_path / "net.npz").scores(small_splits.test.images, threads))
        np.testing.assert_array_equal(results[-1], results[0])
