"""Dense and ReLU: the fully connected layers FC[n] of the paper (section 4.3)."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.kernels.products import times, times_transposed, transposed_times
from tigra.layers.base import Layer
from tigra.options import DENSE_INITS


class Dense(Layer):
    """Fully connected layer, a = W x + c.

    Parameters
    ----------
    weight : array (F_out, F_in)
        W.
    bias : array (F_out,)
        c.

    Examples
    --------
    >>> Dense(weight=np.array([[1.0, 2.0]]), bias=np.array([0.5])).forward(np.array([[1.0], [10.0]]))
    array([[21.5]])
    """

    def __init__(self, weight: np.ndarray, bias: np.ndarray):
        super().__init__(weight=weight, bias=bias)
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            raise ShapeError(
                f"Dense needs a weight (F_out, F_in) and a bias (F_out,), got {weight.shape} and {bias.shape}."
            )

    @staticmethod
    def shapes(n_in: int, n_out: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape of the parameters."""
        return {"weight": (n_out, n_in), "bias": (n_out,)}

    @classmethod
    def init(cls, n_in, n_out, rng, dtype, init="default", gain=1.0) -> Dense:
        """Create a layer with random weights.

        Parameters
        ----------
        n_in, n_out : int
            Number of inputs and outputs.
        rng : numpy.random.Generator
            Source of the weights.
        dtype : dtype
            float32 or float64.
        init : {"default", "he", "paper"}
            "he": He's uniform initialisation for ReLU, bias 0. "default": the same, scaled by `gain`. "paper": weights
            and biases from U[-1, 1] (section 6.1).
        gain : float
            Scale of the weights with "default". A small gain in the last layer makes all classes start about equally
            likely.

        Returns
        -------
        Dense
            The layer.

        Notes
        -----
        The paper's initial values are far too large for hundreds of inputs: the softmax starts saturated.
        """
        if init not in DENSE_INITS:
            raise UsageError(f"init must be one of {', '.join(DENSE_INITS)}, got {init!r}.")
        shapes = cls.shapes(n_in, n_out)
        if init == "paper":
            return cls(**{name: rng.uniform(-1, 1, shape).astype(dtype) for name, shape in shapes.items()})
        gain = 1.0 if init == "he" else gain
        limit = gain * float(np.sqrt(6.0 / n_in))
        return cls(rng.uniform(-limit, limit, shapes["weight"]).astype(dtype), np.zeros(shapes["bias"], dtype))

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(F_in, B)  ->  (F_out, B)."""
        weight, bias = self.params["weight"], self.params["bias"]
        if x.ndim != 2 or len(x) != weight.shape[1]:
            raise ShapeError(f"Dense expects x of shape ({weight.shape[1]}, B), got {x.shape}.")
        self._cache = (x,)
        a = times(weight, x, np.empty((len(weight), x.shape[1]), np.result_type(weight, x)))
        a += bias[:, None]
        return a

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dW = dE/da x^T, dE/dc = sum over images of dE/da, dE/dx = W^T dE/da."""
        (x,) = self._take_cache()
        weight = self.params["weight"]
        times_transposed(grad, x, out=self.grads["weight"])
        grad.sum(axis=1, out=self.grads["bias"])
        return transposed_times(weight, grad, np.empty(x.shape, np.result_type(weight, grad)))

    def to_onnx(self, to, signal):
        """W x + c."""
        return signal._replace(values=to.dense(signal.values, self.params["weight"], self.params["bias"]))


class ReLU(Layer):
    """Rectifier max(x, 0), with slope 0 at x = 0.

    Examples
    --------
    >>> ReLU().forward(np.array([[-1.0, 0.0, 2.0]])) + 0.0
    array([[0., 0., 2.]])
    """

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(F, B)  ->  (F, B)."""
        positive = x > 0
        self._cache = (positive,)
        return x * positive

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """The gradient passes where x > 0."""
        (positive,) = self._take_cache()
        return grad * positive

    def to_onnx(self, to, signal):
        """max(x, 0)."""
        return signal._replace(values=to.relu(signal.values))

    def decisions(self, x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        """Which units are on."""
        return [y > 0]
