"""The scattering of an image as it is defined: filters pixel by pixel, convolutions as sums, loops over angles.

Slow, and with nothing of tigra in it: what test_morlet.py and test_scattering.py compare with.
"""

import cmath
import math

import numpy as np

L = 8


def gabor(shape, sigma, angle, xi, slant):
    """On a periodic grid, centred on the first pixel: the sum over copies of the function in the plane."""
    height, width = shape
    result = np.zeros(shape, complex)
    for a in range(-3, 4):
        for b in range(-3, 4):
            v = np.arange(height)[:, None] + a * height
            u = np.arange(width)[None, :] + b * width
            p = u * math.cos(angle) + v * math.sin(angle)
            q = -u * math.sin(angle) + v * math.cos(angle)
            envelope = np.exp(-(p**2 + slant**2 * q**2) / (2 * sigma**2))
            result += slant / (2 * math.pi * sigma**2) * envelope * np.exp(1j * xi * p)
    return result


def morlet(shape, sigma, angle, xi, slant):
    """A Gabor function less as much of its envelope as makes the sum over all pixels zero."""
    g, e = gabor(shape, sigma, angle, xi, slant), gabor(shape, sigma, angle, 0.0, slant)
    return g - g.sum() / e.sum() * e


def filters(shape, octaves):
    """(psi[j][k], phi), as functions of the pixel."""
    psi = [
        [morlet(shape, 0.8 * 2**j, math.pi * k / L, 3 * math.pi / 4 / 2**j, 4 / L) for k in range(L)]
        for j in range(octaves)
    ]
    largest = sum(abs(np.fft.fft2(f)) ** 2 for fs in psi for f in fs).max()
    psi = [[f * math.sqrt(2 / largest) for f in fs] for fs in psi]
    return psi, gabor(shape, 0.8 * 2 ** (octaves - 1), 0.0, 0.0, 1.0)


def coarse(f, r):
    """The filter for signals that keep every 2^r-th pixel: each frequency, with the highest one halved and folded."""
    if r == 0:
        return f
    hat = np.fft.fft2(f)
    height, width = (size >> r for size in f.shape)
    result = np.zeros((height, width), complex)
    for v in range(-(height // 2), height // 2 + 1):
        for u in range(-(width // 2), width // 2 + 1):
            weight = (0.5 if 2 * abs(v) == height else 1.0) * (0.5 if 2 * abs(u) == width else 1.0)
            result[v % height, u % width] += weight * hat[v, u]
    return np.fft.ifft2(result)


def reflected(i, n):
    while not 0 <= i < n:
        i = -1 - i if i < 0 else 2 * n - 1 - i
    return i


def mirrored(image, shape):
    """On a grid of that shape, with the image at the start and the last part of each axis before it."""
    places = []
    for n, m in zip(image.shape, shape, strict=True):
        places.append([reflected(i if i < n + (m - n) // 2 else i - m, n) for i in range(m)])
    return np.array([[image[i, j] for j in places[1]] for i in places[0]])


def convolved(image, f, step):
    """image * f at every step-th pixel of the image, as a sum over all pixels of the periodic grid."""
    x = mirrored(image, f.shape)
    height, width = f.shape
    result = []
    for v in range(0, image.shape[0], step):
        row = []
        for u in range(0, image.shape[1], step):
            turned = f[np.ix_((v - np.arange(height)) % height, (u - np.arange(width)) % width)]
            row.append((turned * x).sum())
        result.append(row)
    return np.array(result)


def angular():
    """Four filters on the 16 angles of a turn, as functions of the angle."""
    n, s0 = 2 * L, 2 / math.sqrt(3)

    def gauss(w, xi, s):
        return sum(math.exp(-((w - 2 * math.pi * c - xi) ** 2) * s**2 / 2) for c in (-1, 0, 1, 2))

    grid = [2 * math.pi * k / n for k in range(n)]
    hats = []
    for q in range(3):
        xi, s = 3 * math.pi / 4 / 2**q, s0 * 2**q
        hats.append([gauss(w, xi, s) - gauss(0, xi, s) * gauss(w, 0, s) for w in grid])
    largest = max(sum(hat[k] ** 2 for hat in hats) for k in range(n))
    hats = [[value * math.sqrt(2 / largest) for value in hat] for hat in hats]
    hats = [[gauss(w, 0, 2 * s0) for w in grid], *hats]
    return [[sum(hat[k] * cmath.exp(1j * w * k) for k in range(n)) / n for w in grid] for hat in hats]


def features(image, padded, octaves, oversampling):
    """Order 0, order 1 by j1, order 2 by j1, then (phi: three filters) and (j2, d: four filters)."""
    psi, phi = filters(padded, octaves)

    def kept(j):
        return max(j - oversampling, 0)

    def smooth(x, r):
        return convolved(x, coarse(phi, r), 2 ** max(kept(octaves) - r, 0)).real

    def along_angles(y, h):
        """Mean over k of |y convolved with h|, for y a list of 16 maps."""
        total = 0
        for k in range(2 * L):
            total = total + abs(sum(h[(k - m) % (2 * L)] * y[m] for m in range(2 * L)))
        return total / (2 * L)

    first = [[abs(convolved(image, psi[j][k], 2 ** kept(j))) for k in range(L)] for j in range(octaves)]
    found = [smooth(image, 0).mean()]
    found += [smooth(sum(first[j]) / L, kept(j)).mean() for j in range(octaves)]
    for j1 in range(octaves):
        r = kept(j1)
        y = [smooth(first[j1][k % L], r) for k in range(2 * L)]
        found += [smooth(along_angles(y, h), max(kept(octaves), r)).mean() for h in angular()[1:]]
        for j2 in range(j1 + 1, octaves):
            second = [coarse(f, r) for f in psi[j2]]
            step = 2 ** max(kept(j2) - r, 0)
            for d in range(L):
                y = []
                for k in range(2 * L):
                    wavelet = second[(k + d) % L]
                    wavelet = wavelet if (k + d) % (2 * L) < L else wavelet.conj()
                    y.append(convolved(first[j1][k % L], wavelet, step))
                found += [smooth(along_angles(y, h), max(kept(j2), r)).mean() for h in angular()]
    return np.array(found)
