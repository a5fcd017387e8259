"""Jitter: upright training images, shifted by random fractions of a pixel in every epoch."""

from __future__ import annotations

import numpy as np

from tigra.images.background import entering
from tigra.images.transforms import INTERPOLATIONS, translate
from tigra.models.network import Network


class JitteredImages:
    """Images that are shifted and then prepared as by `PreparedImages`, on each access.

    Rotating a digit also interpolates it. The network is invariant to the rotation but not to the blur of the
    interpolation. Shifted images teach it the blur while they stay upright. Each image gets its own shift, uniform in
    [-jitter, jitter] pixels down and right, and is interpolated linearly or by cubic splines, at random. Pixels from
    outside the image have the background value, black or the grey of the image's border.

    Parameters
    ----------
    network : Network
        The network that prepares the images.
    images : array (n, height, width) or LazyImages
        Upright images.
    jitter : float
        Largest shift in pixels.
    seed : int
        Seed of the shifts.

    Examples
    --------
    >>> import tigra
    >>> network = tigra.build_network("S[0]", (3, 3), n_classes=2, dtype="float64")
    >>> images = JitteredImages(network, np.pad([[[1.0]]], ((0, 0), (1, 1), (1, 1))), jitter=0.5, seed=0)
    >>> images.shifts.round(2), INTERPOLATIONS[images.interpolations[0]]
    (array([[-0.05, -0.11]]), 'linear')
    >>> images[0:1].reshape(3, 3).round(2)  # 0.95 * 0.89 is left in the middle
    array([[0.01, 0.05, 0.  ],
           [0.1 , 0.85, 0.  ],
           [0.  , 0.  , 0.  ]])
    """

    def __init__(self, network: Network, images, jitter: float, seed: int):
        self.network, self.images, self.jitter, self.seed = network, network.checked(images), jitter, seed
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Draw the shifts of an epoch; they depend only on the seed, the epoch and the position of an image."""
        rng = np.random.default_rng([self.seed, epoch, 1])  # [seed, epoch] is the order of the images
        self.shifts = rng.uniform(-self.jitter, self.jitter, (len(self), 2))
        self.interpolations = rng.integers(len(INTERPOLATIONS), size=len(self))

    takes_time = True  # as of `PreparedImages`

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, rows) -> np.ndarray:
        rows = np.arange(len(self))[rows]
        images = self.network.checked_pixels(self.images[rows], rows)
        for number, interpolation in enumerate(INTERPOLATIONS):
            chosen = self.interpolations[rows] == number
            images[chosen] = self._moved(images[chosen], self.shifts[rows[chosen]], interpolation)
        return self.network.prepare_part(images, rows)

    def _moved(self, images, shifts, interpolation) -> np.ndarray:
        """Shift images over their background, and clip the overshoot of splines to [0, 1] or the image's own range."""
        background = entering(self.network.options.background)
        moved = translate(images, shifts, interpolation, clip=False, background=background)
        low, high = (limit(images, axis=(1, 2), keepdims=True) for limit in (np.min, np.max))
        return np.clip(moved, np.minimum(low, 0), np.maximum(high, 1))
