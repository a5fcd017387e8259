"""Layers between harmonic convolutions, which change the modulus of complex maps but not the phase.

So they keep the equivariance of harmonic convolutions. Maps are real arrays (2 orders, 2 parts, C, H, W, B), see
`tigra.baselines.harmonic.harmonic_conv`.
"""

from __future__ import annotations

import numpy as np

from tigra.baselines.harmonic.kernels import (
    modulus_gradient_sums,
    modulus_relu,
    modulus_relu_gradient,
    modulus_sums,
)
from tigra.baselines.planes.planes import PlaneLayer
from tigra.errors import ShapeError
from tigra.layers.map_norm import BatchNorm

FLOOR = 1e-4  # of the squared modulus, which is a divisor
HEAD_FLOOR = 1e-12  # the same in the head, which only divides by it in its gradient
EPSILON = 1e-3  # added to the variance


class ModulusLayer(PlaneLayer):
    """Base class: y = relu(a) / r * z with a = scale r + offset, for each order and map."""

    def decisions(self, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        """Return where the ReLU is active."""
        return [y != 0]

    def _write(self, to, signal, scale, offset):
        """Write y into an ONNX graph."""
        z, r = _moduli_in(to, signal.values, FLOOR)
        a = to.add(to.multiply(r, scale[:, None, :, None, None]), offset[:, None, :, None, None])
        y = to.multiply(z, to.divide(to.relu(a), r))
        return signal._replace(values=to.reshape(y, signal.values.shape))

    def _apply(self, z, scale, offset) -> np.ndarray:
        y = self._space.result("y", z.shape, z.dtype)
        modulus_relu(_flat(z), FLOOR, scale, offset, self._scratch(z.dtype), _flat(y))
        return y

    def _gradient_sums(self, z, scale, offset, grad) -> np.ndarray:
        """Return sums over places and images of g_a = dE/da and of g_a r, (2, orders, C), in float64."""
        sums = np.empty((2, *scale.shape))
        modulus_gradient_sums(_flat(z), FLOOR, scale, offset, _flat(grad), self._scratch(z.dtype), sums)
        return sums

    def _apply_gradient(self, z, scale, offset, shift, tilt, grad) -> np.ndarray:
        grad_z = self._space.result("grad_z", z.shape, z.dtype)
        slopes = [np.ascontiguousarray(array, dtype=z.dtype) for array in (shift, tilt)]
        scratch = self._scratch(z.dtype)
        modulus_relu_gradient(_flat(z), FLOOR, scale, offset, *slopes, _flat(grad), scratch, _flat(grad_z))
        return grad_z

    def _scratch(self, dtype) -> np.ndarray:
        return self._space.array("scratch", (4, 1024), dtype)


class ModulusReLU(ModulusLayer):
    """Complex ReLU, HCN[n]: add a bias to the modulus r and apply a ReLU to it.

        y = relu(r + b) / r * z            r = sqrt(max(abs(z)^2, 1e-4))

    Parameters
    ----------
    bias : array of shape (2, C)
        b for each order and map.

    Examples
    --------
    >>> z = np.array([3.0, 4.0, 0.0, 0.0]).reshape(2, 2, 1, 1, 1, 1)  # order 0: 3 + 4i, order 1: 0
    >>> ModulusReLU(np.array([[-2.5], [0.0]])).forward(z).ravel()  # modulus 5 becomes 2.5
    array([1.5, 2. , 0. , 0. ])
    """

    def __init__(self, bias: np.ndarray):
        super().__init__(bias=bias)
        if bias.ndim != 2 or len(bias) != 2:
            raise ShapeError(f"ModulusReLU needs a bias (2, C), one for each order and map, got {bias.shape}.")

    @classmethod
    def init(cls, n_maps: int, rng, dtype) -> ModulusReLU:
        """Initialise as the original: U[-a, a] with a = sqrt(6 / (2 + 2 C))."""
        limit = float(np.sqrt(6.0 / (2 + 2 * n_maps)))
        return cls(rng.uniform(-limit, limit, (2, n_maps)).astype(dtype))

    def forward(self, z: np.ndarray) -> np.ndarray:
        """(2, 2, C, H, W, B)  ->  the same shape."""
        bias = self.params["bias"]
        z = np.ascontiguousarray(self._check_harmonics(z, bias.shape[1]))
        self._cache = (z,)
        return self._apply(z, np.ones_like(bias), bias)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dy  ->  dE/dz; fills grads bias."""
        (z,) = self._take_cache()
        bias, grad = self.params["bias"], np.ascontiguousarray(grad)
        ones, zeros = np.ones_like(bias), np.zeros_like(bias)
        self.grads["bias"][:] = self._gradient_sums(z, ones, bias, grad)[0]
        return self._apply_gradient(z, ones, bias, zeros, zeros, grad)

    def to_onnx(self, to, signal):
        """Write the complex ReLU."""
        bias = self.params["bias"]
        return self._write(to, signal, np.ones_like(bias), bias)


class ModulusNorm(BatchNorm, ModulusLayer):
    """Batch normalisation of the modulus and complex ReLU, HBN[n].

        r_hat = (r - mean) / sqrt(variance + 1e-3)        y = relu(gamma r_hat + beta) / r * z

    Parameters
    ----------
    gamma, beta : arrays of shape (2, C)
        Scale and offset for each order and map.
    running_mean, running_variance : arrays of shape (2, C)
        Averages over the training steps with weights 0.99^k.
    total : array of shape (1,)
        Sum of these weights, by which the averages are divided.

    Notes
    -----
    In training, mean and variance are those of r over all places and all images *of the batch*, even if the batch is
    split into micro-batches: `measure` returns the sums of a part, and `given` and `given_back` take the sums of all
    parts (`tigra.models.batch_statistics`). Otherwise they are running averages, which are constant, and images do
    not influence each other.

    Examples
    --------
    >>> layer = ModulusNorm.init(1, "float64")
    >>> z = np.array([1.0, 3.0, 0.0, 0.0, 2.0, 2.0, 0.0, 0.0]).reshape(2, 2, 1, 1, 2, 1)
    >>> layer.is_training = True
    >>> layer.forward(z)[0, 0].ravel().round(3)  # moduli 1 and 3 become -1 and 1, all but for 1e-3
    array([0., 1.])
    """

    decay = 0.99

    def __init__(self, gamma, beta, running_mean, running_variance, total):
        super().__init__(gamma.shape, gamma.dtype, gamma=gamma, beta=beta)
        if gamma.ndim != 2 or len(gamma) != 2 or gamma.shape != beta.shape:
            raise ShapeError(f"ModulusNorm needs gamma and beta (2, C), got {gamma.shape} and {beta.shape}.")
        self.state = {"running_mean": running_mean, "running_variance": running_variance, "total": total}

    @classmethod
    def init(cls, n_maps: int, dtype) -> ModulusNorm:
        """Start with gamma 1, beta 0 and empty averages."""
        shape = (2, n_maps)
        beta, mean, variance = (np.zeros(shape, dtype) for _ in range(3))
        return cls(np.ones(shape, dtype), beta, mean, variance, np.zeros(1, dtype))

    def measure(self, z: np.ndarray) -> np.ndarray:
        """Return count, sum and sum of squares of r in a part of a batch, (3, 2, C) in float64."""
        z = np.ascontiguousarray(self._check_harmonics(z, self.params["gamma"].shape[1]))
        totals = np.empty((3, *self.params["gamma"].shape))
        modulus_sums(_flat(z), FLOOR, self._scratch(z.dtype), totals[1:])
        totals[0] = z[0, 0, 0].size
        return totals

    def forward(self, z: np.ndarray) -> np.ndarray:
        """(2, 2, C, H, W, B)  ->  the same shape."""
        z = np.ascontiguousarray(self._check_harmonics(z, self.params["gamma"].shape[1]))
        count, mean, variance = self._statistics(z)
        inverse, scale, offset = self._scales(mean, variance, z.dtype)
        self._cache = z, count, mean, inverse, scale, offset
        return self._apply(z, scale, offset)

    def _scales(self, mean, variance, dtype) -> tuple:
        """Return 1 / sqrt(variance + epsilon), and scale and offset of the modulus."""
        gamma, beta = (self.params[name].astype(np.float64) for name in ("gamma", "beta"))
        inverse = 1 / np.sqrt(variance + EPSILON)
        return inverse, (gamma * inverse).astype(dtype), (beta - gamma * inverse * mean).astype(dtype)

    def to_onnx(self, to, signal):
        """Write the complex ReLU of the modulus, scaled by the running averages."""
        _, mean, variance = self._statistics(None)
        _, scale, offset = self._scales(mean, variance, np.float32)
        return self._write(to, signal, scale, offset)

    def measure_back(self, grad: np.ndarray) -> np.ndarray:
        """Return the sums of g_a and g_a r_hat of a part of a batch, (2, 2, C); backward needs those of all parts."""
        self._cache = self._take_cache()  # for backward, too
        z, _, mean, inverse, scale, offset = self._cache
        of_a, of_a_r = self._gradient_sums(z, scale, offset, np.ascontiguousarray(grad))
        return np.stack([of_a, inverse * (of_a_r - mean * of_a)])

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dy  ->  dE/dz; fills grads gamma, beta."""
        own = self.measure_back(grad)
        z, count, mean, inverse, scale, offset = self._take_cache()
        self.grads["beta"][:], self.grads["gamma"][:] = own
        shift, tilt = np.zeros_like(inverse), np.zeros_like(inverse)
        if count is not None:
            mean_a, mean_a_hat = (own if self.given_back is None else self.given_back) / count
            tilt = -scale * inverse * mean_a_hat
            shift = -scale * mean_a - tilt * mean
        return self._apply_gradient(z, scale, offset, shift, tilt, np.ascontiguousarray(grad))


class InvariantHead(PlaneLayer):
    """Class scores from the moduli of harmonic maps, one map per class; invariant to rotations and shifts.

        score_c = b_c + mean over places of sum_n abs(z_{n,c})

    Parameters
    ----------
    bias : array of shape (C,)
        Bias of each class.

    Examples
    --------
    >>> z = np.array([3.0, 4.0, 1.0, 0.0]).reshape(2, 2, 1, 1, 1, 1)  # moduli 5 and 1
    >>> InvariantHead(np.array([0.5])).forward(z)
    array([[6.5]])
    """

    def __init__(self, bias: np.ndarray):
        super().__init__(bias=bias)

    @classmethod
    def init(cls, n_classes: int, dtype) -> InvariantHead:
        """Initialise as the original, with 0.01."""
        return cls(np.full(n_classes, 0.01, dtype))

    def forward(self, z: np.ndarray) -> np.ndarray:
        """(2, 2, C, H, W, B)  ->  (C, B)."""
        z = self._check_harmonics(z, self.params["bias"].size)
        r = np.sqrt(np.maximum(np.square(z).sum(axis=1), HEAD_FLOOR))
        self._cache = z, r
        return r.sum(axis=0).mean(axis=(1, 2)) + self.params["bias"][:, None]

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dscores (C, B)  ->  dE/dz: along z, and 0 where z is 0."""
        z, r = self._take_cache()
        grad.sum(axis=1, out=self.grads["bias"])
        n_places = z.shape[3] * z.shape[4]
        slope = np.where(r > HEAD_FLOOR**0.5, (grad / n_places)[None, :, None, None, :] / r, 0).astype(z.dtype)
        return z * slope[:, None]

    def to_onnx(self, to, signal):
        """Write the scores."""
        n_maps = self.params["bias"].size
        _, r = _moduli_in(to, signal.values, HEAD_FLOOR)
        means = to.mean(to.reshape(to.sum(r, 1), (n_maps, *signal.values.shape[1:])))
        return signal._replace(values=to.add(to.reshape(means, (n_maps,)), self.params["bias"]))


def _moduli_in(to, z, floor: float):
    """Write harmonic maps as (orders, parts, C, H, W), and their moduli (orders, 1, C, H, W), into an ONNX graph."""
    maps = to.reshape(z, (2, 2, z.shape[0] // 4, *z.shape[1:]))
    squares = to.sum(to.multiply(maps, maps), 2)
    return maps, to.apply("Sqrt", to.maximum(squares, floor))


def _flat(z: np.ndarray) -> np.ndarray:
    """Return (orders, parts, C, H, W, B) as a view (orders, parts, C, places and images)."""
    return z.reshape(*z.shape[:3], -1)
