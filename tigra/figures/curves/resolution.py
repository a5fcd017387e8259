"""The figure of `tigra equivariance`: the mean gap against the down-sampling factor."""

from __future__ import annotations

import io

import numpy as np

STYLES = {"rotation": ("#d55e00", "o", "-"), "shift": ("#009e73", "s", "--")}  # told apart without colour, too
LABELS = {
    "rotation": "rotations by 10, 20, 30, 45 degrees",
    "shift": "shifts by (0.1, 0.1) to (0.4, 0.4) pixels",
}


def require_matplotlib(option: str = "--out") -> None:
    """Raise UsageError if matplotlib is not installed."""
    from tigra.errors import UsageError

    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"Figures need matplotlib; install it with: pip install 'tigra[figures]', or leave out {option}."
        ) from error


def draw(curves: dict, facts: dict) -> dict[str, bytes]:
    """Draw a line for rotations and one for shifts, with the spread over images; return {"png": ..., "svg": ...}."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    means = np.array([[point.mean for point in points] for points in curves.values()])
    for name, points in curves.items():
        colour, marker, line = STYLES[name]
        factors = [point.factor for point in points]
        mean, spread = np.array([[point.mean, point.spread] for point in points]).T
        axes.plot(factors, mean, line, marker=marker, color=colour, label=LABELS[name])
        axes.fill_between(factors, np.maximum(mean - spread, mean / 10), mean + spread, color=colour, alpha=0.2, lw=0)
    if means.min() > 0 and means.max() > 30 * means.min():
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xticks(factors)
    axes.set_xlabel("down-sampling factor t")
    axes.set_ylabel("mean equivariance gap, grey levels")
    kind = "band-limited random images" if facts["source"].startswith("band-limited") else "photographs"
    nodes = "away from the border" if facts["frame"] == "inner" else "whole frame"
    smoothed = ", smoothed first" if facts["antialias"] else ""
    axes.set_title(f"{facts['images']} {kind}, {nodes}, {facts['interpolation']} interpolation{smoothed}", fontsize=10)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=9)
    caption = "The paper's Figure 11, fig:rotationresult: influence of the image resolution on quasi-equivariance;"
    figure.supxlabel(f"{caption}\nshaded: one standard deviation over images", fontsize=8)
    contents = {}
    with rc_context({"svg.hashsalt": "tigra"}):  # makes files reproducible
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
            contents[kind] = buffer.getvalue()
    return contents
