"""The report as one HTML page: no other file, no script, nothing from elsewhere; light and dark."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from PIL import Image

from tigra.experiments.report.counts import Counts, Outcomes

SHADES = 10  # of the cells of the confusion matrix
N_MISTAKES = 24  # pictures on the page
LARGEST_MATRIX = 40  # classes; a larger matrix cannot be read
STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --line: #d5d8dc; --soft: #5d646b; --right: 20 110 70;
  --wrong: 190 50 30; --a: #0b62c4; --b: #b4530a }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #16181b; --line: #3a3f45; --soft: #a0a7ae;
  --right: 60 190 120; --wrong: 240 110 80; --a: #6fb1ff; --b: #f0a35c } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62em; margin: 2em auto; padding: 0 1em; color: var(--ink);
  background: var(--paper) }
h1 { font-size: 1.5em; overflow-wrap: anywhere } h2 { font-size: 1.15em; margin-top: 2em }
.big { font-size: 2.2em; font-weight: 600; margin: 0 } .soft { color: var(--soft) }
.wide { overflow-x: auto }
table { border-collapse: collapse } th, td { padding: .25em .7em; border: 1px solid var(--line); text-align: right }
th { font-weight: 600; overflow-wrap: anywhere; max-width: 12em } th:first-child { text-align: left }
figure { display: inline-block; margin: 0 1em 1em 0; width: 9em; vertical-align: top; font-size: .85em }
figure img { width: 9em; height: auto; image-rendering: pixelated; background: #888; outline: 1px solid var(--line) }
figcaption { overflow-wrap: anywhere }
svg { max-width: 100%; height: auto } svg text { fill: var(--ink); font-size: 13px } .grid { stroke: var(--line) }
.line { fill: none; stroke-width: 2 } .a { stroke: var(--a) } .b { stroke: var(--b); stroke-dasharray: 6 4 }
"""
STYLE += "".join(
    f".{name}{shade} {{ background: rgb(var(--{colour}) / {0.05 * shade:.2f}) }}\n"
    for name, colour in (("r", "right"), ("w", "wrong"))
    for shade in range(1, SHADES + 1)
)


@dataclass(frozen=True)
class Report:
    """What the page shows.

    Attributes
    ----------
    title, protocol : str
        Heading, and how the test was made.
    counts : Counts
        Counts of the test.
    remarks : sequence of str
        Sentences on the result.
    facts : dict of str to str
        Further results, such as the calibration error, by name.
    curve : sequence of (degrees, accuracy, probability of the true class)
        Results by rotation angle; may be empty.
    mistakes : sequence of (image, true class, predicted class, probability, file name)
        The most confident mistakes; the name is "" if there is none.
    """

    title: str
    protocol: str
    counts: Counts
    remarks: Sequence[str] = ()
    facts: dict[str, str] = field(default_factory=dict)
    curve: Sequence[tuple[float, float, float]] = ()
    mistakes: Sequence[tuple[np.ndarray, str, str, float, str]] = ()


def confident_mistakes(
    test: Outcomes, images, class_names: list[str], names: Sequence[str] = (), n: int = N_MISTAKES
) -> list[tuple]:
    """Return (image, true class, predicted class, probability, file name) of mistakes, the most confident first.

    `names` are the file names of all test images; without them, names are "".
    """
    wrong = np.flatnonzero(test.predicted != test.labels)
    sure = test.probabilities[wrong, test.predicted[wrong]]
    rows = wrong[np.argsort(-sure, kind="stable")][:n]
    true, wrong_ones = ([class_names[label[row]] for row in rows] for label in (test.labels, test.predicted))
    sure = test.probabilities[rows].max(axis=1)
    files = [names[row] if len(names) else "" for row in rows]
    return list(zip(images[rows], true, wrong_ones, map(float, sure), files, strict=True))


def page(report: Report) -> str:
    """Return the page as text. All names are escaped, and the page forbids itself to load anything."""
    counts, hashed = report.counts, base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    low, high = (_percent(limit) for limit in counts.interval)
    facts = {"Mean recall of the classes": _percent(counts.macro_recall)} | report.facts
    policy = f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:"
    title, n_images = escape(report.title), int(counts.images.sum())
    parts = [
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n',
        f'<style>{STYLE}</style>\n<h1>{title}</h1>\n<p class="big">{_percent(counts.accuracy)}</p>\n',
        f"<p>accuracy on {n_images} test images{_over(counts)}; 95 % confidence interval {low} to {high}</p>\n",
        f'<p class="soft">{escape(report.protocol)}</p>\n',
        "<ul>\n" + "".join(f"<li>{escape(name)}: {escape(value)}</li>\n" for name, value in facts.items()) + "</ul>\n",
    ]
    if report.remarks:
        listed = "".join(f"<li>{escape(text[:1].upper() + text[1:])}.</li>\n" for text in report.remarks)
        parts.append(f"<h2>Remarks</h2>\n<ul>\n{listed}</ul>\n")
    parts += [_classes(counts), _matrix(counts), _curve(report.curve), _mistakes(report.mistakes)]
    return "".join(parts)


def _over(counts: Counts) -> str:
    return f", mean over {counts.runs} runs" if counts.runs > 1 else ""


def _percent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def _classes(counts: Counts) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}<td>{n}<td>{_percent(recall)}<td>{_percent(precision)}\n"
        for name, n, recall, precision in zip(
            counts.class_names, counts.images, counts.recall, counts.precision, strict=True
        )
    )
    head = "<tr><th>class<th>images<th>recall<th>precision\n"
    return f'<h2>Classes</h2>\n<div class="wide"><table>\n{head}{rows}</table></div>\n'


def _matrix(counts: Counts) -> str:
    """Return the confusion matrix, or its largest entries if there are many classes."""
    names, title = [escape(name) for name in counts.class_names], "<h2>Confusion matrix</h2>\n"
    if len(names) > LARGEST_MATRIX:
        lines = (f"<li>{_percent(s)} of {names[a]} taken for {names[b]}\n" for a, b, s in counts.confused()[:40])
        return f"{title}<p>The most frequent mistakes:</p>\n<ul>\n{''.join(lines)}</ul>\n"
    head = "<tr><th>true \\ predicted" + "".join(f"<th>{name}" for name in names) + "\n"
    shares = counts.confusion / np.maximum(counts.confusion.sum(axis=1, keepdims=True), 1)
    rows = ""
    for a, name in enumerate(names):
        cells = "".join(f"<td{_shade(shares[a, b], a == b)}>{counts.confusion[a, b]}" for b in range(len(names)))
        rows += f"<tr><th>{name}{cells}\n"
    words = (
        f'<p class="soft">Number of images{", over all runs" if counts.runs > 1 else ""}; rows are true classes.</p>'
    )
    return f'{title}{words}\n<div class="wide"><table>\n{head}{rows}</table></div>\n'


def _shade(share: float, is_right: bool) -> str:
    shade = int(np.ceil(share * SHADES))
    return f' class="{"r" if is_right else "w"}{shade}"' if shade else ""


def _curve(points: Sequence[tuple[float, float, float]]) -> str:
    """Return accuracy and probability of the true class by rotation angle, as a drawing."""
    if not points:
        return ""
    left, top, width, height = 50, 10, 640, 220

    def path(which: int) -> str:
        return " ".join(f"{left + width * p[0] / 360:.1f},{top + height * (1 - p[which]):.1f}" for p in points)

    ticks = "".join(
        f'<path class="grid" d="M{left} {top + height * (1 - level):.0f}h{width}"/>'
        f'<text x="{left - 8}" y="{top + height * (1 - level) + 4:.0f}" text-anchor="end">{100 * level:.0f}</text>'
        for level in (0, 0.25, 0.5, 0.75, 1)
    )
    ticks += "".join(
        f'<text x="{left + width * d / 360:.0f}" y="{top + height + 20}" text-anchor="middle">{d}</text>'
        for d in range(0, 361, 45)
    )
    lines = f'<polyline class="line a" points="{path(1)}"/><polyline class="line b" points="{path(2)}"/>'
    return (
        "<h2>Rotated test images</h2>\n<p>Accuracy (solid) and mean probability of the true class (dashed), in percent,"
        " after all test images were rotated by the angle in degrees. A flat line means invariance.</p>\n"
        f'<svg viewBox="0 0 {left + width + 20} {top + height + 30}" width="{left + width + 20}" role="img"'
        f' aria-label="accuracy by angle">{ticks}{lines}</svg>\n'
    )


def _mistakes(mistakes: Sequence[tuple[np.ndarray, str, str, float, str]]) -> str:
    if not mistakes:
        return ""
    figures = "".join(
        f'<figure><img src="{picture_address(image)}" alt=""><figcaption>{escape(true)} taken for {escape(wrong)},'
        f" {_percent(p)}{f'<br><span class=soft>{escape(name)}</span>' if name else ''}</figcaption></figure>\n"
        for image, true, wrong, p, name in mistakes
    )
    return f"<h2>Most confident mistakes</h2>\n<p>As the network sees them.</p>\n{figures}"


def picture_address(image: np.ndarray) -> str:
    """Return a `data:` address of an image (height, width) or (height, width, 3) in [0, 1], or in its own range."""
    low, high = min(0.0, float(image.min())), max(1.0, float(image.max()))
    file = io.BytesIO()
    Image.fromarray(np.uint8(np.rint(255 * (image - low) / (high - low)))).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
