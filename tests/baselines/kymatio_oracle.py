"""Translation scattering by kymatio, and the same from tigra's wavelets, spectra and sub-sampling.

`python -m tests.baselines.kymatio_oracle` writes kymatio_numbers.json, so that the comparison needs no kymatio. Its
conventions differ from ours: filters are not rescaled, angles count the other way and from another start, the border
pixel is not doubled, maps are sampled critically and stay padded, and pi is 3.1415.
"""

import json
from pathlib import Path

import numpy as np

from tigra.baselines.deepscat.morlet import SIGMA, XI, low_pass, morlet_hat
from tigra.baselines.deepscat.scattering import folded, low_frequencies

CASES = [(3, 32, 4), (2, 21, 6)]  # octaves, side of the image, angles


def image(side):
    """A picture that every machine draws alike."""
    v, u = np.mgrid[:side, :side] / side
    return np.round(0.5 + 0.3 * np.sin(9 * u + 5 * v * v) * np.cos(13 * v) + 0.2 * (u > v), 3)


def theirs(octaves, side, n_angles):
    """Means over the plane of all coefficients, in kymatio's order."""
    from kymatio.scattering2d.frontend.numpy_frontend import ScatteringNumPy2D

    scattering = ScatteringNumPy2D(octaves, (side, side), n_angles)
    return scattering(image(side)).mean(axis=(1, 2))


def ours(octaves, side, n_angles, pi=np.pi):
    """The same numbers."""
    step = 2**octaves
    m = ((side + step) // step + 1) * step
    before = (m - side) // 2
    x = np.pad(image(side), (before, m - side - before), mode="reflect")
    slant, factor = 4 / n_angles, np.pi / pi  # their filters are divided by pi as they know it
    psi = [
        [morlet_hat((m, m), SIGMA * 2**j, angle * np.pi / n_angles, XI / 2**j, slant).T * factor for angle in angles]
        for j in range(octaves)
        for angles in [[n_angles // 2 - 1 - k for k in range(n_angles)]]
    ]
    phi = np.outer(low_pass(m, octaves), low_pass(m, octaves)) * factor

    def apply(spectrum, f, r, new_r):
        """A map at resolution new_r, from the spectrum of one at resolution r."""
        size = m >> new_r
        f = low_frequencies(f, (m >> r, m >> r))
        return np.fft.ifft2(folded(spectrum * f, size, size)) / 4 ** (new_r - r)

    def mean(spectrum, r):
        size = m >> octaves
        return apply(spectrum, phi, r, octaves).real[1 : size - 1, 1 : size - 1].mean()

    spectrum = np.fft.fft2(x)
    first = [(j, np.fft.fft2(abs(apply(spectrum, f, 0, j)))) for j in range(octaves) for f in psi[j]]
    found = [mean(spectrum, 0), *(mean(u, j) for j, u in first)]
    for j1, u in first:
        for j2 in range(j1 + 1, octaves):
            found += [mean(np.fft.fft2(abs(apply(u, f, j1, j2))), j2) for f in psi[j2]]
    return np.array(found)


if __name__ == "__main__":
    numbers = {str(case): [float(f"{value:.9g}") for value in theirs(*case)] for case in CASES}
    (Path(__file__).parent / "kymatio_numbers.json").write_text(json.dumps(numbers))
