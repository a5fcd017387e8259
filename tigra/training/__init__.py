"""THE STORY, 4: training with Adam, and the choice of the best epoch on upright validation images.

adam        the optimiser and the learning-rate schedules
training    a run: mini-batches, the best epoch
gradient    the gradient of a mini-batch, from micro-batches on threads and processes
fitting     `fit`: a run from Python
epochs      the record of an epoch
divergence  runs that have gone astray, and why
jitter      training images shifted by fractions of a pixel
weights     weights of classes and images in the loss

Of trained networks: temperature (calibrated probabilities), familiarity (how unlike the training images an image is)
and views (scores averaged over several angles).
"""

from tigra.training.epochs import Epoch
from tigra.training.fitting import fit
from tigra.training.training import Training
from tigra.training.views import Views

__all__ = ["Epoch", "Training", "Views", "fit"]
