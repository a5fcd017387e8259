"""Spatial transformer: the layer ST[6], which predicts and applies an affine map (Jaderberg et al. 2015)."""

from __future__ import annotations

import numpy as np

from tigra.baselines.planes.kernels import (
    bilinear,
    gather,
    gather_gradient,
    mean_pool,
    mean_pool_gradient,
)
from tigra.baselines.planes.planes import PlaneLayer
from tigra.errors import ShapeError, UsageError

IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
OUTSIDE = ("zeros", "border")


class SpatialTransformer(PlaneLayer):
    """Sample all planes of an image on a grid that an affine map theta transforms; halves height and width.

        theta    = V relu(W m + c) + d                    m: the planes, mean-pooled by 2, as one column
        (x, y)_t = theta (x_q, y_p, 1)                    target t = (p, q), x_q and y_p evenly from -1 to 1
        z_{c,t}  = bilinear interpolation of plane c at (x, y)_t

    -1 and 1 are the centres of the first and last pixel. One theta transforms all planes of an image.

    Parameters
    ----------
    shape : (int, int, int)
        Shape (C, H, W) of the input.
    hidden_weight, hidden_bias : arrays of shapes (h, C (H // 2) (W // 2)) and (h,)
        W and c.
    theta_weight, theta_bias : arrays of shapes (6, h) and (6,)
        V and d.
    outside : {"zeros", "border"}
        Value of pixels outside the plane: 0, or that of the border.

    Examples
    --------
    >>> layer = SpatialTransformer.init((1, 2, 6), 1, np.random.default_rng(0), "float64")  # starts as the identity
    >>> layer.forward(np.arange(12.0).reshape(1, 2, 6, 1)).ravel()  # half way down: left, in the middle, right
    array([3. , 5.5, 8. ])
    """

    def __init__(self, shape, hidden_weight, hidden_bias, theta_weight, theta_bias, outside: str = "zeros"):
        super().__init__(
            hidden_weight=hidden_weight, hidden_bias=hidden_bias, theta_weight=theta_weight, theta_bias=theta_bias
        )
        self.shape, self.outside = tuple(shape), outside
        if outside not in OUTSIDE:
            raise UsageError(f"outside must be one of {', '.join(OUTSIDE)}, got {outside!r}.")
        n_maps, height, width = self.shape
        wanted = tuple(self.shapes(self.shape, len(hidden_bias)).values())
        got = tuple(array.shape for array in self.params.values())
        if got != wanted or min(height, width) < 2:
            raise ShapeError(
                f"SpatialTransformer for planes {self.shape} of at least 2x2 pixels needs arrays of shapes {wanted},"
                f" got {got}."
            )
        self.size = height // 2, width // 2  # of the output
        self.grid = target_grid(self.size)

    @staticmethod
    def shapes(shape: tuple[int, int, int], n_hidden: int) -> dict[str, tuple[int, ...]]:
        """Return name -> shape of the parameters, for planes (C, H, W)."""
        n_pooled = shape[0] * (shape[1] // 2) * (shape[2] // 2)
        hidden = {"hidden_weight": (n_hidden, n_pooled), "hidden_bias": (n_hidden,)}
        return hidden | {"theta_weight": (6, n_hidden), "theta_bias": (6,)}

    @classmethod
    def init(cls, shape, n_hidden: int, rng, dtype, outside: str = "zeros") -> SpatialTransformer:
        """Start with theta the identity: V = 0, d = (1, 0, 0, 0, 1, 0); He initialisation for W, c = 0."""
        shapes = cls.shapes(shape, n_hidden)
        limit = float(np.sqrt(6.0 / max(shapes["hidden_weight"][1], 1)))
        hidden = rng.uniform(-limit, limit, shapes["hidden_weight"]).astype(dtype), np.zeros(n_hidden, dtype)
        return cls(shape, *hidden, np.zeros(shapes["theta_weight"], dtype), np.array(IDENTITY, dtype), outside)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """x (C, H, W, B)  ->  z (C, H // 2, W // 2, B)."""
        (n_maps, height, width), x = self.shape, self._checked(x)
        pooled, hidden, theta = self._localise(x)
        n_places, n_batch, arrays = self.grid.shape[1], x.shape[3], self._space
        corners = arrays.array("corners", (n_places, 4, n_batch), np.int32)
        weights = arrays.array("weights", (n_places, 4, n_batch), x.dtype)
        slopes = arrays.array("slopes", (2, n_places, 4, n_batch), x.dtype)
        bilinear(self._places(theta), height, width, self.outside == "border", corners, weights, slopes)
        z = arrays.result("z", (n_maps, *self.size, n_batch), x.dtype)
        gather(x.reshape(n_maps, -1, n_batch), corners, weights, z.reshape(n_maps, n_places, n_batch))
        self._cache = x, pooled, hidden, corners, weights, slopes
        return z

    def backward(self, grad_z: np.ndarray) -> np.ndarray:
        """dE/dz  ->  dE/dx, the sum of the gradients through the sampling and through theta."""
        x, pooled, hidden, corners, weights, slopes = self._take_cache()
        (n_maps, height, width, n_batch), n_places = x.shape, self.grid.shape[1]
        grad_x = self._space.result("grad_x", x.shape, x.dtype)
        grad_places = self._space.array("grad_places", (2, n_places, n_batch), x.dtype)
        g = np.ascontiguousarray(grad_z).reshape(n_maps, n_places, n_batch)
        flat = (n_maps, height * width, n_batch)
        gather_gradient(x.reshape(flat), corners, weights, slopes, g, grad_x.reshape(flat), grad_places)
        grad_places *= self._pixels_per_unit(x.dtype)
        grad_theta = np.matmul(self.grid.astype(x.dtype), grad_places).reshape(6, n_batch)
        grad_hidden = (self.params["theta_weight"].T @ grad_theta) * (hidden > 0)
        self.grads["theta_weight"][:] = grad_theta @ hidden.T
        self.grads["theta_bias"][:] = grad_theta.sum(axis=1)
        self.grads["hidden_weight"][:] = grad_hidden @ pooled.T
        self.grads["hidden_bias"][:] = grad_hidden.sum(axis=1)
        grad_pooled = self.params["hidden_weight"].T @ grad_hidden
        through_theta = self._space.array("through_theta", x.shape, x.dtype)
        mean_pool_gradient(grad_pooled.reshape(n_maps, *self.size, n_batch), 2, through_theta)
        grad_x += through_theta
        return grad_x

    def to_onnx(self, to, signal):
        """Write theta of each image, and the sampling of its planes."""
        to.needs_opset(16, "A spatial transformer")
        pooled = to.pool("AveragePool", signal.values, (2, 2), (2, 2))
        flat = to.reshape(pooled, (self.params["hidden_weight"].shape[1],))
        hidden = to.relu(to.dense(flat, self.params["hidden_weight"], self.params["hidden_bias"]))
        theta = to.dense(hidden, self.params["theta_weight"], self.params["theta_bias"])
        places = to.product(to.reshape(theta, (2, 3)), self.grid)
        grid = to.node("Transpose", [places], (self.grid.shape[1], 2), perm=[0, 2, 1])
        sampling = {"mode": "bilinear" if to.opset < 20 else "linear", "align_corners": 1, "padding_mode": self.outside}
        inputs = [signal.values, to.reshape(grid, (*self.size, 2))]
        return signal._replace(values=to.node("GridSample", inputs, (self.shape[0], *self.size), **sampling))

    def decisions(self, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        """Return which hidden units are active, and between which pixels each place is."""
        if self._cache is None:
            return []
        _, _, hidden, corners, weights, _ = self._cache
        return [hidden > 0, corners.copy(), weights != 0]

    def theta(self, x: np.ndarray) -> np.ndarray:
        """Return the affine maps (2, 3, B) for planes; if far from the identity, training has diverged."""
        return self._localise(self._checked(x))[2].reshape(2, 3, -1)

    def _checked(self, x) -> np.ndarray:
        """Return x, contiguous; raise ShapeError unless it has the right shape."""
        n_maps, height, width = self.shape
        x = np.ascontiguousarray(self._check_planes(x, n_maps))
        if x.shape[:3] != self.shape:
            raise ShapeError(f"SpatialTransformer expects planes of {height}x{width} pixels, got {x.shape}.")
        return x

    def _localise(self, x):
        """Return pooled planes (C (H // 2) (W // 2), B), hidden units (h, B) and theta (6, B)."""
        pooled = self._space.array("pooled", (len(x), *self.size, x.shape[3]), x.dtype)
        mean_pool(x, 2, pooled)
        pooled = pooled.reshape(-1, x.shape[3])
        hidden = self.params["hidden_weight"] @ pooled + self.params["hidden_bias"][:, None]
        hidden = np.maximum(hidden, 0)
        return pooled, hidden, self.params["theta_weight"] @ hidden + self.params["theta_bias"][:, None]

    def _places(self, theta) -> np.ndarray:
        """Return the places (2, T, B) where the targets are sampled: column and row in pixels."""
        places = np.matmul(self.grid.T.astype(theta.dtype), theta.reshape(2, 3, -1))
        places += 1
        places *= self._pixels_per_unit(theta.dtype)
        return places

    def _pixels_per_unit(self, dtype) -> np.ndarray:
        """Return half the distance from first to last pixel, for columns and rows, to multiply with (2, T, B)."""
        _, height, width = self.shape
        return np.array([(width - 1) / 2, (height - 1) / 2], dtype)[:, None, None]


def target_grid(size: tuple[int, int]) -> np.ndarray:
    """Return the targets (x_q, y_p, 1) as columns (3, T), row by row; a single row or column is at 0.

    >>> target_grid((1, 3))
    array([[-1.,  0.,  1.],
           [ 0.,  0.,  0.],
           [ 1.,  1.,  1.]])
    """
    rows, columns = (np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in size)
    y, x = np.meshgrid(rows, columns, indexing="ij")
    return np.stack([x.ravel(), y.ravel(), np.ones(x.size)])
