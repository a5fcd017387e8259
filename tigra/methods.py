"""The networks that TIGraNet is compared with, as data: architectures, start values and training, per data set.

METHODS[method][dataset] holds "network", arguments of `build_network`, and "fit", those of `fit`, as `tigra.recipes`
does for TIGraNet. Architectures are those of the paper's Table 1; the paper does not say how its ConvNet, STN and
HarmNet were started and trained. Here FC layers start from He's values. START_VALUES names both choices,
because the choice decides the comparison: in trials on ETH-80 a ConvNet whose FC layers start from U[-1, 1], as the
paper says of TIGraNet's, ended some 15 points below one that starts from He's.
"""

SMALL_CONVNET = "C[3]-P[2]-C[6]-P[2]-FC[50]-FC[30]-FC[10]"
LARGE_CONVNET = "C[10]-P[2]-C[20]-P[2]-FC[500]-FC[300]-FC[100]"
SMALL_STN = "C[3]-ST[6]-C[6]-ST[6]-FC[50]-FC[30]-FC[10]"
LARGE_STN = "C[10]-ST[6]-C[20]-ST[6]-FC[500]-FC[300]-FC[100]"
HARMNET = "HRC[1, 10]-HCN[10]-HRC[10, 10]-HRC[10, 20]-HCN[20]-HRC[20, 20]"

LAYERS = {"convnet": ("C", "P", "FC"), "stn": ("C", "P", "ST", "FC"), "harmnet": ("HRC", "HCN", "HBN", "MP")}
GRAPH = "SC", "DP", "S"  # layers of TIGraNet, which alone have a graph

START_VALUES = ("he", "paper")  # of the FC layers: He's, and the paper's U[-1, 1]

PLANES = {"init": "he", "smoothing": 0.0, "margin": 0, "standardise": True}  # images as they are, pixels standardised
FIT = {
    "epochs": 30,
    "batch_size": 100,
    "learning_rate": 1e-3,
    "schedule": "constant",
    "weight_decay": 0.0,
    "label_smoothing": 0.0,
    "patience": 20,
}
# Rates of phases and biases; those of radial weights are ten times smaller, by the unit they are measured in.
HARMONIC_FIT = FIT | {"epochs": 30, "batch_size": 46, "learning_rate": 5e-3, "schedule": "cosine", "patience": 0}


def _of(small: str, large: str, fit: dict) -> dict:
    """One method on all data sets; 500 digits take more epochs of smaller batches than 50,000."""
    few = fit | {"epochs": 2 * fit["epochs"], "batch_size": min(50, fit["batch_size"])}
    many = fit | {"epochs": min(5, fit["epochs"])}
    sizes = {
        "mnist-012": (small, few),
        "mnist-rot": (large, many),
        "mnist-trans": (large, many),
        "eth-80": (large, fit),
    }
    return {name: {"network": {"architecture": text} | PLANES, "fit": how} for name, (text, how) in sizes.items()}


METHODS = {
    "convnet": _of(SMALL_CONVNET, LARGE_CONVNET, FIT),
    "stn": _of(SMALL_STN, LARGE_STN, FIT),
    "harmnet": _of(HARMNET, HARMNET, HARMONIC_FIT),
}
for _recipe in METHODS["stn"].values():
    _recipe["network"]["outside"] = "zeros"
