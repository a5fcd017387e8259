"""Dynamic pooling: keep the largest values of each map, wherever they are (paper, section 4.2)."""

from __future__ import annotations

import math

import numpy as np

from tigra.errors import UsageError
from tigra.graph import GraphSignal
from tigra.kernels.pooling import candidates, count_signs, keep_above
from tigra.kernels.workspace import Workspace
from tigra.layers.base import Layer


class DynamicPool(Layer):
    """Keep the J largest values of each map among the active nodes Omega, and set the others to 0.

    Parameters
    ----------
    n_active : int
        J, the number of nodes to keep, at least 1.
    by_size : bool
        Select nodes by abs(z_k) instead of z_k. For maps that can be negative and are 0 on an empty background, as
        after oriented convolutions: by value, the background would outrank a negative response.

    Notes
    -----
    For each map z_k,

        N_k = the J nodes of Omega with the largest z_k      Algorithm 1 [alg:pool]
        y_k = 1[N_k] z_k

    The next layer's Omega is the union of the N_k, Eq. (13) [eq:omega], so it can only shrink.

    Ties: N_k must not depend on the order of the nodes, or rotating the image would change it. Nodes with equal values
    are therefore kept or dropped together. N_k is the largest set of at most J nodes that does not split a tie. If
    more than J nodes share the largest value, all of them are kept, so N_k is never empty. The background of a digit,
    for example, is exactly 0; it is dropped as a whole if it does not fit as a whole.

    Departs from the paper: Algorithm 1 loops to max(J, |Omega|). It must be min, since max would keep every node.

    Examples
    --------
    >>> pool = DynamicPool(n_active=2)
    >>> z = np.array([5.0, 3.0, 3.0, 1.0]).reshape(1, 4, 1)
    >>> pool.forward(GraphSignal(z, np.ones((1, 4, 1), bool))).values.ravel()  # 3 and 3 tie
    array([5., 0., 0., 0.])
    """

    def __init__(self, n_active: int, by_size: bool = False):
        super().__init__()
        if not isinstance(n_active, (int, np.integer)) or n_active < 1:
            raise UsageError(
                f"Dynamic pooling needs a whole number of active nodes, at least one, got J = {n_active!r}."
            )
        self.n_active, self.by_size = int(n_active), bool(by_size)

    def forward(self, signal: GraphSignal) -> GraphSignal:
        """z (K, N, B), active (K or 1, N, B)  ->  y (K, N, B), active (K, N, B) = the sets N_k."""
        z, sets = self._check_signal(signal, None, None)
        omega = sets.any(axis=0, keepdims=True) if len(sets) > 1 else sets  # Eq. (13) [eq:omega]
        z, omega = np.ascontiguousarray(z), np.ascontiguousarray(omega)
        sizes = np.abs(z, out=self._space.array("sizes", z.shape, z.dtype)) if self.by_size else z
        y, active = largest(sizes, omega, self.n_active, self._space)
        if self.by_size:
            np.copyto(y, z, where=active)
        self._cache = active
        return GraphSignal(y, active)

    def backward(self, grad_y: np.ndarray) -> np.ndarray:
        """dE/dy (K, N, B)  ->  dE/dz: the gradient passes only through the kept nodes."""
        active = self._take_cache()
        return np.multiply(grad_y, active, out=self._space.result("grad", grad_y.shape, grad_y.dtype))

    def decisions(self, x: GraphSignal, y: GraphSignal) -> list[np.ndarray]:
        """The sets N_k."""
        return [y.active]

    def to_onnx(self, to, signal):
        """Keep nodes above the (J+1)-th largest value of Omega, or all of the largest value if more than J share it."""
        z, omega = signal.values, to.union(signal.active)
        if self.n_active >= math.prod(z.shape[1:]):
            return signal._replace(values=to.where(omega, z), active=omega)
        found = to.where(omega, to.apply("Abs", z) if self.by_size else z, -np.inf)
        greatest, threshold = to.largest(found, self.n_active + 1)
        crowded = to.compare("Equal", greatest, threshold)
        crowded = to.compare("And", crowded, to.compare("Greater", threshold, -np.inf))  # Omega may be small
        tied = to.compare("And", to.compare("Equal", found, threshold), crowded)
        kept = to.compare("Or", to.compare("Greater", found, threshold), tied)
        return signal._replace(values=to.where(kept, z), active=kept)

    @property
    def label(self) -> str:
        """DP[J]"""
        return f"DP[{self.n_active}]"


def top_nodes(z: np.ndarray, omega: np.ndarray, n_active: int) -> np.ndarray:
    """The sets N_k of Algorithm 1 as a mask, with ties treated as in `DynamicPool`.

    Parameters
    ----------
    z : array (K, N, B)
        Maps.
    omega : bool array (1, N, B)
        Active nodes.
    n_active : int
        J, the number of nodes to keep.

    Returns
    -------
    bool array (K, N, B)
        True on the nodes of N_k.
    """
    return largest(z, omega, n_active, Workspace())[1]


def largest(z: np.ndarray, omega: np.ndarray, n_active: int, space: Workspace) -> tuple[np.ndarray, np.ndarray]:
    """Pooled maps and the sets N_k of Algorithm 1.

    A node is kept if its value is above the (J+1)-th largest. Nodes outside Omega count as -inf, so all of Omega is
    kept if it has at most J nodes.

    Parameters
    ----------
    z : array (K, N, B)
        Maps.
    omega : bool array (1, N, B)
        Active nodes.
    n_active : int
        J, the number of nodes to keep.
    space : Workspace
        Scratch arrays.

    Returns
    -------
    y : array (K, N, B)
        z on the nodes of N_k, 0 elsewhere.
    active : bool array (K, N, B)
        True on the nodes of N_k.
    """
    n_maps, n_nodes, n_batch = z.shape
    y, active = space.result("y", z.shape, z.dtype), space.result("active", z.shape, bool)
    if n_active >= n_nodes:
        active[:] = omega
        y.fill(0)
        np.copyto(y, z, where=active)
        return y, active
    threshold, greatest = _thresholds(z, omega, n_active, space)
    keep_above(z, omega, threshold, active, y)  # Algorithm 1 [alg:pool]
    crowded = (greatest == threshold) & (threshold > -np.inf)  # more than J nodes share the largest value
    if crowded.any():
        tied = np.equal(z, threshold[:, None], out=space.array("tied", z.shape, bool))
        tied &= crowded[:, None]
        tied &= omega
        active |= tied
        np.copyto(y, z, where=tied)
    return y, active


def _thresholds(z, omega, n_active: int, space: Workspace) -> tuple[np.ndarray, np.ndarray]:
    """The (J+1)-th largest value of each map on Omega, and the largest value, both (K, B).

    If at most J nodes are above 0, but more than J are at least 0, the threshold is 0. Rectified maps and empty
    backgrounds then need no selection, which is slow with many equal values.
    """
    n_maps, n_nodes, n_batch = z.shape
    positive, zero = (space.array(name, (n_maps, n_batch), np.int32) for name in ("positive", "zero"))
    count_signs(z, omega, positive, zero)
    threshold = np.zeros((n_maps, n_batch), z.dtype)
    greatest = np.where(positive > 0, z.dtype.type(np.inf), z.dtype.type(0))  # only its sign matters
    easy = (positive <= n_active) & (positive + zero > n_active)
    if easy.all():
        return threshold, greatest
    columns = space.array("columns", (n_maps, n_batch, n_nodes), z.dtype)  # nodes last: contiguous per image
    candidates(z, omega, z.dtype.type(-np.inf), columns)
    rows: np.ndarray = columns.reshape(-1, n_nodes)
    hard = np.arange(easy.size)
    if 2 * easy.sum() > easy.size:  # worth a copy of the others
        hard, room = np.flatnonzero(~easy), space.array("rows", rows.shape, z.dtype)
        rows = np.take(rows, hard, axis=0, out=room[: len(hard)], mode="clip")  # "raise" would make another copy
    place = n_nodes - 1 - n_active
    rows.partition(place, axis=-1)  # O(N) selection, no sorting
    threshold.ravel()[hard] = rows[:, place]
    greatest.ravel()[hard] = rows[:, place:].max(axis=-1)
    return threshold, greatest
