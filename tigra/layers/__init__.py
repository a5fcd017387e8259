"""The layers, in the order in which an image meets them."""

from tigra.layers.base import Layer
from tigra.layers.conv import Conv, MaxPool, MeanPool
from tigra.layers.dense import Dense, ReLU
from tigra.layers.dynamic_pool import DynamicPool
from tigra.layers.harmonic_conv import HarmonicConv
from tigra.layers.modulus import InvariantHead, ModulusNorm, ModulusReLU
from tigra.layers.paired_conv import PairedConv
from tigra.layers.planes import Flatten, StandardisePixels
from tigra.layers.spatial_transformer import SpatialTransformer
from tigra.layers.spectral_conv import SpectralConv
from tigra.layers.statistics import Logarithm, Standardise, Statistics

__all__ = [
    "Layer",
    "SpectralConv",
    "PairedConv",
    "DynamicPool",
    "Statistics",
    "Logarithm",
    "Standardise",
    "Dense",
    "ReLU",
]
__all__ += ["StandardisePixels", "Conv", "MaxPool", "Flatten", "SpatialTransformer"]
__all__ += ["HarmonicConv", "ModulusReLU", "ModulusNorm", "MeanPool", "InvariantHead"]
