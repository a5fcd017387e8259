"""Recipes: for each data set the architecture and settings with which `tigra train` starts, as data.

"network" holds arguments of `build_network`, "fit" those of `fit`; "folder" is for the user's own
pictures, and takes more epochs where there are few of them, until "least_steps" steps are done.

mnist-012: settings were chosen on upright digits, the validation set and 1500 digits of MNIST's
training set that are not in mnist-012. The architecture is the paper's (Table 1) with Chebyshev
orders up to 20 instead of 10, which tell more about 500 training digits. Diagonal weight 1/4
makes the grid isotropic to fourth order. Smoothing is what the paper's theorems 2 and 3 ask for: the
equivariance gap grows with the image's second and third derivatives. A margin of 4 pixels keeps
responses to turned digits inside the grid.

mnist-rot, mnist-trans, eth-80: the paper's architecture for its other experiments, with what was
learned on mnist-012; nothing was tuned on these data sets.
"""

GRID = {
    "neighbours": 8,
    "diagonal_weight": 0.25,
    "boundary": "padded",
    "active": "map",
    "mixing": "vector",
    "init": "default",
    "smoothing": 1.0,
    "margin": 4,
    "standardise": True,
}
FIT = {
    "epochs": 60,
    "batch_size": 50,
    "learning_rate": 0.01,
    "schedule": "one-cycle",
    "weight_decay": 0.2,
    "label_smoothing": 0.1,
    "patience": 0,
}
SMALL = "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[20]-FC[50]-FC[30]-FC[10]"
LARGE = "SC[10, 4]-DP[600]-SC[20, 4]-DP[300]-S[12]-FC[500]-FC[300]-FC[100]"

RECIPES = {
    "mnist-012": {"network": {"architecture": SMALL} | GRID, "fit": FIT},
    "mnist-rot": {"network": {"architecture": LARGE} | GRID, "fit": FIT | {"epochs": 10, "batch_size": 100}},
    "mnist-trans": {"network": {"architecture": LARGE} | GRID, "fit": FIT | {"epochs": 10, "batch_size": 100}},
    "eth-80": {"network": {"architecture": LARGE} | GRID, "fit": FIT | {"epochs": 30}},
    "folder": {"network": {"architecture": LARGE} | GRID, "fit": FIT | {"epochs": 30}, "least_steps": 600},
}
