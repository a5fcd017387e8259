"""THE STORY, 4: training with Adam, and the choice of the best epoch on upright validation images.

adam       the optimiser and the learning-rate schedules
training   `fit`: mini-batches, micro-batches on threads, the best epoch
epochs     the record of an epoch
jitter     training images shifted by fractions of a pixel
"""

from tigra.training.epochs import Epoch
from tigra.training.training import Training, fit

__all__ = ["Epoch", "Training", "fit"]
