"""An exhibit: a trained network with the test images, and the history, that figures of it are made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tigra.datasets.splits import Split, Splits
from tigra.errors import TrainingError, UsageError
from tigra.figures.inspection import confusion_matrix, spread
from tigra.models.network import Network
from tigra.training.epochs import Epoch, read_history

MOST_TESTED = 2000  # test images; of more an even choice is taken, so that figures take seconds


@dataclass(frozen=True)
class Exhibit:
    """What figures show, and the choices that they share.

    upright, test : the same test images before and after the protocol's transformation
    n_available : how many test images the data set has; MOST_TESTED of them are used
    chosen : number of the image that is turned and followed through the network, by default the first that
        the network names rightly when it is upright
    """

    network: Network
    upright: Split
    test: Split
    n_available: int
    is_transformed: bool
    dataset: str = ""
    protocol: str = ""
    interpolation: str = "cubic"
    history: list[Epoch] = field(default_factory=list)
    chosen: int | None = None
    threads: int = 1

    @property
    def class_names(self) -> list[str]:
        """Of the network."""
        return self.network.class_names

    @cached_property
    def probabilities(self) -> np.ndarray:
        """Of the classes, for the test images as they are tested, (n, n_classes)."""
        return self.network.predict_proba(self.test.images, self.threads)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Class numbers of the test images as they are tested, (n,)."""
        return self.probabilities.argmax(axis=1)

    @cached_property
    def predicted_upright(self) -> np.ndarray:
        """Class numbers of the upright test images, (n,)."""
        return self.network.predict(self.upright.images, self.threads) if self.is_transformed else self.predicted

    @property
    def is_wrong(self) -> np.ndarray:
        """Which test images are misclassified, (n,)."""
        return self.predicted != self.test.labels

    @property
    def accuracy(self) -> float:
        """Fraction of the test images that are named rightly."""
        return 1.0 - float(self.is_wrong.mean())

    @cached_property
    def confusion(self) -> np.ndarray:
        """True classes in rows, predicted ones in columns."""
        return confusion_matrix(self.test.labels, self.predicted, self.network.n_classes)

    @cached_property
    def subject(self) -> int:
        """Number of the image that is turned and followed."""
        if self.chosen is not None:
            return self.chosen
        right = np.flatnonzero(self.predicted_upright == self.upright.labels)
        return int(right[0]) if len(right) else 0

    @property
    def subject_image(self) -> np.ndarray:
        """The image that is turned and followed, upright, (height, width)."""
        return self.upright.images[self.subject]

    def one_of_each_class(self, most: int) -> np.ndarray:
        """Numbers of test images: the first of every class, of at most `most` classes evenly spread."""
        labels = np.asarray(self.test.labels)
        present = np.unique(labels)
        return np.array([np.flatnonzero(labels == label)[0] for label in present[spread(len(present), most)]])


def exhibit(
    network: Network, splits: Splits, training: dict | None = None, chosen: int | None = None, threads: int = 1
) -> Exhibit:
    """The exhibit of a network on the test images of a data set.

    training : the facts in a model file (`tigra.model_file.Model.training`), for the history of its epochs
    chosen : number of the test image to follow
    """
    if not any(layer.gives_features for layer in network.layers) or network.own_graph is not None:
        raise UsageError(
            "Figures show filters, active sets and statistics of a TIGraNet on a grid of pixels, but this is"
            f" {network.options.architecture}; choose another model."
        )
    n_available = len(splits.test.labels)
    rows = spread(n_available, MOST_TESTED)
    if chosen is not None:
        if not 0 <= chosen < n_available:
            raise UsageError(f"There are test images 0 to {n_available - 1}, but no image {chosen}; choose another.")
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
        history=_history(training or {}),
        chosen=chosen,
        threads=threads,
    )


def _history(training: dict) -> list[Epoch]:
    """The epochs that a model file tells of; none where it does not, or where its records cannot be right."""
    records = training.get("history", [])
    try:
        history = read_history(records, len(records))
    except (TypeError, TrainingError):  # a file's records may be of any kind
        return []
    finite = all(
        np.isfinite([e.loss, e.accuracy, e.valid_loss, e.valid_error, e.valid_accuracy]).all() for e in history
    )
    return history if finite else []
