"""All options: name, default, allowed values, help text, and the layers that use each of them.

An option is a field of one of the frozen dataclasses below. Checks, command-line options, JSON and the error "has no
effect here" are derived from the field. A new option needs one field, the code that uses it, and a test.

    GraphOptions, ImageOptions    how images become signals on a graph
    NetworkOptions                these two and the architecture; the network part of a recipe
    BuildOptions                  NetworkOptions with image shape and number of classes; for `build_network`
    FitOptions                    how to train; for `fit`
    Recipe                        NetworkOptions and FitOptions together
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tigra.errors import UsageError
from tigra.option_fields import Options, option, unknown_option, warn_deprecated

MIXINGS = ("vector", "full", "pairs", "gradients", "products")
PAIRED_MIXINGS = {"pairs": 0, "gradients": 1, "products": 2}  # for `PairedConv`: products of gradients per map
SCHEDULES = ("one-cycle", "constant", "cosine")
DENSE_INITS = ("default", "paper", "he")
GRAPH_LAYERS = ("SC", "S")  # layers that use the Laplacian
DENSE_LAYERS = ("FC", "linear")  # "linear" is the implicit last layer
MAX_MARGIN = 10  # multiples of the image's larger side

# --- the network --------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GraphOptions(Options):
    """Options of the graph of an image's pixels, see `tigra.graph.grid_graph`."""

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
    """Options of the preprocessing of images."""

    smoothing: float = option(
        0.0,
        "Standard deviation of a Gaussian blur of the input; larger values improve invariance to arbitrary rotations.",
        heading="Images",
        least=0,
        unit="pixels",
    )
    margin: int = option(
        0,
        "Width of a frame of zeros around the image, so that pixels near the border are filtered like the others.",
        heading="Images",
        least=0,
        unit="pixels",
    )
    background: str = option(
        "black",
        "Background of the images: `black`, or `border`, the median of the border pixels, which is subtracted.",
        heading="Images",
        choices=("black", "border"),
        formerly="ground",
    )


@dataclass(frozen=True, kw_only=True)
class NetworkOptions(GraphOptions, ImageOptions):
    """Options of a network: its architecture, its graph, and the preprocessing of images.

    All fields are keyword arguments and are checked. An instance can be unpacked like a dictionary.

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
        "How filters and input maps are combined: weights shared by all filters (`vector`) or separate for each filter"
        " (`full`); or one filter per pair of maps (`pairs`), optionally with squared gradients (`gradients`) or"
        " products of gradients (`products`).",
        heading="Network",
        choices=MIXINGS,
        layers=("SC",),
    )
    diffusion: int = option(
        0,
        "Smoothing steps after each convolution of pairs; more steps improve invariance to arbitrary rotations.",
        heading="Network",
        least=0,
        most=100,  # a limit for untrusted model files
        layers=("SC",),
    )
    standardise: bool = option(
        True,
        "Scale the statistics (the pixels, in networks without graph) to mean 0 and deviation 1 before training.",
        heading="Network",
        layers=("S", "pixels"),
    )
    deviation_floor: float = option(
        0.0,
        "Smallest deviation to divide a statistic by, as a fraction of the largest; keeps weak responses weak.",
        heading="Network",
        least=0,
        most=1,
        layers=("S",),
        formerly="floor",
    )
    log_offset: float = option(
        0.0,
        "Take the logarithm of the statistics plus this fraction of their deviation; 0 means no logarithm.",
        heading="Network",
        least=0,
        most=1,
        layers=("S",),
        formerly="log",
    )
    dense_init: str = option(
        "default",
        "Initial weights of FC layers: `he` (He), `default` (He with a small last layer) or `paper` (U[-1, 1]).",
        heading="Network",
        choices=DENSE_INITS,
        layers=DENSE_LAYERS,
        formerly="init",
    )
    outside: str = option(
        "zeros",
        "What spatial transformers (ST) read outside of their input.",
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
    """Everything that determines a network and its initial parameters: the arguments of `build_network`."""

    image_shape: tuple[int, int] = option(dataclasses.MISSING, "Height and width of the images.", "shape")
    n_classes: int = option(dataclasses.MISSING, "Number of classes.", "whole", least=2)
    seed: int = option(0, "Seed of the initial parameters.", least=0)
    dtype: str = option("float32", "Precision of all numbers.", choices=("float32", "float64"))

    def __post_init__(self) -> None:
        name = getattr(self.dtype, "__name__", str(self.dtype))  # also accept np.float32
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
        """Height and width of the image with its margin."""
        height, width = self.image_shape
        return height + 2 * self.margin, width + 2 * self.margin


# --- training -----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FitOptions(Options):
    """Options of training, see `tigra.training.fit`.

    All fields are keyword arguments and are checked.

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
        "Weight decay of FC layers; larger values reduce overfitting.",
        heading="Training",
        least=0,
        layers=DENSE_LAYERS,
    )
    label_smoothing: float = option(
        0.0,
        "Fraction of each training label that is spread over all classes.",
        heading="Training",
        least=0,
        most=1,
        below=True,
    )
    jitter: float = option(
        0.0,
        "Shift training images randomly by up to this much, differently in each epoch.",
        heading="Training",
        least=0,
        most=10,
        unit="pixels",
    )
    patience: int = option(
        0, "Stop after this many epochs without a new best one; 0 never stops early.", heading="Training", least=0
    )
    seed: int = option(0, "Seed of all random numbers.", least=0)


# --- recipes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is built and trained on a data set. Recipes compare by value.

    Attributes
    ----------
    network : NetworkOptions
        How to build the network.
    fit : FitOptions
        How to train it.
    least_steps : int
        Train for at least this many steps; small data sets get more epochs.
    limits_pooling : bool
        For images of unknown size: dynamic pooling keeps at most half of the nodes in the first layer, a quarter in
        the next, and so on.
    """

    network: NetworkOptions
    fit: FitOptions
    least_steps: int = 0
    limits_pooling: bool = False

    def to_json(self) -> dict[str, Any]:
        """The recipe as a JSON-compatible dictionary."""
        content: dict[str, Any] = {"network": self.network.to_json(), "fit": self.fit.to_json()}
        rest = {"least_steps": self.least_steps, "limits_pooling": self.limits_pooling}
        return content | {name: value for name, value in rest.items() if value}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Recipe:
        """Read a recipe written by `to_json` of this or an earlier version."""
        parts = {"network": NetworkOptions.from_json(content["network"]), "fit": FitOptions.from_json(content["fit"])}
        return cls(**{**content, **parts})

    def with_changes(self, changes: Mapping[str, Any]) -> Recipe:
        """A copy of the recipe with some options changed.

        Given values are used as they are: `epochs` is not raised to `least_steps`, and the pooling of a given
        architecture is not limited.

        Parameters
        ----------
        changes : mapping
            Options of the network or of the training, by name.

        Returns
        -------
        Recipe
            The changed recipe.
        """
        known = {**NetworkOptions.specs(), **FitOptions.specs()}
        older = {spec.formerly for spec in known.values()}
        for name in changes:
            if name not in known and name not in older:
                raise unknown_option("A recipe", name, known)
        of_fit = {name: value for name, value in changes.items() if name in FitOptions.specs()}
        of_network = NetworkOptions.resolved({n: value for n, value in changes.items() if n not in of_fit})
        unused: dict[str, Any] = {}  # options of the recipe that the changes make meaningless
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
        """Access by name, as in version 0.1; deprecated."""
        warn_deprecated("Recipes are objects now: write recipe.network.margin.")
        return self.to_json().get(name, getattr(self, name, None))
