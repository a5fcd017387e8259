"""The tables of the paper as data: what to train, what to test on, and the paper's numbers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """A row of a table: one method, run with several seeds or on several folds.

    Attributes
    ----------
    key : str
        Short name, for files.
    words : str
        Text in the table.
    dataset : str
        Name of the data set.
    paper : str
        Number in the paper.
    method, recipe : str
        Names, see `tigra.experiments.methods`.
    data : dict
        Options of `load_dataset`.
    over : {"seed", "fold"}
        Each run has its own seed, or seed 0 and its own fold.
    runs : int
        Number of runs.
    is_fixed : bool
        True if nothing depends on the seed, so that more runs would be equal.
    changes : dict
        Options that differ from those of the recipe.
    views : int
        Number of angles at which the test looks at each image (`tigra.training.views`).
    model_of : str
        Key of the row that has the same models, if only the test is another one.
    """

    key: str
    words: str
    dataset: str
    paper: str = ""
    method: str = "tigranet"
    recipe: str = "best"
    data: dict = field(default_factory=dict)
    over: str = "seed"
    runs: int = 3
    is_fixed: bool = False
    changes: dict = field(default_factory=dict)
    views: int = 1
    model_of: str = ""


@dataclass(frozen=True)
class Table:
    """A table to reproduce.

    Attributes
    ----------
    title : str
        Title of the table.
    rows : tuple of Row
        Its rows.
    tests : dict
        For each data set, further options of `load_dataset` that make the test images, by name. The first
        one is compared with the paper.
    transformations : int
        How often test images are transformed and measured.
    quick_data, quick_fit, quick_transformations
        Changes for a test of the setup in about a minute; the numbers mean nothing.
    """

    title: str
    rows: tuple[Row, ...]
    tests: dict[str, dict[str, dict]]
    transformations: int = 1
    quick_data: dict = field(default_factory=dict)
    quick_fit: dict = field(default_factory=lambda: {"epochs": 2})
    quick_transformations: int = 1


TURNED = {"cubic": {"interpolation": "cubic"}, "linear": {"interpolation": "linear"}}
SHIFTED = {"whole pixels": {"shifts": "whole"}, "real, cubic": {"shifts": "real", "interpolation": "cubic"}}
AS_THEY_ARE: dict[str, dict] = {"as photographed": {}}
ALL_012 = {"all_test": True}
TURNED_012 = ALL_012 | {"train_rotations": "random"}
BY_OBJECT = {"split": "object"}
FEW_DIGITS = {"n_train": 500, "n_valid": 200}
FIFTH = {
    "n_train": 10_000
}  # of MNIST's training digits: the curve needs many networks, and DeepScat's features take long

ON_ROTATED = "trained on rotated digits"
AS_PRINTED, REPAIRED = "TIGraNet, as printed", "TIGraNet, repaired"
ACHIRAL, POOLED, BEST = "TIGraNet, achiral", "TIGraNet, pooled", "TIGraNet, best"
TWO_VIEWS = "TIGraNet, best, 2 views"
ETH_80 = {"convnet": "80.1", "stn": "45.1", "harmnet": "94.0", "deepscat": "87.3"}
ANGLES = 2, 4, 8, 16, "random"
DIGITS: dict[int, dict] = {  # training digits: further options of the data
    100: {"n_valid": 100},
    1_000: {"n_valid": 200},
    10_000: {},
    50_000: {},
}
MORE_EPOCHS = {100: {"epochs": 500}, 1_000: {"epochs": 80}}  # for at least 1,500 steps
EIGHT = {"epochs": 8}
TEN_DIGITS = {"nines": True, "n_train": 57_000}  # all of MNIST's 60,000, but for 3,000 validation digits

HE, U = "He initialisation of FC", "U[-1, 1] initialisation of FC"
SCATTERING = {"paper": "as printed", "best": "settings by validation"}


def _others(dataset: str, paper: dict[str, str], key: str = "", words: str = "", **more) -> tuple[Row, ...]:
    """Return rows of the baselines that are in `paper`, with both initialisations."""
    rows = []
    for method, name in {"convnet": "ConvNet", "stn": "STN", "harmnet": "HarmNet", "deepscat": "DeepScat"}.items():
        if method in paper:
            kinds = (
                {"best": ""}
                if method == "harmnet"
                else SCATTERING
                if method == "deepscat"
                else {"best": HE, "paper": U}
            )
            rows += [
                Row(
                    f"{key}{method}-{recipe}",
                    ", ".join(filter(None, [f"{words}{name}", kind])),
                    dataset,
                    paper[method],
                    method,
                    recipe,
                    **more,
                )
                for recipe, kind in kinds.items()
            ]
    return tuple(rows)


TABLES = {
    "mnist-012": Table(
        "Table 2 [tab:comparison]: MNIST-012, test digits rotated by any angle",
        (
            Row("paper", AS_PRINTED, "mnist-012", "94 +- 0.42", recipe="paper", data=ALL_012, runs=10),
            Row("repaired", REPAIRED, "mnist-012", "94 +- 0.42", recipe="repaired", data=ALL_012, runs=10),
            Row("achiral", ACHIRAL, "mnist-012", "94 +- 0.42", recipe="achiral", data=ALL_012, runs=10),
            Row("best", BEST, "mnist-012", "94 +- 0.42", data=ALL_012, runs=10),
            Row("best-views", TWO_VIEWS, "mnist-012", "94 +- 0.42", data=ALL_012, runs=10, views=2, model_of="best"),
            Row("paper-turned", f"{AS_PRINTED}, {ON_ROTATED}", "mnist-012", recipe="paper", data=TURNED_012),
            Row("achiral-turned", f"{ACHIRAL}, {ON_ROTATED}", "mnist-012", recipe="achiral", data=TURNED_012),
            Row("best-turned", f"{BEST}, {ON_ROTATED}", "mnist-012", data=TURNED_012),
            *_others("mnist-012", {"convnet": "55 +- 5", "stn": "50 +- 5"}, data=ALL_012, runs=10),
            *_others("mnist-012", {"harmnet": ""}, data=ALL_012),
            *_others("mnist-012", {"deepscat": ""}, data=ALL_012, runs=1, is_fixed=True),
            *_others("mnist-012", {"convnet": "78 +- 2.1", "stn": "93 +- 0.97"}, "turned-", f"{ON_ROTATED}: ",
                     data=TURNED_012),
        ),
        {"mnist-012": TURNED},
        transformations=10,
        quick_data={"all_test": False},
    ),
    "mnist-rot-trans": Table(
        "Table 3 [tab:all_digit]: MNIST-rot and MNIST-trans",
        (
            Row("rot-paper", f"MNIST-rot, {AS_PRINTED}", "mnist-rot", "83.8", recipe="paper"),
            Row("rot-repaired", f"MNIST-rot, {REPAIRED}", "mnist-rot", "83.8", recipe="repaired"),
            Row("rot-achiral", f"MNIST-rot, {ACHIRAL}", "mnist-rot", "83.8", recipe="achiral"),
            Row("rot-pooled", f"MNIST-rot, {POOLED}", "mnist-rot", "83.8", recipe="pooled"),
            Row("rot-best", f"MNIST-rot, {BEST}", "mnist-rot", "83.8"),
            Row("rot-best-views", f"MNIST-rot, {TWO_VIEWS}", "mnist-rot", "83.8", views=2, model_of="rot-best"),
            *_others("mnist-rot", {"convnet": "44.3", "stn": "44.5"}, "rot-", "MNIST-rot, "),
            *_others("mnist-rot", {"harmnet": ""}, "rot-", "MNIST-rot, "),
            *_others("mnist-rot", {"deepscat": ""}, "rot-", "MNIST-rot, 10,000 digits: ", data=FIFTH, runs=1),
            Row("trans-paper", f"MNIST-trans, {AS_PRINTED}", "mnist-trans", "79.6", recipe="paper"),
            Row("trans-repaired", f"MNIST-trans, {REPAIRED}", "mnist-trans", "79.6", recipe="repaired"),
            Row("trans-achiral", f"MNIST-trans, {ACHIRAL}", "mnist-trans", "79.6", recipe="achiral"),
            Row("trans-best", f"MNIST-trans, {BEST}", "mnist-trans", "79.6"),
            *_others("mnist-trans", {"convnet": "43.5", "stn": "67.1"}, "trans-", "MNIST-trans, "),
            *_others("mnist-trans", {"harmnet": ""}, "trans-", "MNIST-trans, "),
            *_others("mnist-trans", {"deepscat": ""}, "trans-", "MNIST-trans, 10,000 digits: ", data=FIFTH, runs=1),
        ),
        {"mnist-rot": TURNED, "mnist-trans": SHIFTED},
        quick_data=FEW_DIGITS,
    ),
    "eth-80": Table(
        "Table 4 [tab:res_eth]: ETH-80",
        (
            Row("nearest", "1 nearest neighbour on pixels", "eth-80", method="nearest", runs=5),
            Row("paper", AS_PRINTED, "eth-80", "95.1", recipe="paper", runs=5),
            Row("repaired", REPAIRED, "eth-80", "95.1", recipe="repaired", runs=5),
            Row("achiral", ACHIRAL, "eth-80", "95.1", recipe="achiral", runs=5),
            Row("best", BEST, "eth-80", "95.1", runs=5),
            *_others("eth-80", ETH_80, runs=5),
            Row("nearest-object", "by object: 1 nearest neighbour on pixels", "eth-80", method="nearest",
                data=BY_OBJECT, over="fold", runs=10),
            Row("achiral-object", f"by object: {ACHIRAL}", "eth-80", recipe="achiral", data=BY_OBJECT, over="fold",
                runs=10),
            Row("best-object", f"by object: {BEST}", "eth-80", data=BY_OBJECT, over="fold", runs=10),
            *_others("eth-80", dict.fromkeys(ETH_80, ""), "object-", "by object: ", data=BY_OBJECT, over="fold",
                     runs=10),
        ),
        {"eth-80": AS_THEY_ARE},
    ),
    "rotations": Table(
        "Last figure [fig:randomrot]: MNIST-rot, 10,000 training digits rotated by one of K angles",
        (
            Row("upright", f"{BEST}, K = 1 (upright)", "mnist-rot", data=FIFTH, changes=EIGHT),
            *(
                Row(f"turned-{k}", f"{BEST}, K = {k}", "mnist-rot", data=FIFTH | {"train_rotations": k}, runs=1,
                    changes=EIGHT)
                for k in ANGLES
            ),
            Row("achiral-upright", f"{ACHIRAL}, K = 1 (upright)", "mnist-rot", recipe="achiral", data=FIFTH),
            *(
                Row(f"achiral-turned-{k}", f"{ACHIRAL}, K = {k}", "mnist-rot", recipe="achiral",
                    data=FIFTH | {"train_rotations": k}, runs=1)
                for k in ANGLES
            ),
            *(
                row
                for k in (1, *ANGLES)
                for row in _others("mnist-rot", {"convnet": "", "stn": ""}, f"turned-{k}-", f"K = {k}: ",
                                   data=FIFTH | {"train_rotations": k}, runs=1)
            ),
        ),
        {"mnist-rot": TURNED},
        quick_data=FEW_DIGITS,
    ),
    "digits": Table(
        "Beyond the paper: rotated digits from 100 to 57,000 training digits",
        (
            *(
                Row(f"best-{n}", f"{BEST}, {n:,} upright digits", "mnist-rot",
                    data={"n_train": n, **more}, changes=(MORE_EPOCHS | {10_000: EIGHT}).get(n, {}))
                for n, more in DIGITS.items()
            ),
            *(
                Row(f"turned-convnet-{n}", f"ConvNet, {n:,} rotated digits", "mnist-rot", method="convnet",
                    data={"n_train": n, **more, "train_rotations": "random"}, changes=MORE_EPOCHS.get(n, {}))
                for n, more in DIGITS.items()
            ),
            Row("best-ten", f"{BEST}, digits 0-9, 57,000 upright digits", "mnist-rot", data=TEN_DIGITS, runs=1,
                changes=EIGHT),
        ),
        {"mnist-rot": TURNED},
        quick_data=FEW_DIGITS,
    ),
}  # fmt: skip
