"""Changes that a visitor of the playground can make to a trained network, to see what breaks its invariance."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tigra.errors import UsageError
from tigra.graph import GraphSignal, GridGraph, grid_graph
from tigra.layers import DynamicPool, Layer, OrientedConv, Statistics
from tigra.models.network import Network

MOST_SMOOTHING = 4.0  # pixels
LARGEST_ALPHA = 1e6


@dataclass(frozen=True)
class Changes:
    """What differs from the trained network; None and () mean no change.

    Attributes
    ----------
    smoothing : float or None
        Standard deviation of the blur in pixels.
    boundary : str or None
        "padded" or "free".
    ties : str
        "together" keeps or drops equal values together; "first" lets the lowest index win.
    nodes : tuple of int
        J of every pooling layer.
    order : int or None
        K_max, at most that of the trained network; the features of higher orders are left out.
    filter : int or None
        Number of the filter of the first layer whose coefficients are `alpha`.
    alpha : tuple of float
        Coefficients of that filter.
    """

    smoothing: float | None = None
    boundary: str | None = None
    ties: str = "together"
    nodes: tuple[int, ...] = ()
    order: int | None = None
    filter: int | None = None
    alpha: tuple[float, ...] = ()


def changed(network: Network, changes: Changes) -> Network:
    """A network with the changes; the trained one stays as it is.

    Raises
    ------
    UsageError
        If the network does not have what is to be changed, or a value is out of range.
    """
    if changes == Changes():
        return network
    twin = network.with_parameters(network.learned)
    if changes.smoothing is not None:
        if not 0 <= changes.smoothing <= MOST_SMOOTHING:
            raise UsageError(f"smoothing must be from 0 to {MOST_SMOOTHING:g} pixels, got {changes.smoothing!r}.")
        twin.options = replace(twin.options, smoothing=changes.smoothing)
    if changes.boundary is not None:
        _set_boundary(twin, changes.boundary)
    if changes.filter is not None:
        _set_filter(twin, changes.filter, changes.alpha)
    _set_pooling(twin, changes.nodes, changes.ties)
    if changes.order is not None:
        _limit_order(twin, changes.order)
    return twin


def first_filters(network: Network) -> np.ndarray | None:
    """Coefficients of the filters of the first layer, one row each; a view. None if it has no such filters."""
    layer = network.layers[0]
    if not hasattr(layer, "filter_coefficients"):
        return None
    alpha = layer.params["alpha"]
    return alpha[:, :, 0] if alpha.ndim == 3 else alpha


def filter_terms(network: Network) -> list[str]:
    """Names of the coefficients of a filter of the first layer: powers of L, then products of gradients."""
    alpha, layer = first_filters(network), network.layers[0]
    assert alpha is not None
    n_powers = layer.filter_coefficients(layer.params).shape[1]
    powers = ["1", "L", *(f"L^{m}" for m in range(2, n_powers))][:n_powers]
    rest = alpha.shape[1] - n_powers
    products = ["dot", "cross"] if isinstance(layer, OrientedConv) else [f"product {j + 1}" for j in range(rest)]
    return powers + products[:rest]


def _set_boundary(network: Network, boundary: str) -> None:
    """Give all layers the same grids with another boundary."""
    if boundary not in ("padded", "free"):
        raise UsageError(f"boundary must be 'padded' or 'free', got {boundary!r}.")
    if boundary == "free" and any(isinstance(layer, OrientedConv) for layer in network.layers):
        raise UsageError("Oriented convolutions need the padded boundary; choose a network without them.")
    for thing in (network, *network.layers):
        graph = getattr(thing, "graph", None)
        if isinstance(graph, GridGraph):
            grid = graph.shape, graph.neighbours, graph.diagonal_weight or 1.0, boundary, graph.dilation
            vars(thing)["graph"] = grid_graph(*grid)


def _set_filter(network: Network, number: int, alpha: tuple[float, ...]) -> None:
    filters = first_filters(network)
    if filters is None or not 0 <= number < len(filters) or len(alpha) != filters.shape[1]:
        raise UsageError(f"The first layer has no filter {number} with {len(alpha)} coefficients.")
    if not all(np.isfinite(value) and abs(value) <= LARGEST_ALPHA for value in alpha):
        raise UsageError(f"Coefficients of a filter must be numbers of at most {LARGEST_ALPHA:g} in size.")
    filters[number] = alpha


def _set_pooling(network: Network, nodes: tuple[int, ...], ties: str) -> None:
    if ties not in ("together", "first"):
        raise UsageError(f"ties must be 'together' or 'first', got {ties!r}.")
    places = [place for place, layer in enumerate(network.layers) if isinstance(layer, DynamicPool)]
    if nodes and len(nodes) != len(places):
        raise UsageError(f"The network has {len(places)} pooling layers, got {len(nodes)} numbers of nodes.")
    for number, place in enumerate(places):
        old = network.layers[place]
        kind = LowestIndexPool if ties == "first" else DynamicPool
        network.layers[place] = kind(nodes[number] if nodes else old.n_active, old.by_size)


def _limit_order(network: Network, order: int) -> None:
    place, statistics = statistics_of(network)
    if not 0 <= order <= statistics.max_order:
        raise UsageError(f"K_max must be from 0 to {statistics.max_order}, as in training, got {order!r}.")
    after = network.layers[place + 1 :]
    scaled = [layer for layer in after if layer.calibration_images is None or layer.uses_batch_statistics]
    behind = place + 1 + len(scaled)  # there, 0 stands for an average feature
    network.layers.insert(behind, LowOrders(statistics.max_order, order))
    network.layers.insert(place + 1, LowOrders(statistics.max_order, order, gives_features=True))


def statistics_of(network: Network) -> tuple[int, Statistics]:
    """The place and the statistics layer of a network; UsageError if it has none."""
    for place, layer in enumerate(network.layers):
        if isinstance(layer, Statistics):
            return place, layer
    raise UsageError("This network has no statistics layer; choose a TIGraNet.")


# --- layers that a network is not trained with -------------------------------------------------------------


class LowestIndexPool(DynamicPool):
    """Dynamic pooling that splits ties: of equal values, those of the lowest index are kept, exactly J nodes.

    The index of a node changes when the image is rotated, so this breaks the invariance where values tie.
    """

    def forward(self, signal: GraphSignal) -> GraphSignal:
        """z (K, N, B), active (K or 1, N, B)  ->  y (K, N, B), active (K, N, B)."""
        z, sets = self._check_signal(signal, None, None)
        omega = np.broadcast_to(sets.any(axis=0, keepdims=True), z.shape)
        sizes = np.where(omega, np.abs(z) if self.by_size else z, -np.inf)
        order = np.argsort(-sizes, axis=1, kind="stable")[:, : self.n_active]
        active = np.zeros(z.shape, bool)
        np.put_along_axis(active, order, True, axis=1)
        active &= omega
        self._cache = active
        return GraphSignal(np.where(active, z, 0), active)


class LowOrders(Layer):
    """Statistics features of which all orders above one are 0.

    Parameters
    ----------
    max_order : int
        K_max of the statistics layer.
    order : int
        Highest order that is kept.
    gives_features : bool
        Whether its output is the feature vector of the network.
    """

    def __init__(self, max_order: int, order: int, gives_features: bool = False):
        super().__init__()
        self.gives_features = gives_features
        self.is_kept = np.repeat(np.arange(max_order + 1) <= order, 2)  # mean and variance of each order

    def forward(self, x: np.ndarray) -> np.ndarray:
        """(F, B)  ->  (F, B)."""
        return x * np.resize(self.is_kept, len(x))[:, None].astype(x.dtype)

    def backward(self, grad: np.ndarray) -> np.ndarray:
        """The gradient passes through the orders that are kept."""
        return self.forward(grad)
