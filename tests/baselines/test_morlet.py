"""Wavelets: their transforms are those of the functions in the plane, and together they keep an image's energy."""

import numpy as np
import pytest

from tests.baselines import scattering_by_hand as by_hand
from tigra.baselines.deepscat.morlet import (
    N_ANGLES,
    SLANT,
    angular_filters,
    at_resolution,
    gabor_hat,
    low_pass,
    morlet_bank,
    morlet_hat,
    padded_size,
)


@pytest.mark.parametrize("sigma, angle, xi, slant", [(0.8, 0.3, 2.4, 0.5), (1.6, 2.0, 1.2, 0.5), (3.2, 1.1, 0.0, 1.0)])
def test_transforms_are_those_of_the_functions_in_the_plane(sigma, angle, xi, slant):
    for ours, plain in ((gabor_hat, by_hand.gabor), (morlet_hat, by_hand.morlet)):
        if xi or ours is gabor_hat:
            transform = np.fft.fft2(plain((32, 24), sigma, angle, xi, slant))
            np.testing.assert_allclose(ours((32, 24), sigma, angle, xi, slant), transform, atol=1e-12)


def test_the_bank_has_one_wavelet_for_each_octave_and_angle():
    psi, phi = by_hand.filters((24, 32), 3)
    np.testing.assert_allclose(morlet_bank((24, 32), 3), np.fft.fft2(psi), atol=1e-12)
    np.testing.assert_allclose(np.outer(low_pass(24, 3), low_pass(32, 3)), np.fft.fft2(phi), atol=1e-12)


def test_wavelets_have_mean_zero_and_the_low_pass_mean_one():
    assert np.abs(morlet_bank((32, 32), 3)[..., 0, 0]).max() < 1e-15
    assert abs(low_pass(96, 5)[0] - 1) < 1e-15


def test_turning_by_half_the_angles_is_a_quarter_turn_of_the_plane():
    psi = morlet_bank((32, 32), 3)
    places = np.arange(32)
    turned = psi[:, : N_ANGLES // 2][:, :, -places[None, :], places[:, None]]  # column -> row, row -> -column
    np.testing.assert_allclose(psi[:, N_ANGLES // 2 :], turned, atol=1e-14)


@pytest.mark.slow
def test_littlewood_paley_sum_of_the_bank_is_near_one():
    """Energy of a real image: never increased by more than 3 %, and not lost but where phi and psi_{J-1} meet."""
    psi = morlet_bank((128, 128), 5)
    opposite = psi[..., -np.arange(128)[:, None], -np.arange(128)]
    phi = np.outer(low_pass(128, 5), low_pass(128, 5))
    energy = phi**2 + (psi**2 + opposite**2).sum(axis=(0, 1)) / 2
    assert energy.max() == pytest.approx(1.034, abs=1e-3) and energy.min() == pytest.approx(0.122, abs=1e-3)
    assert (psi**2).sum(axis=(0, 1)).max() == pytest.approx(2, abs=1e-12)


def test_angular_filters_are_those_of_the_definition():
    ours = angular_filters()
    np.testing.assert_allclose(np.fft.ifft(ours), by_hand.angular(), atol=1e-14)
    assert (ours[1:] ** 2).sum(axis=0).max() == pytest.approx(2, abs=1e-14)
    assert ours[0, 0] == pytest.approx(1, abs=1e-12) and np.abs(ours[1:, 0]).max() < 1e-12


@pytest.mark.parametrize("r", [0, 1, 2])
def test_a_filter_at_a_coarser_resolution_keeps_its_low_frequencies(r):
    f = by_hand.morlet((32, 16), 1.6, 0.4, 1.0, SLANT)
    np.testing.assert_allclose(at_resolution(np.fft.fft2(f), r), np.fft.fft2(by_hand.coarse(f, r)), atol=1e-13)
    assert at_resolution(morlet_bank((32, 16), 2), r).shape == (2, N_ANGLES, 32 >> r, 16 >> r)


def test_padding_leaves_room_for_the_widest_filter_and_can_be_halved():
    for size in range(1, 70):
        for octaves in range(1, 6):
            padded = padded_size(size, octaves)
            assert padded % 2**octaves == 0
            assert padded - 2**octaves < size + 1.6 * 2**octaves <= padded
