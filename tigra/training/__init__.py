"""THE STORY, 4: learning. Adam, epochs, and the best one by upright validation.

adam       the optimiser and the learning-rate schedules
training   `fit`: mini-batches, micro-batches on threads, the best epoch
epochs     what an epoch's record holds
jitter     training images moved by fractions of a pixel
"""

from tigra.training.epochs import Epoch
from tigra.training.training import Training, fit

__all__ = ["Epoch", "Training", "fit"]
