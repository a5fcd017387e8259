"""Is a picture like those of the training? The distance of its features to theirs says so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tigra.errors import ShapeError
from tigra.models.network import Network
from tigra.seeding import balanced_order, generator

N_KEPT = 500  # training images whose features are kept, as many of each class as possible
NEIGHBOUR = 5  # the distance to the fifth nearest counts; to a single one it would be noisy
SHARE = 0.99  # of the validation images that are not flagged
ENOUGH = 100  # validation images; with fewer, training images help to find the limit
AT_ONCE = 64  # images whose distances are in memory at a time


@dataclass(frozen=True)
class Familiar:
    """Features of some training images, and the distance up to which others are like them.

    Attributes
    ----------
    features : float32 array (m, F)
        Inputs of the network's last layer, divided by `scale`.
    scale : float32 array (F,)
        Deviations of the features over the training images.
    limit : float
        99 % of the validation images are closer than this; if they are few, of these and the training images.
    """

    features: np.ndarray
    scale: np.ndarray
    limit: float

    def __post_init__(self) -> None:
        fits = self.features.ndim == 2 and self.scale.shape == self.features.shape[1:] and len(self.features)
        if not fits or not (self.scale > 0).all() or not 0 < self.limit < np.inf:
            raise ShapeError(
                f"Familiar needs features (m, F), positive scales (F,) and a positive limit, got {self.features.shape},"
                f" {self.scale.shape} and {self.limit!r}."
            )

    @classmethod
    def of(cls, network: Network, train, valid, seed: int = 0, threads: int = 1) -> Familiar:
        """Return the features of training images, with a limit from validation images.

        Parameters
        ----------
        network : Network
            A trained network.
        train, valid : Split
            Training and validation images.
        seed : int
            Seed of the choice of training images.
        threads : int
            Number of worker threads.

        Returns
        -------
        Familiar
        """
        rows = np.sort(balanced_order(np.asarray(train.labels), generator(seed, "familiar"))[:N_KEPT])
        kept = network.embedding(train.images[rows], threads).astype(np.float64)
        deviation = kept.std(axis=0)
        scale = np.where(deviation > 1e-6 * max(deviation.max(), 1e-30), deviation, max(deviation.max(), 1e-30))
        found = cls((kept / scale).astype(np.float32), scale.astype(np.float32), 1.0)
        distances = found.distances(network.embedding(valid.images, threads))
        if len(distances) < ENOUGH:  # their largest distance alone would flag many ordinary images
            distances = np.concatenate([distances, found._to_nearest(found.features, n_skipped=1)])
        limit = float(f"{max(np.quantile(distances, SHARE), 1e-12):.6g}")
        return cls(found.features, found.scale, limit)

    def distances(self, embedding: np.ndarray) -> np.ndarray:
        """Return the distances (n,) of images, given by `Network.embedding`; those above 1 are unlike the training.

        Distances are relative to the limit.
        """
        return self._to_nearest((np.asarray(embedding, np.float64) / self.scale).astype(np.float32)) / self.limit

    def _to_nearest(self, rows: np.ndarray, n_skipped: int = 0) -> np.ndarray:
        """Return distances of scaled features to the fifth nearest, not counting as many as are skipped."""
        place, found = min(NEIGHBOUR + n_skipped, len(self.features)) - 1, []
        for start in range(0, len(rows), AT_ONCE):
            gaps = rows[start : start + AT_ONCE, None] - self.features
            found.append(np.partition(np.square(gaps).sum(axis=2), place, axis=1)[:, place])
        return np.sqrt(np.concatenate(found).astype(np.float64))
