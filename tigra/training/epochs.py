"""What a training run is told, and what it tells: FitOptions and Epoch."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from tigra.errors import TrainingError


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training images brought. Accuracies are fractions.

    loss, accuracy : means over the epoch's images, each before the step it led to; smoothed labels count
        in this loss, not in the next
    valid_loss, valid_accuracy : on the validation images, after the epoch
    valid_error : standard error of valid_loss, as a mean over these images
    best : whether this is the best epoch so far (see `fit`)
    """

    number: int
    loss: float
    accuracy: float
    valid_loss: float
    valid_error: float
    valid_accuracy: float
    best: bool


def read_history(records: list, n_epochs: int) -> list[Epoch]:
    """The records of a run's epochs as a file holds them, checked: complete, numbered, of the right types."""
    history = [Epoch(**record) for record in records]
    for number, epoch in enumerate(history, start=1):
        types = [type(value) for value in asdict(epoch).values()]
        if types != [int, float, float, float, float, float, bool] or epoch.number != number:
            raise TrainingError(f"The record of epoch {number} is malformed.")
    if len(history) > n_epochs or (history and not history[0].best):
        raise TrainingError("The records of the epochs do not fit the run.")
    return history
