"""Epoch: the record of one pass over the training images."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tigra.errors import TrainingError


@dataclass(frozen=True)
class Epoch:
    """Record of one pass over the training images.

    Attributes
    ----------
    number : int
        Number of the epoch, from 1.
    loss, accuracy : float
        Means over the training images of the epoch, each computed before the update by its batch. The loss includes
        label smoothing.
    valid_loss, valid_accuracy : float
        Means over the validation images after the epoch, without label smoothing.
    valid_error : float
        Standard error of valid_loss.
    best : bool
        Whether this is the best epoch so far (see `fit`).
    """

    number: int
    loss: float
    accuracy: float
    valid_loss: float
    valid_error: float
    valid_accuracy: float
    best: bool


def read_history(records: list, n_epochs: int) -> list[Epoch]:
    """Read the epochs of a run from the records in a model file.

    Parameters
    ----------
    records : list of dict
        One per epoch.
    n_epochs : int
        Length of the whole run.

    Returns
    -------
    list of Epoch
        The epochs, in order.

    Raises
    ------
    TrainingError
        If a record is incomplete, out of order or of the wrong type.
    """
    history = [Epoch(**record) for record in records]
    for number, epoch in enumerate(history, start=1):
        types = [type(value) for value in asdict(epoch).values()]
        if types != [int, float, float, float, float, float, bool] or epoch.number != number:
            raise TrainingError(f"The record of epoch {number} is malformed.")
    if len(history) > n_epochs or (history and not history[0].best):
        raise TrainingError("The records of the epochs do not fit the run.")
    return history
