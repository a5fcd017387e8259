"""Statistics: from maps on nodes to features that are independent of position (paper, section 4.3)."""

from __future__ import annotations

from numbers import Real

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, GraphSignal
from tigra.graph.operators import chebyshev_moments, chebyshev_moments_adjoint
from tigra.graph.polynomials import chebyshev
from tigra.kernels.functions import log
from tigra.layers.base import DTYPES, Layer
from tigra.option_fields import renamed


class Statistics(Layer):
    """Mean and variance over all nodes of the absolute Chebyshev signals of each map.

    Parameters
    ----------
    graph : Graph
        Its Laplacian is L.
    max_order : int
        K_max, the highest Chebyshev order, at least 0.

    Notes
    -----
    The signals are t_{i,k} = T_k(L - I) z_i for k = 0..K_max,

        t_{i,0} = z_i,  t_{i,1} = (L - I) z_i,  t_{i,k} = 2 (L - I) t_{i,k-1} - t_{i,k-2}      Eq. (14)
        phi_i   = [mu_{i,0}, sigma2_{i,0}, ..., mu_{i,K_max}, sigma2_{i,K_max}]

    where mu and sigma2 are mean and variance of abs(t_{i,k}) over all N nodes; inactive nodes count as 0. The output
    (K * 2 (K_max + 1), B) stacks phi_1, phi_2, ... Maps are processed one at a time to stay in the CPU cache. backward
    computes the signals again instead of storing them.

    Departs from the paper: Eqs. (18), (19) [eq:der_stat1, eq:der_stat2] lack sign(t). Eq. (19) also sums over the
    nodes and has a superfluous factor (N-1)/N (docs/errata.md, docs/derivations.md).

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> z = np.array([0.0, 3.0, 0.0]).reshape(1, 3, 1)
    >>> signal = GraphSignal(z, z != 0)
    >>> Statistics(grid_graph((1, 3), neighbours=4), max_order=1).forward(signal)[:, 0]
    array([1.   , 2.   , 0.5  , 0.125])
    """

    gives_features = True

    def __init__(self, graph: Graph, max_order: int):
        super().__init__()
        if not isinstance(max_order, (int, np.integer)) or max_order < 0:
            raise UsageError(f"The highest Chebyshev order K_max is a whole number of at least 0, got {max_order!r}.")
        self.graph = graph
        self.max_order = int(max_order)

    def forward(self, signal: GraphSignal) -> np.ndarray:
        """z (K, N, B)  ->  features (K * 2 (K_max + 1), B)."""
        z = np.ascontiguousarray(self._check_signal(signal, None, self.graph.n_nodes).values)
        moments = chebyshev_moments(self.graph, z, self.max_order, self._space)  # Eq. (14)
        self._cache = z, moments
        return moments.reshape(-1, z.shape[2]).copy()

    def backward(self, grad_features: np.ndarray) -> np.ndarray:
        """dE/dfeatures  ->  dE/dz (K, N, B), Eqs. (18)-(20) [eq:der_stat1, eq:der_stat2] as corrected."""
        z, moments = self._take_cache()
        grad_moments = np.ascontiguousarray(grad_features).reshape(moments.shape)
        return chebyshev_moments_adjoint(self.graph, z, moments, grad_moments, self._space)

    def decisions(self, x: GraphSignal, y: np.ndarray) -> list[np.ndarray]:
        """The signs of all t_{i,k}."""
        return [t > 0 for t in chebyshev(self.graph, x.values, self.max_order)]

    def feature_names(self, n_features: int) -> list[str]:
        """Name of each feature: map, Chebyshev order and moment.

        >>> from tigra.graph import grid_graph
        >>> Statistics(grid_graph((1, 3)), max_order=1).feature_names(8)[2:6]
        ['map0_T1_mean', 'map0_T1_var', 'map1_T0_mean', 'map1_T0_var']
        """
        orders, maps = range(self.max_order + 1), range(n_features // (2 * (self.max_order + 1)))
        return [f"map{i}_T{k}_{moment}" for i in maps for k in orders for moment in ("mean", "var")]

    def to_onnx(self, to, signal):
        """Mean and variance of the absolute Chebyshev signals, in the order of phi."""
        moments = []
        for t in to.chebyshev(self.graph, signal.values, self.max_order):
            size = to.apply("Abs", t)
            mean = to.mean(size)
            deviation = to.subtract(size, mean)
            moments += [mean, to.mean(to.multiply(deviation, deviation))]
        n_maps = signal.values.shape[0]
        together = to.node("Concat", moments, (n_maps, len(moments), 1), axis=2)
        return signal._replace(values=to.reshape(together, (n_maps * len(moments),)), active=None)

    @property
    def label(self) -> str:
        """S[K_max]"""
        return f"S[{self.max_order}]"


class Logarithm(Layer):
    """Logarithm of non-negative features, u = log(x + offset), with one offset per feature.

    Within a class, the statistics vary by factors such as size and contrast, and their distribution has a long tail.
    On a logarithmic scale a few extreme images no longer dominate. `calibrate` sets the offsets once, from the
    training images. They are small compared with the spread of the features, and keep the logarithm finite at 0.

    Parameters
    ----------
    offset : array (F,)
        Positive offsets, an even number.
    share : float
        Offset as a fraction of the feature's standard deviation, from 0 to 1.
    deviation_floor : float
        Smallest offset, as a fraction of the largest deviation of the same moment, from 0 to 1. Features alternate
        between means and variances. Both parts are added in squares, as in `Standardise`.

    Examples
    --------
    >>> layer = Logarithm(np.array([1.0, 0.5]))
    >>> layer.forward(np.array([[0.0], [0.5]]))
    array([[0.],
           [0.]])
    """

    calibration_images = None
    positive_state = ("offset",)

    @renamed(floor="deviation_floor")
    def __init__(self, offset: np.ndarray, share: float = 0.03, deviation_floor: float = 0.0):
        super().__init__()
        self.share, self.deviation_floor = share, deviation_floor
        fits = isinstance(offset, np.ndarray) and offset.dtype in DTYPES and offset.ndim == 1
        if not fits or len(offset) % 2 or not np.all((offset > 0) & np.isfinite(offset)):
            raise ShapeError(
                "Logarithm needs a positive offset for each feature, an even number of them, as an array of float32 or"
                f" float64, got {offset!r}."
            )
        if not all(isinstance(number, Real) and 0 <= number <= 1 for number in (share, deviation_floor)):
            raise UsageError(
                f"Logarithm needs share and deviation_floor from 0 to 1, got {share!r} and {deviation_floor!r}."
            )
        self.state = {"offset": offset}

    @classmethod
    def init(cls, n_features: int, dtype, share: float = 0.03, deviation_floor: float = 0.0) -> Logarithm:
        """Create a layer with offsets of 1, to be set by `calibrate`."""
        return cls(np.ones(n_features, dtype), share, deviation_floor)

    @property
    def needs_calibration(self) -> bool:
        """Whether the offsets are still 1."""
        return bool(np.all(self.state["offset"] == 1))

    def calibrate(self, features: np.ndarray) -> None:
        """Set the offsets from features (F, n) of n training images."""
        moments = _deviations(features).reshape(-1, 2)
        offset = _root_of_squares(self.share * moments, self.deviation_floor * moments.max(axis=0)).ravel()
        least = np.finfo(self.state["offset"].dtype).tiny  # smaller values would become 0 in this dtype
        self.state["offset"][:] = np.where(offset > 0, np.maximum(offset, least), 1.0)

    def forward(self, features: np.ndarray) -> np.ndarray:
        """(F, B)  ->  (F, B)."""
        offset = self.state["offset"]
        if features.ndim != 2 or len(features) != len(offset):
            raise ShapeError(f"Logarithm expects features ({len(offset)}, B), got {features.shape}.")
        above = features + offset[:, None]
        self._cache = (above,)
        return log(above)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dx = dE/du / (x + offset)."""
        (above,) = self._take_cache()
        return grad / above

    def to_onnx(self, to, signal):
        """log(x + offset)."""
        return signal._replace(values=to.apply("Log", to.add(signal.values, self.state["offset"])))


class Standardise(Layer):
    """Standardise features to mean 0 and standard deviation 1 over the training images.

    Parameters
    ----------
    mean, deviation : array (F,)
        Mean and standard deviation of each feature.
    deviation_floor : float
        Lower bound of the deviations, as a fraction of the largest deviation of the same moment; features alternate
        between means and variances. It is added in squares. Maps with very weak responses contain little but
        interpolation artefacts, and the floor keeps these from being amplified.

    Notes
    -----
    The layer computes

        x_hat = (x - mean) / deviation

    The raw statistics differ by orders of magnitude (means of 0.1, variances of 0.001), and fully connected layers
    train poorly on them. On MNIST-012, standardising raises the accuracy on rotated digits from about 55 % to above
    90 %.

    `calibrate` sets mean and deviation once, from the training images at the initial parameters. They are constants
    from then on, and are saved with the model. Training and prediction therefore compute the same function for any
    batch size, and the gradient is exact. Features that are constant on the training set are only centred.

    Examples
    --------
    >>> layer = Standardise(np.zeros(1), np.ones(1))
    >>> layer.calibrate(np.array([[1.0, 3.0]]))
    >>> layer.forward(np.array([[5.0]]))
    array([[3.]])
    """

    calibration_images = None
    positive_state = ("deviation",)

    @renamed(floor="deviation_floor")
    def __init__(self, mean: np.ndarray, deviation: np.ndarray, deviation_floor: float = 0.0):
        super().__init__()
        self.deviation_floor = deviation_floor
        if mean.ndim != 1 or mean.shape != deviation.shape:
            raise ShapeError(
                f"Standardise needs a mean and a deviation for each feature, got {mean.shape} and {deviation.shape}."
            )
        if deviation_floor and len(mean) % 2:
            raise ShapeError(f"deviation_floor needs pairs of mean and variance, got {len(mean)} features.")
        self.state = {"mean": mean, "deviation": deviation}

    @classmethod
    def init(cls, n_features: int, dtype, deviation_floor: float = 0.0) -> Standardise:
        """Create a layer that is the identity until `calibrate`."""
        return cls(np.zeros(n_features, dtype), np.ones(n_features, dtype), deviation_floor)

    @property
    def needs_calibration(self) -> bool:
        """Whether the constants are still those of the identity."""
        return bool(np.all(self.state["mean"] == 0) and np.all(self.state["deviation"] == 1))

    def calibrate(self, features: np.ndarray) -> None:
        """Set mean and deviation from features (F, n) of n training images."""
        deviation = _deviations(features)
        if self.deviation_floor:
            moments = deviation.reshape(-1, 2)
            deviation = _root_of_squares(moments, self.deviation_floor * moments.max(axis=0)).ravel()
        self.state["mean"][:] = features.mean(axis=1, dtype=np.float64)
        self.state["deviation"][:] = np.where(deviation > 0, deviation, 1.0)

    def forward(self, features: np.ndarray) -> np.ndarray:
        """(F, B)  ->  (F, B)."""
        mean, deviation = self.state["mean"], self.state["deviation"]
        if features.ndim != 2 or len(features) != len(mean):
            raise ShapeError(f"Standardise expects features ({len(mean)}, B), got {features.shape}.")
        self._cache = (deviation,)
        return (features - mean[:, None]) / deviation[:, None]

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """dE/dx = dE/dx_hat / deviation."""
        (deviation,) = self._take_cache()
        return grad / deviation[:, None]

    def to_onnx(self, to, signal):
        """(x - mean) / deviation."""
        centred = to.subtract(signal.values, self.state["mean"])
        return signal._replace(values=to.divide(centred, self.state["deviation"]))


def _root_of_squares(a, b):
    """sqrt(a^2 + b^2); `np.hypot` may differ between versions of the C library."""
    return np.sqrt(a * a + b * b)


def _deviations(features: np.ndarray) -> np.ndarray:
    """Standard deviations of features (F, n) over images; 0 if they vary only by rounding."""
    wide = features.astype(np.float64)
    deviation = wide.std(axis=1)
    rounding = 1e-6 * np.maximum(np.abs(wide).max(axis=1), 1e-30)
    return np.where(deviation > rounding, deviation, 0.0)
