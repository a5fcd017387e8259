"""The recipe book: for each method and data set the architecture and the options to start with, as data.

TIGraNet has two recipes for each data set. "paper" is what the paper prints: its architecture (Table 1), its start
values, raw statistics, edges of weight 1 on the 8-neighbour grid, Adam; where it is silent, Adam's usual rate and
batches of 50 or 100. "best" is what was found since (docs/results.md says what was tried): still a TIGraNet, still
trained on upright images only.

ConvNet, STN and HarmNet have the architectures of the paper's Table 1. The paper does not say how they were started and
trained. "best" starts their FC layers from He's values, "paper" from U[-1, 1], as the paper says of TIGraNet's, because
the choice decides the comparison: in trials on ETH-80 a ConvNet that starts from U[-1, 1] ended some 15 points below
one that starts from He's.

DeepScat is fitted. "paper" is W[2, 5]-PCA[20] on linear features, which the paper names for ETH-80; for the smaller
digits, of which it says nothing, there are as many octaves as keep the widest average, 2^J pixels, inside the image.
"best" also tries CANDIDATES, and takes what has the highest upright validation accuracy, the first among equals.

"folder" is for a data set that the book does not know, such as the user's own pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tigra.errors import UsageError
from tigra.options import FitOptions, NetworkOptions, Recipe

SMALL = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"  # Table 1, MNIST-012
LARGE = "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]"  # Table 1, other experiments

LEAST_STEPS = 600  # on a folder of few pictures
RECIPE_NAMES = "best", "paper"


# --- TIGraNet -------------------------------------------------------------------------------------------

PAPER_NETWORK = NetworkOptions(architecture=SMALL, standardise=False, dense_init="paper")
PAPER_FIT = FitOptions(learning_rate=0.001, schedule="constant")
# Diagonal weight 1/4 makes the grid isotropic to fourth order. Smoothing is what theorems 2 and 3 ask for: the
# equivariance gap grows with the image's second and third derivatives. A margin of 4 pixels keeps responses to
# turned digits inside the grid. A floor under the deviations of statistics keeps maps of weak responses weak.
NETWORK = NetworkOptions(
    architecture=SMALL.replace("S[10]", "S[20]"),
    diagonal_weight=0.25,
    smoothing=1.0,
    margin=4,
    deviation_floor=0.03,
)
FIT = FitOptions(learning_rate=0.01, schedule="one-cycle", weight_decay=0.2, label_smoothing=0.1)
# Three layers in which every pair of maps has a filter of its own, with a rectifier (`tigra.layers.PairedConv`).
# Filters, too, of products of the gradients of two maps; maps are smoothed, so that a rectifier's edges do not
# depend on how the image lies on the grid.
DEEP = "SC[16, 2]-DP[600]-SC[32, 2]-DP[600]-SC[32, 2]-DP[600]-S[12]-FC[256]-FC[128]"
PRODUCTS = replace(NETWORK, architecture=DEEP, mixing="products", diffusion=1, active_set="all", deviation_floor=0.05)
LONG_FIT = replace(FIT, epochs=8, batch_size=48, learning_rate=0.005)
# Photographs: nothing is turned, so that little smoothing and no margin do; objects stand on a grey background, and
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

LARGE_AS_PRINTED = Recipe(
    network=replace(PAPER_NETWORK, architecture=LARGE), fit=replace(PAPER_FIT, epochs=10, batch_size=100)
)
OF_FOLDERS: dict[str, Any] = {"least_steps": LEAST_STEPS, "limits_pooling": True}

RECIPES: dict[str, dict[str, Recipe]] = {
    "mnist-012": {
        "paper": Recipe(network=PAPER_NETWORK, fit=replace(PAPER_FIT, epochs=100)),
        "best": Recipe(network=NETWORK, fit=FIT),
    },
    "mnist-rot": {
        "paper": LARGE_AS_PRINTED,
        "best": Recipe(network=PRODUCTS, fit=LONG_FIT),
    },
    "mnist-trans": {
        "paper": LARGE_AS_PRINTED,
        "best": Recipe(
            network=replace(PRODUCTS, margin=8),  # digits that are shifted by 6 pixels, too
            fit=replace(LONG_FIT, epochs=5),  # each takes twice as long as on MNIST-rot's smaller grid
        ),
    },
    "eth-80": {
        "paper": replace(LARGE_AS_PRINTED, fit=replace(PAPER_FIT, epochs=30)),
        "best": Recipe(network=PHOTOS, fit=PHOTO_FIT),
    },
    "folder": {
        "paper": replace(LARGE_AS_PRINTED, fit=replace(PAPER_FIT, epochs=30), **OF_FOLDERS),
        "best": Recipe(network=replace(NETWORK, architecture=LARGE), fit=replace(FIT, epochs=30), **OF_FOLDERS),
    },
}

# --- ConvNet, STN, HarmNet ------------------------------------------------------------------------------

SMALL_CONVNET = "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]"
LARGE_CONVNET = "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]"
SMALL_STN = "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]"
LARGE_STN = "C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]"
HARMNET = "HRC[1, 10]-HCN[10]-HRC[10, 10]-HRC[10, 20]-HCN[20]-HRC[20, 20]"

PLANES_FIT = FitOptions(epochs=30, batch_size=100, learning_rate=1e-3, schedule="constant", patience=20)
# Rates of phases and biases; those of radial weights are ten times smaller, by the unit they are measured in.
HARMONIC_FIT = FitOptions(epochs=30, batch_size=46, learning_rate=5e-3, schedule="cosine")


def _of_pixels(small: str, large: str, fit: FitOptions) -> dict[str, dict[str, Recipe]]:
    """One method on all data sets; 500 digits take more epochs of smaller batches than 50,000."""
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
HARMNET_RECIPES = {  # no FC layers, so that there is no choice of their start values
    dataset: {"best": named["best"]} for dataset, named in _of_pixels(HARMNET, HARMNET, HARMONIC_FIT).items()
}

# --- DeepScat -------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DeepScatRecipe:
    """How DeepScat is fitted, see `tigra.fit_deepscat`.

    candidates : further settings to try, by name
    limits_size : use no more octaves and dimensions than the images allow
    """

    architecture: str
    log: bool = False
    standardise: bool = False
    candidates: dict[str, list] = field(default_factory=dict)
    limits_size: bool = False

    def to_json(self) -> dict[str, Any]:
        """The recipe as JSON knows it."""
        return {name: value for name, value in asdict(self).items() if value or name in ("log", "standardise")}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> DeepScatRecipe:
        """The recipe that `to_json` wrote."""
        return cls(**content)

    def with_changes(self, changes: Mapping[str, Any]) -> DeepScatRecipe:
        """The recipe with another architecture, which is taken as it is: only logarithm and scale are chosen then."""
        for name in changes:
            if name != "architecture":
                raise UsageError(
                    f"DeepScat is fitted, not trained, and works on pixels: {name} has no effect; leave it out."
                )
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
    """TIGraNet's recipe of that name for a data set.

    >>> find_recipe("mnist-012", "paper").network.architecture
    'SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]'
    """
    return in_book(RECIPES, dataset, name)


def in_book(recipes: Mapping[str, Mapping[str, Any]], dataset: str, name: str) -> Any:
    """The recipe of a data set, or, if the book does not know it, of a folder."""
    of_dataset = recipes[dataset if dataset in recipes else "folder"]
    if name not in of_dataset:
        raise UsageError(f"A recipe is one of {', '.join(sorted(of_dataset))}, got {name!r}.")
    return of_dataset[name]
