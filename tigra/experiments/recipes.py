"""Recipes: the architecture and the default options for each method and data set.

TIGraNet has five recipes for each data set, all for upright training images only:

best        oriented convolutions, which tell left from right; the most accurate network that we found
pooled      the same with dynamic pooling after every convolution, as in the paper (digits only)
achiral     the best network without orientation, of version 0.1: an image and its mirror image look alike
repaired    the architecture of the paper (Table 1) with standardised statistics and usual initial values and rates
paper       the paper as printed: its architecture, initial values, raw statistics, edges of weight 1, and Adam; where
            the paper does not say, the default learning rate of Adam and batches of 50 or 100

docs/notebook.md lists what was tried.

ConvNet, STN and HarmNet have the architectures of the paper's Table 1. The paper does not say how they were
initialised and trained. "best" uses He initialisation for the FC layers. "paper" uses U[-1, 1], as the paper says
for TIGraNet. We report both because the choice decides the comparison: in trials on ETH-80 a ConvNet with U[-1, 1]
ended some 15 points below one with He initialisation.

DeepScat is fitted. "paper" is W[2, 5]-PCA[20] on linear features, which the paper gives for ETH-80. It gives nothing
for the smaller digits, so they have as many octaves as keep the widest average, 2^J pixels, inside the image. "best"
also tries CANDIDATES and takes the settings with the highest upright validation accuracy, the first in case of ties.

"folder" is for all other data sets, such as the user's own pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tigra.errors import UsageError
from tigra.experiments.recipe import Recipe
from tigra.options import FitOptions, NetworkOptions

SMALL = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"  # Table 1, MNIST-012
LARGE = "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]"  # Table 1, other experiments

LEAST_STEPS = 600  # for folders with few pictures
FEWER_STEPS = 400  # of batches of 16 pictures
STEPS_FOR_FEW = 800  # with fewer than 100 pictures; docs/notebook.md has what they gain
EPOCHS_FOR_MANY = 15  # from 5,000 pictures on; 30 gain nothing
RECIPE_NAMES = "best", "paper"  # of the networks to compare with


# --- TIGraNet -------------------------------------------------------------------------------------------

PAPER_NETWORK = NetworkOptions(architecture=SMALL, standardise=False, dense_init="paper")
PAPER_FIT = FitOptions(learning_rate=0.001, schedule="constant")
# Diagonal weight 1/4 makes the grid isotropic to fourth order. Smoothing follows from theorems 2 and 3: the
# equivariance gap grows with the second and third derivatives of the image. A margin of 4 pixels keeps responses to
# rotated digits inside the grid. A floor under the deviations of statistics keeps weak responses weak.
NETWORK = NetworkOptions(
    architecture=SMALL.replace("S[10]", "S[20]"),
    diagonal_weight=0.25,
    smoothing=1.0,
    margin=4,
    deviation_floor=0.03,
)
FIT = FitOptions(learning_rate=0.01, schedule="one-cycle", weight_decay=0.2, label_smoothing=0.1)
# Three layers in which every pair of maps has its own filter, followed by a ReLU (`tigra.layers.PairedConv`). Products
# of the gradients of two maps are filtered, too. Maps are smoothed, so that the edges of the ReLU do not depend on the
# orientation of the image on the grid.
DEEP = "SC[16, 2]-DP[600]-SC[32, 2]-DP[600]-SC[32, 2]-DP[600]-S[12]-FC[256]-FC[128]"
PRODUCTS = replace(NETWORK, architecture=DEEP, mixing="products", diffusion=1, active_set="all", deviation_floor=0.05)
LONG_FIT = replace(FIT, epochs=8, batch_size=48, learning_rate=0.005)
# Photographs: nothing is rotated, so little smoothing and no margin are enough. Objects have a grey background, and
# their statistics differ by factors.
PHOTOS = replace(
    NETWORK,
    architecture="SC[16, 2]-DP[1700]-SC[32, 2]-DP[1700]-SC[32, 2]-DP[1700]-S[20]-FC[256]-FC[128]",
    mixing="pairs",
    active_set="all",
    background="border",
    margin=0,
    smoothing=0.3,
    deviation_floor=0.01,
    log_offset=0.03,
)
PHOTO_FIT = replace(FIT, epochs=20, learning_rate=0.003, weight_decay=0.1)

# Oriented convolutions with coarsening and batch normalisation. Margins make the sides of the grid multiples of 4, so
# that blocks of nodes cover it evenly. Two steps of diffusion after each convolution keep the maps smooth: on coarse
# grids this matters most for rotations by 45 degrees. Chebyshev statistics of low order keep the network small.
ORIENTED = NetworkOptions(
    architecture="OC[16, 2]-GC[2]-OC[32, 2]-OC[48, 2]-GC[2]-OC[64, 2]-S[2]-FC[128]",
    diagonal_weight=0.25,
    smoothing=1.0,
    margin=3,
    diffusion=2,
    batch_norm=True,
)
ORIENTED_FIT = replace(FIT, epochs=8, batch_size=48, learning_rate=0.005)
# Photographs have more pixels and more to see, so they are coarsened once more.
ORIENTED_PHOTOS = replace(
    ORIENTED,
    architecture="OC[16, 2]-GC[2]-OC[32, 2]-GC[2]-OC[48, 2]-GC[2]-OC[64, 2]-S[6]-FC[128]",
    background="border",
    log_offset=0.03,
)
# Small pictures whose background is not black: a second layer on the fine grid keeps short periods and corners apart.
FINE = "OC[8, 2]-OC[16, 2]-GC[2]-OC[32, 2]-OC[48, 2]-GC[2]-OC[64, 2]-S[6]-FC[128]"
POOLED = replace(
    ORIENTED,
    architecture="OC[16, 2]-DP[600]-GC[2]-OC[32, 2]-DP[150]-OC[48, 2]-DP[150]-GC[2]-OC[64, 2]-DP[40]-S[2]-FC[128]",
)
# A smaller network is enough for the three digits of MNIST-012.
ORIENTED_SMALL = replace(
    ORIENTED, architecture="OC[12, 2]-GC[2]-OC[24, 2]-OC[24, 2]-GC[2]-OC[32, 2]-S[2]-FC[64]", margin=2
)
# The paper's own layers, repaired: standardised statistics, He initialisation, one-cycle schedule.
REPAIRED = replace(PAPER_NETWORK, standardise=True, dense_init="default", deviation_floor=0.03)
REPAIRED_FIT = replace(FIT, epochs=8, learning_rate=0.005, weight_decay=0.1)
LARGE_REPAIRED = Recipe(network=replace(REPAIRED, architecture=LARGE), fit=REPAIRED_FIT)

LARGE_AS_PRINTED = Recipe(
    network=replace(PAPER_NETWORK, architecture=LARGE), fit=replace(PAPER_FIT, epochs=10, batch_size=100)
)
OF_FOLDERS: dict[str, Any] = {"least_steps": LEAST_STEPS, "limits_pooling": True}

RECIPES: dict[str, dict[str, Recipe]] = {
    "mnist-012": {
        "paper": Recipe(network=PAPER_NETWORK, fit=replace(PAPER_FIT, epochs=100)),
        "repaired": Recipe(network=REPAIRED, fit=replace(REPAIRED_FIT, epochs=60)),
        "achiral": Recipe(network=NETWORK, fit=FIT),
        "pooled": Recipe(network=replace(POOLED, margin=2), fit=replace(ORIENTED_FIT, epochs=30)),
        "best": Recipe(network=ORIENTED_SMALL, fit=replace(ORIENTED_FIT, epochs=30)),
    },
    "mnist-rot": {
        "paper": LARGE_AS_PRINTED,
        "repaired": LARGE_REPAIRED,
        "achiral": Recipe(network=PRODUCTS, fit=LONG_FIT),
        "pooled": Recipe(network=POOLED, fit=ORIENTED_FIT),
        "best": Recipe(network=ORIENTED, fit=replace(ORIENTED_FIT, epochs=6)),  # 8 are no better on upright digits
    },
    "mnist-trans": {
        "paper": LARGE_AS_PRINTED,
        "repaired": LARGE_REPAIRED,
        "achiral": Recipe(
            network=replace(PRODUCTS, margin=8),  # room for digits shifted by 6 pixels
            fit=replace(LONG_FIT, epochs=5),  # each takes twice as long as on the smaller grid of MNIST-rot
        ),
        "pooled": Recipe(network=POOLED, fit=ORIENTED_FIT),
        "best": Recipe(network=ORIENTED, fit=ORIENTED_FIT),
    },
    "eth-80": {
        "paper": replace(LARGE_AS_PRINTED, fit=replace(PAPER_FIT, epochs=30)),
        "repaired": replace(LARGE_REPAIRED, fit=replace(REPAIRED_FIT, epochs=30)),
        "achiral": Recipe(network=PHOTOS, fit=PHOTO_FIT),
        "best": Recipe(network=ORIENTED_PHOTOS, fit=replace(ORIENTED_FIT, epochs=40)),
    },
    "folder": {
        "paper": replace(LARGE_AS_PRINTED, fit=replace(PAPER_FIT, epochs=30), **OF_FOLDERS),
        "repaired": replace(LARGE_REPAIRED, fit=replace(REPAIRED_FIT, epochs=30), **OF_FOLDERS),
        "achiral": Recipe(
            network=replace(NETWORK, architecture=LARGE, background="auto"),
            fit=replace(FIT, epochs=30, class_weights="auto"),
            **OF_FOLDERS,
        ),
        "best": Recipe(  # docs/notebook.md has what was tried
            network=replace(ORIENTED_PHOTOS, background="auto", margin=2),
            fit=replace(ORIENTED_FIT, epochs=30, class_weights="auto"),
            **OF_FOLDERS | {"least_steps": FEWER_STEPS},
            steps_for_few=STEPS_FOR_FEW,
            epochs_for_many=EPOCHS_FOR_MANY,
            small_architecture=ORIENTED.architecture.replace("S[2]", "S[6]"),
            fine_architecture=FINE,
            fine_smoothing=0.5,
            large_architecture=ORIENTED_PHOTOS.architecture.replace("-S[6]", "-GC[2]-OC[64, 2]-S[6]"),
            evens_grid=True,
            limits_batch=True,
        ),
    },
}

# --- ConvNet, STN, HarmNet ------------------------------------------------------------------------------

SMALL_CONVNET = "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]"
LARGE_CONVNET = "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]"
SMALL_STN = "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]"
LARGE_STN = "C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]"
HARMNET = "HRC[1, 10]-HCN[10]-HRC[10, 10]-HRC[10, 20]-HCN[20]-HRC[20, 20]"

PLANES_FIT = FitOptions(epochs=30, batch_size=100, learning_rate=1e-3, schedule="constant", patience=20)
# Learning rate of phases and biases; that of radial weights is ten times smaller, by their unit.
HARMONIC_FIT = FitOptions(epochs=30, batch_size=46, learning_rate=5e-3, schedule="cosine")


def _of_pixels(small: str, large: str, fit: FitOptions) -> dict[str, dict[str, Recipe]]:
    """Return the recipes of one method for all data sets; small ones get more epochs and smaller batches."""
    few = replace(fit, epochs=2 * fit.epochs, batch_size=min(50, fit.batch_size))
    many = replace(fit, epochs=min(5, fit.epochs))
    sizes = {
        "mnist-012": (small, few, 0),
        "mnist-rot": (large, many, 0),
        "mnist-trans": (large, many, 0),
        "eth-80": (large, fit, 0),
        "folder": (large, fit, LEAST_STEPS),
    }
    return {
        dataset: {
            name: Recipe(
                network=NetworkOptions(architecture=text, dense_init="he" if name == "best" else "paper"),
                fit=how,
                least_steps=least_steps,
            )
            for name in RECIPE_NAMES
        }
        for dataset, (text, how, least_steps) in sizes.items()
    }


CONVNET_RECIPES = _of_pixels(SMALL_CONVNET, LARGE_CONVNET, PLANES_FIT)
STN_RECIPES = _of_pixels(SMALL_STN, LARGE_STN, PLANES_FIT)
HARMNET_RECIPES = {  # no FC layers, so no choice of their initial values
    dataset: {"best": named["best"]} for dataset, named in _of_pixels(HARMNET, HARMNET, HARMONIC_FIT).items()
}

# --- DeepScat -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DeepScatRecipe:
    """Options for fitting DeepScat, see `tigra.fit_deepscat`.

    Attributes
    ----------
    architecture : str
        Layers in the paper's notation, e.g. "W[2, 5]-PCA[20]".
    log, standardise : bool
        Take the logarithm of the features; scale them.
    candidates : dict of list
        Further settings to try, by name.
    limits_size : bool
        Use no more octaves and dimensions than the images allow.
    """

    architecture: str
    log: bool = False
    standardise: bool = False
    candidates: dict[str, list] = field(default_factory=dict)
    limits_size: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the recipe as a dict for JSON."""
        return {name: value for name, value in asdict(self).items() if value or name in ("log", "standardise")}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> DeepScatRecipe:
        """Return the recipe that `to_json` wrote."""
        return cls(**content)

    def with_changes(self, changes: Mapping[str, Any]) -> DeepScatRecipe:
        """Return the recipe with another architecture; then only logarithm and scaling are chosen."""
        for name in changes:
            if name != "architecture":
                raise UsageError(f"{name} has no effect on DeepScat, which is fitted, not trained; leave it out.")
        if not changes:
            return self
        free = {name: values for name, values in self.candidates.items() if name in ("log", "standardise")}
        return replace(self, architecture=changes["architecture"], candidates=free, limits_size=False)


CANDIDATES: dict[str, list] = {"dimension": [20, 5, 10, 40, 60], "log": [False, True], "standardise": [False, True]}
OCTAVES = {"mnist-012": 4, "mnist-rot": 4, "mnist-trans": 5, "eth-80": 5, "folder": 5}
DEEPSCAT_RECIPES: dict[str, dict[str, DeepScatRecipe]] = {
    dataset: {
        name: DeepScatRecipe(
            architecture=f"W[2, {octaves}]-PCA[20]",
            candidates=CANDIDATES if name == "best" else {},
            limits_size=dataset == "folder",
        )
        for name in RECIPE_NAMES
    }
    for dataset, octaves in OCTAVES.items()
}


def find_recipe(dataset: str, name: str = "best") -> Recipe:
    """Return a recipe of TIGraNet for a data set.

    >>> find_recipe("mnist-012", "paper").network.architecture
    'SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]'
    """
    return in_book(RECIPES, dataset, name)


def in_book(recipes: Mapping[str, Mapping[str, Any]], dataset: str, name: str) -> Any:
    """Return the recipe for a data set; for one without recipes, that for folders."""
    of_dataset = recipes[dataset if dataset in recipes else "folder"]
    if name not in of_dataset:
        raise UsageError(f"recipe must be one of {', '.join(sorted(of_dataset))}, got {name!r}.")
    return of_dataset[name]
