"""Accuracy on MNIST's test digits against the angle by which all of them are rotated, from 0 to 360 degrees.

    python -m benchmarks.angles NAME=MODEL [NAME=MODEL ...] [--views 1] [--keep] [--step 15] [--data-dir FOLDER]
                                [--out FOLDER]

Models are files of `tigra train mnist-rot` or `tigra reproduce mnist-rot-trans`; NAME is what the figure calls them.
Writes angles.json and angles.png to the folder; --keep adds the curves to those that are there. With --views 2, scores
are averaged over two views (`tigra.training.views`). The figure needs matplotlib. Nothing is trained.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path

import numpy as np

from tigra.datasets.loading import load_dataset
from tigra.errors import TigraError, UsageError
from tigra.figures.curves.resolution import require_matplotlib
from tigra.files.atomic import write_atomically
from tigra.images.transforms import rotate
from tigra.model_file import load_model
from tigra.models.classifier import Classifier, accuracy
from tigra.training.views import Views

LINES = ("#d55e00", "-"), ("#0072b2", "--"), ("#009e73", "-."), ("#cc79a7", ":")  # told apart without colour, too
LEAST_SHOWN = 96  # percent, in the second panel


def by_angle(model, images: np.ndarray, labels: np.ndarray, angles: list[int], threads: int, tell) -> list[float]:
    """Percent of right labels at each angle, with cubic interpolation."""
    found = []
    for angle in angles:
        tell(f"{angle} degrees")
        turned = rotate(images, np.full(len(images), float(angle)), "cubic") if angle % 360 else images
        found.append(round(100 * accuracy(model, (turned, labels), threads), 2))
    return found


def figure(angles: list[int], curves: dict[str, list[float]]) -> bytes:
    """The curves as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(9.6, 4.2), layout="constrained")
    FigureCanvasAgg(drawn)
    for axes, lowest in zip(drawn.subplots(1, 2), (0, LEAST_SHOWN), strict=True):
        lines = []
        for (name, values), (colour, dashes) in zip(curves.items(), LINES, strict=False):
            lines += axes.plot(angles, values, color=colour, linestyle=dashes, label=name)
        axes.set_xticks(range(0, 361, 45))
        axes.set_xlim(0, 360)
        axes.set_ylim(lowest, 100)
        axes.set_xlabel("rotation of all test digits, degrees")
        axes.set_ylabel("accuracy, %")
        axes.grid(True, alpha=0.3)
    drawn.legend(handles=lines, loc="outside upper center", ncols=len(lines), fontsize=9)
    buffer = io.BytesIO()
    drawn.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def main() -> None:
    """Measure all models at all angles, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL")
    parser.add_argument("--views", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--step", type=int, default=15)
    parser.add_argument("--data-dir")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    options = parser.parse_args()
    if not 1 <= options.step <= 180 or 360 % options.step:
        parser.error(f"--step must divide 360, got {options.step}")
    pairs = [text.rpartition("=") for text in options.models]
    if any(not name or not path for name, _, path in pairs) or len(pairs) > len(LINES):
        parser.error(f"give one to {len(LINES)} models as NAME=MODEL, got {' '.join(options.models)}")
    try:
        _run({name: path for name, _, path in pairs}, options)
    except (TigraError, OSError) as error:
        sys.exit(f"Error: {error}")


def _run(paths: dict[str, str], options) -> None:
    require_matplotlib()
    models: dict[str, Classifier] = {name: load_model(path).network for name, path in paths.items()}
    if options.views != 1:
        models = {name: Views(model, options.views) for name, model in models.items()}
    digits = load_dataset("mnist-rot", data_dir=options.data_dir, n_train=1, n_valid=1).test_upright
    for name, model in models.items():
        if model.options.image_shape != digits.images.shape[1:]:
            raise UsageError(f"{name} is not for the images of MNIST-rot, {digits.images.shape[1:]}.")
    angles = list(range(0, 361, options.step))
    curves = _kept(options.out / "angles.json", angles, len(digits.labels)) if options.keep else {}
    if len(curves | models) > len(LINES):
        raise UsageError(f"The figure has room for {len(LINES)} curves, got {', '.join(curves | models)}.")
    for name, model in models.items():

        def tell(what: str, name: str = name) -> None:
            print(f"\r\x1b[K{name}: {what}", end="", file=sys.stderr, flush=True)

        curves[name] = by_angle(model, digits.images, digits.labels, angles, options.threads, tell)
        print(f"\r\x1b[K{name}: {min(curves[name]):.1f} to {max(curves[name]):.1f} %", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    content = {"digits": len(digits.labels), "interpolation": "cubic", "angles": angles, "accuracy": curves}
    write_atomically(options.out / "angles.json", (json.dumps(content, indent=1) + "\n").encode())
    write_atomically(options.out / "angles.png", figure(angles, curves))


def _kept(path: Path, angles: list[int], n_digits: int) -> dict[str, list[float]]:
    """The curves of an earlier call; they must be of the same digits, angles and interpolation."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        same = found["angles"] == angles and found["interpolation"] == "cubic" and found["digits"] == n_digits
        curves = {str(name): [float(value) for value in values] for name, values in found["accuracy"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} is damaged, or not of this benchmark; leave out --keep.") from error
    if not same:
        raise UsageError(f"{path} has other angles or digits; leave out --keep, or give its --step.")
    return curves


if __name__ == "__main__":
    main()
