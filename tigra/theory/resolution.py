"""The resolution experiment (paper, section 6.3, [fig:rotationresult]): the coarser the pixels, the larger the gap.

Images are down-sampled, transformed, filtered and transformed back. The result is compared with the filtered images,
[eq:dist]. That equation has neither absolute value nor norm, and does not mention borders. Here:

- norm: the mean over nodes of the absolute difference, in grey levels (black 0, white 1), then the mean over filters
- border: only nodes in a disc about the centre count (frame "inner"). It is the same part of the scene at every t, and
  so small that the border does not influence it. Or all nodes count (frame "whole"), with zeros outside
- interpolation: cubic spline, for the transformation and its inverse
- down-sampling: bicubic from 4x4 pixels, which samples the scene without smoothing, as in the theorems; or smoothed

Beside the filters, dot and cross products of gradients are measured (`tigra.graph.orientation`), for the pair y and L y
on the grid with diagonal weight 1/4. Every cross product of mixtures of y and L y is a multiple of theirs. Their gap is
divided by the mean absolute value of the product, because products are not in grey levels.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from tigra.errors import UsageError
from tigra.graph import grid_graph
from tigra.graph.orientation import cross, dot
from tigra.graph.polynomials import laplacian_powers
from tigra.images.transforms import downsample, rotate, translate
from tigra.seeding import generator

FACTORS = 2, 3, 4, 5, 6  # t
ANGLES = 10.0, 20.0, 30.0, 45.0  # pi/18, pi/9, pi/6, pi/4
SHIFTS = 0.1, 0.2, 0.3, 0.4  # pixels, both down and right
N_FILTERS, DEGREE = 20, 4
MARGIN = 2 * DEGREE + 8  # pixels: reach of the filter, along diagonals and both ways, and of the spline
LEAST_RADIUS = 4  # of the disc at the coarsest resolution
LEAST_SIDE = 2 * (MARGIN + LEAST_RADIUS) * max(FACTORS)  # pixels of an image
FRAMES = "inner", "whole"
KINDS = "filters", "dot", "cross"
DIAGONAL_WEIGHT = 0.25  # of the grid on which products are measured
LEAST_PRODUCT = 1e-12  # grey levels squared; below it an image is flat, and its products are rounding errors


class Protocol(NamedTuple):
    """Choices that [eq:dist] leaves open.

    Attributes
    ----------
    interpolation : {"cubic", "linear"}
        How images are interpolated when they are moved.
    antialias : bool
        Whether images are smoothed before they are downsampled.
    frame : {"inner", "whole"}
        Nodes to compare: those that the border does not influence, or all.
    """

    interpolation: str = "cubic"
    antialias: bool = False
    frame: str = "inner"


class Point(NamedTuple):
    """The gap at one downsampling factor.

    In grey levels for filters, and as a fraction of the mean absolute product for dot and cross.

    Attributes
    ----------
    factor : int
        The factor t.
    mean, spread : float
        Mean and standard deviation over images.
    each : dict
        Mean by transformation: degrees of rotation, or pixels of shift.
    """

    factor: int
    mean: float
    spread: float
    each: dict[float, float]


def random_filters(seed: int = 0) -> np.ndarray:
    """Return random filters of degree 4, with coefficients uniform in [-1, 1].

    Parameters
    ----------
    seed : int
        Seed of the coefficients.

    Returns
    -------
    array of shape (20, 5)
        Coefficients alpha of 20 filters.
    """
    return generator(seed, "filters").uniform(-1, 1, (N_FILTERS, DEGREE + 1))


def band_limited_images(n: int = 12, side: int = 480, seed: int = 0) -> np.ndarray:
    """Return smooth random images, with amplitudes like 1/frequency, as in photographs.

    Their shortest wavelength is 16 pixels, 2.7 pixels at t = 6, so that nothing is aliased.

    Parameters
    ----------
    n : int
        Number of images.
    side : int
        Height and width.
    seed : int
        Seed of the images.

    Returns
    -------
    array of shape (n, side, side)
        Images in [0, 1].
    """
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    amplitude = np.where((frequency > 0) & (frequency <= 1 / 16), 1 / np.maximum(frequency, 1 / side), 0)
    noise = generator(seed, "images").standard_normal((n, side, side))
    images = np.fft.irfft2(amplitude * np.fft.rfft2(noise), s=(side, side))
    low, high = (edge(images, axis=(1, 2), keepdims=True) for edge in (np.min, np.max))
    return (images - low) / (high - low)


def image_gaps(image: np.ndarray, alpha: np.ndarray, protocol: Protocol = Protocol()) -> np.ndarray:  # noqa: B008
    """Return the mean gaps of one image, [eq:dist].

    Parameters
    ----------
    image : array of shape (height, width)
        The image.
    alpha : array of shape (K, M+1)
        Coefficients of the filters.
    protocol : Protocol
        How to measure.

    Returns
    -------
    array of shape (kinds, factors, 2, 4)
        Gaps of each kind and factor, for four rotations and then four shifts.
    """
    if min(image.shape) < LEAST_SIDE:
        raise UsageError(
            f"The experiment needs images of at least {LEAST_SIDE} pixels each way,"
            f" got {image.shape[0]}x{image.shape[1]}."
        )
    if protocol.frame not in FRAMES:
        raise UsageError(f"frame must be 'inner' or 'whole', got {protocol.frame!r}.")
    return np.stack([_gaps_at(image, factor, alpha, protocol) for factor in FACTORS], axis=1)


def _gaps_at(image, factor, alpha, protocol) -> np.ndarray:
    y = downsample(image[None].astype(np.float64), factor, protocol.antialias)[0]
    nodes = np.ones(y.shape, bool) if protocol.frame == "whole" else _disc(image.shape, factor)
    powers, products = _powers(y), _products(y)
    sizes = np.abs(products[:, nodes]).mean(axis=1)
    moves = [(rotate, ANGLES), (lambda maps, by, *options: translate(maps, (by, by), *options), SHIFTS)]
    options = protocol.interpolation, False  # filtered images have negative values, so no clipping
    gaps = np.zeros((len(KINDS), 2, len(ANGLES)))
    for kind, (move, amounts) in enumerate(moves):
        for i, amount in enumerate(amounts):
            moved = move(y[None], amount, *options)[0]
            back = move(_powers(moved), -amount, *options)  # T^-1(L^m(T(y)))
            difference = alpha @ (back - powers)[:, nodes]  # all filters at once, as T and F are linear
            gaps[0, kind, i] = np.abs(difference).mean()  # [eq:dist]
            differences = np.abs((move(_products(moved), -amount, *options) - products)[:, nodes]).mean(axis=1)
            np.divide(differences, sizes, out=gaps[1:, kind, i], where=sizes > LEAST_PRODUCT)
    return gaps


def _powers(y) -> np.ndarray:
    """Return L^m y for m = 0..4: (5, height, width)."""
    return laplacian_powers(grid_graph(y.shape), np.ascontiguousarray(y).reshape(1, -1, 1), DEGREE).reshape(
        -1, *y.shape
    )


def _products(y) -> np.ndarray:
    """Return the dot and the cross product of y and L y: (2, height, width)."""
    graph = grid_graph(y.shape, diagonal_weight=DIAGONAL_WEIGHT)
    pair = laplacian_powers(graph, np.ascontiguousarray(y).reshape(1, -1, 1), 1)
    return np.stack([product(graph, *pair) for product in (dot, cross)]).reshape(-1, *y.shape)


def _disc(shape, factor) -> np.ndarray:
    """Return the nodes that count at one resolution, the same part of the scene at each."""
    coarsest = max(FACTORS)
    radius = (min(shape) // coarsest / 2 - MARGIN) * coarsest / factor
    rows, columns = (np.arange(n // factor) - (n // factor - 1) / 2 for n in shape)
    return np.hypot(rows[:, None], columns) <= radius


def run(images, seed: int = 0, protocol: Protocol = Protocol(), threads: int = 1) -> Iterator[np.ndarray]:  # noqa: B008
    """Yield `image_gaps` of each image, in order.

    Parameters
    ----------
    images : iterable of arrays
        Images (height, width); may be a generator that reads files.
    seed : int
        Seed of the random filters.
    protocol : Protocol
        Choices that the paper leaves open.
    threads : int
        Number of images that are processed at a time; the results do not depend on it.

    Yields
    ------
    array of shape (kinds, factors, 2, 4)
    """
    alpha = random_filters(seed)
    waiting: deque[Future[np.ndarray]] = deque()
    executor = ThreadPoolExecutor(threads)
    try:
        for image in images:
            waiting.append(executor.submit(image_gaps, image, alpha, protocol))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def summary(gaps) -> dict[str, dict[str, list[Point]]]:
    """Summarise the gaps of all images.

    Parameters
    ----------
    gaps : sequence of arrays
        Results of `image_gaps`.

    Returns
    -------
    dict of dicts
        For each kind, a list of `Point`, one for each factor, under "rotation" and under "shift".
    """
    every = np.asarray(list(gaps))  # (images, kinds, factors, 2, 4)
    return {kind: _curves(every[:, i]) for i, kind in enumerate(KINDS)}


def _curves(gaps) -> dict[str, list[Point]]:
    curves = {}
    for number, (name, amounts) in enumerate({"rotation": ANGLES, "shift": SHIFTS}.items()):
        of_images = gaps[:, :, number].mean(axis=2)
        curves[name] = [
            Point(
                factor,
                float(of_images[:, i].mean()),
                float(of_images[:, i].std()),
                dict(zip(amounts, gaps[:, i, number].mean(axis=0).tolist(), strict=True)),
            )
            for i, factor in enumerate(FACTORS)
        ]
    return curves
