"""The resolution experiment (paper, section 6.3, [fig:rotationresult]): the coarser the pixels, the larger the gap.

Images are down-sampled, moved, filtered, moved back, and compared with their own filtered selves, [eq:dist]. That
equation has neither absolute value nor norm, and says nothing about borders. Here:

- norm: the mean over nodes of the absolute difference, in grey levels (black 0, white 1); then the mean over filters
- border: only nodes in a disc about the centre count, the same part of the scene at every t, so small that
  nothing from outside of the image reaches them (frame "inner"); or all nodes (frame "whole"), zeros come in
- interpolation: cubic spline, for the movement there and back
- down-sampling: bicubic from 4x4 pixels, which samples the scene as it is, as the theorems do; or smoothed first
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from tigra.errors import UsageError
from tigra.graph import grid_graph
from tigra.graph.polynomials import laplacian_powers
from tigra.images.transforms import downsample, rotate, translate
from tigra.seeding import generator

FACTORS = 2, 3, 4, 5, 6  # t
ANGLES = 10.0, 20.0, 30.0, 45.0  # pi/18, pi/9, pi/6, pi/4
SHIFTS = 0.1, 0.2, 0.3, 0.4  # pixels down, and as many to the right
N_FILTERS, DEGREE = 20, 4
MARGIN = 2 * DEGREE + 8  # pixels: the filter's reach, along diagonals and both ways, and the spline's
LEAST_RADIUS = 4  # of the disc at the coarsest resolution
LEAST_SIDE = 2 * (MARGIN + LEAST_RADIUS) * max(FACTORS)  # pixels of an image
FRAMES = "inner", "whole"


class Protocol(NamedTuple):
    """What [eq:dist] leaves open."""

    interpolation: str = "cubic"
    antialias: bool = False
    frame: str = "inner"


class Point(NamedTuple):
    """The gap at one down-sampling factor t, over all images: mean, spread (standard deviation), and each movement."""

    factor: int
    mean: float
    spread: float
    each: dict[float, float]


def random_filters(seed: int = 0) -> np.ndarray:
    """alpha (20, 5): 20 filters of degree 4 with coefficients uniform in [-1, 1]."""
    return generator(seed, "filters").uniform(-1, 1, (N_FILTERS, DEGREE + 1))


def band_limited_images(n: int = 12, side: int = 480, seed: int = 0) -> np.ndarray:
    """Random smooth images (n, side, side) in [0, 1], with amplitudes like 1/frequency, as photographs have.

    Their finest waves are 16 pixels long: at t = 6, 2.7 pixels, so that even there nothing is folded.
    """
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.rfftfreq(side))
    amplitude = np.where((frequency > 0) & (frequency <= 1 / 16), 1 / np.maximum(frequency, 1 / side), 0)
    noise = generator(seed, "images").standard_normal((n, side, side))
    images = np.fft.irfft2(amplitude * np.fft.rfft2(noise), s=(side, side))
    low, high = (edge(images, axis=(1, 2), keepdims=True) for edge in (np.min, np.max))
    return (images - low) / (high - low)


def image_gaps(image: np.ndarray, alpha: np.ndarray, protocol: Protocol = Protocol()) -> np.ndarray:  # noqa: B008
    """Mean gaps of one image (height, width): (factors, 2, 4), for the rotations and then for the shifts."""
    if min(image.shape) < LEAST_SIDE:
        raise UsageError(
            f"The experiment needs images of at least {LEAST_SIDE} pixels each way,"
            f" got {image.shape[0]}x{image.shape[1]}."
        )
    if protocol.frame not in FRAMES:
        raise UsageError(f"frame must be 'inner' or 'whole', got {protocol.frame!r}.")
    return np.array([_gaps_at(image, factor, alpha, protocol) for factor in FACTORS])


def _gaps_at(image, factor, alpha, protocol) -> list[list[float]]:
    y = downsample(image[None].astype(np.float64), factor, protocol.antialias)[0]
    nodes = np.ones(y.shape, bool) if protocol.frame == "whole" else _disc(image.shape, factor)
    powers = _powers(y)
    moves = [(rotate, ANGLES), (lambda maps, by, *options: translate(maps, (by, by), *options), SHIFTS)]
    options = protocol.interpolation, False  # filtered images have values below 0: no clipping
    rows: list[list[float]] = []
    for move, amounts in moves:
        rows.append([])
        for amount in amounts:
            back = move(_powers(move(y[None], amount, *options)[0]), -amount, *options)  # T^-1(L^m(T(y)))
            difference = alpha @ (back - powers)[:, nodes]  # all filters: T and F are linear
            rows[-1].append(float(np.abs(difference).mean()))  # [eq:dist]
    return rows


def _powers(y) -> np.ndarray:
    """L^m y for m = 0..4: (5, height, width)."""
    return laplacian_powers(grid_graph(y.shape), np.ascontiguousarray(y).reshape(1, -1, 1), DEGREE).reshape(
        -1, *y.shape
    )


def _disc(shape, factor) -> np.ndarray:
    """The nodes that count at one resolution: the same part of the scene at each."""
    coarsest = max(FACTORS)
    radius = (min(shape) // coarsest / 2 - MARGIN) * coarsest / factor
    rows, columns = (np.arange(n // factor) - (n // factor - 1) / 2 for n in shape)
    return np.hypot(rows[:, None], columns) <= radius


def run(images, seed: int = 0, protocol: Protocol = Protocol(), threads: int = 1) -> Iterator[np.ndarray]:  # noqa: B008
    """Yield `image_gaps` of each image, in their order; images may be a generator that reads files.

    Threads work on several images at a time. Each image has its own numbers, so they change none of them.
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


def summary(gaps) -> dict[str, list[Point]]:
    """{"rotation": a Point for each t, "shift": the same} from the gaps of all images."""
    gaps = np.asarray(list(gaps))  # (images, factors, 2, 4)
    curves = {}
    for kind, (name, amounts) in enumerate({"rotation": ANGLES, "shift": SHIFTS}.items()):
        of_images = gaps[:, :, kind].mean(axis=2)
        curves[name] = [
            Point(
                factor,
                float(of_images[:, i].mean()),
                float(of_images[:, i].std()),
                dict(zip(amounts, gaps[:, i, kind].mean(axis=0).tolist(), strict=True)),
            )
            for i, factor in enumerate(FACTORS)
        ]
    return curves
