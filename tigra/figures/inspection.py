"""Numbers that figures show: filters, maps, active sets, Chebyshev signals, and a full rotation of an image.

Nothing is drawn here. Maps are arrays (n, maps, height, width) on the whole grid of their layer, including the margin
of the network; coarsening (GC) makes the grid smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from tigra.errors import UsageError
from tigra.graph import Graph, GraphSignal, GridGraph
from tigra.graph.polynomials import chebyshev
from tigra.images.colour import LUMA
from tigra.images.transforms import rotate
from tigra.layers import OrientedConv, Statistics
from tigra.models.build import Plan
from tigra.models.network import Network
from tigra.theory.fourier import polynomial_response

LARGEST_SPECTRUM = 20_000  # largest number of nodes for which the highest frequency is computed


def spread(n_things: int, most: int) -> np.ndarray:
    """Return at most `most` evenly spaced indices below n, including first and last; of one, the first.

    >>> spread(3, 5), spread(20, 3), spread(4, 1)
    (array([0, 1, 2]), array([ 0, 10, 19]), array([0]))
    """
    return np.unique(np.rint(np.linspace(0, max(n_things - 1, 0), min(n_things, most))).astype(int))


def layer_numbers(layers) -> list[int]:
    """Return the number of each layer among those of its type, from 1.

    >>> from tigra.models import build_network
    >>> layer_numbers(build_network("SC[1, 1]-DP[2]-SC[1, 1]-S[0]", (2, 2), n_classes=2).layers[:4])
    [1, 1, 2, 1]
    """
    return [sum(type(before) is type(layer) for before in layers[: i + 1]) for i, layer in enumerate(layers)]


# --- filters ------------------------------------------------------------------------------------------


class FilterBank(NamedTuple):
    """Responses of the filters of one spectral layer.

    Attributes
    ----------
    name : str
        The layer in the paper's notation.
    number : int
        Number of the layer among the spectral ones, from 1.
    is_sum : bool
        True if every pair of maps has its own filter. A row then is the sum over all input maps, the response to
        equal input maps before the rectifier; that of a layer without orientation is divided by s_i.
    is_oriented : bool
        True if the layer also adds products of gradients, which are not filters.
    graph : Graph
        The graph of the layer.
    frequencies : array of shape (F,)
        Frequencies.
    learned, start : arrays of shape (K, F)
        Responses after and before training.
    """

    name: str
    number: int
    is_sum: bool
    is_oriented: bool
    graph: Graph
    frequencies: np.ndarray
    learned: np.ndarray
    start: np.ndarray


def start_network(network: Network) -> Network:
    """Return the network as it was before training, rebuilt from its options and seed."""
    return Plan.of(network.options, network.own_graph).network()


def filter_banks(network: Network, n_frequencies: int = 201) -> list[FilterBank]:
    """Return the response h(lambda) of every filter of every spectral layer, for lambda in [0, 2].

    >>> from tigra.models import build_network
    >>> network = build_network("SC[1, 0]-S[0]", (2, 2), n_classes=2)
    >>> filter_banks(network, n_frequencies=3)[0].learned  # one window over the whole spectrum
    array([[1., 1., 1.]])
    """
    frequencies, starts = np.linspace(0, 2, n_frequencies), start_network(network).layers
    numbers, banks = layer_numbers(network.layers), []
    for layer, number, start in zip(network.layers, numbers, starts, strict=True):
        if hasattr(layer, "filter_coefficients"):
            rows = [layer.filter_coefficients(params) for params in (layer.params, start.params)]
            responses = (polynomial_response(alpha, frequencies) for alpha in rows)
            is_oriented = isinstance(layer, OrientedConv)
            is_sum = is_oriented or layer.params["alpha"].ndim == 3  # a filter for each pair of maps
            banks.append(FilterBank(layer.label, number, is_sum, is_oriented, layer.graph, frequencies, *responses))
    return banks


def highest_frequency(graph: Graph) -> float:
    """Return the largest eigenvalue of the Laplacian, to three digits; its bound 2 for large graphs."""
    if graph.n_nodes < 3:
        return float(np.linalg.eigvalsh(graph.laplacian.toarray()).max())
    if graph.n_nodes > LARGEST_SPECTRUM:
        return 2.0
    start = np.random.default_rng(0).standard_normal(graph.n_nodes)  # makes ARPACK reproducible
    try:
        return float(eigsh(graph.laplacian, k=1, which="LA", tol=1e-4, v0=start, return_eigenvectors=False)[0])
    except ArpackNoConvergence:
        return 2.0


# --- maps and active sets -------------------------------------------------------------------------------


class Step(NamedTuple):
    """Output of one graph layer for n images, with the batch normalisation that belongs to it.

    Attributes
    ----------
    name : str
        The layer in the paper's notation; "image" for the input y_0.
    number : int
        Number of the layer among those of its type, from 1; 0 for the image.
    maps : array of int, shape (M,)
        Indices of the maps that are shown.
    n_maps : int
        Number of all maps.
    values, active : arrays of shape (n, M, height, width)
        Values of the maps; True on their active nodes.
    counts : array of shape (n, height, width)
        In how many of all maps a node is active; positive on Omega.
    """

    name: str
    number: int
    maps: np.ndarray
    n_maps: int
    values: np.ndarray
    active: np.ndarray
    counts: np.ndarray


def steps(network: Network, images, most_maps: int | None = 3, maps: np.ndarray | None = None) -> list[Step]:
    """Return the signal of n images after every graph layer.

    It has at most `most_maps` maps, evenly spaced; None for all. `maps` are the indices of other ones, as far as a
    layer has them.
    """
    twin, prepared = network.replica(), network.prepare(images)

    def chosen(n_maps: int) -> np.ndarray:
        return spread(n_maps, n_maps if most_maps is None else most_maps) if maps is None else maps[maps < n_maps]

    by_image = [_steps_of_one(twin, row[None], chosen) for row in prepared]  # one at a time, to save memory
    return [
        first._replace(
            **{part: np.stack([getattr(step, part) for step in same]) for part in ("values", "active", "counts")}
        )
        for same in zip(*by_image, strict=True)
        for first in same[:1]
    ]


def _steps_of_one(network: Network, prepared: np.ndarray, chosen: Callable[[int], np.ndarray]) -> list[Step]:
    signal: Any = network.signal(prepared)
    name, shape = "image", network.options.grid_shape
    taken = [_as_pictures(name, 0, signal, shape, chosen)]
    for layer, number in zip(network.layers, layer_numbers(network.layers), strict=True):
        if layer.gives_features:
            return taken
        signal, shape = layer.forward(signal), getattr(layer, "coarse_shape", shape)
        layer.forget()
        if layer.uses_batch_statistics and len(taken) > 1:  # belongs to the layer before
            name, number = taken.pop()[:2]
        else:
            name = layer.label
        taken.append(_as_pictures(name, number, signal, shape, chosen))
    return taken


def _as_pictures(name, number, signal: GraphSignal, shape, chosen) -> Step:
    """Return the step for one image, without the axis of images."""
    values, active = signal.values[:, :, 0], np.broadcast_to(signal.active, signal.values.shape)[:, :, 0]
    maps = chosen(len(values))
    shown = values[maps].reshape(-1, *shape), active[maps].reshape(-1, *shape)
    return Step(name, number, maps, len(values), *shown, active.sum(axis=0).reshape(shape))


# --- statistics -----------------------------------------------------------------------------------------


class ChebyshevSignals(NamedTuple):
    """Chebyshev signals of one map of an image, and the moments of all maps.

    Attributes
    ----------
    map : int
        Index i of the map.
    signals : array of shape (K_max+1, height, width)
        t_k = T_k(L - I) z_i.
    moments : array of shape (K, K_max+1, 2)
        Mean and variance of abs(t_{i,k}) over the nodes, for every map i.
    """

    map: int
    signals: np.ndarray
    moments: np.ndarray


def chebyshev_signals(network: Network, image: np.ndarray, number: int | None = None) -> ChebyshevSignals:
    """Return the Chebyshev signals of one image (height, width) in the statistics layer.

    `number` is the index of the map, by default the one with the largest mean.
    """
    place, layer = _statistics(network)
    z = network.replica().forward(network.signal(network.prepare(image[None])), until=place).values
    moments = network.features(image[None]).reshape(len(z), layer.max_order + 1, 2)
    i = int(moments[:, 0, 0].argmax()) if number is None else number
    assert isinstance(layer.graph, GridGraph)  # an exhibit has no other
    shape, powers = layer.graph.shape, chebyshev(layer.graph, z[i : i + 1], layer.max_order)  # Eq. (14)
    return ChebyshevSignals(i, np.stack([t[0, :, 0].reshape(shape).copy() for t in powers]), moments)


def _statistics(network: Network) -> tuple[int, Statistics]:
    for place, layer in enumerate(network.layers):
        if layer.gives_features:
            return place, layer
    raise UsageError("This network has no statistics layer; add S[K_max].")


class FullTurn(NamedTuple):
    """An image rotated by A angles, with its features and class probabilities.

    Attributes
    ----------
    degrees : array of shape (A,)
        Angles.
    images : array of shape (A, height, width)
        Rotated images.
    features : array of shape (A, F)
        Statistics features.
    probabilities : array of shape (A, n_classes)
        Class probabilities.
    """

    degrees: np.ndarray
    images: np.ndarray
    features: np.ndarray
    probabilities: np.ndarray


def full_turn(
    network: Network,
    image,
    n_angles: int = 72,
    interpolation: str = "cubic",
    threads: int = 1,
    background: str = "border",
) -> FullTurn:
    """Rotate one image in n_angles equal steps, from 0 to 360 degrees inclusive."""
    degrees = np.linspace(0, 360, n_angles + 1)
    images = np.repeat(np.asarray(image)[None], len(degrees), axis=0)
    images = rotate(images, degrees, interpolation, background=background)
    return FullTurn(degrees, images, network.features(images, threads), network.predict_proba(images, threads))


def in_training_units(network: Network, features: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return (features (A, F) standardised as for the FC layers, True).

    For a network that does not standardise, return (features divided by their maximum, False).
    """
    place, _ = _statistics(network)
    after = network.replica().layers[place + 1 :]
    scaling = [layer for layer in after if layer.calibration_images is None or layer.uses_batch_statistics]
    if scaling and not any(layer.needs_calibration or _is_unseen(layer) for layer in scaling):
        columns = features.T
        for layer in scaling:
            columns = layer.forward(columns)
        return columns.T, True
    return features / np.maximum(np.abs(features).max(axis=0), np.finfo(np.float32).tiny), False


def _is_unseen(layer) -> bool:
    """Whether a batch normalisation has no running averages yet."""
    return layer.uses_batch_statistics and not np.any(layer.state.get("total", True))


def lively_pixels(images: np.ndarray, turned: np.ndarray, most: int) -> np.ndarray:
    """Return pixels (A, at most `most`) of rotated images, standardised over `images` (n, H, W).

    Pixels are evenly spaced among those whose deviation is at least half of the largest.
    """
    images, turned = (array if array.ndim == 3 else array @ np.array(LUMA) for array in (images, turned))
    mean, deviation = images.mean(axis=0), images.std(axis=0)
    rows, columns = np.nonzero(deviation >= 0.5 * deviation.max())
    chosen = spread(len(rows), most)
    rows, columns = rows[chosen], columns[chosen]
    unit = np.maximum(deviation[rows, columns], np.finfo(np.float32).tiny)
    return (turned[:, rows, columns] - mean[rows, columns]) / unit


# --- answers --------------------------------------------------------------------------------------------


def confusion_matrix(labels, predicted, n_classes: int) -> np.ndarray:
    """Count the images of class r (row) that are predicted as class c (column).

    >>> confusion_matrix([0, 0, 1], [0, 1, 1], n_classes=2)
    array([[1, 1],
           [0, 1]])
    """
    pairs = np.asarray(labels) * n_classes + np.asarray(predicted)
    return np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)
