"""Options of `tigra train` that change a recipe: what is not given is left to it."""

from __future__ import annotations

import click

from tigra.architecture import GROUNDS, MIXINGS, MOST_STEPS
from tigra.layers.dense import START_VALUES
from tigra.layers.spatial_transformer import OUTSIDE
from tigra.methods import GRAPH, LAYERS, METHODS
from tigra.notation import parse_architecture
from tigra.optim import SCHEDULES

_FIT = (
    ("--epochs", click.IntRange(min=1), "Passes over the training images."),
    ("--batch-size", click.IntRange(min=1), "Images in a step."),
    ("--learning-rate", click.FloatRange(min=0, min_open=True), "Peak step size of Adam."),
    ("--schedule", click.Choice(SCHEDULES), "Course of the learning rate."),
    ("--weight-decay", click.FloatRange(min=0), "Pull of FC weights towards 0."),
    ("--label-smoothing", click.FloatRange(min=0, max=1, max_open=True), "Share of labels spread over classes."),
    ("--jitter", click.FloatRange(min=0, max=10), "Move training images by up to so many pixels in each epoch."),
    ("--patience", click.IntRange(min=0), "Stop after so many epochs without a better one; 0: never."),
)
_IMAGES = (
    ("--smoothing", click.FloatRange(min=0), "Gaussian blur of the images, in pixels."),
    ("--margin", click.IntRange(min=0), "Frame of zeros around the images, in pixels."),
    ("--ground", click.Choice(GROUNDS), "What is empty: black, or the grey of each image's border."),
)
_GRAPH = (  # of TIGraNet's layers alone
    ("--neighbours", click.Choice(["4", "8"]), "Edges of an inner pixel."),
    ("--diagonal-weight", click.FloatRange(min=0, min_open=True), "Weight of diagonal edges."),
    ("--boundary", click.Choice(["padded", "free"]), "Pixels at the border."),
    ("--active", click.Choice(["map", "union", "all"]), "Active nodes: per map, one set for all, or all nodes."),
    (
        "--mixing",
        click.Choice(MIXINGS),
        "Input maps: weights shared or per filter; a filter per pair, with their gradients, with products of those.",
    ),
    ("--diffusion", click.IntRange(min=0, max=MOST_STEPS), "Steps of smoothing behind each convolution of pairs."),
    ("--floor", click.FloatRange(min=0, max=1), "Least deviation of statistics, as a share of the largest."),
    ("--log", click.FloatRange(min=0, max=1), "Logarithm of statistics plus this share of their deviation; 0: none."),
)
_ARCHITECTURE = ("--architecture", str, "Layers, e.g. 'SC[3, 3]-DP[300]-S[10]-FC[50]'.")
_INIT = ("--init", click.Choice(START_VALUES), "Start values of FC layers.")
_OUTSIDE = ("--outside", click.Choice(OUTSIDE), "What spatial transformers (ST) read outside of their planes.")
_ALL = _ARCHITECTURE, *_FIT, *_IMAGES, *_GRAPH, _INIT, _OUTSIDE


def _names(options) -> tuple[str, ...]:
    return tuple(name.removeprefix("--").replace("-", "_") for name, _, _ in options)


FIT_OPTIONS, GRAPH_OPTIONS = _names(_FIT), _names(_GRAPH)
CONVOLUTION_OPTIONS = "active", "mixing", "diffusion"  # of these, what only SC has a use for
DENSE_OPTIONS = "weight_decay", "init"  # what harmonic networks, which have no FC, have no use for
NETWORK_OPTIONS = _names((_ARCHITECTURE, *_IMAGES, *_GRAPH, _INIT, _OUTSIDE))


def recipe_options(command):
    """Add all of them; their defaults stand in the data set's recipe."""
    for name, kind, text in reversed(_ALL):
        command = click.option(name, type=kind, default=None, show_default="the recipe's", help=text)(command)
    return command


def check_method(method: str, settings: dict) -> None:
    """Complain about settings that the method or the architecture has no use for, before anything is loaded."""
    text = settings["architecture"]
    layers = {item.name for item in parse_architecture(text)} if text is not None else set(LAYERS.get(method, GRAPH))
    if layers & {"W", "PCA"}:
        raise click.UsageError("W and PCA are layers of DeepScat, which is fitted, not trained: use --method deepscat.")
    if foreign := layers - set(LAYERS.get(method, layers)):
        raise click.UsageError(
            f"Method {method} is made of {', '.join(LAYERS[method])}, and has no {min(foreign)}; leave out --method or"
            " change --architecture."
        )
    given = [name for name in NETWORK_OPTIONS + FIT_OPTIONS if settings[name] is not None]
    who = f"Method {method}" if method in METHODS else "This architecture"
    for name in given:
        option = "--" + name.replace("_", "-")
        if name in GRAPH_OPTIONS and not layers & set(GRAPH):
            raise click.UsageError(f"{who} works on pixels, and has no use for {option}; leave it out.")
        if name in CONVOLUTION_OPTIONS and "SC" not in layers:
            raise click.UsageError(f"{option} is for spectral convolutions (SC), and there are none; leave it out.")
        if name in DENSE_OPTIONS and "HRC" in layers and "FC" not in layers:
            raise click.UsageError(f"{option} is for FC layers, and a harmonic network has none; leave it out.")
    if settings["active"] is not None and "DP" not in layers:
        raise click.UsageError("--active chooses among nodes that pooling (DP) leaves, and there is none; leave it out.")
    if settings["neighbours"] == "4" and settings["diagonal_weight"] is not None:
        raise click.UsageError("--diagonal-weight is for 8 neighbours; with --neighbours 4 leave it out.")
    if settings["outside"] is not None and "ST" not in layers:
        raise click.UsageError("--outside is for spatial transformers, as method stn has them; leave it out.")
    if method == "harmnet" and settings["recipe"] != "best":
        raise click.UsageError("--recipe chooses start values of FC layers, and harmnet has none; leave it out.")
