"""Figures of the graph and of the filters in the spectral domain."""

from __future__ import annotations

import numpy as np

from tigra.figures.canvas import (
    MARKERS,
    SEQUENTIAL,
    VERMILLION,
    line_colours,
    new_figure,
)
from tigra.figures.exhibit import Exhibit
from tigra.figures.inspection import FilterBank, filter_banks, highest_frequency, spread
from tigra.figures.maps import NothingToShow, framed
from tigra.figures.tiles import show_image
from tigra.graph import GridGraph
from tigra.layers import OrientedConv

WINDOW = 7  # side of the part of the graph that is drawn, in nodes
MOST_BANKS = 4


def graph(exhibit: Exhibit):
    """Draw an image, some of its pixels as nodes with edges, and a row of the Laplacian."""
    network, grid = exhibit.network, exhibit.network.graph
    assert isinstance(grid, GridGraph)  # an exhibit has no other
    image, margin = framed(exhibit.subject_image, network.options.margin), network.options.margin
    top, left, height, width = _liveliest_window(exhibit.subject_image)
    top, left = top + margin, left + margin
    figure = new_figure(height=2.75)
    whole, part, row = figure.subplots(1, 3)
    show_image(whole, image)
    from matplotlib.patches import Rectangle

    whole.add_patch(Rectangle((left - 0.5, top - 0.5), width, height, fill=False, edgecolor=VERMILLION, linewidth=1.8))
    whole.set_title(f"image with margin, {image.shape[0]}x{image.shape[1]}")
    _nodes_and_edges(part, grid, image, (top, left, height, width))
    part.set_title("the framed part as a graph")
    _laplacian_row(row, grid)
    row.set_title("L at an inner node")
    for axes in (whole, part, row):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    text = (
        f"An image as a signal on a grid graph of {grid.n_nodes} nodes: every pixel (with the margin of"
        f" {margin} pixels) is a node, with edges to its {grid.neighbours} neighbours; line widths"
        f" show their weights, 1 straight{f' and {grid.diagonal_weight:g} diagonal' if grid.neighbours == 8 else ''}."
        " Right: the row of the Laplacian L = I - D^(-1/2) A D^(-1/2) at an inner node."
    )
    return figure, text + _about_orientation(network)


def _about_orientation(network) -> str:
    """Return what a caption says of orientation and of further grids; nothing if the network has neither."""
    text = ""
    if any(isinstance(layer, OrientedConv) for layer in network.layers):
        text += (
            " Oriented convolutions also know in which order the neighbours follow each other around a node, clockwise,"
            " so they can tell left from right."
        )
    coarse = [layer.coarse_shape for layer in network.layers if hasattr(layer, "coarse_shape")]
    if coarse:
        sizes = " and then one of ".join(f"{height}x{width}" for height, width in coarse)
        text += f" Coarsening (GC) makes a grid of {sizes} nodes for the layers that follow."
    return text


def _liveliest_window(image: np.ndarray) -> tuple[int, int, int, int]:
    """Return (top, left, height, width) of the part whose pixels vary most; in case of ties, the first."""
    height, width = (min(WINDOW, size) for size in image.shape)
    windows = np.lib.stride_tricks.sliding_window_view(image, (height, width))
    top, left = np.unravel_index(windows.var(axis=(2, 3)).argmax(), windows.shape[:2])
    return int(top), int(left), height, width


def _nodes_and_edges(axes, grid, image, window) -> None:
    from matplotlib.collections import LineCollection

    top, left, height, width = window
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    moves = [((0, 1), 1.0), ((1, 0), 1.0)]
    if grid.neighbours == 8:
        moves += [((1, 1), grid.diagonal_weight), ((1, -1), grid.diagonal_weight)]
    heaviest = max(weight for _, weight in moves)
    for (down, right), weight in moves:
        ends = columns + right, rows + down
        inside = (ends[0] >= 0) & (ends[0] < width) & (ends[1] < height)
        pairs = np.stack([np.stack([columns, rows], -1)[inside], np.stack(ends, -1)[inside]], axis=1)
        line_width = max(0.4, 2.2 * weight / heaviest)
        axes.add_collection(LineCollection(pairs, colors="0.55", linewidths=line_width, zorder=1))
    values = image[top : top + height, left : left + width]
    axes.scatter(columns, rows, c=values, cmap="gray", vmin=0, vmax=1, s=95, edgecolors="0.3", linewidths=0.8, zorder=2)
    axes.set(xlim=(-0.6, width - 0.4), ylim=(height - 0.4, -0.6), aspect="equal")


def _laplacian_row(axes, grid) -> None:
    """Draw the entries of L at the middle node of the grid, as a 3x3 stencil."""
    height, width = grid.shape
    place = np.zeros((height, width))
    place[height // 2, width // 2] = 1
    reached = np.pad((grid.laplacian @ place.ravel()).reshape(height, width), 1)
    stencil = reached[height // 2 : height // 2 + 3, width // 2 : width // 2 + 3]
    axes.imshow(stencil, cmap="RdBu_r", vmin=-1.6, vmax=1.6)
    for (down, right), entry in np.ndenumerate(stencil):
        axes.text(right, down, f"{entry + 0.0:.3g}", ha="center", va="center", fontsize=9)


def filters(exhibit: Exhibit):
    """Draw the response of every filter over the spectrum, learned and at the start."""
    from matplotlib.lines import Line2D

    banks = filter_banks(exhibit.network)
    if not banks:
        raise NothingToShow("the network has no spectral layer")
    banks = [banks[i] for i in spread(len(banks), MOST_BANKS)]
    by_graph = {bank.graph: highest_frequency(bank.graph) for bank in banks}
    edges = [by_graph[bank.graph] for bank in banks]
    n_columns = min(2, len(banks))
    n_rows = -(-len(banks) // n_columns)
    figure = new_figure(height=2.95 * n_rows, width=3.6 * n_columns + (0.4 if n_columns == 1 else 0))
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    for place in axes.flat[len(banks) :]:
        place.set_visible(False)
    for place, bank, edge in zip(axes.flat, banks, edges, strict=False):
        _responses(figure, place, bank, edge)
    for place in axes[:, 0]:
        place.set_ylabel("response h(λ)")
    kinds = [Line2D([], [], color="0.3", label="learned"), Line2D([], [], color="0.3", ls="--", lw=0.9, label="start")]
    figure.legend(handles=kinds, loc="outside lower center", ncols=2)
    moved = max(
        float(np.abs(bank.learned - bank.start)[:, bank.frequencies <= edge].max())
        for bank, edge in zip(banks, edges, strict=True)
    )
    what = "Filters of the spectral layers over the graph's frequencies."
    if any(bank.is_oriented for bank in banks):
        what += (
            " Every pair of maps has its own filter in an oriented convolution (OC). Line i is the sum of its filters"
            " over all input maps, which is the response to equal input maps before batch normalisation. The products"
            " of gradients that such a layer adds are not filters and are left out."
        )
    if any(bank.is_sum and not bank.is_oriented for bank in banks):
        what += (
            " Every pair of maps has its own filter here. Line i is the sum of its filters over all input maps,"
            " divided by the layer's s_i, which is the response to equal input maps before threshold and ReLU."
            " Squared gradients of maps, which such a layer may add, are not filters and are left out."
        )
    text = (
        f"{what} Solid: learned; dashed: at the start of training"
        " (rebuilt from the architecture and the seed). Training changed a response by up to"
        f" {moved:.2g}. Grey: {_beyond(edges)} no frequencies."
    )
    return figure, text


def _beyond(edges: list[float]) -> str:
    """Return where the frequencies end, for one grid or for grids of several sizes.

    >>> _beyond([1.6, 1.6]), _beyond([1.599, 1.58])
    ('beyond 1.60 this grid has', 'beyond 1.60 and 1.58 the grids of the layers have')
    """
    ends = list(dict.fromkeys(f"{edge:.2f}" for edge in edges))
    if len(ends) == 1:
        return f"beyond {ends[0]} this grid has"
    return f"beyond {', '.join(ends[:-1])} and {ends[-1]} the grids of the layers have"


def _responses(figure, axes, bank: FilterBank, edge: float) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    n_filters, colours = len(bank.learned), line_colours(len(bank.learned))
    is_few = n_filters <= len(MARKERS)
    for i, colour in enumerate(colours):
        marks = {"marker": MARKERS[i], "markevery": (4 + 5 * i, 40), "markersize": 4} if is_few else {}
        axes.plot(bank.frequencies, bank.learned[i], color=colour, label=str(i + 1) if i else "filter 1", **marks)
        axes.plot(bank.frequencies, bank.start[i], "--", color=colour, linewidth=0.9)
    if edge < 1.99:
        axes.axvspan(edge, 2, color="0.92", zorder=0)
    axes.axhline(0, color="0.5", linewidth=0.6, zorder=0)
    inside = np.concatenate([bank.learned, bank.start])[:, bank.frequencies <= edge]
    room = 0.06 * max(float(np.ptp(inside)), 1e-3)
    axes.set(xlim=(0, 2), ylim=(inside.min() - room, inside.max() + room), xlabel="frequency λ")
    kind = "\nsum over input maps" + (", not normalised" if bank.is_oriented else " / $s_i$, unrectified")
    axes.set_title(f"layer {bank.number}, {bank.name}" + (kind if bank.is_sum else ""))
    if is_few:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=7, columnspacing=1, handlelength=1.8)
        return
    mappable = ScalarMappable(Normalize(1, 1 + (n_filters - 1) / 0.92), SEQUENTIAL)
    bar = figure.colorbar(mappable, ax=axes, boundaries=np.arange(0.5, n_filters + 1), aspect=25, pad=0.02)
    bar.set_ticks(1 + spread(n_filters, 4))
    bar.set_label("filter")
