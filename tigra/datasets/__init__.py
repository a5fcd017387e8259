"""From a name or a folder to training, validation and test images.

loading       every data set by its name: `load_dataset`, `register_dataset`
splits        what a data set is: parts with images and labels, and how they were made
protocols     the paper's four data sets
folders       the user's own pictures, one subfolder for each class; picture_files finds them
sources       the files of MNIST and ETH-80; download fetches them, archives reads them
"""

from tigra.datasets.loading import DATASETS, load_dataset, register_dataset
from tigra.datasets.splits import Split, Splits

__all__ = ["DATASETS", "Split", "Splits", "load_dataset", "register_dataset"]
