"""All options: name, default, allowed values, help text, and the layers that use each of them.

An option is a field of one of the frozen dataclasses below. Checks, command-line options, JSON, the list of
parameters in docstrings and the error "has no effect here" are derived from the field. A new option needs one field,
the code that uses it, and a test.

    GraphOptions, ImageOptions    how images become signals on a graph
    NetworkOptions                these two and the architecture; the network part of a recipe
    BuildOptions                  NetworkOptions with image shape and number of classes; for `build_network`
    FitOptions                    how to train; for `fit`
    Limits                        memory, work and pixels; set by environment variables

A `tigra.experiments.recipe.Recipe` combines NetworkOptions and FitOptions.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
from dataclasses import dataclass
from typing import ClassVar

from tigra.errors import UsageError
from tigra.option_fields import Options, option, short

MIXINGS = ("vector", "full", "pairs", "gradients", "products")
PAIRED_MIXINGS = {"pairs": 0, "gradients": 1, "products": 2}  # for `PairedConv`: products of gradients per map
SCHEDULES = ("one-cycle", "constant", "cosine")
CLASS_WEIGHTS = ("none", "balanced", "auto")
DENSE_INITS = ("default", "paper", "he")
GRAPH_LAYERS = ("SC", "OC", "GC", "S")  # layers that use the Laplacian
DENSE_LAYERS = ("FC", "linear")  # "linear" is the implicit last layer
MAX_MARGIN = 10  # multiples of the image's larger side
LARGEST_IMAGE = 2**24  # pixels, with the margin

# --- the network --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """Options of the grid graph, see `tigra.graph.grid_graph`."""

    neighbours: int = option(
        8,
        "Number of neighbours of each pixel: 8, as in the paper, or 4, without the diagonal ones; 8 follows rotations"
        " better.",
        heading="Graph",
        choices=(4, 8),
        layers=GRAPH_LAYERS,
    )
    diagonal_weight: float = option(
        1.0,
        "Weight of diagonal edges; other edges have weight 1. The paper uses 1. With 0.25 the grid is isotropic to"
        " fourth order, which helps with arbitrary rotations.",
        heading="Graph",
        least=0,
        above=True,
        layers=GRAPH_LAYERS,
    )
    boundary: str = option(
        "padded",
        "What lies beyond the image border: `padded` puts zeros there, so that an object gives the same response"
        " wherever it is; `free` puts nothing there, and border pixels have fewer neighbours.",
        heading="Graph",
        choices=("padded", "free"),
        layers=GRAPH_LAYERS,
    )


@dataclass(frozen=True, kw_only=True)
class ImageOptions(Options):
    """Options for preparing images before they enter the network."""

    smoothing: float = option(
        0.0,
        "Blur images with a Gaussian of this standard deviation, in pixels. More blur improves invariance to arbitrary"
        " rotations, but removes detail.",
        heading="Images",
        least=0,
        unit="pixels",
    )
    margin: int = option(
        0,
        "Add a border of zeros, this many pixels wide, around each image. Use one if objects come close to the image"
        " border when they are rotated or shifted.",
        heading="Images",
        least=0,
        unit="pixels",
    )
    background: str = option(
        "black",
        "Background of the images: `black` leaves images as they are; `border` subtracts the median of the border"
        " pixels, so that the background is 0, whether it is dark, light or grey. For textures and other pictures that"
        " fill their frame, `window` shows them through a round window, and `window-mean` subtracts their mean in it"
        " first. `auto` looks at the training images: `window` if they fill the frame and classes differ in"
        " brightness, `window-mean` if they fill it and do not; else `black` if most borders are black, else"
        " `border`.",
        heading="Images",
        choices=("auto", "black", "border", "window", "window-mean"),
        formerly="ground",
    )


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(GraphOptions, ImageOptions):
    """Options of a network: its architecture, its graph, and how images are prepared.

    An instance can be unpacked like a dictionary.

    Raises
    ------
    UsageError
        If a value is out of range, or an option has no effect in combination with the others.

    Examples
    --------
    >>> NetworkOptions(architecture="S[10]", margin=2).neighbours
    8
    """

    where: ClassVar[str] = "build_network"

    architecture: str = option(
        dataclasses.MISSING,
        "Layers in the paper's notation, e.g. 'SC[3, 3]-DP[300]-S[10]-FC[50]'. Use more filters (SC) and hidden units"
        " (FC) for harder data, fewer to train faster.",
        "text",
        heading="Network",
    )
    active_set: str = option(
        "map",
        "Nodes that a convolution after pooling may use: the active nodes of each `map`, the `union` of the active"
        " nodes of all maps, or `all` nodes. `all` needs the mixing `pairs`, `gradients` or `products`.",
        heading="Network",
        choices=("map", "union", "all"),
        layers=("SC", "DP"),
        needs_all=True,
        formerly="active",
    )
    mixing: str = option(
        "vector",
        "How a convolution combines its input maps: with weights that all filters share (`vector`, as in the paper),"
        " with separate weights for each filter (`full`), or with one filter per pair of input and output map"
        " (`pairs`). `gradients` and `products` also filter squares or products of image gradients; they are slower"
        " and more accurate with many training images.",
        heading="Network",
        choices=MIXINGS,
        layers=("SC",),
    )
    diffusion: int = option(
        0,
        "Smoothing steps after each convolution, for OC, and for SC with `pairs`, `gradients` or `products`. More steps"
        " improve invariance to arbitrary rotations, but remove detail.",
        heading="Network",
        least=0,
        most=100,  # a limit for untrusted model files
        layers=("SC", "OC"),
    )
    standardise: bool = option(
        True,
        "Scale the statistics (without a graph: the pixels) to mean 0 and standard deviation 1 before training. Turn it"
        " off only to reproduce the paper.",
        heading="Network",
        layers=("S", "pixels"),
    )
    batch_norm: bool = option(
        False,
        "Scale the statistics by the mean and deviation of each batch, at test by running averages, instead of by"
        " constants set before training. Use it with oriented convolutions (OC).",
        heading="Network",
        layers=("S",),
    )
    deviation_floor: float = option(
        0.0,
        "Smallest standard deviation to divide a statistic by, as a fraction of the largest one. Increase it if weak"
        " responses, which are mostly noise, cost accuracy on rotated images.",
        heading="Network",
        least=0,
        most=1,
        layers=("S",),
        formerly="floor",
    )
    log_offset: float = option(
        0.0,
        "Take the logarithm of each statistic plus this fraction of its standard deviation; 0 means no logarithm. Try"
        " 0.03 if statistics differ by orders of magnitude, as in photographs.",
        heading="Network",
        least=0,
        most=1,
        layers=("S",),
        formerly="log",
    )
    dense_init: str = option(
        "default",
        "Initial weights of FC layers: `he` (He et al.), `default` (the same with a small last layer), or `paper`"
        " (uniform in [-1, 1]), which is only for reproducing the paper.",
        heading="Network",
        choices=DENSE_INITS,
        layers=DENSE_LAYERS,
        formerly="init",
    )
    outside: str = option(
        "zeros",
        "What a spatial transformer (ST) reads outside its input: `zeros`, or the nearest `border` pixel. Use `border`"
        " if the background is not black.",
        heading="Network",
        choices=("zeros", "border"),
        layers=("ST",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("deviation_floor", "log_offset"):
            if getattr(self, name) and not self.standardise:
                raise UsageError(
                    f"{name} has no effect on statistics that are not standardised (standardise=False, as in the recipe"
                    f" 'paper'); leave it out, got {getattr(self, name)!r}."
                )
        if self.batch_norm and (not self.standardise or self.deviation_floor):
            raise UsageError(
                "batch_norm scales the statistics by the batch: it needs standardise=True and no deviation_floor, got"
                f" {self.standardise} and {self.deviation_floor:g}."
            )
        if self.diffusion and self.mixing not in PAIRED_MIXINGS and not self.has_layer("OC"):
            raise UsageError(
                f"diffusion has no effect with mixing={self.mixing!r}, only with {', '.join(PAIRED_MIXINGS)};"
                " leave it out."
            )

    def has_layer(self, name: str) -> bool:
        """Whether the architecture has a layer of that name."""
        return re.search(rf"\b{name}\b", self.architecture) is not None


@dataclass(frozen=True, kw_only=True)
class BuildOptions(NetworkOptions):
    """Everything that determines a network and its initial parameters: the arguments of `build_network`."""

    image_shape: tuple[int, ...] = option(
        dataclasses.MISSING, "Height and width of the images; (height, width, 3) for colour.", "image"
    )
    n_classes: int = option(dataclasses.MISSING, "Number of classes.", "whole", least=2)
    seed: int = option(0, "Seed of the initial parameters; change it to repeat a run independently.", least=0)
    dtype: str = option(
        "float32",
        "Precision of all numbers; `float64` takes twice the memory and is for gradient checks.",
        choices=("float32", "float64"),
    )

    def __post_init__(self) -> None:
        name = getattr(self.dtype, "__name__", str(self.dtype))  # also accept np.float32
        object.__setattr__(self, "dtype", name)
        super().__post_init__()
        if self.background == "auto":
            raise UsageError(
                "background='auto' is for recipes, which look at the training images; give 'black', 'border', 'window',"
                " 'window-mean' or what tigra.images.background.find_background(images, labels) returns."
            )
        largest = max(self.image_shape[:2])
        if self.margin > MAX_MARGIN * largest:
            raise UsageError(
                f"margin must be at most {MAX_MARGIN} times the image's {largest} pixels, got {self.margin}."
            )
        height, width = self.grid_shape
        if height * width > LARGEST_IMAGE:
            raise UsageError(
                f"image_shape with its margin must have at most {LARGEST_IMAGE:,} pixels, got {height}x{width}."
            )
        if self.smoothing > largest:
            raise UsageError(f"smoothing must be at most the image's {largest} pixels, got {self.smoothing!r}.")

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Height and width of the image with its margin."""
        height, width = self.image_shape[:2]
        return height + 2 * self.margin, width + 2 * self.margin

    @property
    def n_channels(self) -> int:
        """Number of maps in which the network gets an image: 3 for colour, else 1."""
        return 3 if len(self.image_shape) == 3 else 1


# --- training -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FitOptions(Options):
    """Options of training, see `tigra.training.fit`.

    Raises
    ------
    UsageError
        If a value is out of range.

    Examples
    --------
    >>> FitOptions(epochs=10).batch_size
    50
    """

    where: ClassVar[str] = "fit"

    epochs: int = option(
        60,
        "Passes over the training images; use more if the validation accuracy is still rising at the end.",
        heading="Training",
        least=1,
    )
    batch_size: int = option(
        50,
        "Images per training step; larger batches take more memory, smaller ones more time per epoch. With batch"
        " normalisation, `tigra train` raises the learning rate for larger batches.",
        heading="Training",
        least=1,
    )
    learning_rate: float = option(
        0.01,
        "Largest step size of Adam; lower it if the loss diverges, raise it if the loss falls too slowly.",
        heading="Training",
        least=0,
        above=True,
    )
    schedule: str = option(
        "one-cycle",
        "How the learning rate changes: `one-cycle` rises and then falls, `cosine` falls, `constant` stays the same, as"
        " in the paper.",
        heading="Training",
        choices=SCHEDULES,
    )
    weight_decay: float = option(
        0.0,
        "Weight decay of FC layers; increase it if the training accuracy is much higher than the validation accuracy.",
        heading="Training",
        least=0,
        layers=DENSE_LAYERS,
    )
    label_smoothing: float = option(
        0.0,
        "Fraction of each training label that is spread over all classes; 0.1 prevents overconfidence.",
        heading="Training",
        least=0,
        most=1,
        below=True,
    )
    jitter: float = option(
        0.0,
        "Shift each training image by a random distance of up to this many pixels, anew in each epoch. Try 0.5"
        " if the accuracy on rotated images is lower than on upright ones.",
        heading="Training",
        least=0,
        most=10,
        unit="pixels",
    )
    patience: int = option(
        0,
        "Stop after this many epochs without a new best one; 0 never stops early. Use it to save time.",
        heading="Training",
        least=0,
    )
    class_weights: str = option(
        "none",
        "Weights of the classes in the loss and in the choice of the best epoch: `balanced` gives all classes the same"
        " total weight; use it if some have far fewer images than others. `auto` is `balanced` if one class has at"
        " least three times as many training images as another, else `none`. Or a file with lines `class,weight`, in"
        ' Python a JSON text such as {"cat": 2}; other classes have weight 1.',
        heading="Training",
    )
    seed: int = option(0, "Seed of all random numbers; change it to repeat a run independently.", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.class_weights not in CLASS_WEIGHTS and weights_by_class(self.class_weights) is None:
            raise UsageError(
                f"class_weights must be {', '.join(CLASS_WEIGHTS)} or a JSON object of numbers of at least 0, such as"
                f' {{"cat": 2}}, got {short(self.class_weights)}.'
            )


def weights_by_class(text: str) -> dict[str, float] | None:
    """Return the weights of classes from a JSON text; None if it is something else.

    Examples
    --------
    >>> weights_by_class('{"cat": 2, "dog": 0.5}'), weights_by_class("[1]")
    ({'cat': 2.0, 'dog': 0.5}, None)
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_right = isinstance(found, dict) and all(type(w) in (int, float) and 0 <= w <= 1e9 for w in found.values())
    return {name: float(weight) for name, weight in found.items()} if is_right else None


# --- limits -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Limits(Options):
    """Limits that keep a hostile or mistyped model or picture from exhausting the machine.

    Each is raised with the environment variable TIGRA_ plus its name in capitals, such as TIGRA_MAX_MEMORY.

    Examples
    --------
    >>> Limits().max_memory
    1000
    """

    where: ClassVar[str] = "The environment"

    max_pixels: int = option(
        90_000_000,
        "Largest picture file that is decoded; Pillow's own limit is about twice the default.",
        least=1,
        unit="pixels",
    )
    max_memory: int = option(1000, "Largest memory of the maps of one worker thread.", least=1, unit="MB")
    max_training_memory: int = option(
        4000, "Largest memory of a training step, of all worker threads together.", least=1, unit="MB"
    )
    max_work: int = option(
        5_000,
        "Largest number of operations for one image; a core does 1000 to 10,000 million a second.",
        least=1,
        unit="million operations",
    )

    @classmethod
    def now(cls) -> Limits:
        """The limits, with those that environment variables change."""
        return _limits(*cls.texts())

    @staticmethod
    def texts() -> tuple[str, ...]:
        """The texts of the environment variables, "" for those that are not set."""
        return tuple(os.environ.get(name, "") for name in LIMIT_VARIABLES)


@functools.lru_cache(maxsize=16)  # every prediction asks
def _limits(*texts: str) -> Limits:
    """The limits for the texts of all environment variables; an empty one leaves the default."""
    given = dict(zip(Limits.specs(), texts, strict=True))
    for name, text in given.items():
        if text and not (text.isascii() and text.isdigit() and len(text) < 16):
            raise UsageError(f"{variable(name)} must be {Limits.specs()[name].demand}, got {text!r}.")
    return Limits(**{name: int(text) for name, text in given.items() if text})


def variable(name: str) -> str:
    """The environment variable of a limit."""
    return f"TIGRA_{name.upper()}"


LIMIT_VARIABLES = tuple(variable(name) for name in Limits.specs())
