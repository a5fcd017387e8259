"""Paper and pens: matplotlib when it is needed, colours for every reader, names that can be written."""

from __future__ import annotations

import contextlib
import functools
import io

import numpy as np

from tigra.errors import UsageError

WIDTH = 7.2  # inches: the text width of a printed page, so that letters of 8 points stay 8 points
DPI = 150
# Okabe and Ito's colours, safe for colour-blind readers, without yellow, which is too pale for a line
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = LINES = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
)  # fmt: skip
MARKERS = "osD^vPX"
SEQUENTIAL, SIGNED = "cividis", "RdBu_r"
COUNTS = "viridis"  # no grey in its middle, where grey stands for something else
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.4,
    "image.interpolation": "nearest",
    "svg.hashsalt": "tigra",  # the same figure is the same file
}


@contextlib.contextmanager
def drawing():
    """While this lasts, matplotlib is there, and figures look as they should."""
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError("Figures need matplotlib; install it with: pip install 'tigra[figures]'.") from error
    with matplotlib.rc_context(STYLE):
        yield


def new_figure(height: float, width: float = WIDTH, layout: str | None = "constrained"):
    """An empty figure of this size in inches; no window, no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def as_files(figure, kinds, title: str, description: str) -> dict[str, bytes]:
    """The contents of files of these kinds, "png" and "svg", the same for the same figure."""
    contents = {}
    for kind in kinds:
        content = io.BytesIO()
        facts: dict[str, str | None] = {"Title": title, "Description": description}
        facts |= {"Date": None, "Creator": "tigra"} if kind == "svg" else {"Software": "tigra"}
        figure.savefig(content, format=kind, dpi=DPI, metadata=facts)
        figure.set_layout_engine("none")  # places are found once, and hold for the next kind
        contents[kind] = content.getvalue()
    return contents


@functools.cache
def _known_letters() -> frozenset[int]:
    from matplotlib import font_manager

    path = font_manager.findfont(STYLE["font.family"])
    return frozenset(font_manager.get_font(path).get_charmap())


def written(name: str, longest: int = 18) -> str:
    """A class name as the font can write it, not too long, and never taken for mathematics.

    >>> print(written("cat"), written("price $5"), written("a very long name of a class", longest=11))
    cat price \\$5 a ve...lass
    >>> written("elephant", longest=4)  # no room for dots
    'elep'
    """
    half = (longest - 3) // 2
    if len(name) > longest:
        name = f"{name[:half]}...{name[-half:]}" if half > 0 else name[:longest]
    return "".join(c if ord(c) in _known_letters() else "?" for c in name).replace("$", r"\$")


def line_colours(n_lines: int) -> list:
    """A colour for each of n lines: distinct ones for a few, a range from dark to light for many."""
    if n_lines <= len(LINES):
        return list(LINES[:n_lines])
    from matplotlib import colormaps

    return list(colormaps[SEQUENTIAL](np.linspace(0, 0.92, n_lines)))
