"""W[order, octaves]: the roto-translation scattering of an image, which gives fixed features.

Wavelets and the modulus are applied to an image once or twice, then averaged. The second time, the wavelets also act
along the angles of the first ones. Rotating an image by pi / N_ANGLES rotates every map and moves its angle k to
k + 1. All maps are averaged over k and over the plane, so the features are invariant.

    x                                  order 0: S = x * phi
    U1[j1](k) = |x * psi[j1, k]|       order 1: S[j1] = mean_k U1[j1](k) * phi
    Y[j1, j2, d](k) = U1[j1](k) * psi[j2, k + d]
    U2 = |Y convolved along k|         order 2: S[j1, j2, d, filter] = mean_k U2 * phi

with j1 < j2, the angle d of the second wavelet relative to the first, and four filters along k. Order 2 also has
S[j1, filter] from Y = U1[j1](k) * phi and three filters. Each feature is the mean of its S over the plane. The angles
are k = 0 .. 2 N_ANGLES - 1, a full turn. For a real image, the second half gives the conjugates of the first.

A signal at resolution r is stored with one of 2^r pixels along each axis. It is mirrored at its borders before it is
filtered. It keeps one octave more than the bandwidth of its filter needs (`oversampling`), to reduce aliasing.
"""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
import scipy

from tigra.baselines.deepscat.morlet import (
    N_ANGLES,
    angular_filters,
    at_resolution,
    low_pass,
    morlet_bank,
    padded_size,
)
from tigra.errors import UsageError

LARGEST_ORDER = 2
N_TURN = 2 * N_ANGLES
N_FILTERS = 4  # along the angles: one low-pass, three wavelets
FULL_RESOLUTION = 99  # value of oversampling without sub-sampling


def n_features(order: int, octaves: int) -> int:
    """Return the number of features of an image.

    >>> n_features(2, 5)  # 1 + 5 + 5 * 3 + 10 pairs * 8 angles * 4 filters
    341
    """
    n_pairs = octaves * (octaves - 1) // 2
    by_order = 1, octaves, octaves * (N_FILTERS - 1) + n_pairs * N_ANGLES * N_FILTERS
    return sum(by_order[: order + 1])


class Scattering:
    """The scattering transform for images of one shape.

    Parameters
    ----------
    order : int
        How often wavelets are applied, 0 to 2.
    octaves : int
        Number of scales J; the widest average is over about 2^J pixels.
    shape : (int, int)
        Height and width of the images.
    dtype : {"float32", "float64"}
        Precision of maps and features. float32 takes half the time, with relative errors of about 1e-6
        (tests/baselines/test_scattering.py), far less than the difference between two images.
    oversampling : int
        Octaves that maps keep beyond critical sampling, at least 1.

    Examples
    --------
    >>> scattering = Scattering(2, 2, (8, 8), dtype="float64", oversampling=FULL_RESOLUTION)
    >>> image = np.random.default_rng(0).random((8, 8))
    >>> np.allclose(scattering.features(image), scattering.features(np.rot90(image)), rtol=1e-10)
    True
    """

    positive_state = nonnegative_state = ()

    def __init__(self, order: int, octaves: int, shape: tuple[int, int], dtype="float32", oversampling: int = 1):
        self.params: dict = {}  # nothing is trained
        self.state: dict = {}  # or fitted
        if not 0 <= order <= LARGEST_ORDER:
            raise UsageError(f"The order of a scattering must be from 0 to {LARGEST_ORDER}, got {order}.")
        if not 1 <= octaves <= largest_octaves(shape):
            raise UsageError(
                f"Images of {shape[0]}x{shape[1]} pixels allow 1 to {largest_octaves(shape)} octaves, got {octaves};"
                " the widest wavelet must not be much wider than the image."
            )
        if oversampling < 1:
            raise UsageError(f"oversampling must be at least 1, got {oversampling}; with less, maps are aliased.")
        self.order, self.octaves, self.shape = order, octaves, tuple(shape)
        self.dtype, self.oversampling = np.dtype(dtype), oversampling

    @property
    def n_features(self) -> int:
        """Number of features of an image."""
        return n_features(self.order, self.octaves)

    def feature_names(self) -> list[str]:
        """Name of each feature: order, octaves j1 and j2, angle d, and filter f along the angles.

        >>> Scattering(2, 2, (8, 8)).feature_names()[:6]
        ['order0', 'order1_j0', 'order1_j1', 'order2_j0_f1', 'order2_j0_f2', 'order2_j0_f3']
        """
        octaves, filters = range(self.octaves), range(N_FILTERS)
        first = [f"order1_j{j}" for j in octaves]
        second = []
        for j1 in octaves:
            second += [f"order2_j{j1}_f{f}" for f in filters[1:]]
            second += [
                f"order2_j{j1}_j{j2}_d{d}_f{f}" for j2 in octaves[j1 + 1 :] for d in range(N_ANGLES) for f in filters
            ]
        return [name for names in [["order0"], first, second][: self.order + 1] for name in names]

    # --- what is made once -----------------------------------------------------------------------------

    @cached_property
    def padded(self) -> tuple[int, int]:
        """Height and width of the periodic grid at full resolution."""
        height, width = (padded_size(size, self.octaves) for size in self.shape)
        return height, width

    @cached_property
    def psi(self) -> dict:
        """Transforms of the wavelets, (j, r) -> (N_ANGLES, height, width) for signals at resolution r.

        They only have the low frequencies, half or a quarter along each axis, if the rest is rounding error.
        """
        bank, octaves = _bank(self.padded, self.octaves), range(self.octaves)
        needed = {(j, 0) for j in octaves}
        if self.order == 2:
            needed |= {(j2, self.resolution(j1)) for j2 in octaves for j1 in range(j2)}
        return {(j, r): self._narrowed(at_resolution(bank[j], r), max(self.resolution(j) - r, 0)) for j, r in needed}

    def _narrowed(self, psi: np.ndarray, most: int) -> np.ndarray:
        """Return psi without negligible high frequencies, halved at most `most` times."""
        least = np.finfo(self.dtype).eps / 100 * np.abs(psi).max()
        while most > 0:
            height, width = psi.shape[-2:]
            high = psi[:, height // 4 : -(height // 4)], psi[:, :, width // 4 : -(width // 4)]
            if max(np.abs(part).max() for part in high) > least:
                break
            psi, most = low_frequencies(psi, (height // 2, width // 2)), most - 1
        return psi.astype(self.dtype)

    @cached_property
    def phi(self) -> list[np.ndarray]:
        """Transforms of the low-pass filter for each resolution."""
        return [
            np.outer(*(at_resolution(low_pass(size, self.octaves), r, n_axes=1) for size in self.padded)).astype(
                self.dtype
            )
            for r in range(self.octaves)
        ]

    @cached_property
    def weights(self) -> list[np.ndarray]:
        """For each resolution r the weights of pixels that give the mean over the plane of (map * phi).

        Mirroring, filtering, sub-sampling and averaging are linear, and phi is a product over both axes, so
        the weights along an axis come from the adjoints of these steps in reverse order: spread 1 over the
        samples, filter, and add up the places that show the same pixel.
        """
        result = []
        for r in range(self.octaves):
            step = 2 ** max(self.octaves - r - self.oversampling, 0)
            along = []
            for size, padded in zip(self.shape, self.padded, strict=True):
                n, m = sampled_size(size, 2**r), padded >> r
                spread = np.zeros(m)
                spread[:n:step] = 1 / len(spread[:n:step])
                phi = at_resolution(low_pass(padded, self.octaves), r, n_axes=1)  # real and even: its own adjoint
                smooth = scipy.fft.ifft(phi * scipy.fft.fft(spread)).real
                along.append(np.bincount(mirrored_places(n, m), weights=smooth, minlength=n))
            result.append(np.outer(*along).ravel().astype(self.dtype))
        return result

    @cached_property
    def turns(self) -> np.ndarray:
        """Matrix (2 n, 2 N_ANGLES): from Y(k) of half a turn, real parts then imaginary ones, to n convolved values.

        The values are those of phi_a for half a turn (the others are their conjugates), then those of the three
        psi_a for the full turn; again real parts, then imaginary ones.
        """
        h = np.fft.ifft(angular_filters())  # in the domain of k
        lag = (np.arange(N_TURN)[:, None] - np.arange(N_ANGLES)) % N_TURN
        near, far = h[:, lag], h[:, (lag - N_ANGLES) % N_TURN]  # far: where Y is the conjugate of what is near
        matrix = np.concatenate([near + far, 1j * (near - far)], axis=2)  # (filter, k, parts of Y)
        matrix = np.concatenate([matrix[0, :N_ANGLES], *matrix[1:]])
        return np.concatenate([matrix.real, matrix.imag]).astype(self.dtype)

    def prepare(self) -> None:
        """Compute what the worker threads share."""
        for name in ("weights", "psi", "phi", "turns")[: [1, 2, 4][self.order]]:
            getattr(self, name)

    def resolution(self, j: int) -> int:
        """Return the resolution at which a map of octave j is stored."""
        return max(j - self.oversampling, 0)

    # --- from an image to its features -------------------------------------------------------------------

    def features(self, image: np.ndarray) -> np.ndarray:
        """Return the features of one image: order 0, order 1 by j1, order 2 by j1, j2, d and filter along angles."""
        image = np.asarray(image, self.dtype)
        found = [[self.weights[0] @ image.ravel()]]
        if self.order > 0:
            spectrum = self.spectrum(image, 0)
            first = [np.abs(self.bands(spectrum, j, 0)) for j in range(self.octaves)]
            found.append([self.weights[self.resolution(j)] @ u.mean(axis=0).ravel() for j, u in enumerate(first)])
        if self.order > 1:
            for j1, u in enumerate(first):
                found += self._second_order(j1, self.resolution(j1), self.spectrum(u, self.resolution(j1)))
        return np.concatenate(found).astype(self.dtype)

    def _second_order(self, j1: int, r: int, spectra: np.ndarray):
        """Yield the order-2 features of the maps U1[j1], given by their spectra (N_ANGLES, height, width)."""
        y = self.filtered(spectra * self.phi[r], r, self.resolution(self.octaves)).real
        yield self._along_angles(np.stack([y, np.zeros_like(y)]), self.resolution(self.octaves))[1:]
        for j2 in range(j1 + 1, self.octaves):
            r2 = max(self.resolution(j2), r)
            bands = np.stack([self.bands(spectrum, j2, r) for spectrum in spectra])  # (k, angle, height, width)
            for d in range(N_ANGLES):
                k = np.arange(N_ANGLES)
                y = bands[k, (k + d) % N_ANGLES]
                signs = np.where(k + d < N_ANGLES, 1, -1).astype(self.dtype)  # beyond half a turn: conjugates
                yield self._along_angles(np.stack([y.real, y.imag * signs[:, None, None]]), r2)

    def _along_angles(self, parts: np.ndarray, r: int) -> np.ndarray:
        """Return features (N_FILTERS,) of Y, given as (real and imaginary part, k of half a turn, height, width)."""
        values = self.turns @ parts.reshape(N_TURN, -1)
        values *= values
        n = len(values) // 2
        values[:n] += values[n:]
        sums = np.sqrt(values[:n], out=values[:n]) @ self.weights[r]
        return np.append(sums[:N_ANGLES].mean(), sums[N_ANGLES:].reshape(-1, N_TURN).mean(axis=1))

    # --- filtering ---------------------------------------------------------------------------------------

    def spectrum(self, maps: np.ndarray, r: int) -> np.ndarray:
        """Return the transform of maps (..., height, width) at resolution r, mirrored to fill the periodic grid."""
        rows, columns = (mirrored_places(n, m >> r) for n, m in zip(maps.shape[-2:], self.padded, strict=True))
        return scipy.fft.fft2(maps[..., rows[:, None], columns])

    def bands(self, spectrum: np.ndarray, j: int, r: int) -> np.ndarray:
        """Return octave j of a signal at resolution r, given by its spectrum: complex (N_ANGLES, height, width)."""
        psi = self.psi[j, r]
        return self.filtered(low_frequencies(spectrum, psi.shape[-2:]) * psi, r, max(self.resolution(j), r))

    def filtered(self, spectra: np.ndarray, r: int, new_r: int) -> np.ndarray:
        """The part inside the image of signals at resolution r, given by their spectra, brought to resolution new_r.

        The spectra may have been cut by `low_frequencies`.
        """
        height, width = (sampled_size(size, 2**new_r) for size in self.shape)
        spectra = folded(spectra, *(size >> new_r for size in self.padded)) * self.dtype.type(0.25 ** (new_r - r))
        rows = scipy.fft.ifft(spectra, axis=-2)[..., :height, :]  # the other rows are not needed
        return scipy.fft.ifft(rows, axis=-1)[..., :width]


def low_frequencies(spectra: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the part of spectra (..., height, width) that a coarser grid of this shape has, too.

    >>> low_frequencies(np.arange(16).reshape(4, 4), (2, 2))
    array([[ 0,  3],
           [12, 15]])
    """
    for axis, size in zip((-2, -1), shape, strict=True):
        if size < spectra.shape[axis]:
            low = np.split(spectra, [size // 2, spectra.shape[axis] - size // 2], axis)
            spectra = np.concatenate([low[0], low[2]], axis)
    return spectra


def folded(spectra: np.ndarray, height: int, width: int) -> np.ndarray:
    """Sum spectra over the frequencies that become equal on a coarser grid (height, width).

    Divided by the number of pixels that make one, it is the transform of every so many-th row and column.

    >>> folded(np.array([[4.0, 0.0], [0.0, 0.0]]), 1, 1) / 4  # a constant signal of ones
    array([[1.]])
    """
    *others, old_height, old_width = spectra.shape
    if old_height != height:
        spectra = spectra.reshape(*others, -1, height, old_width).sum(axis=-3)
    if old_width != width:
        spectra = spectra.reshape(*others, height, -1, width).sum(axis=-2)
    return spectra


def sampled_size(size: int, step: int) -> int:
    """Return how many of `size` pixels remain if every step-th is kept, from the first on."""
    return 1 + (size - 1) // step


@lru_cache(64)
def mirrored_places(n: int, m: int) -> np.ndarray:
    """Return which of n pixels is at each of m places of a periodic axis that begins with them.

    The others are mirror images, with the border pixel twice; where their number is odd, one more stands on the left.

    >>> mirrored_places(3, 8)
    array([0, 1, 2, 2, 1, 2, 1, 0])
    """
    places = np.arange(m)
    places[n + (m - n) // 2 :] -= m
    places %= 2 * n
    return np.minimum(places, 2 * n - 1 - places)


@lru_cache(2)
def _bank(shape, octaves):
    return morlet_bank(shape, octaves)


def largest_octaves(shape: tuple[int, int]) -> int:
    """Return the largest number of octaves for images of this shape: 2^J is at most twice the smaller side.

    >>> largest_octaves((26, 26)), largest_octaves((50, 50))
    (5, 6)
    """
    return int(2 * min(shape)).bit_length() - 1
