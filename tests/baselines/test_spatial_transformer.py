"""The spatial transformer: what its maps do to pictures, its start, its texts, and its place in networks."""

import numpy as np
import pytest
from scipy import ndimage

import tigra
from tigra import (
    ArchitectureError,
    ShapeError,
    UsageError,
    build_network,
    count_parameters,
)
from tigra.baselines import SpatialTransformer
from tigra.baselines.planes.kernels import bilinear, gather
from tigra.baselines.planes.spatial_transformer import target_grid

SMALL = "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]"
LARGE = "C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]"


class FullSize(SpatialTransformer):
    """A transformer that does not halve its planes, with the same theta for every image."""

    def __init__(self, shape, theta, outside="zeros"):
        n_pooled = shape[0] * (shape[1] // 2) * (shape[2] // 2)
        arrays = np.zeros((1, n_pooled)), np.zeros(1), np.zeros((6, 1)), np.asarray(theta, float).ravel()
        super().__init__(shape, *arrays, outside)
        self.full = shape[1:]
        self.grid = target_grid(self.full)

    def forward(self, x):
        z = np.empty(x.shape)
        theta = np.repeat(self.params["theta_bias"][:, None], x.shape[3], axis=1)
        corners, weights, slopes = (
            np.empty((self.grid.shape[1], 4, x.shape[3]), np.int32),
            np.empty((self.grid.shape[1], 4, x.shape[3])),
            np.empty((2, self.grid.shape[1], 4, x.shape[3])),
        )
        bilinear(self._places(theta), *self.full, self.outside == "border", corners, weights, slopes)
        gather(x.reshape(len(x), -1, x.shape[3]), corners, weights, z.reshape(len(x), -1, x.shape[3]))
        return z


def moved(x, theta, outside="zeros"):
    return FullSize(x.shape[:3], theta, outside).forward(x)


def test_the_identity_gives_the_planes_back(rng):
    x = rng.standard_normal((2, 5, 6, 3))
    np.testing.assert_allclose(moved(x, [[1, 0, 0], [0, 1, 0]]), x, atol=1e-13)


def test_a_quarter_turn_is_rot90(rng):
    x = rng.standard_normal((2, 6, 6, 3))
    np.testing.assert_allclose(moved(x, [[0, -1, 0], [1, 0, 0]]), np.rot90(x, axes=(1, 2)), atol=1e-13)


def test_a_shift_by_one_pixel_moves_the_content_by_one(rng):
    x = rng.standard_normal((1, 4, 5, 2))
    shifted = moved(x, [[1, 0, 2 / 4], [0, 1, 0]])  # reads one column further right
    np.testing.assert_allclose(shifted[:, :, :-1], x[:, :, 1:], atol=1e-13)
    assert np.abs(shifted[:, :, -1]).max() < 1e-13


@pytest.mark.parametrize("outside, mode", [("zeros", "grid-constant"), ("border", "nearest")])
def test_values_agree_with_scipy(outside, mode, rng):
    x, theta = rng.standard_normal((1, 5, 7, 1)), np.array([[0.9, 0.7, 0.2], [-0.6, 1.1, 0.1]])
    columns, rows = theta @ target_grid((5, 7))
    places = (rows + 1) * 2, (columns + 1) * 3
    expected = ndimage.map_coordinates(x[0, ..., 0], places, order=1, mode=mode)
    np.testing.assert_allclose(moved(x, theta, outside).ravel(), expected, atol=1e-13)


def test_it_starts_as_the_identity_for_every_image(rng):
    layer = SpatialTransformer.init((2, 8, 6), 4, rng, "float64")
    theta = layer.theta(rng.standard_normal((2, 8, 6, 3)))
    np.testing.assert_array_equal(theta, np.repeat([[[1], [0], [0]], [[0], [1], [0]]], 3, axis=2))
    weight, limit = layer.params["hidden_weight"], np.sqrt(6 / (2 * 4 * 3))
    assert 0.9 * limit < np.abs(weight).max() <= limit and not layer.params["hidden_bias"].any()


@pytest.mark.parametrize(
    "text, side, n_classes, expected",
    [(SMALL, 28, 3, 16_343), (LARGE, 26, 9, 496_269), (LARGE, 34, 9, 787_469), (LARGE, 50, 8, 1_655_848)],
)
def test_the_papers_networks_have_as_many_parameters_as_specified(text, side, n_classes, expected):
    network = build_network(text, (side, side), n_classes)
    assert network.n_parameters == count_parameters(text, (side, side), n_classes) == expected
    assert network.options["architecture"] == text


@pytest.mark.parametrize(
    "text, message", [("ST[7]-FC[2]", "write ST.6."), ("ST[5]-FC[2]", "at least 6"), ("P[3]-ST[6]", "2x2 pixels")]
)
def test_texts_that_make_no_sense_are_refused(text, message):
    with pytest.raises(ArchitectureError, match=message):
        build_network(text, (4, 5), 2)


def test_arrays_planes_and_options_that_do_not_fit_are_refused(rng):
    with pytest.raises(ShapeError, match="needs arrays of shapes"):
        SpatialTransformer((1, 4, 4), np.zeros((2, 3)), np.zeros(2), np.zeros((6, 2)), np.zeros(6))
    with pytest.raises(UsageError, match="zeros, border"):
        SpatialTransformer.init((1, 4, 4), 2, rng, "float64", outside="mirror")
    with pytest.raises(UsageError, match="zeros, border"):
        build_network("ST[6]-FC[2]", (4, 4), 2, outside="mirror")
    layer = SpatialTransformer.init((1, 4, 4), 2, rng, "float64")
    for call in (layer.forward, layer.theta):
        with pytest.raises(ShapeError, match="4x4 pixels, got"):
            call(np.zeros((1, 4, 6, 1)))
        with pytest.raises(ShapeError, match="real planes"):
            call(np.zeros((4, 4)))


@pytest.mark.parametrize("outside", ["zeros", "border"])
def test_it_learns_and_is_saved_with_its_options(outside, small_splits, tmp_path):
    network = build_network("C[3]-ST[6]-FC[8]", (14, 14), 3, outside=outside, dense_init="he")
    for epoch in tigra.fit(network, small_splits, threads=2, epochs=8, batch_size=16, learning_rate=0.01):
        last = epoch
    assert last.accuracy > 0.8
    transformer = network.layers[3]
    assert isinstance(transformer, SpatialTransformer) and transformer.params["theta_weight"].any()
    tigra.save(network, tmp_path / "stn.npz")
    again = tigra.load(tmp_path / "stn.npz")
    assert again.layers[3].outside == outside
    images = small_splits.test.images
    np.testing.assert_array_equal(again.scores(images), network.scores(images, threads=2))
