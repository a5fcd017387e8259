"""Wavelets of a scattering network: the Morlet filter bank, and the wavelets along its angles.

Both are given by their discrete Fourier transforms. By Poisson summation, the transform of a function
sampled on a periodic grid is that of the continuous function, summed over all shifts by 2 pi. Gaussians
decay so fast that one or two shifts each way are enough. The transforms are real.

    gabor   g(u) = s / (2 pi sigma^2) exp(-(p^2 + s^2 q^2) / (2 sigma^2)) exp(i xi p)
            p, q = the coordinates of u, rotated by the angle; the slant s makes the envelope longer across
    morlet  psi = g - K e, with e the same for xi = 0, and K such that psi has mean zero
"""

from __future__ import annotations

import numpy as np

N_ANGLES = 8  # wavelets in half a turn; the other half are their complex conjugates
SIGMA, XI = 0.8, 3 * np.pi / 4  # of the finest wavelet: width in pixels, frequency
SLANT = 4 / N_ANGLES


def _frequencies(size: int, sigma: float) -> np.ndarray:
    """Return frequencies (size, shifts) of the grid, with shifts by 2 pi while exp(-(sigma w)^2 / 2) > 1e-20."""
    n_shifts = 1 if sigma > 1.5 else 2
    return 2 * np.pi * (np.arange(size)[:, None] / size + np.arange(-n_shifts, n_shifts + 1))


def padded_size(size: int, octaves: int) -> int:
    """Return the size of the periodic grid on which an image of `size` pixels is filtered, along one axis.

    It has room for the widest filter on both sides, and can be halved `octaves` times.

    >>> [padded_size(size, 5) for size in (26, 28, 34, 50)]
    [96, 96, 96, 128]
    """
    step = 2**octaves
    return step * int(np.ceil((size + 2 * SIGMA * step) / step))


def gabor_hat(shape: tuple[int, int], sigma: float, angle: float, xi: float, slant: float) -> np.ndarray:
    """Return the transform of a Gabor function on a periodic grid (height, width), centred on the first pixel.

    `angle` is measured from the axis of columns towards the axis of rows.

    >>> gabor_hat((4, 4), sigma=0.8, angle=0.0, xi=0.0, slant=1.0)[0, 0].round(6)  # the sum over all pixels
    np.float64(1.000013)
    """
    rows, columns = (_frequencies(size, sigma) for size in shape)
    v, u = rows[:, None, :, None], columns[None, :, None, :]
    p = u * np.cos(angle) + v * np.sin(angle)
    q = v * np.cos(angle) - u * np.sin(angle)
    return np.exp(-(sigma**2) / 2 * ((p - xi) ** 2 + (q / slant) ** 2)).sum(axis=(2, 3))


def morlet_hat(shape: tuple[int, int], sigma: float, angle: float, xi: float, slant: float) -> np.ndarray:
    """Return the transform of a Morlet wavelet: a Gabor function minus a multiple of its envelope, with mean 0."""
    wave = gabor_hat(shape, sigma, angle, xi, slant)
    envelope = gabor_hat(shape, sigma, angle, 0.0, slant)
    return wave - wave[0, 0] / envelope[0, 0] * envelope


def morlet_bank(shape: tuple[int, int], octaves: int) -> np.ndarray:
    """Return transforms (octaves, N_ANGLES, height, width) of wavelets at octave j and angle pi k / N_ANGLES.

    They are scaled so that the sum of their squares is at most 2. A real image has equal energy at w and -w,
    so wavelets and their conjugates together never increase it.
    """
    psi = np.empty((octaves, N_ANGLES, *shape))
    for j in range(octaves):
        for k in range(N_ANGLES):
            psi[j, k] = morlet_hat(shape, SIGMA * 2**j, np.pi * k / N_ANGLES, XI / 2**j, SLANT)
    return psi * np.sqrt(2 / (psi**2).sum(axis=(0, 1)).max())


def low_pass(size: int, octaves: int) -> np.ndarray:
    """Return the transform (size,) of the Gaussian phi_J along one axis; in 2D it is the product over both.

    >>> low_pass(8, 1).round(3)[:5]
    array([1.   , 0.821, 0.455, 0.176, 0.085])
    """
    sigma = SIGMA * 2 ** (octaves - 1)
    return np.exp(-((sigma * _frequencies(size, sigma)) ** 2) / 2).sum(axis=1)


def at_resolution(transform: np.ndarray, r: int, n_axes: int = 2) -> np.ndarray:
    """Return the filter for signals with every 2^r-th pixel: its low frequencies, along the last axes.

    The highest frequency is both positive and negative; there it is the mean of the two.

    >>> at_resolution(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]), 1, n_axes=1)
    array([0., 1., 4., 7.])
    """
    if r == 0:
        return transform
    for axis in range(-n_axes, 0):
        half = transform.shape[axis] >> (r + 1)
        f = np.moveaxis(transform, axis, 0)
        f = np.concatenate([f[:half], (f[half] + f[-half])[None] / 2, f[len(f) - half + 1 :]])
        transform = np.moveaxis(f, 0, axis)
    return transform


def angular_filters() -> np.ndarray:
    """Return transforms (4, 2 N_ANGLES) of the filters along the angles of a full turn: phi_a and psi_a, octaves 0-2.

    The sum of squares of the psi_a is at most 2, as in 2D.
    """
    n_turn, sigma = 2 * N_ANGLES, 2 / np.sqrt(3)
    frequencies = 2 * np.pi * (np.arange(n_turn)[:, None] / n_turn - np.arange(-1, 3))

    def gaussian(xi, s):
        return np.exp(-((frequencies - xi) ** 2) * s**2 / 2).sum(axis=1)

    waves = []
    for octave in range(3):
        xi, s = XI / 2**octave, sigma * 2**octave
        wave = gaussian(xi, s)
        waves.append(wave - wave[0] * gaussian(0.0, s))
    psi = np.array(waves)
    psi *= np.sqrt(2 / (psi**2).sum(axis=0).max())
    return np.concatenate([gaussian(0.0, 2 * sigma)[None], psi])
