"""Every option, once: its name, default, allowed values, help text, and the layers that have a use for it.

An option is one field of one of the frozen dataclasses below. Checks, command-line options, JSON and the error "has no
effect here" are all derived from the field, so a new option is a field, the code that uses it, and a test.

    GraphOptions, ImageOptions    how images become signals on a graph
    NetworkOptions                the architecture, with both of them: what a recipe says of a network
    BuildOptions                  the same for images of one shape and a number of classes: what `build_network` takes
    FitOptions                    how to train: what `fit` takes
    Recipe                        NetworkOptions and FitOptions together
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tigra.errors import UsageError
from tigra.option_fields import Options, option

MIXINGS = ("vector", "full", "pairs", "gradients", "products")
PAIRED_MIXINGS = {"pairs": 0, "gradients": 1, "products": 2}  # those of `PairedConv`: products of gradients per map
SCHEDULES = ("one-cycle", "constant", "cosine")
DENSE_INITS = ("default", "paper", "he")
GRAPH_LAYERS = ("SC", "S")  # those that compute with the Laplacian
DENSE_LAYERS = ("FC", "linear")  # "linear": the last layer, which is not written
MAX_MARGIN = 10  # times the image's larger side

# --- the network --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """The graph of an image's pixels, see `tigra.graph.grid_graph`."""

    neighbours: int = option(
        8,
        "Neighbours of an inner pixel: 8, as in the paper, or 4, without the diagonal ones.",
        heading="Graph",
        choices=(4, 8),
        layers=GRAPH_LAYERS,
    )
    diagonal_weight: float = option(
        1.0,
        "Weight of diagonal edges; straight ones weigh 1. With 0.25 the grid is isotropic to fourth order.",
        heading="Graph",
        least=0,
        above=True,
        layers=GRAPH_LAYERS,
    )
    boundary: str = option(
        "padded",
        "What lies beyond the image border: `padded`, zeros with full degree (shift-equivariant), or `free`, no"
        " neighbours.",
        heading="Graph",
        choices=("padded", "free"),
        layers=GRAPH_LAYERS,
    )


@dataclass(frozen=True, kw_only=True)
class ImageOptions(Options):
    """What is done to an image before it becomes a signal on the graph."""

    smoothing: float = option(
        0.0,
        "Standard deviation of a Gaussian blur of the input; more of it makes rotations by any angle more alike.",
        heading="Images",
        least=0,
        unit="pixels",
    )
    margin: int = option(
        0,
        "Width of a frame of zeros around the image, so that what lies near the border is filtered like the rest.",
        heading="Images",
        least=0,
        unit="pixels",
    )
    background: str = option(
        "black",
        "What the empty part of an image looks like: `black`, or `border`, the median of its border pixels, which is"
        " subtracted.",
        heading="Images",
        choices=("black", "border"),
        formerly="ground",
    )


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(GraphOptions, ImageOptions):
    """The architecture, the graph, and what is done to images: all that a recipe says of a network."""

    where: ClassVar[str] = "build_network"

    architecture: str = option(
        dataclasses.MISSING,
        "Layers in the paper's notation, e.g. 'SC[3, 3]-DP[300]-S[10]-FC[50]'.",
        "text",
        heading="Network",
    )
    active_set: str = option(
        "map",
        "Nodes on which filtered maps count: those of each `map`, the `union` of them, or `all` nodes.",
        heading="Network",
        choices=("map", "union", "all"),
        layers=("SC", "DP"),
        needs_all=True,
        formerly="active",
    )
    mixing: str = option(
        "vector",
        "How filters meet input maps: weights shared by all filters (`vector`) or one set a filter (`full`); or a"
        " filter for each pair of maps (`pairs`), with squared gradients (`gradients`) or products of gradients"
        " (`products`).",
        heading="Network",
        choices=MIXINGS,
        layers=("SC",),
    )
    diffusion: int = option(
        0,
        "Smoothing steps behind each convolution of pairs; more of them lower the cost of rotations by any angle.",
        heading="Network",
        least=0,
        most=100,  # a model file from outside may say anything
        layers=("SC",),
    )
    standardise: bool = option(
        True,
        "Scale the statistics (or, in networks of pixels, the pixels) to mean 0 and deviation 1 when training starts.",
        heading="Network",
        layers=("S", "pixels"),
    )
    deviation_floor: float = option(
        0.0,
        "Least deviation that a statistic is divided by, as a share of the largest; keeps weak responses weak.",
        heading="Network",
        least=0,
        most=1,
        layers=("S",),
        formerly="floor",
    )
    log_offset: float = option(
        0.0,
        "Take the logarithm of statistics, plus this share of their deviation; 0 leaves them as they are.",
        heading="Network",
        least=0,
        most=1,
        layers=("S",),
        formerly="log",
    )
    dense_init: str = option(
        "default",
        "Start values of FC layers: `he`, He's; `default`, the same with a small last layer; `paper`, U[-1, 1].",
        heading="Network",
        choices=DENSE_INITS,
        layers=DENSE_LAYERS,
        formerly="init",
    )
    outside: str = option(
        "zeros",
        "What spatial transformers (ST) read outside of their planes.",
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
        if self.diffusion and self.mixing not in PAIRED_MIXINGS:
            raise UsageError(
                f"diffusion has no effect with mixing={self.mixing!r}, it is for {', '.join(PAIRED_MIXINGS)};"
                " leave it out."
            )


@dataclass(frozen=True, kw_only=True)
class BuildOptions(NetworkOptions):
    """All that decides a network and its start values; what `build_network` takes, and a model file holds."""

    image_shape: tuple[int, int] = option(dataclasses.MISSING, "Height and width of the images.", "shape")
    n_classes: int = option(dataclasses.MISSING, "Number of classes.", "whole", least=2)
    seed: int = option(0, "Decides the start values.", least=0)
    dtype: str = option("float32", "Precision of all numbers.", choices=("float32", "float64"))

    def __post_init__(self) -> None:
        name = getattr(self.dtype, "__name__", str(self.dtype))  # np.float32, too
        object.__setattr__(self, "dtype", name)
        super().__post_init__()
        largest = max(self.image_shape)
        if self.margin > MAX_MARGIN * largest:
            raise UsageError(
                f"margin must be at most {MAX_MARGIN} times the image's {largest} pixels, got {self.margin}."
            )
        if self.smoothing > largest:
            raise UsageError(f"smoothing must be from 0 to the image's {largest} pixels, got {self.smoothing!r}.")

    @property
    def grid_shape(self) -> tuple[int, int]:
        """(height, width) of the image with its margin."""
        height, width = self.image_shape
        return height + 2 * self.margin, width + 2 * self.margin


# --- training -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FitOptions(Options):
    """How to train; see `tigra.training.fit`."""

    where: ClassVar[str] = "fit"

    epochs: int = option(60, "Passes over the training images.", heading="Training", least=1)
    batch_size: int = option(50, "Images in a step; larger batches take more memory.", heading="Training", least=1)
    learning_rate: float = option(
        0.01, "Peak step size of Adam; lower it if the loss diverges.", heading="Training", least=0, above=True
    )
    schedule: str = option(
        "one-cycle",
        "Learning-rate schedule: `one-cycle` rises and falls, `cosine` falls, `constant` stays.",
        heading="Training",
        choices=SCHEDULES,
    )
    weight_decay: float = option(
        0.0,
        "Pull of FC weights towards 0; more of it helps against overfitting.",
        heading="Training",
        least=0,
        layers=DENSE_LAYERS,
    )
    label_smoothing: float = option(
        0.0,
        "Share of each training label that is spread over all classes.",
        heading="Training",
        least=0,
        most=1,
        below=True,
    )
    jitter: float = option(
        0.0,
        "Shift training images by up to this much, anew in each epoch.",
        heading="Training",
        least=0,
        most=10,
        unit="pixels",
    )
    patience: int = option(
        0, "Stop after this many epochs without a better one; 0 never stops early.", heading="Training", least=0
    )
    seed: int = option(0, "Decides everything random.", least=0)


# --- recipes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is built and trained on a data set. Two recipes that say the same are equal.

    least_steps : train for at least this many steps, with more epochs where there are few images
    limits_pooling : let dynamic pooling keep no more than half of the nodes, a quarter in the next layer, and so on:
        for images of which the recipe does not know the size
    """

    network: NetworkOptions
    fit: FitOptions
    least_steps: int = 0
    limits_pooling: bool = False

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON knows it."""
        content: dict[str, Any] = {"network": self.network.to_json(), "fit": self.fit.to_json()}
        rest = {"least_steps": self.least_steps, "limits_pooling": self.limits_pooling}
        return content | {name: value for name, value in rest.items() if value}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Recipe:
        """The recipe that `to_json` wrote, by this version or an older one."""
        parts = {"network": NetworkOptions.from_json(content["network"]), "fit": FitOptions.from_json(content["fit"])}
        return cls(**{**content, **parts})

    def with_changes(self, changes: Mapping[str, Any]) -> Recipe:
        """The recipe with some options of the network or of the training changed, by name.

        What is given is taken as it is: epochs are not raised to least_steps, an architecture's pooling not limited.
        """
        of_fit = {name: value for name, value in changes.items() if name in FitOptions.specs()}
        of_network = NetworkOptions.resolved({n: value for n, value in changes.items() if n not in of_fit})
        unused: dict[str, Any] = {}  # what the recipe has only for what is changed goes, too
        if of_network.get("mixing", "pairs") not in PAIRED_MIXINGS:
            unused = {"diffusion": 0} | ({"active_set": "map"} if self.network.active_set == "all" else {})
        if of_network.get("standardise") is False:
            unused |= {"deviation_floor": 0.0, "log_offset": 0.0}
        of_network = unused | of_network
        return Recipe(
            network=self.network.with_changes(of_network),
            fit=self.fit.with_changes(of_fit),
            least_steps=0 if "epochs" in changes else self.least_steps,
            limits_pooling=self.limits_pooling and "architecture" not in changes,
        )

    def __getitem__(self, name: str) -> Any:
        """Parts by name, as recipes of version 0.1 had them."""
        warnings.warn("Recipes are objects now: write recipe.network.margin.", DeprecationWarning, stacklevel=2)
        return self.to_json()[name]
