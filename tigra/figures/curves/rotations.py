"""The figures of `tigra reproduce`: accuracy against the number of training rotations (K), or of training digits."""

from __future__ import annotations

import io
import statistics
from pathlib import Path

from tigra.errors import UsageError

STYLES = {  # (method, recipe): colour, marker and its inside, line, label; distinct without colour, too
    ("tigranet", "best"): ("#d55e00", "o", "#d55e00", "-", "TIGraNet"),
    ("tigranet", "achiral"): ("#d55e00", "o", "white", ":", "TIGraNet, achiral"),
    ("convnet", "best"): ("#0072b2", "s", "#0072b2", "-", "ConvNet, He initialisation"),
    ("convnet", "paper"): ("#0072b2", "s", "white", ":", "ConvNet, U[-1, 1]"),
    ("stn", "best"): ("#009e73", "^", "#009e73", "--", "STN, He initialisation"),
    ("stn", "paper"): ("#009e73", "^", "white", ":", "STN, U[-1, 1]"),
}
METADATA = {  # without dates, so that files are reproducible
    "png": {},
    "svg": {"Date": None, "Creator": "tigra", "Title": "Accuracy on rotated digits"},
    "pdf": {"CreationDate": None, "Creator": "tigra", "Title": "Accuracy on rotated digits"},
}


def axis_of(table) -> str:
    """Return which option of the data differs from row to row: "n_train" or "train_rotations"."""
    return "n_train" if len({row.data.get("n_train") for row in table.rows}) > 1 else "train_rotations"


def curves(experiment) -> dict[tuple[str, str], dict[str, tuple[float, float]]]:
    """Return mean and deviation over the finished runs in percent, by (method, recipe) and place on the axis."""
    test = next(iter(experiment.table.tests["mnist-rot"]))
    found: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for row in (row for row in experiment.finished_rows() if "nines" not in row.data):
        records = [record for n in experiment.numbers(row) if (record := experiment.record(row, n))]
        shares = [record["accuracy"]["test"].get(test) for record in records]
        values = [100 * statistics.mean(share) for share in shares if share]
        if not values:
            continue
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        place = str(row.data.get(axis_of(experiment.table), 1))
        found.setdefault((row.method, row.recipe), {})[place] = statistics.mean(values), spread
    return found


def check_ending(path: str) -> str:
    """Return the format of a file name; raise UsageError unless it is png, svg or pdf."""
    ending = Path(path).suffix.removeprefix(".").lower()
    if ending not in ("png", "svg", "pdf"):
        raise UsageError(f"The file of a figure must end in .png, .svg or .pdf, got {path!r}.")
    return ending


def draw(experiment, path: str) -> bytes:
    """Draw the curves; return the content of a PNG, SVG or PDF file, by the ending of its name."""
    from matplotlib import rc_context

    kind, buffer = check_ending(path), io.BytesIO()
    with rc_context({"svg.hashsalt": "tigra"}):
        figure_of(experiment).savefig(buffer, format=kind, dpi=150, metadata=METADATA[kind])
    return buffer.getvalue()


def figure_of(experiment):
    """Draw the curves as a matplotlib figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = curves(experiment)
    every = sorted({k for line in lines.values() for k in line}, key=lambda k: int(k) if k.isdigit() else 10**9)
    figure = Figure(figsize=(6.4, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    of_digits = axis_of(experiment.table) == "n_train"
    for key in (key for key in STYLES if key in lines):
        colour, marker, inside, dashes, words = STYLES[key]
        trained = "upright" if key[0] == "tigranet" else "rotated"
        words = f"{words}, {trained} digits" if of_digits else words
        _plot(axes, every, lines[key], colour, marker, inside, dashes, words)
    if upright := lines.get(("tigranet", "best"), {}).get("1"):
        axes.axhline(upright[0], color="#d55e00", linewidth=0.8, alpha=0.6)
    names = {"random": "any"} | {k: f"{int(k):,}" for k in every if k.isdigit()}
    axes.set_xticks(range(len(every)), [names[k] for k in every])
    axes.set_xlabel("training digits" if of_digits else "K, angles of training digits")
    axes.set_ylabel("accuracy on digits at any angle, %")
    axes.grid(True, alpha=0.3)
    figure.legend(loc="outside upper center", ncols=3, fontsize=9)  # outside, so that it hides no line
    figure.supxlabel(_caption(experiment, lines), fontsize=8)
    return figure


def _plot(axes, every, line, colour, marker, inside, dashes, words) -> None:
    """Draw the line of one method, with error bars if there are several runs."""
    places = [place for place, k in enumerate(every) if k in line]
    mean = [line[every[place]][0] for place in places]
    axes.plot(places, mean, color=colour, marker=marker, markerfacecolor=inside, linestyle=dashes, label=words)
    several = [place for place in places if line[every[place]][1] > 0]
    if several:
        middle, reach = zip(*(line[every[place]] for place in several), strict=True)
        axes.errorbar(several, middle, reach, color="black", linestyle="none", capsize=3, zorder=3)  # above the marker


def _caption(experiment, lines) -> str:
    """Return the caption."""
    n_digits = {experiment.settings(row, 0)["data"].get("n_train") for row in experiment.rows}
    digits = f", {n_digits.pop():,} training digits" if len(n_digits) == 1 and None not in n_digits else ""
    test = next(iter(experiment.table.tests["mnist-rot"]))
    first = (
        "Digits 0-8" if axis_of(experiment.table) == "n_train" else f"The paper's last figure, fig:randomrot{digits}"
    )
    text = [f"{first}, test digits rotated with {test} interpolation"]
    marks = []
    if "1" in lines.get(("tigranet", "best"), {}):
        marks.append("thin line: TIGraNet trained on upright digits only")
    if any(deviation > 0 for line in lines.values() for _, deviation in line.values()):
        marks.append("bars: one standard deviation over runs")
    text += ["; ".join(marks)] if marks else []
    return "\n".join([*text, "QUICK: the numbers mean nothing"] if experiment.quick else text)
