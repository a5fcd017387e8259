"""What figures show, held against definitions and plain loops: no drawing here."""

from itertools import pairwise

import numpy as np
import pytest

import tigra
from tigra.datasets.loading import load_dataset
from tigra.errors import UsageError
from tigra.figures import inspection
from tigra.figures.exhibit import MOST_TESTED, exhibit
from tigra.figures.inspection import (
    chebyshev_signals,
    confusion_matrix,
    filter_banks,
    full_turn,
    highest_frequency,
    steps,
)
from tigra.images.transforms import rotate
from tigra.layers.spectral_conv import spectral_windows
from tigra.model_file import load_model
from tigra.models.build import build_network
from tigra.theory.fourier import polynomial_response


@pytest.fixture
def network(small_network, small_splits):
    """A network that has learned for one epoch."""
    network = small_network(dtype="float64", margin=1, smoothing=0.5)
    list(tigra.fit(network, small_splits, epochs=1, learning_rate=0.02))
    return network


# --- filters --------------------------------------------------------------------------------------------


def test_a_filter_multiplies_each_eigenvector_by_its_response(rng):
    graph = tigra.grid_graph((4, 5), diagonal_weight=0.25)
    frequencies, vectors = np.linalg.eigh(graph.laplacian.toarray())
    alpha = rng.uniform(-1, 1, (3, 5))
    layer = tigra.SpectralConv(graph, alpha, np.ones(1))
    signal = tigra.GraphSignal(vectors[None], np.ones((1, 20, 20), bool))
    filtered = layer.forward(signal).values  # all eigenvectors as a batch
    np.testing.assert_allclose(filtered, polynomial_response(alpha, frequencies)[:, None] * vectors, atol=1e-12)


def test_filter_response_is_the_sum_of_powers(rng):
    alpha, frequencies = rng.uniform(-1, 1, (2, 4)), rng.uniform(0, 2, 7)
    expected = [[sum(a * lam**m for m, a in enumerate(row)) for lam in frequencies] for row in alpha]
    np.testing.assert_allclose(polynomial_response(alpha, frequencies), expected, atol=1e-13)


def test_start_values_are_those_that_the_training_began_with(small_network, small_splits, tmp_path):
    network = small_network(seed=5, mixing="full")
    before = network.parameters.copy()
    list(tigra.fit(network, small_splits, epochs=1, learning_rate=0.02))
    tigra.save(network, tmp_path / "model.npz")
    loaded = tigra.load(tmp_path / "model.npz")
    assert (inspection.start_network(loaded).parameters == before).all()
    assert (loaded.parameters != before).any()


def test_filter_banks_hold_learned_and_start_values_of_every_spectral_layer(network):
    first, second = filter_banks(network, n_frequencies=5)
    assert (first.name, second.name) == ("SC[2, 2]", "SC[3, 2]")
    for bank, layer in ((first, network.layers[0]), (second, network.layers[2])):
        np.testing.assert_array_equal(bank.learned, polynomial_response(layer.params["alpha"], bank.frequencies))
        windows = spectral_windows(*layer.params["alpha"].shape - np.array([0, 1]))
        np.testing.assert_allclose(bank.start, polynomial_response(windows, bank.frequencies), atol=1e-12)
        assert np.abs(bank.learned - bank.start).max() > 1e-4


def test_squared_gradients_are_no_part_of_a_filter(small_network, small_splits):
    network = small_network(dtype="float64", mixing="gradients")
    network.calibrate(small_splits.train.images)
    banks = filter_banks(network, 5)
    assert [bank.name for bank in banks] == ["SC[2, 2]", "SC[3, 2]"]
    for layer in network.layers:
        if isinstance(layer, tigra.PairedConv):
            layer.params["alpha"][:, -1] += 1  # the weights of the gradients
    for bank, before in zip(filter_banks(network, 5), banks, strict=True):
        np.testing.assert_array_equal(bank.learned, before.learned)


def test_responses_of_paired_filters_are_those_to_equal_input_maps_before_the_rectifier(small_network, small_splits):
    network = small_network(dtype="float64", mixing="pairs")
    network.calibrate(small_splits.train.images)
    for layer in network.layers:
        if isinstance(layer, tigra.PairedConv):
            layer.params["alpha"] *= 1.5  # learned: s_i stay those of the start
            assert not layer.needs_calibration
    frequencies, vectors = np.linalg.eigh(network.graph.laplacian.toarray())
    chosen = [0, 40, 120]
    for number, (bank, place) in enumerate(zip(filter_banks(network, 5), (0, 2), strict=True), start=1):
        layer = network.layers[place]
        n_in = layer.params["alpha"].shape[2]
        equal = np.repeat(vectors[None, :, chosen], n_in, axis=0)
        sums = layer.sums(tigra.GraphSignal(equal, np.ones(equal.shape, bool))).reshape(-1, *equal.shape[1:])
        response = polynomial_response(layer.filter_coefficients(layer.params), frequencies[chosen])
        np.testing.assert_allclose(sums, response[:, None] * vectors[:, chosen], atol=1e-10)
        np.testing.assert_allclose(bank.start, bank.learned / 1.5, atol=1e-12)
        np.testing.assert_array_equal(
            bank.learned, polynomial_response(layer.filter_coefficients(layer.params), bank.frequencies)
        )
        assert bank.is_sum and bank.number == number


def test_layers_of_one_name_are_numbered(small_splits):
    network = build_network("SC[2, 2]-DP[60]-SC[2, 2]-DP[60]-S[1]", (14, 14), 3)
    taken = steps(network, small_splits.test.images[:1])
    named = [(step.name, step.number) for step in taken]
    assert named == [("image", 0), ("SC[2, 2]", 1), ("DP[60]", 1), ("SC[2, 2]", 2), ("DP[60]", 2)]
    assert [(bank.number, bank.is_sum) for bank in filter_banks(network)] == [(1, False), (2, False)]


@pytest.mark.parametrize("options", [{}, {"boundary": "free"}, {"neighbours": 4}, {"diagonal_weight": 0.25}])
@pytest.mark.parametrize("shape", [(1, 2), (6, 5)])
def test_the_highest_frequency_is_the_largest_eigenvalue(shape, options):
    graph = tigra.grid_graph(shape, **options)
    assert highest_frequency(graph) == pytest.approx(np.linalg.eigvalsh(graph.laplacian.toarray()).max(), abs=1e-3)


# --- maps -----------------------------------------------------------------------------------------------


def test_steps_are_the_outputs_of_the_layers(network, small_splits):
    images = small_splits.test.images[:4]
    taken = steps(network, images, most_maps=2)
    assert [step.name for step in taken] == ["image", "SC[2, 2]", "DP[60]", "SC[3, 2]", "DP[30]"]
    signal = network.signal(network.prepare(images))
    np.testing.assert_array_equal(taken[0].values[:, 0].reshape(4, -1), signal.values[0].T)
    for step, layer in zip(taken[1:], network.layers, strict=False):
        signal = layer.forward(signal)
        layer.forget()
        assert step.values.shape == step.active.shape == (4, 2, 16, 16) and step.n_maps == len(signal.values)
        sets = np.broadcast_to(signal.active, signal.values.shape)
        for place, i in enumerate(step.maps):
            np.testing.assert_allclose(step.values[:, place].reshape(4, -1), signal.values[i].T, atol=1e-12)
            np.testing.assert_array_equal(step.active[:, place].reshape(4, -1), sets[i].T)
        np.testing.assert_array_equal(step.counts.reshape(4, -1), sets.sum(axis=0).T)


def test_active_nodes_only_become_fewer_and_inactive_ones_are_zero(network, small_splits):
    taken = steps(network, small_splits.test.images[:3], most_maps=9)
    for earlier, later in pairwise(taken):
        assert not ((later.counts > 0) & (earlier.counts == 0)).any()
    pooled = taken[-1]
    assert (pooled.values[~pooled.active] == 0).all() and pooled.active.sum(axis=(2, 3)).max() <= 30


def test_maps_and_active_sets_turn_with_the_image(network, small_splits):
    image = small_splits.test.images[0]
    for step in steps(network, np.stack([image, np.rot90(image)]), most_maps=9):
        np.testing.assert_allclose(step.values[1], np.rot90(step.values[0], axes=(1, 2)), atol=1e-12)
        np.testing.assert_array_equal(step.counts[1], np.rot90(step.counts[0]))


# --- statistics -------------------------------------------------------------------------------------------


def test_moments_are_those_of_the_chebyshev_signals(network, small_splits):
    for number in (None, 1):
        shown = chebyshev_signals(network, small_splits.test.images[0], number)
        assert number is None or shown.map == number
        sizes = np.abs(shown.signals).reshape(len(shown.signals), -1)
        np.testing.assert_allclose(shown.moments[shown.map, :, 0], sizes.mean(axis=1), atol=1e-12)
        np.testing.assert_allclose(shown.moments[shown.map, :, 1], sizes.var(axis=1), atol=1e-12)


def test_a_full_turn_is_exact_at_right_angles(network, small_splits):
    turn = full_turn(network, small_splits.test.images[0], n_angles=8)
    np.testing.assert_array_equal(turn.degrees, np.arange(0, 361, 45))
    np.testing.assert_allclose(turn.features[::2], np.tile(turn.features[0], (5, 1)), atol=1e-12)
    np.testing.assert_allclose(turn.probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_array_equal(turn.images[1], rotate(small_splits.test.images[:1], 45)[0])
    assert np.abs(turn.features[1] - turn.features[0]).max() > 1e-4, "between them it is interpolated"


def test_training_units_are_what_the_dense_layers_see(network, small_splits, small_network):
    features = network.features(small_splits.test.images)
    place = [isinstance(layer, tigra.Standardise) for layer in network.layers].index(True)
    scaled, is_in_deviations = inspection.in_training_units(network, features)
    np.testing.assert_allclose(scaled, network.layers[place].forward(features.T).T, atol=1e-12)
    assert is_in_deviations
    plain = small_network(standardise=False)
    scaled, is_in_deviations = inspection.in_training_units(plain, plain.features(small_splits.test.images))
    assert not is_in_deviations and 0 < np.abs(scaled).max() <= 1


def test_lively_pixels_are_standardised_by_the_images(rng):
    images = rng.uniform(0, 1, (200, 3, 3)) * np.array([1, 1, 0.1])
    values = inspection.lively_pixels(images, images, most=9)
    assert values.shape == (200, 6), "the last column hardly varies"
    np.testing.assert_allclose([values.mean(axis=0), values.std(axis=0)], [[0] * 6, [1] * 6], atol=1e-12)


# --- the exhibit ------------------------------------------------------------------------------------------


def test_confusion_counts_every_pair():
    labels, predicted = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 2, 1, 2, 0, 2])
    expected = np.zeros((4, 4), int)
    for row, column in zip(labels, predicted, strict=True):
        expected[row, column] += 1
    np.testing.assert_array_equal(confusion_matrix(labels, predicted, 4), expected)


def test_an_exhibit_agrees_with_the_network_and_with_itself(network, small_splits):
    shown = exhibit(network, small_splits)
    assert shown.accuracy == pytest.approx(tigra.accuracy(network, small_splits.test), abs=1e-12)
    assert np.trace(shown.confusion) == (~shown.is_wrong).sum() and shown.confusion.sum() == 24
    np.testing.assert_array_equal(shown.confusion.sum(axis=1), np.bincount(small_splits.test.labels, minlength=3))
    right = network.predict(small_splits.test_upright.images) == small_splits.test_upright.labels
    assert right[shown.subject] and not right[: shown.subject].any()
    assert exhibit(network, small_splits, chosen=7).subject == 7
    assert (small_splits.test.labels[shown.one_of_each_class(3)] == [0, 1, 2]).all()
    with pytest.raises(UsageError, match="must be from 0 to 23, got 24"):
        exhibit(network, small_splits, chosen=24)


def test_of_many_test_images_an_even_choice_is_taken(network, small_splits):
    rows = np.arange(3 * MOST_TESTED) % 24
    many = tigra.Split(small_splits.test.images[rows], small_splits.test.labels[rows])
    splits = tigra.Splits("many", many, many, many, many, ["0", "1", "2"], transform=None)
    shown = exhibit(network, splits, chosen=1)
    assert len(shown.test.labels) == MOST_TESTED + 1 and shown.n_available == 3 * MOST_TESTED
    np.testing.assert_array_equal(shown.subject_image, many.images[1])


def test_a_history_comes_from_the_model_file_and_one_that_cannot_be_right_is_left_out(network, small_splits, tmp_path):
    record = {"number": 1, "loss": 1.0, "accuracy": 0.5, "valid_loss": 1.0, "valid_error": 0.1, "valid_accuracy": 0.5}
    right = record | {"best": True}
    tigra.save(network, tmp_path / "model.npz", {"history": [right]})
    training = load_model(tmp_path / "model.npz").training
    assert [epoch.number for epoch in exhibit(network, small_splits, training).history] == [1]
    for wrong in ([record], [right | {"number": 2}], ["epoch"], [right | {"loss": "low"}], [right | {"loss": 1e999}]):
        assert exhibit(network, small_splits, {"history": wrong}).history == []
    assert exhibit(network, small_splits).history == []


@pytest.mark.parametrize("architecture", ["C[2]-P[2]-FC[4]", "HRC[1, 2]-HCN[2]-HRC[2, 2]"])
def test_networks_without_filters_and_statistics_are_refused(architecture):
    network = build_network(architecture, (28, 28), n_classes=3)
    with pytest.raises(UsageError, match="need a TIGraNet"):
        exhibit(network, load_dataset("mnist-012"))
