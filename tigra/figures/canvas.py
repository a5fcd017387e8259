"""Style of the figures: matplotlib settings, colours, and text that the font can show."""

from __future__ import annotations

import contextlib
import functools
import io

import numpy as np

from tigra.errors import UsageError

WIDTH = 7.2  # inches, the text width of a printed page
DPI = 150
# colours of Okabe and Ito, safe for colour-blind readers; yellow is too pale for lines
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = LINES = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
)  # fmt: skip
MARKERS = "osD^vPX"
SEQUENTIAL, SIGNED = "cividis", "RdBu_r"
COUNTS = "viridis"  # no grey, which has another meaning
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
    "svg.hashsalt": "tigra",  # makes files reproducible
}


@contextlib.contextmanager
def drawing():
    """Context manager that sets the style of figures; raises UsageError without matplotlib."""
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError("Figures need matplotlib; install it with: pip install 'tigra[figures]'.") from error
    with matplotlib.rc_context(STYLE):
        yield


def new_figure(height: float, width: float = WIDTH, layout: str | None = "constrained"):
    """Return an empty figure of this size in inches, without a window or global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def as_files(figure, kinds, title: str, description: str) -> dict[str, bytes]:
    """Return the contents of files of these kinds, "png" and "svg"; they are reproducible."""
    contents = {}
    for kind in kinds:
        content = io.BytesIO()
        facts: dict[str, str | None] = {"Title": title, "Description": description}
        facts |= {"Date": None, "Creator": "tigra"} if kind == "svg" else {"Software": "tigra"}
        figure.savefig(content, format=kind, dpi=DPI, metadata=facts)
        figure.set_layout_engine("none")  # keep the layout for the next kind
        contents[kind] = content.getvalue()
    return contents


@functools.cache
def _known_letters() -> frozenset[int]:
    from matplotlib import font_manager

    path = font_manager.findfont(STYLE["font.family"])
    return frozenset(font_manager.get_font(path).get_charmap())


def written(name: str, longest: int = 18) -> str:
    """Return a class name that the font can show, shortened, with $ escaped.

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
    """Return n colours: distinct ones for a few lines, from dark to light for many."""
    if n_lines <= len(LINES):
        return list(LINES[:n_lines])
    from matplotlib import colormaps

    return list(colormaps[SEQUENTIAL](np.linspace(0, 0.92, n_lines)))
