"""THE STORY, 2: the layers of TIGraNet, one file per layer, forward and backward, equation by equation."""

from tigra.layers.base import Layer
from tigra.layers.coarsen import Coarsen
from tigra.layers.dense import Dense, ReLU
from tigra.layers.dynamic_pool import DynamicPool
from tigra.layers.map_norm import FeatureNorm, MapNorm
from tigra.layers.oriented_conv import OrientedConv
from tigra.layers.paired_conv import PairedConv
from tigra.layers.spectral_conv import SpectralConv
from tigra.layers.statistics import Logarithm, Standardise, Statistics

__all__ = [
    "Coarsen",
    "Dense",
    "DynamicPool",
    "FeatureNorm",
    "Layer",
    "Logarithm",
    "MapNorm",
    "OrientedConv",
    "PairedConv",
    "ReLU",
    "SpectralConv",
    "Standardise",
    "Statistics",
]
