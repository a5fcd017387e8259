"""Compare an ONNX file, run by onnxruntime, with the network it was made from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tigra.errors import UsageError
from tigra.images.transforms import smooth
from tigra.models.network import Network
from tigra.onnx.export import INPUT, needed

N_IMAGES = 100


class Comparison(NamedTuple):
    """How far onnxruntime and tigra are apart.

    Attributes
    ----------
    difference : float
        Largest difference of a probability.
    n_labels : int
        Number of images with another label.
    runtime : str
        Version of onnxruntime.
    """

    difference: float
    n_labels: int
    runtime: str


def compare(network: Network, path, images: np.ndarray | None = None, threads: int = 1) -> Comparison:
    """Run an ONNX file on images and compare its outputs with those of the network.

    Parameters
    ----------
    network : Network
        The network that was exported.
    path : str or Path
        The file.
    images : array (n, height, width) or (n, height, width, 3), optional
        By default 100 drawn images, see `drawn_images`.
    threads : int
        Threads of tigra and of onnxruntime.

    Returns
    -------
    Comparison
        The largest difference, and the number of labels that differ.

    Raises
    ------
    UsageError
        If onnxruntime is missing, or cannot run the file.
    """
    images = drawn_images(network.image_shape) if images is None else images
    runtime = needed("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        labels, probabilities = session.run(["label", "probabilities"], {INPUT: images.astype(np.float32)})
    except Exception as error:  # its exceptions have no common base but Exception
        reason = str(error).strip().splitlines()[0]
        advice = "if it is too old for the file, lower the opset"
        raise UsageError(f"onnxruntime {runtime.__version__} cannot run {path}: {reason}; {advice}.") from error
    expected = network.predict_proba(images, threads)
    n_labels = int((labels != expected.argmax(axis=1)).sum())
    return Comparison(float(np.abs(probabilities - expected).max()), n_labels, runtime.__version__)


def drawn_images(shape: tuple[int, ...], n_images: int = N_IMAGES, seed: int = 0) -> np.ndarray:
    """Images of random strokes on a black background, (n, *shape) in [0, 1]; the same for the same seed.

    If the shape has a third axis, every stroke has a colour.

    Examples
    --------
    >>> images = drawn_images((28, 28), n_images=2)
    >>> images.shape, bool((images == 0).any()), float(images.max())
    ((2, 28, 28), True, 1.0)
    """
    rng, (height, width) = np.random.default_rng(seed), shape[:2]
    images = np.zeros((n_images, height, width))
    for image in images:
        place, turn = rng.uniform(0.3, 0.7, 2), rng.uniform(0, 2 * np.pi)
        for _ in range(40):  # a pen that moves on and slowly changes its direction
            turn += rng.normal(0, 0.5)
            place = np.clip(place + 0.04 * np.array([np.sin(turn), np.cos(turn)]), 0.15, 0.84)
            image[int(place[0] * height), int(place[1] * width)] = 1
    inked = smooth(images, 0.03 * max(height, width))
    levels = inked / inked.max(axis=(1, 2), keepdims=True)
    levels = np.where(levels > 0.05, levels, 0)
    return levels if len(shape) == 2 else levels[..., None] * rng.uniform(0, 1, (n_images, 1, 1, shape[2]))
