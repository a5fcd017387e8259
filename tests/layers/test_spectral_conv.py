"""Spectral convolution against the equations written as plain loops with dense matrices."""

import numpy as np
import pytest

import tigra
from tigra import GraphSignal, ShapeError, SpectralConv, UsageError, grid_graph
from tigra.layers.spectral_conv import spectral_windows

GRAPH = grid_graph((3, 4), diagonal_weight=0.3)
CASES = [("map", "vector", 3), ("map", "vector", 1), ("union", "vector", 3), ("map", "full", 3), ("union", "full", 3)]
EACH_CASE = pytest.mark.parametrize("active, mixing, n_sets", CASES)


def make(rng, active, mixing, n_sets, graph=GRAPH):
    alpha = rng.standard_normal((4, 3))
    beta = rng.standard_normal(3 if mixing == "vector" else (4, 3))
    sets = rng.uniform(size=(n_sets, graph.n_nodes, 2)) < 0.6
    signal = GraphSignal(rng.standard_normal((3, graph.n_nodes, 2)), sets)
    return SpectralConv(graph, alpha, beta, active), signal


def as_printed(layer, signal):
    """Eqs. (10)-(12), image by image, filter by filter, map by map: sum_k beta_k 1[N_k] (F_i y_k)."""
    alpha, beta = layer.params["alpha"], layer.params["beta"]
    y, sets = signal
    laplacian = layer.graph.laplacian.toarray()
    z = np.zeros((len(alpha), *y.shape[1:]))
    for b in range(y.shape[2]):
        for i in range(len(alpha)):
            operator = sum(alpha[i, m] * np.linalg.matrix_power(laplacian, m) for m in range(alpha.shape[1]))
            for k in range(len(y)):
                chosen = sets[:, :, b].any(axis=0) if layer.active_set == "union" else sets[min(k, len(sets) - 1), :, b]
                columns_kept = operator * chosen  # Eq. (11): columns outside N_k are set to zero
                weight = beta[k] if beta.ndim == 1 else beta[i, k]
                z[i, :, b] += weight * (columns_kept.T @ y[k, :, b])
    return z


@EACH_CASE
@pytest.mark.parametrize("boundary", ["padded", "free"])
def test_forward_is_the_equations(active, mixing, n_sets, boundary, rng):
    layer, signal = make(rng, active, mixing, n_sets, grid_graph((3, 4), diagonal_weight=0.3, boundary=boundary))
    z, omega = layer.forward(signal)
    np.testing.assert_allclose(z, as_printed(layer, signal), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(omega, signal.active.any(axis=0, keepdims=True))


@EACH_CASE
def test_backward_is_the_corrected_equations(active, mixing, n_sets, rng):
    """Eqs. (15)-(17) with their sums, as loops over filters, maps, powers and images."""
    layer, signal = make(rng, active, mixing, n_sets)
    alpha, beta = layer.params["alpha"], layer.params["beta"]
    y, sets = signal
    grad_z = rng.standard_normal(layer.forward(signal).values.shape)
    grad_y = layer.backward(grad_z)
    laplacian = GRAPH.laplacian.toarray()
    expected = {"alpha": np.zeros_like(alpha), "beta": np.zeros_like(beta), "y": np.zeros_like(y)}
    for b in range(y.shape[2]):
        for k in range(len(y)):
            chosen = sets[:, :, b].any(axis=0) if active == "union" else sets[min(k, len(sets) - 1), :, b]
            for i in range(len(alpha)):
                at = k if mixing == "vector" else (i, k)
                for m in range(alpha.shape[1]):
                    power = np.linalg.matrix_power(laplacian, m)
                    response = chosen * (power @ y[k, :, b])
                    expected["alpha"][i, m] += beta[at] * response @ grad_z[i, :, b]
                    expected["beta"][at] += alpha[i, m] * response @ grad_z[i, :, b]
                    expected["y"][k, :, b] += beta[at] * alpha[i, m] * power @ (chosen * grad_z[i, :, b])
    np.testing.assert_allclose(layer.grads["alpha"], expected["alpha"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(layer.grads["beta"], expected["beta"], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(grad_y, expected["y"], rtol=1e-12, atol=1e-12)


def test_full_mixing_with_equal_rows_is_vector_mixing(rng):
    layer, signal = make(rng, "map", "vector", 3)
    full = SpectralConv(GRAPH, layer.params["alpha"], np.tile(layer.params["beta"], (4, 1)))
    np.testing.assert_allclose(full.forward(signal).values, layer.forward(signal).values, rtol=1e-12, atol=1e-12)


def test_start_values_cover_the_spectrum_from_low_to_high():
    """Each window is 1 on its own part of [0, 2]; a polynomial of high degree comes near it."""
    frequencies = np.linspace(0, 2, 201)
    alpha = spectral_windows(3, 9)
    responses = alpha @ frequencies ** np.arange(10)[:, None]
    centres = [frequencies[np.argmax(response)] for response in responses]
    assert centres == sorted(centres) and responses.max(axis=0).min() > 0.4
    inside = (frequencies > 0.55) & (frequencies < 1.45)  # the middle window is [0.5, 1.5]
    assert np.abs(responses[1][inside] - 1).mean() < 0.2 and np.abs(responses[1][~inside]).mean() < 0.2


def test_start_values_are_the_least_squares_fit():
    frequencies = (np.arange(1000) + 0.5) / 500
    window = (frequencies >= 2 / 3) & (frequencies <= 2)
    expected = np.polynomial.polynomial.polyfit(frequencies, window.astype(float), 3)
    np.testing.assert_allclose(spectral_windows(2, 3)[1], expected, rtol=1e-9)


def test_start_values_that_are_0_are_exactly_0_and_mirrored_windows_agree():
    assert spectral_windows(3, 3)[1, 3] == 0 and (spectral_windows(1, 4) == [[1, 0, 0, 0, 0]]).all()
    low, _, high = spectral_windows(3, 4)
    np.testing.assert_allclose(
        np.polynomial.Polynomial(low)(2 - np.arange(3)), np.polynomial.Polynomial(high)(np.arange(3))
    )


def test_beta_starts_uniform_in_0_to_1():
    layer = SpectralConv.init(GRAPH, 1000, 2, 1, np.random.default_rng(0), "float64")
    beta = layer.params["beta"]
    assert 0 <= beta.min() < 0.01 and 0.99 < beta.max() <= 1 and abs(beta.mean() - 0.5) < 0.05


def test_maps_on_another_graph_are_refused(rng):
    layer, signal = make(rng, "map", "vector", 3)
    with pytest.raises(ShapeError, match=r"\(3, 12, B\).*got float64 \(3, 10, 2\).*another image size"):
        layer.forward(GraphSignal(signal.values[:, :10], signal.active[:, :10]))


@pytest.mark.parametrize("mistake", [{"active_set": "some"}, {"mixing": "none"}])
def test_unknown_options_are_refused(mistake):
    with pytest.raises(UsageError, match="must be"):
        tigra.build_network("SC[2, 1]-S[1]", (3, 3), 2, **mistake)


def test_alpha_and_beta_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"alpha of shape \(K_out, M\+1\)"):
        SpectralConv(GRAPH, np.zeros((2, 3)), np.zeros((3, 1)))
