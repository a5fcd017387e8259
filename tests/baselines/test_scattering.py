"""Scattering: the features of the definition, invariant to turns, the same for any number of threads."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from tests.baselines import kymatio_oracle, scattering_by_hand
from tigra import UsageError
from tigra.baselines.deepscat.scattering import (
    FULL_RESOLUTION,
    Scattering,
    folded,
    largest_octaves,
    low_frequencies,
    n_features,
)

STORED = json.loads((Path(__file__).parent / "kymatio_numbers.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape, octaves, oversampling",
    [((9, 6), 3, 1), ((6, 7), 2, FULL_RESOLUTION), ((5, 8), 3, 2)],
)
def test_features_are_those_of_the_definition(rng, shape, octaves, oversampling):
    image = rng.random(shape)
    scattering = Scattering(2, octaves, shape, "float64", oversampling)
    expected = scattering_by_hand.features(image, scattering.padded, octaves, oversampling)
    assert expected.shape == (n_features(2, octaves),)
    np.testing.assert_allclose(scattering.features(image), expected, rtol=1e-9)


def test_lower_orders_are_the_first_features_of_higher_ones(rng):
    image = rng.random((16, 16))
    longest = Scattering(2, 3, (16, 16)).features(image)
    for order in (0, 1):
        scattering = Scattering(order, 3, (16, 16))
        assert scattering.n_features == [1, 4][order]
        assert scattering.features(image).tobytes() == longest[: scattering.n_features].tobytes()


def test_a_quarter_turn_changes_nothing_at_full_resolution(rng):
    image = rng.random((14, 14))
    scattering = Scattering(2, 3, (14, 14), "float64", FULL_RESOLUTION)
    features = scattering.features(image)
    for quarters in (1, 2, 3):
        np.testing.assert_allclose(scattering.features(np.rot90(image, quarters)), features, rtol=1e-8)
    assert np.abs(scattering.features(image[::-1]) / features - 1).max() > 0.01  # a mirror image is another one


@pytest.mark.slow
def test_a_quarter_turn_changes_little_when_maps_are_sub_sampled(mnist_012):
    """Every second pixel of a turned map is not every second pixel of the map turned: some 1e-3 for 50x50 pixels."""
    image = np.pad(mnist_012.train.images[0], 11)
    scattering = Scattering(2, 5, (50, 50), "float64")
    features, turned = scattering.features(image), scattering.features(np.rot90(image))
    assert 1e-5 < np.linalg.norm(turned - features) / np.linalg.norm(features) < 3e-3


@pytest.mark.slow
def test_float32_differs_from_float64_by_rounding_only(mnist_012):
    """2e-6 is some 16 roundings; what tells two digits apart is a thousand times as much."""
    images = mnist_012.train.images[:2]
    exact = [Scattering(2, 5, (28, 28), "float64").features(image) for image in images]
    quick = Scattering(2, 5, (28, 28)).features(images[0])
    assert quick.dtype == np.float32
    assert np.abs(quick / exact[0] - 1).max() < 2e-6
    assert np.median(np.abs(exact[1] / exact[0] - 1)) > 0.02


def test_a_constant_image_has_nothing_but_its_mean():
    features = Scattering(2, 3, (12, 12), "float64").features(np.full((12, 12), 0.5))
    assert features[0] == pytest.approx(0.5, abs=1e-12) and np.abs(features[1:]).max() < 1e-12


def test_features_grow_with_the_contrast(rng):
    image, scattering = rng.random((12, 12)), Scattering(2, 3, (12, 12), "float64")
    np.testing.assert_allclose(scattering.features(3 * image), 3 * scattering.features(image), rtol=1e-9)


def test_folding_is_keeping_every_second_row_and_column(rng):
    x = rng.random((3, 8, 12))
    kept = np.fft.ifft2(folded(np.fft.fft2(x), 4, 3)).real / (2 * 4)
    np.testing.assert_allclose(kept, x[:, ::2, ::4], atol=1e-14)


def test_low_frequencies_are_cut_out_along_each_axis():
    frequencies = np.fft.fftfreq(8, 1 / 8)
    cut = low_frequencies(np.add.outer(10 * frequencies, frequencies), (4, 8))
    np.testing.assert_array_equal(cut, np.add.outer(10 * np.fft.fftfreq(4, 1 / 4), frequencies))


@pytest.mark.parametrize("order, octaves, oversampling", [(3, 3, 1), (-1, 3, 1), (2, 0, 1), (2, 6, 1), (2, 3, 0)])
def test_impossible_orders_and_octaves_are_refused(order, octaves, oversampling):
    with pytest.raises(UsageError, match="from 0 to 2|1 to 5 octaves|at least 1"):
        Scattering(order, octaves, (20, 16), oversampling=oversampling)


def test_octaves_are_limited_by_the_smaller_side():
    assert [largest_octaves((side, 99)) for side in (1, 2, 4, 16, 28, 50)] == [1, 2, 3, 5, 5, 6]


# --- kymatio ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", kymatio_oracle.CASES, ids=str)
def test_wavelets_and_sub_sampling_give_the_translation_scattering_of_kymatio(case):
    """All means over the plane of orders 0 to 2, against numbers that kymatio gave. It takes 3.1415 for pi."""
    np.testing.assert_allclose(kymatio_oracle.ours(*case), STORED[str(case)], rtol=1e-4)
    np.testing.assert_allclose(kymatio_oracle.ours(*case, pi=3.1415), STORED[str(case)], rtol=3e-6, atol=1e-9)


@pytest.mark.parametrize("case", kymatio_oracle.CASES, ids=str)
def test_the_stored_numbers_are_those_of_kymatio(case):
    pytest.importorskip("kymatio", reason="kymatio, the oracle, is not installed")
    np.testing.assert_allclose(kymatio_oracle.theirs(*case), STORED[str(case)], rtol=1e-4)


def test_weights_of_a_long_image_take_little_memory():
    """A forged model file may ask for any size within the limits; matrices as long as the image took over 10 s."""
    tracemalloc.start()
    try:
        weights = Scattering(1, 1, (6848, 8)).weights
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert weights[0].shape == (6848 * 8,) and weights[0].sum() == pytest.approx(1, rel=1e-4) and peak < 10e6
