"""Recipes: for each data set the architecture and settings with which `tigra train` starts, as data.

"network" holds arguments of `build_network`, "fit" those of `fit`. They were chosen on upright
digits: the validation set, and 1500 digits of MNIST's training set that are not in mnist-012.

For mnist-012 the architecture is the paper's (Table 1) with Chebyshev orders up to 20 instead of
10, which tell more about 500 training digits. Diagonal weight 1/4 makes the grid isotropic to
fourth order. Smoothing is what the paper's theorems 2 and 3 ask for: the equivariance gap grows
with the image's second and third derivatives. A margin of 4 pixels keeps responses to turned
digits inside the grid.
"""

RECIPES = {
    "mnist-012": {
        "network": {
            "architecture": "SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[20]-FC[50]-FC[30]-FC[10]",
            "neighbours": 8,
            "diagonal_weight": 0.25,
            "boundary": "padded",
            "active": "map",
            "mixing": "vector",
            "init": "default",
            "smoothing": 1.0,
            "margin": 4,
            "standardise": True,
        },
        "fit": {
            "epochs": 60,
            "batch_size": 50,
            "learning_rate": 0.01,
            "schedule": "one-cycle",
            "weight_decay": 0.2,
            "label_smoothing": 0.1,
            "patience": 0,
        },
    },
}
