"""Figures of training curves and of the confusion matrix."""

from __future__ import annotations

import numpy as np

from tigra.figures.canvas import (
    BLUE,
    SEQUENTIAL,
    VERMILLION,
    WIDTH,
    new_figure,
    written,
)
from tigra.figures.exhibit import Exhibit
from tigra.figures.maps import NothingToShow

MOST_NUMBERED = 20  # largest number of classes with numbers in the cells


def training(exhibit: Exhibit):
    """Draw loss and accuracy over the epochs, on training and validation images."""
    if not exhibit.history:
        raise NothingToShow("the model file has no record of its training")
    epochs = exhibit.history
    numbers = [epoch.number for epoch in epochs]
    best = next(epoch for epoch in reversed(epochs) if epoch.best)
    figure = new_figure(height=2.7)
    left, right = figure.subplots(1, 2)
    room = max(0.5, 0.03 * len(epochs))  # keeps the first epoch off the axis
    marks = {"markersize": 3.5, "markevery": max(1, len(epochs) // 12)}

    def curves(axes, of_training, of_validation):
        axes.plot(numbers, of_training, color=BLUE, marker="o", label="training", **marks)
        axes.plot(numbers, of_validation, "--", color=VERMILLION, marker="s", label="validation", **marks)
        axes.axvline(best.number, color="0.4", linestyle=":", linewidth=1, label=f"best epoch, {best.number}")
        axes.set(xlabel="epoch", xlim=(numbers[0] - room, numbers[-1] + room))
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xticks([tick for tick in axes.get_xticks() if numbers[0] <= tick <= numbers[-1]])

    losses, errors = (np.array([getattr(e, name) for e in epochs]) for name in ("valid_loss", "valid_error"))
    curves(left, [e.loss for e in epochs], losses)
    left.fill_between(numbers, losses - errors, losses + errors, color=VERMILLION, alpha=0.18, linewidth=0)
    left.set(ylabel="loss", ylim=(0, None))
    left.legend()
    curves(right, [100 * e.accuracy for e in epochs], [100 * e.valid_accuracy for e in epochs])
    lowest = 100 * min(min(e.accuracy, e.valid_accuracy) for e in epochs)
    right.set(ylabel="accuracy, %", ylim=(lowest - max(0.5, 0.06 * (101 - lowest)), 101))
    text = (
        f"Loss and accuracy in training on {exhibit.dataset}, {len(epochs)} epochs. Label smoothing, if used, only"
        " affects the loss of training images. The band is the standard error of the validation loss. The dotted line"
        " marks the best epoch, chosen on upright validation images."
    )
    return figure, text


def confusion(exhibit: Exhibit):
    """Draw the confusion matrix."""
    counts = exhibit.confusion
    n_classes, n_images = len(counts), int(counts.sum())
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names = [written(name, 14) for name in exhibit.class_names]
    side = min(WIDTH - 0.8, max(2.9, 0.42 * n_classes + 1.3))
    figure = new_figure(height=side, width=side + 0.8, layout="compressed")
    axes = figure.subplots()
    picture = axes.imshow(100 * shares, cmap=SEQUENTIAL, vmin=0, vmax=100)
    figure.colorbar(picture, ax=axes, fraction=0.045, pad=0.02, label="% of the true class")
    if n_classes <= MOST_NUMBERED:
        for (row, column), count in np.ndenumerate(counts):
            dark = shares[row, column] < 0.5
            axes.text(
                column, row, str(count), ha="center", va="center", color="white" if dark else "black",
                fontsize=9 if n_classes <= 10 else 6.5,
            )  # fmt: skip
    every = -(-n_classes // 30)
    ticks = range(0, n_classes, every)
    is_short = max(map(len, names)) <= 2
    axes.set_xticks(ticks, names[::every], rotation=0 if is_short and n_classes <= 20 else 90)
    axes.set_yticks(ticks, names[::every])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="predicted", ylabel="true", title=f"{100 * exhibit.accuracy:.1f} % of {n_images} correct")
    some = "" if n_images == exhibit.n_available else f" (evenly sampled from {exhibit.n_available})"
    text = (
        f"Confusion matrix on {n_images} test images{some} of {exhibit.dataset}; {exhibit.protocol}. Rows are true"
        " classes, columns predicted ones, colours the share of the row."
    )
    return figure, text
