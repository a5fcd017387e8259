"""TIGraNet, the isometric transformation invariant graph-based network, from scratch.

Four packages follow the paper, in the order in which an image passes through them:

    graph/          the grid, its Laplacian, and polynomials of the Laplacian
    layers/         one file per layer of TIGraNet: forward, backward, equation by equation
    models/         networks: notation, layer kinds, build, network, loss, workers
    training/       Adam, epochs, choice of the best epoch on upright validation images

The other packages and modules support them:

    gradcheck/      comparison of every gradient with finite differences, and the registry of cases
    kernels/        compiled loops for graph, layers, Adam and images
    images/         transforms, image files, the cache of decoded images
    datasets/       from a name or a folder to splits; sources, downloads, archives
    files/          atomic writes, cache folder, digests, claims
    processes/      teams of processes that share a training, through MPI
    theory/         sections 3 and 5 of the paper: Fourier, isometries, bounds, resolution
    baselines/      ConvNet, STN, HarmNet, DeepScat, nearest neighbour; TIGraNet needs none of them
    experiments/    recipes, methods, runs, tables, records, reproduction
    figures/        all plots, and the numbers they show
    onnx/           export to ONNX, and comparison with onnxruntime
    playground/     the page of `tigra playground`, its server and its answers
    sklearn/        estimators for scikit-learn; not imported by `import tigra`

    errors.py       exceptions                  options.py      all options (option_fields.py: their base class)
    seeding.py      generators by purpose       model_file.py   save, load, packaged models
    moved.py        old module names            model_arrays.py arrays and graphs in model files

The most common functions are available at the top level:

    splits = tigra.load_dataset("mnist-012")
    network = tigra.build_network("SC[3, 3]-DP[300]-S[10]-FC[50]", (28, 28), n_classes=3)
    for epoch in tigra.fit(network, splits, epochs=10):
        print(epoch.number, epoch.valid_accuracy)
    network.predict(splits.test.images)
    tigra.save(network, "model.npz")
"""

from tigra.baselines import (
    Conv,
    DeepScat,
    Flatten,
    HarmonicConv,
    InvariantHead,
    MaxPool,
    MeanPool,
    ModulusNorm,
    ModulusReLU,
    Scattering,
    SpatialTransformer,
    StandardisePixels,
    build_deepscat,
    fit_deepscat,
)
from tigra.datasets import DATASETS, Split, Splits, load_dataset, register_dataset
from tigra.errors import (
    ArchitectureError,
    CacheWarning,
    DatasetError,
    GraphError,
    ImageError,
    ModelFileError,
    ShapeError,
    TigraError,
    TrainingError,
    UnknownLayerError,
    UsageError,
)
from tigra.experiments.methods import METHODS, Method, register_method
from tigra.experiments.recipe import Recipe
from tigra.experiments.recipes import RECIPES
from tigra.experiments.runs import Run
from tigra.gradcheck import check_gradients
from tigra.graph import Graph, GraphSignal, grid_graph
from tigra.images import read_image
from tigra.layers import (
    Coarsen,
    Dense,
    DynamicPool,
    FeatureNorm,
    Layer,
    Logarithm,
    MapNorm,
    OrientedConv,
    PairedConv,
    ReLU,
    SpectralConv,
    Standardise,
    Statistics,
)
from tigra.model_file import load, load_model, save
from tigra.models import (
    Network,
    accuracy,
    build_network,
    count_parameters,
    format_architecture,
    parse_architecture,
)
from tigra.models.kinds import LayerKind, layer_kind, real, whole
from tigra.moved import install as _install_old_names
from tigra.onnx import export_onnx
from tigra.options import FitOptions, NetworkOptions
from tigra.training import Epoch, Training, Views, fit
from tigra.version import __version__

__all__ = [
    "ArchitectureError",
    "CacheWarning",
    "Coarsen",
    "Conv",
    "DATASETS",
    "DatasetError",
    "DeepScat",
    "Dense",
    "DynamicPool",
    "Epoch",
    "FeatureNorm",
    "FitOptions",
    "Flatten",
    "Graph",
    "GraphError",
    "GraphSignal",
    "HarmonicConv",
    "ImageError",
    "InvariantHead",
    "Layer",
    "LayerKind",
    "Logarithm",
    "METHODS",
    "MapNorm",
    "MaxPool",
    "MeanPool",
    "Method",
    "ModelFileError",
    "ModulusNorm",
    "ModulusReLU",
    "Network",
    "NetworkOptions",
    "OrientedConv",
    "PairedConv",
    "RECIPES",
    "ReLU",
    "Recipe",
    "Run",
    "Scattering",
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
    "UnknownLayerError",
    "UsageError",
    "Views",
    "__version__",
    "accuracy",
    "build_deepscat",
    "build_network",
    "check_gradients",
    "count_parameters",
    "export_onnx",
    "fit",
    "fit_deepscat",
    "format_architecture",
    "grid_graph",
    "layer_kind",
    "load",
    "load_dataset",
    "load_model",
    "parse_architecture",
    "read_image",
    "real",
    "register_dataset",
    "register_method",
    "save",
    "whole",
]

_install_old_names()
