"""Baselines for TIGraNet: ConvNet, STN, HarmNet, DeepScat and one nearest neighbour. TIGraNet does not use them.

planes     layers of a ConvNet and of a spatial transformer network, on planes of pixels
harmonic   layers of a harmonic network
kinds      their names in architecture texts, registered like layers of a user
deepscat   scattering features with an affine PCA classifier, fitted, not trained
nearest    one nearest neighbour on pixels
"""

import tigra.baselines.kinds  # noqa: F401, registers their layers
from tigra.baselines.deepscat.deepscat import DeepScat, build_deepscat
from tigra.baselines.deepscat.fitting import fit_deepscat
from tigra.baselines.deepscat.scattering import Scattering
from tigra.baselines.harmonic.harmonic_conv import HarmonicConv
from tigra.baselines.harmonic.modulus import InvariantHead, ModulusNorm, ModulusReLU
from tigra.baselines.planes.conv import Conv, MaxPool, MeanPool
from tigra.baselines.planes.planes import Flatten, StandardisePixels
from tigra.baselines.planes.spatial_transformer import SpatialTransformer

__all__ = [
    "Conv",
    "DeepScat",
    "Flatten",
    "HarmonicConv",
    "InvariantHead",
    "MaxPool",
    "MeanPool",
    "ModulusNorm",
    "ModulusReLU",
    "Scattering",
    "SpatialTransformer",
    "StandardisePixels",
    "build_deepscat",
    "fit_deepscat",
]
