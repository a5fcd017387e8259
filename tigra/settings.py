"""What a training run is told, and what it tells: FitOptions and Epoch."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from numbers import Real

import numpy as np

from tigra.errors import TrainingError, UsageError
from tigra.optim import SCHEDULES


@dataclass(frozen=True)
class FitOptions:
    """How to train.

    learning_rate, schedule : peak of Adam's step size, and its course (`tigra.optim.learning_rate`)
    weight_decay : pull of the weights of Dense layers towards 0 (`tigra.optim.Adam`)
    label_smoothing : share of each label given to all classes alike (`tigra.loss`), training images only
    jitter : training images are moved by up to so many pixels, anew in each epoch (`tigra.jitter`)
    patience : stop after so many epochs without a better one; 0 never stops early
    """

    epochs: int = 60
    batch_size: int = 50
    learning_rate: float = 0.01
    schedule: str = "one-cycle"
    weight_decay: float = 0.0
    label_smoothing: float = 0.0
    jitter: float = 0.0
    patience: int = 0
    seed: int = 0

    def __post_init__(self):
        for name, smallest in {"epochs": 1, "batch_size": 1, "patience": 0, "seed": 0}.items():
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < smallest:
                raise UsageError(f"{name} must be a whole number of at least {smallest}, got {value!r}.")
            object.__setattr__(self, name, int(value))  # a number that JSON knows
        demands = {
            "learning_rate": ("a positive number", lambda value: 0 < value < math.inf),
            "weight_decay": ("a number >= 0", lambda value: 0 <= value < math.inf),
            "label_smoothing": ("from 0 to below 1", lambda value: 0 <= value < 1),
            "jitter": ("a number of pixels from 0 to 10", lambda value: 0 <= value <= 10),
        }
        for name, (demand, holds) in demands.items():
            value = getattr(self, name)
            if not (isinstance(value, Real) and holds(value)):
                raise UsageError(f"{name} must be {demand}, got {value!r}.")
            object.__setattr__(self, name, float(value))
        if self.schedule not in SCHEDULES:
            raise UsageError(f"schedule must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}.")


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
