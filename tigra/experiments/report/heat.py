"""Heat maps: which pixels speak for the predicted class, by gradient times input through the network's backward."""

from __future__ import annotations

import numpy as np
from PIL import Image

from tigra.errors import UsageError
from tigra.graph import GraphSignal
from tigra.models.classifier import Classifier
from tigra.models.network import Network

LEAST_SIDE = 224  # pixels of a heat map as a picture; each pixel of the network becomes a square
FOR, AGAINST = np.array([1.0, 0.25, 0.1]), np.array([0.15, 0.4, 1.0])  # red and blue


def heat_maps(network: Classifier, images: np.ndarray) -> np.ndarray:
    """Return how much each pixel raises the score of the predicted class above the mean of the others.

    Parameters
    ----------
    network : Network
        A network on a graph.
    images : array (n, height, width) or (n, height, width, channels)
        Images in [0, 1].

    Returns
    -------
    array (n, height, width)
        Gradient times input: positive for the class, negative against it. The maps turn with the images.
    """
    if not isinstance(network, Network):
        raise UsageError(f"Heat maps need a network with gradients, got a model of kind {network.kind!r}.")
    twin, maps = network.replica(), []
    for start in range(0, len(images), network.micro_batch):
        signal = twin.signal(twin.prepare(images[start : start + network.micro_batch]))
        if not isinstance(signal, GraphSignal):
            raise UsageError("Heat maps need a network whose first layer works on the graph of pixels.")
        values = signal.values.copy()
        scores = twin.forward(signal)
        grad = np.full_like(scores, -1 / (len(scores) - 1))
        grad[scores.argmax(axis=0), np.arange(scores.shape[1])] = 1
        heat = (np.asarray(twin.backward(grad)) * values).sum(axis=0)  # (nodes, batch)
        maps.append(heat.T.reshape(-1, *network.options.grid_shape[:2]))
    margin, (height, width) = network.options.margin, network.image_shape[:2]
    return np.concatenate(maps)[:, margin : margin + height, margin : margin + width].astype(np.float64)


def heat_picture(image: np.ndarray, heat: np.ndarray) -> Image.Image:
    """Return the image in grey with the heat over it: red for the predicted class, blue against it."""
    grey = image if image.ndim == 2 else image.mean(axis=2)
    low, high = min(0.0, float(grey.min())), max(1.0, float(grey.max()))
    base = 0.6 * ((grey - low) / (high - low))[:, :, None]
    strength = np.clip(np.abs(heat) / max(float(np.quantile(np.abs(heat), 0.99)), 1e-30), 0, 1)[:, :, None]
    mixed = (1 - strength) * base + strength * np.where(heat[:, :, None] > 0, FOR, AGAINST)
    times = -(-LEAST_SIDE // max(grey.shape))
    pixels = np.uint8(np.rint(255 * mixed))
    return Image.fromarray(pixels.repeat(times, axis=0).repeat(times, axis=1))
