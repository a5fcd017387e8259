"""Rows of small pictures: images with their labels, feature maps with a common scale."""

from __future__ import annotations

import numpy as np

from tigra.figures.canvas import SIGNED, VERMILLION, WIDTH, new_figure, written

LONGEST = 9  # letters of a label in the corner of a tile
NOWHERE = "#d9d9d9"  # nodes that are not active
GAP, BLOCK_GAP, EDGE = 0.05, 0.16, 0.06  # inches between tiles, between blocks of rows, around all
LETTER, LINE = 0.069, 0.15  # inches: width and height of a letter of 8 points
BAR = 0.5  # inches for a colour bar with its numbers


def tile_sheet(shape, row_labels: list[str], heads: list[str], bars: bool = False, largest=1.1, block: int = 0):
    """(figure, axes (rows, columns), bar axes): a sheet of tiles for pictures of this shape (height, width).

    row_labels, heads : words to the left of each row, and above each column
    bars : leave room for a colour bar at the end of each row
    largest : the most inches a tile is wide; block : after so many rows comes a wider gap

    Places are reckoned, not searched for: laying out a hundred tiles automatically takes seconds.
    """
    n_rows, n_columns = len(row_labels), len(heads)
    left = EDGE + GAP + LETTER * max(len(line) for label in row_labels for line in label.split("\n"))
    top = EDGE + LINE * max(head.count("\n") + bool(head) for head in heads)
    right = EDGE + (BAR if bars else 0)
    tile = min((WIDTH - left - right) / n_columns - GAP, largest * max(1.0, shape[1] / shape[0]))
    tall = tile * shape[0] / shape[1]
    gaps = [GAP + (BLOCK_GAP if block and row % block == 0 else 0) for row in range(n_rows)]
    width = left + n_columns * (tile + GAP) + right
    height = top + n_rows * tall + sum(gaps[1:]) + EDGE
    figure = new_figure(height, width, layout=None)
    axes, bar_axes = np.empty((n_rows, n_columns), object), []
    for row in range(n_rows):
        bottom = (height - top - (row + 1) * tall - sum(gaps[1 : row + 1])) / height
        for column in range(n_columns):
            place = (left + column * (tile + GAP)) / width, bottom, tile / width, tall / height
            axes[row, column] = figure.add_axes(place, xticks=[], yticks=[])
            axes[row, column].spines[:].set_visible(False)
        axes[row, 0].set_ylabel(row_labels[row], rotation=0, ha="right", va="center", labelpad=4)
        if bars:
            bar_axes.append(figure.add_axes(((width - right) / width, bottom, 0.08 / width, tall / height)))
    for place, head in zip(axes[0], heads, strict=True):
        place.set_title(head, fontsize=8, pad=3)
    return figure, axes, bar_axes


def show_image(axes, image: np.ndarray):
    """An image in grey, 0 black and 1 white."""
    return axes.imshow(image, cmap="gray", vmin=0, vmax=1)


def show_map(axes, values: np.ndarray, largest: float, active: np.ndarray | None = None):
    """A feature map, blue below 0 and red above; grey where it is not active."""
    from matplotlib import colormaps

    shown = values if active is None else np.ma.masked_where(~active, values)
    return axes.imshow(shown, cmap=colormaps[SIGNED].with_extremes(bad=NOWHERE), vmin=-largest, vmax=largest)


def largest_size(values: np.ndarray) -> float:
    """The end of a colour scale: all but a few outliers lie within, and 0 is in the middle.

    >>> largest_size(np.array([0.0, -2.0, 2.0])), largest_size(np.zeros(3))
    (2.0, 1.0)
    """
    sizes = np.abs(values[values != 0])
    return float(np.percentile(sizes, 99.5)) if sizes.size else 1.0


def corner_label(axes, predicted: str, truth: str | None = None, size: float = 7) -> None:
    """The predicted class in the lower right corner; if it is wrong, marked by a cross, a frame and the truth."""
    is_wrong = truth is not None and truth != predicted
    text = f"✗ {written(predicted, LONGEST)}" if is_wrong else written(predicted, LONGEST)
    box = {"facecolor": VERMILLION if is_wrong else "black", "alpha": 0.85, "linewidth": 0, "pad": 1.2}
    axes.text(
        0.97, 0.03, text, transform=axes.transAxes, ha="right", va="bottom", color="white", fontsize=size, bbox=box
    )
    if is_wrong:
        axes.spines[:].set(visible=True, color=VERMILLION, linewidth=2.2)


def colour_bar(figure, picture, bar_axes) -> None:
    """The scale of a row of maps."""
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(picture, cax=bar_axes)
    bar.locator = MaxNLocator(3, symmetric=True)
    bar.update_ticks()
    bar_axes.tick_params(labelsize=6, length=2, pad=1)
    bar.outline.set_visible(False)
