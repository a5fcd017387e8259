"""Data sets: training, validation and test images from a name or a folder.

loading       load and register data sets by name: `load_dataset`, `register_dataset`
splits        `Split` and `Splits`: images, labels and how they were made
protocols     the four data sets of the paper
folders       folders of pictures, one subfolder per class; picture_files lists their files
sources       the files of MNIST and ETH-80; download fetches them, archives reads them
"""

from tigra.datasets.loading import DATASETS, load_dataset, register_dataset
from tigra.datasets.splits import Split, Splits

__all__ = ["DATASETS", "Split", "Splits", "load_dataset", "register_dataset"]
