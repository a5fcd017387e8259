"""Rows of small pictures: images with labels, and feature maps with a common scale."""

from __future__ import annotations

import numpy as np

from tigra.figures.canvas import COUNTS, SIGNED, VERMILLION, WIDTH, new_figure, written

LONGEST = 9  # characters of a label in the corner of a tile
NOWHERE = "#d9d9d9"  # nodes that are not active
GAP, BLOCK_GAP, EDGE = 0.05, 0.16, 0.06  # inches between tiles, between blocks of rows, at the edge
LETTER, LINE = 0.069, 0.15  # inches: width and height of a letter of 8 points
NUMBER = 6 / 72  # inches: height of a number of 6 points
BAR = 0.5  # inches for a colour bar with its numbers
FOOT = 0.3  # inches for a colour bar below a column


class TileSheet:
    """A figure with rows of tiles, for pictures of one shape.

    All tiles are in one set of axes, measured in inches, because a hundred sets of axes would take seconds.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the pictures.
    row_labels, heads : list of str
        Text to the left of each row and above each column.
    bars, foot : bool
        Leave room for a colour scale at the end of each row, or below the columns.
    largest : float
        Largest width of a tile in inches.
    block : int
        Number of rows after which there is a wider gap; 0 for none.
    """

    def __init__(
        self, shape, row_labels: list[str], heads: list[str], bars=False, foot=False, largest=1.1, block: int = 0
    ):
        n_rows, n_columns = len(row_labels), len(heads)
        self.left = EDGE + 2 * GAP + LETTER * max(len(line) for label in row_labels for line in label.split("\n"))
        top = EDGE + LINE * max(head.count("\n") + bool(head) for head in heads)
        right = EDGE + (BAR if bars else 0)
        self.tile = min((WIDTH - self.left - right) / n_columns - GAP, largest * max(1.0, shape[1] / shape[0]))
        self.tall = self.tile * shape[0] / shape[1]
        lacking = max(0.0, LINE * max(label.count("\n") + 1 for label in row_labels) - self.tall - GAP)
        gaps = [GAP + lacking + (BLOCK_GAP if block and row % block == 0 else 0) for row in range(1, n_rows)]
        width = self.left + n_columns * (self.tile + GAP) + right
        height = top + n_rows * self.tall + sum(gaps) + lacking / 2 + EDGE + (FOOT if foot else 0)
        self.bottoms = [height - top - (row + 1) * self.tall - sum(gaps[:row]) for row in range(n_rows)]
        self.figure = new_figure(height, width, layout=None)
        self.axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height), autoscale_on=False)
        self.axes.set_axis_off()
        for label, bottom in zip(row_labels, self.bottoms, strict=True):
            self.axes.text(self.left - GAP, bottom + self.tall / 2, label, ha="right", va="center")
        for column, head in enumerate(heads):
            x0, x1, _, y1 = self.place(0, column)
            self.axes.text((x0 + x1) / 2, y1 + 0.03, head, ha="center", va="bottom")

    def place(self, row: int, column: int) -> tuple[float, float, float, float]:
        """Return (left, right, bottom, top) of a tile."""
        x0 = self.left + column * (self.tile + GAP)
        return x0, x0 + self.tile, self.bottoms[row], self.bottoms[row] + self.tall

    def image(self, row: int, column: int, image: np.ndarray) -> None:
        """Draw an image in grey, with 0 black and 1 white."""
        show_image(self.axes, image, extent=self.place(row, column), aspect="auto")

    def map(self, row: int, column: int, values: np.ndarray, largest: float, active: np.ndarray | None = None) -> None:
        """Draw a feature map, blue below 0, red above, grey where not active; mark a map that is all 0."""
        x0, x1, y0, y1 = extent = self.place(row, column)
        show_map(self.axes, values, largest, active, extent=extent, aspect="auto")
        if not values.any():
            self.axes.text((x0 + x1) / 2, (y0 + y1) / 2, "all 0", ha="center", va="center", color="0.4", fontsize=6)

    def counts(self, row: int, column: int, counts: np.ndarray, n_maps: int) -> None:
        """Draw in how many of n maps a node is active, from few (dark) to all (light); white for none."""
        self._show_counts(counts, n_maps, self.place(row, column))

    def count_scale(self, column: int, n_maps: int) -> None:
        """Draw the colour scale of `counts`, 0 to n, below a column."""
        x0, x1, bottom, _ = self.place(len(self.bottoms) - 1, column)
        top = bottom - 0.05
        self._show_counts(np.arange(n_maps + 1)[None], n_maps, (x0, x1, top - 0.08, top))
        for count in {0, 1, n_maps} if n_maps < 8 else {0, n_maps}:
            x = x0 + (x1 - x0) * (count + 0.5) / (n_maps + 1)
            self.axes.text(x, top - 0.1, str(count), ha="center", va="top", fontsize=6)
        self.axes.text(x0 - 0.03, top - 0.04, "maps", ha="right", va="center", fontsize=6)

    def _show_counts(self, counts: np.ndarray, n_maps: int, extent) -> None:
        from matplotlib import colormaps
        from matplotlib.patches import Rectangle

        colours = colormaps[COUNTS].with_extremes(bad="white")
        shown = np.ma.masked_equal(counts, 0)
        self.axes.imshow(shown, cmap=colours, vmin=1, vmax=max(2, n_maps), extent=extent, aspect="auto")
        x0, x1, y0, y1 = extent  # frame the tile, as it may be white
        self.axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor="0.5", linewidth=0.6))

    def corner(self, row: int, column: int, predicted: str, truth: str | None = None, size: float = 7) -> None:
        """Write a word in the lower right corner; if it is not the truth, mark it by a cross and a frame."""
        from matplotlib.patches import Rectangle

        x0, x1, y0, y1 = self.place(row, column)
        is_wrong = truth is not None and truth != predicted
        cross = "✗ " if is_wrong else ""
        box = {"facecolor": VERMILLION if is_wrong else "black", "alpha": 0.85, "linewidth": 0, "pad": 1.2}
        text = self.axes.text(
            x1 - 0.025, y0 + 0.025, cross + written(predicted, LONGEST), ha="right", va="bottom", color="white",
            fontsize=size, bbox=box, zorder=4,
        )  # fmt: skip
        for longest in range(min(LONGEST, len(predicted)) - 1, 0, -1):
            if text.get_window_extent().width / self.figure.dpi <= x1 - x0 - 0.05:  # inches; the rest is for the box
                break
            text.set_text(cross + written(predicted, longest))
        if is_wrong:
            frame = Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, edgecolor=VERMILLION, linewidth=2.2, zorder=3)
            self.axes.add_patch(frame)

    def scale(self, row: int, largest: float) -> None:
        """Draw the colour scale of a row of maps at its end; none if all are 0."""
        if not largest:
            return
        right, bottom = self.place(row, 0)[0] + self._n_columns_wide(), self.bottoms[row]
        extent = right + 0.03, right + 0.11, bottom, bottom + self.tall
        show_map(self.axes, np.linspace(largest, -largest, 64)[:, None], largest, extent=extent, aspect="auto")
        tick = one_digit(largest)
        has_room = self.tall > 0.3
        for value in (-tick, 0, tick) if has_room else (-tick, tick):
            y = bottom + self.tall * (0.5 + 0.5 * value / largest)
            self.axes.plot(extent[1] + np.array([0, 0.02]), [y, y], color="0.3", linewidth=0.6)
            if has_room:  # or the number at the lower end would touch the next row's first
                y = min(max(y, bottom + NUMBER / 2), bottom + self.tall - NUMBER / 2)
            self.axes.text(extent[1] + 0.03, y, f"{value:g}".replace("-", "−"), ha="left", va="center", fontsize=6)

    def _n_columns_wide(self) -> float:
        return self.axes.get_xlim()[1] - self.left - EDGE - BAR


def show_image(axes, image: np.ndarray, **where):
    """Draw an image in grey, with 0 black and 1 white."""
    return axes.imshow(image, cmap="gray", vmin=0, vmax=1, **where)


def show_map(axes, values: np.ndarray, largest: float, active: np.ndarray | None = None, **where):
    """Draw a feature map, blue below 0, red above, grey where not active."""
    from matplotlib import colormaps

    shown, largest = values if active is None else np.ma.masked_where(~active, values), largest or 1.0
    return axes.imshow(shown, cmap=colormaps[SIGNED].with_extremes(bad=NOWHERE), vmin=-largest, vmax=largest, **where)


def largest_size(values: np.ndarray) -> float:
    """Return the limit of a symmetric colour scale that covers all but a few outliers; 0 if all are 0.

    >>> largest_size(np.array([0.0, -2.0, 2.0])), largest_size(np.zeros(3))
    (2.0, 0.0)
    """
    sizes = np.abs(values[values != 0])
    return float(np.percentile(sizes, 99.5)) if sizes.size else 0.0


def one_digit(value: float) -> float:
    """Return the largest number with one significant digit up to a positive value.

    >>> one_digit(0.0378), one_digit(0.5), one_digit(12.0)
    (0.03, 0.5, 10.0)
    """
    unit = 10.0 ** np.floor(np.log10(value))
    return float(f"{np.floor(value / unit + 1e-9) * unit:.0e}")
