"""What an oriented network makes of left and right, as numbers; nothing is drawn here."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tigra.figures.inspection import layer_numbers, steps
from tigra.layers import OrientedConv
from tigra.models.network import Network


class Products(NamedTuple):
    """Products of gradients in the first oriented convolution of a network, for n images.

    Attributes
    ----------
    name : str
        The layer in the notation of architectures.
    number : int
        Number of the layer among the oriented ones, 1.
    dots, crosses : arrays of shape (n, R, height, width)
        dot(a_r, b_r) and cross(a_r, b_r) of the layer's R pairs of maps.
    """

    name: str
    number: int
    dots: np.ndarray
    crosses: np.ndarray


def products(network: Network, images) -> Products | None:
    """Return the products of gradients in the first oriented convolution; None if there is none.

    >>> from tigra.models import build_network
    >>> network = build_network("OC[2, 1]-S[0]", (3, 3), n_classes=2, diagonal_weight=0.25)
    >>> image = np.random.default_rng(0).random((1, 3, 3))
    >>> of_image, of_mirror = (products(network, seen).crosses for seen in (image, image[:, :, ::-1]))
    >>> bool(of_image.any() and (of_mirror == -of_image[..., ::-1]).all())
    True
    """
    place = next((i for i, layer in enumerate(network.layers) if isinstance(layer, OrientedConv)), None)
    if place is None:
        return None
    layer = network.layers[place]
    signal = network.replica().forward(network.signal(network.prepare(images)), until=place)
    n_filtered = (layer.degree + 1) * layer.n_in
    only_products = np.eye(n_filtered + 2 * layer.n_pairs, dtype=network.dtype)[n_filtered:]
    maps = OrientedConv(layer.graph, only_products, layer.params["pairs"]).forward(signal).values
    pictures = np.moveaxis(maps, 2, 0).reshape(len(images), 2, layer.n_pairs, *layer.graph.shape)
    return Products(layer.label, layer_numbers(network.layers)[place], pictures[:, 0], pictures[:, 1])


class MirrorChange(NamedTuple):
    """How mirroring images changes the maps after one oriented convolution.

    Attributes
    ----------
    name : str
        The layer in the notation of architectures.
    number : int
        Number of the layer among the oriented ones, from 1.
    changes : array of shape (K,)
        Mean square of z' - M z, divided by that of z and z', for each map: z of an image, z' of its mirror image, and
        M z the mirrored map. It is 0 for a map that takes no notice of left and right.
    """

    name: str
    number: int
    changes: np.ndarray


def mirror_changes(network: Network, images: np.ndarray) -> list[MirrorChange]:
    """Return how mirroring images (n, height, width) changes the maps after every oriented convolution."""
    result = []
    for step in steps(network, np.concatenate([images, images[:, :, ::-1]]), most_maps=None):
        if step.name.startswith("OC"):
            of_images, of_mirrors = np.split(step.values, 2)
            change = ((of_mirrors - of_images[..., ::-1]) ** 2).mean(axis=(0, 2, 3))
            size = (step.values**2).mean(axis=(0, 2, 3))
            result.append(MirrorChange(step.name, step.number, change / np.maximum(size, np.finfo(np.float32).tiny)))
    return result


class ChiralMap(NamedTuple):
    """The map of the middle oriented convolution that mirroring changes most.

    Attributes
    ----------
    name, number : str, int
        The layer, as in `MirrorChange`.
    map : int
        Index of the map.
    values : array of shape (n, height, width)
        The map, for n images.
    """

    name: str
    number: int
    map: int
    values: np.ndarray


def chiral_map(network: Network, images: np.ndarray, changes: list[MirrorChange]) -> ChiralMap:
    """Return, for images (n, height, width), the map that changes most by mirroring, according to `mirror_changes`."""
    name, number, of_maps = changes[len(changes) // 2]
    index = int(of_maps.argmax())
    for step in steps(network, images, maps=np.array([index])):
        if (step.name, step.number) == (name, number):
            return ChiralMap(name, number, index, step.values[:, 0])
    raise AssertionError("the layer is one of the network's")
