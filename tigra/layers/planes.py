"""Planes: images and feature maps (C, H, W, B) of pixels, as convolutional networks see them."""

from __future__ import annotations

import numpy as np

from tigra.layers.base import Layer


class StandardisePixels(Layer):
    """Pixels minus their mean, divided by their standard deviation: two numbers for the whole training set.

        x_hat = (x - mean) / deviation

    `calibrate` takes them from the training images once, before training; after that they are constants.

    >>> layer = StandardisePixels.init("float64")
    >>> layer.calibrate(np.array([0.0, 1.0]).reshape(1, 1, 2, 1))
    >>> layer.forward(np.ones((1, 1, 1, 1))).ravel()
    array([1.])
    """

    takes = "planes"

    def __init__(self, mean: np.ndarray, deviation: np.ndarray):
        super().__init__()
        self.state = {"mean": mean, "deviation": deviation}

    @classmethod
    def init(cls, dtype) -> StandardisePixels:
        """Mean 0 and deviation 1: the identity, until `calibrate`."""
        return cls(np.zeros(1, dtype), np.ones(1, dtype))

    @property
    def is_calibrated(self) -> bool:
        """Whether the constants differ from those of the identity."""
        return bool(self.state["mean"][0] != 0 or self.state["deviation"][0] != 1)

    def calibrate(self, pixels: np.ndarray) -> None:
        """Take mean and deviation from the pixels of the training images; of equal pixels only the mean."""
        deviation = pixels.std(dtype=np.float64)
        self.state["mean"][:] = pixels.mean(dtype=np.float64)
        self.state["deviation"][:] = deviation if deviation > 1e-6 * max(np.abs(pixels).max(), 1e-30) else 1.0

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(C, H, W, B)  ->  the same shape."""
        x = self._check_planes(x)
        deviation = self.state["deviation"]
        self._cache = (deviation,)
        x_hat = np.subtract(x, self.state["mean"], out=self._space.result("x_hat", x.shape, x.dtype))
        x_hat /= deviation
        return x_hat

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dx = dE/dx_hat / deviation."""
        (deviation,) = self._take_cache()
        return grad / deviation


class Flatten(Layer):
    """Planes (C, H, W, B) as features (C H W, B), one number for each map and pixel.

    >>> Flatten().forward(np.zeros((2, 3, 4, 5))).shape
    (24, 5)
    """

    takes = "planes"

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(C, H, W, B)  ->  (C H W, B), a copy: features do not change with the planes."""
        x = self._check_planes(x)
        self._cache = (x.shape,)
        features = self._space.result("features", (x[..., 0].size, x.shape[-1]), x.dtype)
        features.reshape(x.shape)[:] = x
        return features

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """(C H W, B)  ->  (C, H, W, B)."""
        (shape,) = self._take_cache()
        return grad.reshape(shape).copy()
