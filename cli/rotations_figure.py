"""The figure of `tigra reproduce rotations`: accuracy over the number K of angles of the training digits."""

from __future__ import annotations

import io
import statistics

from tigra.errors import UsageError

STYLES = {  # (method, recipe): colour, marker, line, words; told apart without colour, too
    ("tigranet", "best"): ("#d55e00", "o", "-", "TIGraNet"),
    ("convnet", "best"): ("#0072b2", "s", "-", "ConvNet, He's start values"),
    ("convnet", "paper"): ("#0072b2", "s", ":", "ConvNet, U[-1, 1]"),
    ("stn", "best"): ("#009e73", "^", "--", "STN, He's start values"),
    ("stn", "paper"): ("#009e73", "^", ":", "STN, U[-1, 1]"),
}


def curves(experiment) -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """Of each method and recipe, for each K as text, mean and deviation over its finished runs, in percent."""
    test, found = next(iter(experiment.table.tests["mnist-rot"])), {}
    for row in experiment.finished_rows():
        records = [record for n in range(experiment.n_runs(row)) if (record := experiment.record(row, n))]
        shares = [record["accuracy"]["test"].get(test) for record in records]
        values = [100 * statistics.mean(share) for share in shares if share]
        if not values:
            continue
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        n_angles = str(row.data.get("train_rotations", 1))
        found.setdefault((row.method, row.recipe), {})[n_angles] = statistics.mean(values), spread
    return found


def check_ending(path: str) -> str:
    """What kind of picture a file's name asks for; UsageError if it is none of ours."""
    ending = path.rpartition(".")[2].lower()
    if ending not in ("png", "svg", "pdf"):
        raise UsageError(f"A figure is written as .png, .svg or .pdf, got {path!r}.")
    return ending


def draw(experiment, path: str) -> bytes:
    """A picture of the curves, as PNG, SVG or PDF by the ending of the file's name."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = curves(experiment)
    every = sorted({k for line in lines.values() for k in line}, key=lambda k: int(k) if k.isdigit() else 10**9)
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for key, line in lines.items():
        colour, marker, dashes, words = STYLES[key]
        places = [place for place, k in enumerate(every) if k in line]
        mean, spread = zip(*(line[every[place]] for place in places), strict=True)
        axes.errorbar(places, mean, spread, color=colour, marker=marker, linestyle=dashes, label=words, capsize=3)
    if upright := lines.get(("tigranet", "best"), {}).get("1"):
        axes.axhline(upright[0], color="#d55e00", linewidth=0.8, alpha=0.6)
    axes.set_xticks(range(len(every)), ["any" if k == "random" else k for k in every])
    axes.set_xlabel("K, angles of training digits")
    axes.set_ylabel("accuracy on digits at any angle, %")
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=9)
    caption = "The paper's last figure, fig:randomrot; thin line: TIGraNet trained on upright digits alone"
    figure.supxlabel(caption, fontsize=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=check_ending(path), dpi=150)
    return buffer.getvalue()
