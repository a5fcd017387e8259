"""Options of `tigra train` that change a recipe: what is not given is left to it."""

from __future__ import annotations

import click

from tigra.architecture import GROUNDS, MIXINGS, MOST_STEPS
from tigra.layers.dense import START_VALUES
from tigra.layers.spatial_transformer import OUTSIDE
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
NETWORK_OPTIONS = _names((_ARCHITECTURE, *_IMAGES, *_GRAPH, _INIT, _OUTSIDE))


def recipe_options(command):
    """Add all of them; their defaults stand in the data set's recipe."""
    for name, kind, text in reversed(_ALL):
        command = click.option(name, type=kind, default=None, show_default="the recipe's", help=text)(command)
    return command
