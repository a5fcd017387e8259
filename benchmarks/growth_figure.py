"""The curves of `bench_growth` as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def draw(curves: dict, folder: Path | None, say) -> None:
    """Write growth.png and growth.svg into the folder.

    curves : (what grows, layer) -> (sizes, seconds, exponent)
    """
    if folder is None:
        say("\nNo figure: give a folder with --out.")
        return
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        say("\nNo figure. Figures need matplotlib; install it with: pip install 'tigra[figures]'.")
        return
    labels = list(dict.fromkeys(label for label, _ in curves))
    figure = Figure(figsize=(13, 8), layout="constrained")
    FigureCanvasAgg(figure)
    for place, label in enumerate(labels, start=1):
        axes = figure.add_subplot(2, -(-len(labels) // 2), place)
        _panel(axes, label, {name: curve for (what, name), curve in curves.items() if what == label})
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("png", "svg"):
        figure.savefig(folder / f"growth.{kind}", dpi=120)
    say(f"\nDrawn: {folder / 'growth.png'} and growth.svg.")


COLOURS = {
    "SpectralConv": "#0072b2",
    "DynamicPool": "#d55e00",
    "Statistics": "#009e73",
    "OrientedConv": "#cc79a7",
    "MapNorm": "#e69f00",
    "Coarsen": "#56b4e9",
}


def _panel(axes, label: str, curves: dict) -> None:
    """One size that grows, all layers that depend on it, and a dotted line of slope 1 through each one's end."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for name, (sizes, seconds, slope) in curves.items():
        sizes, milliseconds = np.asarray(sizes, float), 1e3 * np.asarray(seconds)
        colour = COLOURS.get(name)
        axes.loglog(sizes, milliseconds, "o-", color=colour, markersize=4, label=f"{name}, exponent {slope:.2f}")
        axes.loglog(sizes, milliseconds[-1] * sizes / sizes[-1], ":", color=colour, linewidth=1)
    axes.set_xticks(sizes[:: -(-len(sizes) // 6)])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel(label)
    axes.set_ylabel("forward + backward, ms")
    axes.set_title(f"cost over {label}")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(fontsize=8)
