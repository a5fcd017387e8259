"""Recipes: for each data set the architectures and settings with which `tigra train` starts, as data.

Each data set has two. "paper" is what the paper prints: its architecture (Table 1), its start values, raw
statistics, edges of weight 1 on the 8-neighbour grid, Adam; where it is silent, Adam's usual rate
and batches of 50 or 100. "best" is what was found since (docs/results.md says what was tried): still a
TIGraNet, still trained on upright images only.

"network" holds arguments of `build_network`, "fit" those of `fit`; "folder" is for the user's own
pictures, and takes more epochs where there are few of them, until "least_steps" steps are done.
"""

from __future__ import annotations

from tigra.errors import UsageError

SMALL = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]"  # Table 1, MNIST-012
LARGE = "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]"  # Table 1, other experiments

LEAST_STEPS = 600  # on a folder of few pictures

PAPER_NETWORK = {
    "neighbours": 8,
    "diagonal_weight": 1.0,
    "boundary": "padded",
    "active": "map",
    "mixing": "vector",
    "init": "paper",
    "smoothing": 0.0,
    "margin": 0,
    "standardise": False,
    "floor": 0.0,
}
PAPER_FIT = {
    "epochs": 60,
    "batch_size": 50,
    "learning_rate": 0.001,
    "schedule": "constant",
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "patience": 0,
}
# Diagonal weight 1/4 makes the grid isotropic to fourth order. Smoothing is what theorems 2 and 3 ask for: the
# equivariance gap grows with the image's second and third derivatives. A margin of 4 pixels keeps responses to
# turned digits inside the grid. A floor under the deviations of statistics keeps maps of weak responses weak.
NETWORK = PAPER_NETWORK | {
    "diagonal_weight": 0.25,
    "init": "default",
    "smoothing": 1.0,
    "margin": 4,
    "standardise": True,
    "floor": 0.03,
}
# Three layers in which every pair of maps has a filter of its own, with a rectifier (`tigra.layers.PairedConv`).
DEEP = "SC[16, 2]-DP[600]-SC[32, 2]-DP[600]-SC[32, 2]-DP[600]-S[12]-FC[256]-FC[128]"
PAIRS = NETWORK | {"mixing": "pairs", "active": "all", "floor": 0.05}
FIT = PAPER_FIT | {"learning_rate": 0.01, "schedule": "one-cycle", "weight_decay": 0.2, "label_smoothing": 0.1}
# Filters, too, of the maps' squared gradients and of products of the gradients of two maps; maps are smoothed, so that
# a rectifier's edges do not depend on how the image lies on the grid.
PRODUCTS = PAIRS | {"mixing": "products", "diffusion": 1}
# Photographs: nothing is turned, so that little smoothing and no margin do; objects stand on a grey ground, and their
# statistics differ by factors.
PHOTO = "SC[16, 2]-DP[1700]-SC[32, 2]-DP[1700]-SC[32, 2]-DP[1700]-S[20]-FC[256]-FC[128]"
PHOTOS = PAIRS | {"ground": "border", "margin": 0, "smoothing": 0.3, "floor": 0.01, "log": 0.03}
PHOTO_FIT = FIT | {"epochs": 20, "learning_rate": 0.003, "weight_decay": 0.1}
LONG_FIT = FIT | {"epochs": 8, "batch_size": 48, "learning_rate": 0.005}

RECIPES = {
    "mnist-012": {
        "paper": {"network": {"architecture": SMALL} | PAPER_NETWORK, "fit": PAPER_FIT | {"epochs": 100}},
        "best": {"network": {"architecture": SMALL.replace("S[10]", "S[20]")} | NETWORK, "fit": FIT},
    },
    "mnist-rot": {
        "paper": {
            "network": {"architecture": LARGE} | PAPER_NETWORK,
            "fit": PAPER_FIT | {"epochs": 10, "batch_size": 100},
        },
        "best": {"network": {"architecture": DEEP} | PRODUCTS, "fit": LONG_FIT},
    },
    "mnist-trans": {
        "paper": {
            "network": {"architecture": LARGE} | PAPER_NETWORK,
            "fit": PAPER_FIT | {"epochs": 10, "batch_size": 100},
        },
        "best": {
            "network": {"architecture": DEEP} | PRODUCTS | {"margin": 8},  # digits that are shifted by 6 pixels, too
            "fit": LONG_FIT | {"epochs": 5},  # each takes twice as long as on MNIST-rot's smaller grid
        },
    },
    "eth-80": {
        "paper": {"network": {"architecture": LARGE} | PAPER_NETWORK, "fit": PAPER_FIT | {"epochs": 30}},
        "best": {"network": {"architecture": PHOTO} | PHOTOS, "fit": PHOTO_FIT},
    },
    "folder": {
        "paper": {
            "network": {"architecture": LARGE} | PAPER_NETWORK,
            "fit": PAPER_FIT | {"epochs": 30},
            "least_steps": LEAST_STEPS,
        },
        "best": {"network": {"architecture": LARGE} | NETWORK, "fit": FIT | {"epochs": 30}, "least_steps": LEAST_STEPS},
    },
}
RECIPE_NAMES = "best", "paper"


def find_recipe(dataset: str, name: str = "best") -> dict:
    """The recipe of that name for a data set; a folder of the user's own pictures has those of "folder".

    >>> find_recipe("mnist-012", "paper")["network"]["architecture"]
    'SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[10]-FC[50]-FC[30]-FC[10]'
    """
    if name not in RECIPE_NAMES:
        raise UsageError(f"A recipe is one of {', '.join(RECIPE_NAMES)}, got {name!r}.")
    return RECIPES[dataset if dataset in RECIPES else "folder"][name]
