"""What is computed: the paper's architectures on made-up images, and how thoroughly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tigra.architecture import build_network
from tigra.network import Network
from tigra.transforms import smooth

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
TINY = Size("tiny", "SC[3, 2]-DP[25]-SC[4, 2]-DP[12]-S[3]-FC[8]-FC[6]", (6, 7), 3, 5)


@dataclass(frozen=True)
class Settings:
    """How much to run.

    rounds : turns of each contestant; slow_rounds : of those that take seconds
    check_batch : images on which all peers are compared in float64 before anything is timed
    compiled : also race torch.compile, which first compiles for a minute or so for each size
    """

    sizes: tuple[Size, ...] = SIZES
    threads: tuple[int, ...] = (1, 2)
    rounds: int = 15
    slow_rounds: int = 3
    shortest_turn: float = 0.1
    check_batch: int = 5
    compiled: bool = True
    grid_sides: tuple[int, ...] = (16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
    scale: float = 1.0
    out: Path | None = None

    def quick(self) -> Settings:
        """Two sizes, few rounds, smaller grids."""
        return replace(
            self,
            sizes=tuple(size for size in self.sizes if size.name in ("MNIST-012", "MNIST-rot")),
            rounds=5,
            slow_rounds=1,
            shortest_turn=0.02,
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
            check_batch=3,
            compiled=False,
            grid_sides=(4, 6, 8),
            scale=0.0,
        )


class Problem:
    """A network with its images and labels.

    Images are smooth blobs on a faint rough ground: no two pixels are equal, so that no peer
    meets a tie, and no node is exactly 0.
    """

    def __init__(self, size: Size, dtype: str = "float32", batch: int | None = None, seed: int = 0):
        self.size, self.dtype = size, np.dtype(dtype)
        rng = np.random.default_rng(seed)
        n_images = size.batch if batch is None else batch
        blobs = smooth(rng.uniform(size=(n_images, *size.shape)) ** 6, 1.5)
        blobs -= blobs.min(axis=(1, 2), keepdims=True)
        blobs /= blobs.max(axis=(1, 2), keepdims=True)
        ground = rng.uniform(0, 0.02, blobs.shape)
        self.images = (0.97 * blobs**2 + ground).astype(dtype)  # (B, H, W)
        self.labels = rng.integers(0, size.n_classes, n_images)

    @property
    def rows(self) -> np.ndarray:
        """Images as (B, N)."""
        return self.images.reshape(len(self.images), -1)

    def network(self) -> Network:
        """A new network with the same start values every time, its statistics standardised on the images."""
        network = build_network(
            self.size.architecture, self.size.shape, self.size.n_classes, dtype=self.dtype.name, seed=1
        )
        network.calibrate(self.images)
        return network

    @cached_property
    def reference(self) -> tuple[float, np.ndarray, np.ndarray]:
        """Loss, gradient and scores (B, C), straight from the network's own forward and backward."""
        from tigra.loss import negative_log_likelihood

        network = self.network()
        scores = network.forward(network.signal(network.prepare(self.images)))
        loss, grad = negative_log_likelihood(scores, self.labels)
        network.backward(grad)
        return float(loss), network.gradients.copy(), scores.T.copy()
