"""Measure how much predictions change when images are rotated, shifted and mirrored."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.images.transforms import random_shifts, rotate
from tigra.models.network import Network
from tigra.seeding import generator

AT_ONCE = 1024  # images per batch
MIRRORED = "mirror images"


def transformations(
    image_shape, interpolation: str = "cubic", largest_shift: float = 2.0, background: str = "border"
) -> dict[str, Callable]:
    """Return functions (images, rng) -> transformed images by name; quarter turns only for square images.

    Parameters
    ----------
    image_shape : (int, int)
        Height and width of the images.
    interpolation : {"cubic", "linear"}
        How images are interpolated.
    largest_shift : float
        Largest shift in pixels, horizontally and vertically.
    background : {"border", "black"}
        What enters from outside: the median of an image's border pixels, or black.

    Returns
    -------
    dict of str to callable
        Functions (images, rng) -> transformed images, by name.

    Notes
    -----
    Quarter turns, half turns, mirror images and shifts by whole pixels only move pixels, so they test the
    network and its border alone. The others interpolate, so they test network and interpolation together.

    Mirror images come last because they are a case of their own. A TIGraNet does not tell them from the originals,
    unless it has oriented convolutions, which tell left from right.

    Examples
    --------
    >>> turn = transformations((2, 2))["quarter turns"]
    >>> turn(np.array([[[0.1, 0.2], [0.3, 0.4]]]), np.random.default_rng(0))
    array([[[0.3, 0.1],
            [0.4, 0.2]]])
    """

    def turned(angles):
        return lambda images, rng: rotate(images, angles(rng, len(images)), interpolation, background=background)

    def shifted(whole):
        return lambda images, rng: random_shifts(images, rng, largest_shift, whole, interpolation, background)

    quarter = {"quarter turns": turned(lambda rng, n: 90.0 + 180.0 * rng.integers(2, size=n))}
    return (quarter if image_shape[0] == image_shape[1] else {}) | {
        "half turns": turned(lambda rng, n: np.full(n, 180.0)),
        "whole-pixel shifts": shifted(whole=True),
        "sub-pixel shifts": shifted(whole=False),
        "45 degree turns": turned(lambda rng, n: 45.0 + 90.0 * rng.integers(4, size=n)),
        "random angles": turned(lambda rng, n: rng.uniform(0, 360, n)),
        MIRRORED: lambda images, rng: images[:, :, ::-1],
    }


def measure_invariance(
    network: Network,
    images,
    labels=None,
    seed: int = 0,
    threads: int = 1,
    interpolation: str = "cubic",
    largest_shift: float = 2.0,
    on_progress: Callable[[str, int, int], None] = lambda name, done, total: None,
    background: str = "border",
) -> dict[str, dict]:
    """Measure how the predictions of a network change under each transformation.

    Parameters
    ----------
    network : Network
        The network.
    images : array of shape (n, height, width) or (n, height, width, 3)
        Upright images.
    labels : array of int, shape (n,), optional
        Labels for the accuracy.
    seed : int
        Seed of the random transformations.
    threads : int
        Number of worker threads.
    interpolation : {"cubic", "linear"}
        How images are interpolated.
    largest_shift : float
        Largest shift in pixels, horizontally and vertically. What leaves the image is lost.
    on_progress : callable
        Called with (name of the transformation, images done, total).
    background : {"border", "black"}
        What enters from outside, as for `transformations`.

    Returns
    -------
    dict of dict
        One entry per transformation, and "as they are" for the upright images. "mirror images" is the last one.
        All values are fractions.
        `label_changed` is the share of images whose label changes. `probability_moved` is the mean over
        the images of half the sum over the classes of abs(p' - p), from 0 (same probabilities) to 1, and
        `probability_moved_most` its maximum. `accuracy` is that on the transformed images, if labels are
        given.
    """
    if len(images) == 0:
        raise ShapeError("Expected at least one image, got none; give images to measure the invariance with.")
    if labels is not None and np.shape(labels) != (len(images),):
        raise ShapeError(f"Expected one label per image, shape ({len(images)},), got {np.shape(labels)}.")
    if not (isinstance(largest_shift, Real) and 0 <= largest_shift < np.inf):
        raise UsageError(f"largest_shift must be a number of pixels >= 0, got {largest_shift!r}.")
    result, before = {}, []
    changes = {"as they are": lambda images, rng: images}
    changes |= transformations(network.image_shape, interpolation, largest_shift, background)
    for name, change in changes.items():
        rng, after = generator(seed, f"invariance {name}"), []
        for start in range(0, len(images), AT_ONCE):
            part = np.ascontiguousarray(change(np.asarray(images[start : start + AT_ONCE]), rng))
            after.append(network.predict_proba(part, threads))
            on_progress(name, min(start + AT_ONCE, len(images)), len(images))
        after = np.concatenate(after)
        before = after if name == "as they are" else before
        moved = np.abs(after - before).sum(axis=1) / 2
        result[name] = {
            "label_changed": float((after.argmax(axis=1) != before.argmax(axis=1)).mean()),
            "probability_moved": float(moved.mean()),
            "probability_moved_most": float(moved.max()),
        }
        if labels is not None:
            result[name]["accuracy"] = float((after.argmax(axis=1) == np.asarray(labels)).mean())
    return result
