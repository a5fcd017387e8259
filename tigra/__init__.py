"""TIGraNet, the isometric transformation invariant graph-based network, from scratch.

Read the modules in this order; each imports only those above it:

    version, errors, kernels           kernels: every compiled loop, to be read when it is called
    transforms, images, image_store    pictures as arrays
    archives, sources, download        MNIST and ETH-80: their files
    splits, protocols                  the paper's data sets
    file_digests, picture_files, folders        the user's own pictures
    datasets, contact_sheet            all of them by name, and to look at
    graph, grid_kernels, polynomials, workspace, fused      the graph, and polynomials of its Laplacian
    spectral, isometries               the theory: Fourier transform, graph isometries,
    smooth_images, equivariance, resolution     any rotation and shift, and the experiment on them
    plane_kernels, harmonic_kernels    compiled loops over pixels, for other networks to compare with
    layers.base, .spectral_conv, .paired_conv, .dynamic_pool, .statistics, .dense
    layers.planes, .conv, .spatial_transformer, .harmonic_conv, .modulus      layers of those other networks
    loss, workers, classifier, network, passes      from signal to class scores
    notation, plane_kinds, architecture, recipes, methods      "SC[3, 3]-DP[300]-..." becomes a network
    optim, settings, jitter, training  learning
    morlet, scattering, feature_cache, affine_pca, deepscat, fitting        DeepScat, which is fitted instead
    atomic_files, model_file, packaged, runs     keeping it; models that come with tigra
    invariance                         how little answers change
    nearest, tables, run_records,
    reproduction                       the paper's tables
    check_cases, gradcheck             every gradient checked
    inspection, exhibit                looking inside, in numbers
    figures.canvas, figures.tiles, figures.maps, figures.spectrum, figures.invariance,
    figures.learning, figures.animation, figures.page, figures      and how it is drawn

What most people need is here at the top:

    splits = tigra.load_dataset("mnist-012")
    network = tigra.build_network("SC[3, 3]-DP[300]-S[10]-FC[50]", (28, 28), n_classes=3)
    for epoch in tigra.fit(network, splits, epochs=10):
        print(epoch.number, epoch.valid_accuracy)
    network.predict(splits.test.images)
    tigra.save(network, "model.npz")
"""

from tigra.architecture import build_network, count_parameters
from tigra.datasets import DATASETS, load_dataset
from tigra.deepscat import DeepScat, build_deepscat
from tigra.errors import (
    ArchitectureError,
    DatasetError,
    GraphError,
    ImageError,
    ModelFileError,
    ShapeError,
    TigraError,
    TrainingError,
    UsageError,
)
from tigra.fitting import fit_deepscat
from tigra.graph import Graph, GraphSignal, grid_graph
from tigra.images import read_image
from tigra.layers import (
    Conv,
    Dense,
    DynamicPool,
    Flatten,
    HarmonicConv,
    InvariantHead,
    Layer,
    Logarithm,
    MaxPool,
    MeanPool,
    ModulusNorm,
    ModulusReLU,
    PairedConv,
    ReLU,
    SpatialTransformer,
    SpectralConv,
    Standardise,
    StandardisePixels,
    Statistics,
)
from tigra.model_file import load, save
from tigra.network import Network
from tigra.notation import format_architecture, parse_architecture
from tigra.recipes import RECIPES
from tigra.settings import Epoch, FitOptions
from tigra.splits import Split, Splits
from tigra.training import Training, accuracy, fit
from tigra.version import __version__

__all__ = [
    "ArchitectureError",
    "Conv",
    "DATASETS",
    "DatasetError",
    "DeepScat",
    "Dense",
    "DynamicPool",
    "Epoch",
    "FitOptions",
    "Flatten",
    "Graph",
    "GraphError",
    "GraphSignal",
    "HarmonicConv",
    "ImageError",
    "InvariantHead",
    "Layer",
    "Logarithm",
    "MaxPool",
    "MeanPool",
    "ModelFileError",
    "ModulusNorm",
    "ModulusReLU",
    "Network",
    "PairedConv",
    "RECIPES",
    "ReLU",
    "ShapeError",
    "SpatialTransformer",
    "SpectralConv",
    "Split",
    "Splits",
    "Standardise",
    "StandardisePixels",
    "Statistics",
    "TigraError",
    "Training",
    "TrainingError",
    "UsageError",
    "__version__",
    "accuracy",
    "build_deepscat",
    "build_network",
    "count_parameters",
    "fit",
    "fit_deepscat",
    "format_architecture",
    "grid_graph",
    "load",
    "load_dataset",
    "parse_architecture",
    "read_image",
    "save",
]
