"""What is computed: the paper's architectures on made-up images, and how thoroughly."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tigra.images.transforms import smooth
from tigra.layers import DynamicPool, Statistics
from tigra.models.build import build_network
from tigra.models.loss import negative_log_likelihood
from tigra.models.network import Network

LARGE = "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]"


@dataclass(frozen=True)
class Size:
    """A data set of the paper, as far as it decides how much is to be computed."""

    name: str
    architecture: str
    shape: tuple[int, int]
    n_classes: int
    batch: int

    @property
    def n_nodes(self) -> int:
        return self.shape[0] * self.shape[1]


SIZES = (
    Size("MNIST-012", "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]", (28, 28), 3, 50),
    Size("MNIST-rot", LARGE, (26, 26), 9, 100),
    Size("MNIST-trans", LARGE, (34, 34), 9, 100),
    Size("ETH-80", LARGE, (50, 50), 8, 50),
)
CLEAR_GAP = 1e-5  # of a map's largest value; far more than float32 rounds
TINY = Size("tiny", "SC[3, 2]-DP[25]-SC[4, 2]-DP[12]-S[3]-FC[8]-FC[6]", (6, 7), 3, 5)


@dataclass(frozen=True)
class Settings:
    """How much to run.

    rounds : turns of each contestant; slow_rounds : of those that take seconds
    shortest_turn, rest : seconds of a turn, and of sleep ahead of it where threads of several libraries meet
    longest : seconds for all rounds of a whole network; slow ones have fewer rounds
    check_batch : images on which all peers are compared in float64 before anything is timed
    networks : what is timed of whole networks
    compiled : also race torch.compile, which first compiles for a minute or so for each size
    cpu_time : measure the process's CPU time instead of the time that passes; for `defaults` on a busy machine
    """

    sizes: tuple[Size, ...] = SIZES
    threads: tuple[int, ...] = (1, 2)
    rounds: int = 11
    slow_rounds: int = 3
    shortest_turn: float = 0.2
    rest: float = 0.1
    longest: float = 7.0
    check_batch: int = 5
    networks: tuple[str, ...] = ("step", "inference")
    compiled: bool = True
    cpu_time: bool = False
    grid_sides: tuple[int, ...] = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
    scale: float = 1.0
    out: Path | None = None

    @property
    def clock(self) -> Callable[[], float]:
        """What is measured."""
        return time.process_time if self.cpu_time else time.perf_counter

    def quick(self) -> Settings:
        """Two sizes, few rounds, smaller grids."""
        return replace(
            self,
            sizes=tuple(size for size in self.sizes if size.name in ("MNIST-012", "MNIST-rot")),
            rounds=5,
            slow_rounds=1,
            shortest_turn=0.1,
            grid_sides=(16, 32, 64, 128, 256),
            scale=0.5,
        )

    def tiny(self) -> Settings:
        """Everything once on next to nothing: for tests."""
        return replace(
            self,
            sizes=(TINY,),
            threads=(1,),
            rounds=1,
            slow_rounds=1,
            shortest_turn=0.0,
            rest=0.0,
            check_batch=3,
            compiled=False,
            grid_sides=(4, 6, 8),
            scale=0.0,
        )


class Problem:
    """A network with its images and labels.

    Images are smooth blobs on a faint rough ground: no two pixels are equal, so that no peer meets a tie.
    Images that come near one are left out (`clear_choice`): in float32 every peer rounds in its own
    way, and a single node more or less would hide whether they compute the same.
    """

    def __init__(self, size: Size, dtype: str = "float32", batch: int | None = None, seed: int = 0):
        self.size, self.dtype = size, np.dtype(dtype)
        rng = np.random.default_rng(seed)
        n_images = size.batch if batch is None else batch
        images = np.empty((0, *size.shape))
        while len(images) < n_images:
            images = np.concatenate([images, clear_choice(size, blobs(size.shape, n_images, rng))])
        self.images = images[:n_images].astype(dtype)  # (B, H, W)
        self.labels = rng.integers(0, size.n_classes, n_images)

    @property
    def rows(self) -> np.ndarray:
        """Images as (B, N)."""
        return self.images.reshape(len(self.images), -1)

    def network(self) -> Network:
        """A new network with the same start values every time, its statistics standardised on the images."""
        network = start_network(self.size, self.dtype.name)
        network.calibrate(self.images)
        return network

    @cached_property
    def reference(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, gradient and scores (B, C), straight from the network's own forward and backward."""
        network = self.network()
        scores = network.forward(network.signal(network.prepare(self.images)))
        loss, grad = negative_log_likelihood(scores, self.labels)
        network.backward(grad)
        return float(loss), network.gradients.copy(), scores.T.copy()


def start_network(size: Size, dtype: str) -> Network:
    """The network of a size: 8 neighbours, padded boundary, per-map sets, vector mixing."""
    return build_network(size.architecture, size.shape, size.n_classes, dtype=dtype, seed=1)


def blobs(shape, n_images: int, rng) -> np.ndarray:
    """Smooth random images (n, H, W) with values in [0, 1]."""
    images = smooth(rng.uniform(size=(n_images, *shape)) ** 6, 1.5)
    images -= images.min(axis=(1, 2), keepdims=True)
    images /= images.max(axis=(1, 2), keepdims=True)
    return 0.97 * images**2 + rng.uniform(0, 0.03, images.shape)


def clear_choice(size: Size, images: np.ndarray) -> np.ndarray:
    """The images for which every pooling has a gap between the values it keeps and those it drops."""
    network = start_network(size, "float64")
    signal = network.signal(network.prepare(images))
    clear = np.ones(len(images), bool)
    for layer in network.layers:
        if isinstance(layer, Statistics):
            return images[clear]
        if isinstance(layer, DynamicPool) and layer.n_active < size.n_nodes:
            candidates = np.where(signal.active.any(axis=0), signal.values, -np.inf)
            values = np.sort(candidates, axis=1)  # (K, N, B)
            gap = values[:, -layer.n_active] - values[:, -layer.n_active - 1]
            clear &= (gap > CLEAR_GAP * np.abs(signal.values).max(axis=1)).all(axis=0)
        signal = layer.forward(signal)
    raise ValueError(f"{size.architecture} has no statistics layer.")
