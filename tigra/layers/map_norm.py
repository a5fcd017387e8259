"""Batch normalisation that keeps an empty background at 0, for maps with a rectifier and for features."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.graph.polynomials import laplacian_step
from tigra.kernels.oriented.normalising import (
    LANES,
    rectified,
    rectified_gradient,
    row_sums,
    scales,
    standardised,
    through_moments,
)
from tigra.layers.base import Layer
from tigra.layers.frames import frames_of

EPSILON = 1e-10  # added to the variance of a map; responses of a map may be small
FEATURE_EPSILON = 1e-5  # added to the variance of a feature


class BatchNorm(Layer):
    """Base class of layers that normalise by the mean and variance of the batch in training.

    Otherwise they use running averages with weights `decay`^k, which are constants, so images do not influence each
    other. `given` and `given_back` take the sums over all micro-batches of a batch (`tigra.models.batch_statistics`).

    Parameters
    ----------
    shape : int or tuple of int
        Number of maps or features, whose statistics these are.
    dtype : dtype
        Precision of the state.
    **params : array
        Learned parameters by name.
    """

    uses_batch_statistics = True
    nonnegative_state = ("running_variance", "total")
    decay = 0.9  # of the running averages, in a step

    def __init__(self, shape, dtype, **params: np.ndarray):
        super().__init__(**params)
        zeros = {name: np.zeros(shape, dtype) for name in ("running_mean", "running_variance")}
        self.state = zeros | {"total": np.zeros(1, dtype)}
        self.given: np.ndarray | None = None
        self.given_back: np.ndarray | None = None

    def observe(self, totals: np.ndarray) -> None:
        """Update the running averages with the sums of a batch, once per step."""
        mean, variance = _moments(totals)
        for name, new in {"running_mean": mean, "running_variance": variance, "total": np.ones(1)}.items():
            self.state[name][:] = self.decay * self.state[name].astype(np.float64) + (1 - self.decay) * new

    def _statistics(self, x) -> tuple:
        """(number of values or None if mean and variance are constants, mean, variance), in float64."""
        if self.is_training:
            totals = self.measure(x) if self.given is None else self.given
            return totals[0], *_moments(totals)
        total = self.state["total"].astype(np.float64)
        if total[0] == 0:  # before the first step
            return None, *(constant(self.state["running_mean"].shape) for constant in (np.zeros, np.ones))
        return None, *(self.state[f"running_{name}"] / total for name in ("mean", "variance"))

    def measure(self, x) -> np.ndarray:
        """Number, sum and sum of squares of the values of each channel in a part of a batch, (3, K) in float64."""
        raise NotImplementedError


class MapNorm(BatchNorm):
    """Batch normalisation of maps, a rectifier, and diffusion; comes with every oriented convolution.

    Parameters
    ----------
    graph : Graph
        Its Laplacian L smooths the maps.
    gamma, beta : array (K,)
        Scale and offset of each map.
    diffusion : int
        How often each map is replaced by (I - L/2) z.

    Notes
    -----
    With mean and variance over all nodes and images of a batch, the layer computes

        s = gamma / sqrt(variance + 1e-10),    h = beta - s mean
        z = max(0, s x + h) - max(0, h)

    and then applies (I - L/2) `diffusion` times. An empty background stays exactly 0 for either sign of h. For h > 0
    the layer gives max(s x, -h), so responses can be negative; dynamic pooling after this layer selects nodes by the
    size of their response.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> layer = MapNorm(grid_graph((1, 4)), gamma=np.ones(1), beta=np.zeros(1))
    >>> layer.is_training = True
    >>> x = np.array([0.0, 0.0, 2.0, 2.0]).reshape(1, 4, 1)  # mean 1, variance 1
    >>> layer.forward(GraphSignal(x, np.ones((1, 4, 1), bool))).values.ravel()
    array([0., 0., 1., 1.])
    """

    def __init__(self, graph: Graph, gamma, beta, diffusion: int = 0):
        if np.ndim(gamma) != 1 or np.shape(gamma) != np.shape(beta):
            raise ShapeError(f"MapNorm needs gamma and beta (K,), got {np.shape(gamma)} and {np.shape(beta)}.")
        if not isinstance(diffusion, (int, np.integer)) or diffusion < 0:
            raise UsageError(f"diffusion must be a whole number of steps >= 0, got {diffusion!r}.")
        super().__init__(len(gamma), gamma.dtype, gamma=gamma, beta=beta)
        self.graph, self.diffusion = graph, int(diffusion)

    @classmethod
    def init(cls, graph: Graph, n_maps: int, dtype, diffusion: int = 0) -> MapNorm:
        """Create a layer with gamma 1 and beta 0."""
        return cls(graph, np.ones(n_maps, dtype), np.zeros(n_maps, dtype), diffusion)

    def measure(self, x: GraphSignal) -> np.ndarray:
        """Number, sum and sum of squares of the values of each map in a part of a batch, (3, K) in float64."""
        values = self._values(x)
        totals = np.empty((3, len(values)))
        totals[0] = values[0].size
        row_sums(values, values, self._lanes(values.dtype), totals[1:])
        return totals

    def forward(self, x: GraphSignal) -> GraphSignal:
        """x (K, N, B)  ->  z (K, N, B)."""
        values, shape = self._values(x), x.values.shape
        count, mean, variance = self._statistics(x)
        inverse, scale, shift = self._scales(mean, variance, values.dtype)
        z = self._space.result("z", shape, values.dtype)
        rectified(values, scale, shift, *self._diffusion(shape, values.dtype), z.reshape(values.shape))
        self._cache = values, count, mean, inverse, scale, shift, None
        return GraphSignal(self._diffused(z, "diffused"), x.active)

    def measure_back(self, grad: np.ndarray) -> np.ndarray:
        """Sums of g and g x_hat of a part of a batch, (2, K), where g = dE/d(s x + h); backward needs those of all."""
        *cache, through = self._take_cache()
        values, _, mean, inverse, scale, shift = cache
        if through is None:
            grad = self._diffused(np.ascontiguousarray(grad), "grad")  # L is symmetric
            masked, sums = self._space.result("masked", values.shape, values.dtype), np.empty((3, len(values)))
            arrays = values, grad.reshape(values.shape), scale, shift, *self._diffusion(grad.shape, values.dtype)
            rectified_gradient(*arrays, self._lanes(values.dtype), masked, sums)
            of_shift = sums[0] - sums[2]
            through = masked, np.stack([of_shift, inverse * (sums[1] - mean * of_shift)])
        self._cache = *cache, through
        return through[1]

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dz (K, N, B)  ->  dE/dx (K, N, B); fills grads gamma, beta."""
        own = self.measure_back(grad)
        values, count, mean, inverse, scale, _, (masked, _) = self._take_cache()
        self.grads["beta"][:], self.grads["gamma"][:] = own
        tilt = offset = np.zeros(len(scale))
        if count is not None:  # through mean and variance
            of_shift, of_scale = (own if self.given_back is None else self.given_back) / count
            tilt = -scale * inverse * of_scale
            offset = -scale * of_shift - tilt * mean
        through_moments(values, masked, scale, tilt.astype(scale.dtype), offset.astype(scale.dtype))
        return masked.reshape(np.shape(grad))

    def to_onnx(self, to, signal):
        """Scale, rectifier and diffusion; mean and variance are the running averages."""
        _, mean, variance = self._statistics(None)
        _, scale, shift = self._scales(mean, variance, np.float32)
        x = to.multiply(signal.values, scale[:, None, None])
        z = to.subtract(to.relu(to.add(x, shift[:, None, None])), np.maximum(shift, 0)[:, None, None])
        return signal._replace(values=to.diffused(self.graph, z, self.diffusion))

    def decisions(self, x: GraphSignal, y: GraphSignal) -> list[np.ndarray]:
        """Where the rectifier is open, and the signs of h."""
        if self._cache is None:
            return []
        values, _, _, _, scale, shift, _ = self._cache
        return [scale[:, None] * values + shift[:, None] > 0, shift > 0]

    def _scales(self, mean, variance, dtype) -> tuple:
        """1 / sqrt(variance + epsilon), s, h."""
        inverse, (scale, shift) = np.empty(len(mean)), np.empty((2, len(mean)), dtype)
        scales(mean, variance, EPSILON, self.params["gamma"], self.params["beta"], inverse, scale, shift)
        return inverse, scale, shift

    def _values(self, x: GraphSignal) -> np.ndarray:
        """The maps as rows (K, N B)."""
        values, _ = self._check_signal(x, len(self.params["gamma"]), self.graph.n_nodes)
        return np.ascontiguousarray(values).reshape(len(values), -1)

    def _lanes(self, dtype) -> np.ndarray:
        return self._space.array("lanes", (2, LANES), dtype)

    def _diffusion(self, shape, dtype) -> tuple:
        """Arguments of the kernels that also diffuse, on a padded grid; elsewhere they leave it to `_diffused`."""
        frames = frames_of(self.graph, shape[2], dtype) if self.diffusion else None
        if frames is None:
            return (0, (0, 0, 0, 0), *dtype.type((0, 0, 0))), self._space.array("none", (2, 0), dtype)
        scratch = frames.zeroed("frames", 2, self._space)
        return (self.diffusion, frames.layout, *frames.smoothing), scratch

    def _diffused(self, z, name):
        """(I - L/2)^diffusion z, step by step, on graphs whose maps the kernels have not diffused."""
        if not self.diffusion or frames_of(self.graph, z.shape[2], z.dtype):
            return z
        for step in range(self.diffusion):
            room = self._space.result(f"{name} {step % 2}", z.shape, z.dtype)
            z = laplacian_step(self.graph, z, z, -0.5, 1, 0, out=room)
        return z


class FeatureNorm(BatchNorm):
    """Batch normalisation of features, without learned scale and offset.

    Parameters
    ----------
    n_features : int
        Number of features.
    dtype : dtype
        Precision of the running averages.

    Notes
    -----
    With mean and variance over the images of a batch, the layer computes

        x_hat = (x - mean) / sqrt(variance + 1e-5)

    A single image has no variance. Training needs batches of two images or more. If the last batch of an epoch has one
    image, the running averages take no notice of it.

    Examples
    --------
    >>> layer = FeatureNorm(1, "float64")
    >>> layer.is_training = True
    >>> layer.forward(np.array([[1.0, 3.0]])).round(3)
    array([[-1.,  1.]])
    """

    least_batch = 2

    def observe(self, totals: np.ndarray) -> None:
        """Update the running averages with the sums of a batch, unless it is a single image, whose variance is 0."""
        if totals[0, 0] >= self.least_batch:
            super().observe(totals)

    def measure(self, x: np.ndarray) -> np.ndarray:
        """Number, sum and sum of squares of each feature in a part of a batch, (3, F) in float64."""
        self._check(x)
        return self._sums(x, x)

    def _check(self, x: np.ndarray) -> None:
        n_features = len(self.state["running_mean"])
        if x.ndim != 2 or len(x) != n_features:
            raise ShapeError(f"FeatureNorm expects features ({n_features}, B), got {x.shape}.")

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(F, B)  ->  (F, B)."""
        self._check(x)
        running = tuple(self.state[name] for name in ("running_mean", "running_variance", "total"))
        is_usual = x.dtype in (np.float32, np.float64) and [a.shape for a in running] == [(len(x),), (len(x),), (1,)]
        if is_usual and not self.is_training:
            x_hat, inverse = np.empty(x.shape, x.dtype), np.empty(len(x))
            standardised(np.ascontiguousarray(x), running, FEATURE_EPSILON, inverse, x_hat)
            self._cache = x_hat, None, inverse
            return x_hat
        count, mean, variance = self._statistics(x)
        inverse = 1 / np.sqrt(variance + FEATURE_EPSILON)
        x_hat = ((x - mean[:, None]) * inverse[:, None]).astype(x.dtype)
        self._cache = x_hat, count, inverse
        return x_hat

    def measure_back(self, grad: np.ndarray) -> np.ndarray:
        """Number and sums of g and g x_hat of a part of a batch, (3, F), where g = dE/dx_hat."""
        self._cache = x_hat, _, _ = self._take_cache()  # for backward, too
        return self._sums(grad, x_hat)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dx_hat  ->  dE/dx."""
        own = self.measure_back(grad)
        x_hat, count, inverse = self._take_cache()
        through = grad.astype(np.float64)
        if count is not None:
            of_mean, of_scale = (own if self.given_back is None else self.given_back)[1:] / count
            through -= of_mean[:, None] + x_hat * of_scale[:, None]
        return (through * inverse[:, None]).astype(grad.dtype)

    def to_onnx(self, to, signal):
        """(x - mean) / sqrt(variance + 1e-5) with the running averages."""
        _, mean, variance = self._statistics(None)
        centred = to.subtract(signal.values, mean)
        return signal._replace(values=to.multiply(centred, 1 / np.sqrt(variance + FEATURE_EPSILON)))

    def _sums(self, a, b) -> np.ndarray:
        """Number of images, sum of a, and sum of a b, for each feature."""
        wide = np.ascontiguousarray(a, np.float64), np.ascontiguousarray(b, np.float64)
        totals = np.empty((3, len(a)))
        totals[0] = a.shape[1]
        row_sums(*wide, self._space.array("lanes", (2, LANES), np.float64), totals[1:])
        return totals


def _moments(totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance from number, sum and sum of squares."""
    mean = totals[1] / totals[0]
    return mean, np.maximum(totals[2] / totals[0] - mean**2, 0)
