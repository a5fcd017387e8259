"""Convolution and pooling: the layers C[n], P[n] and MP[n] of the baselines."""

from __future__ import annotations

import numpy as np

from tigra.baselines.planes.kernels import (
    fold,
    max_pool,
    max_pool_gradient,
    mean_pool,
    mean_pool_gradient,
    unfold,
)
from tigra.baselines.planes.planes import PlaneLayer
from tigra.errors import ShapeError, UsageError


class Conv(PlaneLayer):
    """Convolution with O filters of size x size pixels, stride 1, without padding.

        z_{o,i,j} = bias_o + sum_{c,u,v} weight_{o,c,u,v} x_{c,i+u,j+v}

    Parameters
    ----------
    weight : array of shape (O, C, size, size)
        Filters.
    bias : array of shape (O,)
        Bias of each filter.

    Notes
    -----
    `unfold` copies the windows into a matrix X with one row for each (c, u, v) and one row of ones. Then
    z = [weight, bias] X is a single matrix product. With the batch last, the rows of X are shifted planes.

    Examples
    --------
    >>> layer = Conv(weight=np.array([[[[0.0, 1.0], [0.0, 2.0]]]]), bias=np.array([0.5]))
    >>> layer.forward(np.arange(6.0).reshape(1, 2, 3, 1)).ravel()  # 1 + 2 * 4 + 0.5, 2 + 2 * 5 + 0.5
    array([ 9.5, 12.5])
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray):
        super().__init__(weight=weight, bias=bias)
        if weight.ndim != 4 or weight.shape[2] != weight.shape[3] or bias.shape != weight.shape[:1]:
            raise ShapeError(
                f"Conv needs a weight (O, C, size, size) and a bias (O,), got shapes {weight.shape} and {bias.shape}."
            )

    @staticmethod
    def shapes(n_in: int, n_filters: int, size: int) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of the parameters."""
        return {"weight": (n_filters, n_in, size, size), "bias": (n_filters,)}

    @classmethod
    def init(cls, n_in: int, n_filters: int, size: int, rng, dtype) -> Conv:
        """He initialisation, U[-a, a] with a = sqrt(6 / (C size^2)), and bias 0."""
        limit = float(np.sqrt(6.0 / (n_in * size * size)))
        weight = rng.uniform(-limit, limit, cls.shapes(n_in, n_filters, size)["weight"]).astype(dtype)
        return cls(weight, np.zeros(n_filters, dtype))

    def forward(self, x: np.ndarray) -> np.ndarray:
        """x (C, H, W, B)  ->  z (O, H - size + 1, W - size + 1, B)."""
        weight = self.params["weight"]
        n_filters, n_maps, size, _ = weight.shape
        x = np.ascontiguousarray(self._check_planes(x, n_maps, size))
        _, height, width, n_batch = x.shape
        shape = (n_filters, height - size + 1, width - size + 1, n_batch)
        windows = self._space.array("windows", (weight[0].size + 1, shape[1] * shape[2] * n_batch), x.dtype)
        unfold(x, size, windows)
        windows[-1] = 1
        z = self._space.result("z", shape, x.dtype)
        np.matmul(self._matrix(), windows, out=z.reshape(n_filters, -1))
        self._cache = x.shape, windows
        return z

    def backward(self, grad_z: np.ndarray) -> np.ndarray:
        """dE/dz  ->  dE/dx (C, H, W, B); fills grads weight, bias."""
        shape, windows = self._take_cache()
        weight = self.params["weight"]
        g = np.ascontiguousarray(grad_z).reshape(len(weight), -1)
        grad_matrix = g @ windows.T
        self.grads["weight"][:] = grad_matrix[:, :-1].reshape(weight.shape)
        self.grads["bias"][:] = grad_matrix[:, -1]
        grad_windows = self._space.array("grad_windows", (len(windows) - 1, windows.shape[1]), windows.dtype)
        np.matmul(weight.reshape(len(weight), -1).T, g, out=grad_windows)
        grad_x = self._space.result("grad_x", shape, windows.dtype)
        fold(grad_windows, weight.shape[2], grad_x)
        return grad_x

    def to_onnx(self, to, signal):
        """Write a convolution."""
        return signal._replace(values=to.convolve(signal.values, self.params["weight"], self.params["bias"]))

    def _matrix(self) -> np.ndarray:
        """[weight, bias] as (O, C size^2 + 1): the bias is the weight of the row of ones."""
        weight, bias = self.params["weight"], self.params["bias"]
        matrix = self._space.array("matrix", (len(bias), weight[0].size + 1), weight.dtype)
        matrix[:, :-1] = weight.reshape(len(bias), -1)
        matrix[:, -1] = bias
        return matrix


class MaxPool(PlaneLayer):
    """Maximum of each size x size window; windows do not overlap.

    Incomplete windows at the lower and right border are left out. In case of ties, the first value in row-major
    order gets the gradient.

    Parameters
    ----------
    size : int
        Side of the windows, from 1 to 15 pixels.

    Examples
    --------
    >>> MaxPool(2).forward(np.arange(10.0).reshape(1, 2, 5, 1)).ravel()
    array([6., 8.])
    """

    def __init__(self, size: int):
        super().__init__()
        if not isinstance(size, (int, np.integer)) or not 1 <= size <= 15:
            raise UsageError(f"Max-pooling needs a window of 1 to 15 pixels, got {size!r}.")
        self.size = int(size)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(C, H, W, B)  ->  (C, H // size, W // size, B)."""
        x = np.ascontiguousarray(self._check_planes(x, None, self.size))
        n_maps, height, width, n_batch = x.shape
        shape = (n_maps, height // self.size, width // self.size, n_batch)
        y, place = self._space.result("y", shape, x.dtype), self._space.array("place", shape, np.int32)
        max_pool(x, self.size, y, place)
        self._cache = x.shape, place
        return y

    def backward(self, grad_y: np.ndarray) -> np.ndarray:
        """Pass the gradient to the place of the maximum."""
        shape, place = self._take_cache()
        grad_x = self._space.result("grad_x", shape, grad_y.dtype)
        max_pool_gradient(np.ascontiguousarray(grad_y), place, self.size, grad_x)
        return grad_x

    def to_onnx(self, to, signal):
        """Write max-pooling."""
        return signal._replace(values=to.pool("MaxPool", signal.values, *[(self.size, self.size)] * 2))

    def decisions(self, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        """Return the places of the maxima."""
        return [] if self._cache is None else [self._cache[1].copy()]


class MeanPool(PlaneLayer):
    """Mean of each size x size window; windows do not overlap, and incomplete ones are left out.

    Planes may have any axes before (H, W, B), so that real and imaginary parts are pooled separately.

    Parameters
    ----------
    size : int
        Side of the windows in pixels.

    Examples
    --------
    >>> MeanPool(2).forward(np.arange(10.0).reshape(1, 2, 5, 1)).ravel()
    array([3., 5.])
    """

    def __init__(self, size: int):
        super().__init__()
        if not isinstance(size, (int, np.integer)) or size < 1:
            raise UsageError(f"Mean-pooling needs a window of at least one pixel, got {size!r}.")
        self.size = int(size)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(..., H, W, B)  ->  (..., H // size, W // size, B)."""
        flat = x.reshape(-1, *x.shape[-3:]) if isinstance(x, np.ndarray) and x.ndim > 4 else x
        flat = np.ascontiguousarray(self._check_planes(flat, None, self.size))
        height, width = (n // self.size for n in flat.shape[1:3])
        y = self._space.result("y", (*x.shape[:-3], height, width, x.shape[-1]), x.dtype)
        mean_pool(flat, self.size, y.reshape(-1, *y.shape[-3:]))
        self._cache = (x.shape,)
        return y

    def backward(self, grad_y: np.ndarray) -> np.ndarray:
        """Spread the gradient equally over each window."""
        (shape,) = self._take_cache()
        grad_x = self._space.result("grad_x", shape, grad_y.dtype)
        flat = np.ascontiguousarray(grad_y).reshape(-1, *grad_y.shape[-3:])
        mean_pool_gradient(flat, self.size, grad_x.reshape(-1, *shape[-3:]))
        return grad_x

    def to_onnx(self, to, signal):
        """Write mean-pooling."""
        return signal._replace(values=to.pool("AveragePool", signal.values, *[(self.size, self.size)] * 2))
