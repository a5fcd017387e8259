"""The input of figures: a trained network with test images and training history."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tigra.datasets.splits import Split, Splits
from tigra.errors import TrainingError, UsageError
from tigra.figures.inspection import confusion_matrix, spread
from tigra.images.transforms import rotate
from tigra.models.network import Network
from tigra.training.epochs import Epoch, read_history

MOST_TESTED = 2000  # test images; of more, an evenly spaced sample is used to save time


@dataclass(frozen=True)
class Exhibit:
    """What figures show, made by `exhibit`.

    Attributes
    ----------
    network : Network
        The network.
    upright, test : Split
        The same test images before and after the transformation.
    n_available : int
        Number of test images of the data set; at most MOST_TESTED of them are used.
    is_transformed : bool
        Whether test images are transformed.
    dataset, protocol, interpolation, background : str
        From the data set.
    history : list of Epoch
        History of the training.
    chosen : int or None
        Index of the image to rotate and to follow through the network; by default the first one that is
        classified correctly when upright.
    threads : int
        Number of worker threads.
    """

    network: Network
    upright: Split
    test: Split
    n_available: int
    is_transformed: bool
    dataset: str = ""
    protocol: str = ""
    interpolation: str = "cubic"
    background: str = "border"
    history: list[Epoch] = field(default_factory=list)
    chosen: int | None = None
    threads: int = 1

    @property
    def class_names(self) -> list[str]:
        """Class names of the network."""
        return self.network.class_names

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Class probabilities of the test images as tested, (n, n_classes)."""
        return self.network.predict_proba(self.test.images, self.threads)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Predicted classes of the test images as tested, (n,)."""
        return self.probabilities.argmax(axis=1)

    @cached_property
    def predicted_upright(self) -> np.ndarray:
        """Predicted classes of the upright test images, (n,)."""
        return self.network.predict(self.upright.images, self.threads) if self.is_transformed else self.predicted

    @property
    def is_wrong(self) -> np.ndarray:
        """Which test images are misclassified, (n,)."""
        return self.predicted != self.test.labels

    @property
    def accuracy(self) -> float:
        """Fraction of the test images that are classified correctly."""
        return 1.0 - float(self.is_wrong.mean())

    @cached_property
    def confusion(self) -> np.ndarray:
        """Confusion matrix with true classes in rows and predicted ones in columns."""
        return confusion_matrix(self.test.labels, self.predicted, self.network.n_classes)

    @cached_property
    def subject(self) -> int:
        """Index of the image to rotate and to follow."""
        if self.chosen is not None:
            return self.chosen
        right = np.flatnonzero(self.predicted_upright == self.upright.labels)
        return int(right[0]) if len(right) else 0

    @property
    def subject_image(self) -> np.ndarray:
        """The upright image to rotate and to follow, (height, width) or (height, width, 3)."""
        return self.upright.images[self.subject]

    def turned(self, degrees) -> np.ndarray:
        """Return the image to follow, rotated by each of these angles."""
        images = np.repeat(np.asarray(self.subject_image)[None], np.size(degrees), axis=0)
        return rotate(images, np.ravel(degrees), self.interpolation, background=self.background)

    def one_of_each_class(self, most: int) -> np.ndarray:
        """Return the index of the first test image of each class, for at most `most` evenly spaced classes."""
        labels = np.asarray(self.test.labels)
        present = np.unique(labels)
        return np.array([np.flatnonzero(labels == label)[0] for label in present[spread(len(present), most)]])


def exhibit(
    network: Network, splits: Splits, training: dict | None = None, chosen: int | None = None, threads: int = 1
) -> Exhibit:
    """Collect what figures show of a network and the test images of a data set.

    Parameters
    ----------
    network : Network
        A TIGraNet on a grid of pixels.
    splits : Splits
        The data set.
    training : dict, optional
        Facts in a model file (`tigra.model_file.Model.training`), for the history of the training.
    chosen : int, optional
        Index of the test image to rotate and to follow.
    threads : int
        Number of worker threads.

    Returns
    -------
    Exhibit
    """
    if not any(layer.gives_features for layer in network.layers) or network.own_graph is not None:
        raise UsageError(
            "Figures need a TIGraNet with a statistics layer on a grid of pixels, got"
            f" {network.options.architecture}; choose another model."
        )
    n_available = len(splits.test.labels)
    rows = spread(n_available, MOST_TESTED)
    if chosen is not None:
        if not 0 <= chosen < n_available:
            raise UsageError(f"The test image must be from 0 to {n_available - 1}, got {chosen}; choose another.")
        rows = np.unique(np.append(rows, chosen))
        chosen = int(np.searchsorted(rows, chosen))
    return Exhibit(
        network,
        upright=Split(splits.test_upright.images[rows], np.asarray(splits.test_upright.labels)[rows]),
        test=Split(splits.test.images[rows], np.asarray(splits.test.labels)[rows]),
        n_available=n_available,
        is_transformed=splits.transform is not None,
        dataset=splits.name,
        protocol=splits.protocol,
        interpolation=splits.options.get("interpolation", "cubic"),
        background=splits.entering,
        history=_history(training or {}),
        chosen=chosen,
        threads=threads,
    )


def _history(training: dict) -> list[Epoch]:
    """Return the epochs recorded in a model file; an empty list if missing or invalid."""
    records = training.get("history", [])
    try:
        history = read_history(records, len(records))
    except (TypeError, TrainingError):  # the file may contain anything
        return []
    finite = all(
        np.isfinite([e.loss, e.accuracy, e.valid_loss, e.valid_error, e.valid_accuracy]).all() for e in history
    )
    return history if finite else []
