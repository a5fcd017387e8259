"""Views: a classifier that looks at each image at several angles between two quarter turns."""

from __future__ import annotations

import numpy as np

from tigra.errors import UsageError
from tigra.graph import Graph
from tigra.images.background import entering
from tigra.images.store import LazyImages, TurnedImages
from tigra.images.transforms import rotate
from tigra.models.classifier import Classifier

MOST_VIEWS = 16


class Views(Classifier):
    """A classifier whose scores are averages over the image and rotated copies of it.

    A network on a grid is exact for quarter turns, and least accurate halfway between them. With two views, the image
    and the image rotated by 45 degrees, one is always within 22.5 degrees of the grid. The network itself stays as it
    is: it needs no rotated training images. A prediction takes as many times longer as there are views.

    Parameters
    ----------
    classifier : Classifier
        A trained network, or another fitted classifier.
    n_views : int
        Number of views, at multiples of 90 / n_views degrees.

    Examples
    --------
    >>> from tigra.models.build import build_network
    >>> network = build_network("OC[2, 1]-S[1]", image_shape=(6, 6), n_classes=2, batch_norm=True)
    >>> image = np.zeros((1, 6, 6))
    >>> image[0, 2:4, 1:5] = 1
    >>> mean = (network.scores(image) + network.scores(rotate(image, 45))) / 2
    >>> bool(np.allclose(Views(network, 2).scores(image), mean))
    True
    """

    kind = "views"

    def __init__(self, classifier: Classifier, n_views: int = 2):
        is_whole = isinstance(n_views, (int, np.integer)) and not isinstance(n_views, bool)
        if not is_whole or not 1 <= n_views <= MOST_VIEWS:
            raise UsageError(f"The number of views must be a whole number from 1 to {MOST_VIEWS}, got {n_views!r}.")
        self.classifier, self.n_views = classifier, int(n_views)
        self.options, self.layers = classifier.options, classifier.layers
        self.n_parameters, self.at_once = classifier.n_parameters, classifier.at_once

    @property
    def words(self) -> str:
        """For protocols."""
        return f"scores averaged over {self.n_views} views"

    @property
    def class_names(self) -> list[str]:  # type: ignore[override]  # an attribute of other classifiers
        """Those of the classifier."""
        return self.classifier.class_names

    @property
    def temperature(self) -> float:  # type: ignore[override]  # an attribute of other classifiers
        """That of the classifier."""
        return self.classifier.temperature

    @property
    def own_graph(self) -> Graph | None:  # type: ignore[override]
        """That of the classifier."""
        return self.classifier.own_graph

    @property
    def obstacle(self) -> str | None:
        """Why the views cannot be saved: they are a way to use a model, not a part of it."""
        return "Views are a way to use a model, not part of its file (save their `classifier`)"

    def scores(self, images, threads: int = 1) -> np.ndarray:
        """Mean of the scores (n, n_classes) of all views."""
        images = self.checked(images)
        return self.averaged(self.classifier.scores(images, threads), images, threads)

    def averaged(self, scores: np.ndarray, images, threads: int = 1) -> np.ndarray:
        """`scores`, if those of the images as they are have been computed already."""
        total = scores
        for view in range(1, self.n_views):
            total = total + self.classifier.scores(self._turned(images, 90 * view / self.n_views), threads)
        return total / total.dtype.type(self.n_views)

    def _turned(self, images, degrees: float):
        """The images rotated; the background that enters is what the network takes for empty."""
        background = entering(getattr(self.options, "background", "black"))
        if isinstance(images, LazyImages):
            return TurnedImages(images, np.full(len(images), degrees), background=background)
        turned = rotate(images, degrees, clip=False, background=background)
        is_grey = ((images >= 0) & (images <= 1)).reshape(len(images), -1).all(axis=1)  # others may be standardised
        turned[is_grey] = turned[is_grey].clip(0, 1)
        return turned
