"""Base class and simple layers for planes, the feature maps (C, H, W, B) of convolutional networks."""

from __future__ import annotations

import math

import numpy as np

from tigra.errors import ShapeError
from tigra.layers.base import DTYPES, Layer


class PlaneLayer(Layer):
    """Base class of layers that take planes (C, H, W, B) of pixels."""

    @classmethod
    def image_input(cls, values: np.ndarray, image_shape: tuple[int, int]) -> np.ndarray:
        """Return the image as one plane (1, H, W, B)."""
        return values.reshape(len(values), *image_shape, -1)

    def _check_planes(self, x, n_maps: int | None = None, smallest: int = 1) -> np.ndarray:
        """Return x; raise ShapeError unless it is planes (C, H, W, B) of enough pixels and C = n_maps, if given."""
        name = type(self).__name__
        fits = isinstance(x, np.ndarray) and x.ndim == 4 and x.size > 0 and n_maps in (None, len(x))
        if not fits or x.dtype not in DTYPES or min(x.shape[1:3]) < smallest:
            size = f", H and W at least {smallest}" if smallest > 1 else ""
            wanted = f"real planes of shape ({n_maps or 'C'}, H, W, B){size}"
            raise ShapeError(f"{name} expects {wanted}, float32 or float64, got {_described(x)}.")
        return x

    def _check_harmonics(self, z, n_maps: int) -> np.ndarray:
        """Return z; raise ShapeError unless it is harmonic maps (2, 2, n_maps, H, W, B)."""
        fits = isinstance(z, np.ndarray) and z.ndim == 6 and z.shape[:3] == (2, 2, n_maps) and z.size > 0
        if not fits or z.dtype not in DTYPES:
            wanted = f"real planes of shape (2, 2, {n_maps}, H, W, B)"
            raise ShapeError(f"{type(self).__name__} expects {wanted}, float32 or float64, got {_described(z)}.")
        return z


def _described(x) -> str:
    return f"{x.dtype} {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__


class StandardisePixels(PlaneLayer):
    """Standardise pixels by one mean and one standard deviation for the whole training set.

        x_hat = (x - mean) / deviation

    `calibrate` computes both from the training images once, before training. After that they are constants.

    Parameters
    ----------
    mean, deviation : arrays of shape (1,)
        Mean and standard deviation of the pixels.

    Examples
    --------
    >>> layer = StandardisePixels.init("float64")
    >>> layer.calibrate(np.array([0.0, 1.0]).reshape(1, 1, 2, 1))
    >>> layer.forward(np.ones((1, 1, 1, 1))).ravel()
    array([1.])
    """

    def __init__(self, mean: np.ndarray, deviation: np.ndarray):
        super().__init__()
        self.state = {"mean": mean, "deviation": deviation}

    @classmethod
    def init(cls, dtype) -> StandardisePixels:
        """Start as the identity, with mean 0 and deviation 1."""
        return cls(np.zeros(1, dtype), np.ones(1, dtype))

    calibration_images = None
    positive_state = ("deviation",)

    @property
    def needs_calibration(self) -> bool:
        """True until `calibrate` is called."""
        return bool(self.state["mean"][0] == 0 and self.state["deviation"][0] == 1)

    def calibrate(self, pixels: np.ndarray) -> None:
        """Set mean and deviation from the training images; if all pixels are equal, the deviation is 1."""
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

    def to_onnx(self, to, signal):
        """Write (x - mean) / deviation."""
        centred = to.subtract(signal.values, self.state["mean"])
        return signal._replace(values=to.divide(centred, self.state["deviation"]))


class Flatten(PlaneLayer):
    """Flatten planes (C, H, W, B) to features (C H W, B).

    Examples
    --------
    >>> Flatten().forward(np.zeros((2, 3, 4, 5))).shape
    (24, 5)
    """

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(C, H, W, B)  ->  (C H W, B), a copy."""
        x = self._check_planes(x)
        self._cache = (x.shape,)
        features = self._space.result("features", (x[..., 0].size, x.shape[-1]), x.dtype)
        features.reshape(x.shape)[:] = x
        return features

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """(C H W, B)  ->  (C, H, W, B)."""
        (shape,) = self._take_cache()
        return grad.reshape(shape).copy()

    def to_onnx(self, to, signal):
        """Write a change of shape."""
        return signal._replace(values=to.reshape(signal.values, (math.prod(signal.values.shape),)))
