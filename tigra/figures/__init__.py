"""Figures of a trained network: the paper's, and some more, as PNG and SVG, with captions.

    from tigra.exhibit import exhibit
    from tigra import figures

    shown = exhibit(network, splits)
    figures.draw(shown, "filters")       # a matplotlib figure, and its caption
    figures.write(shown, "folder")       # all of them, and a page to look at them

What is drawn is computed in `tigra.figures.inspection`; matplotlib, an extra, is imported when a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tigra.errors import UsageError
from tigra.figures.animation import turning
from tigra.figures.canvas import as_files, drawing
from tigra.figures.exhibit import Exhibit
from tigra.figures.learning import confusion, training
from tigra.figures.maps import NothingToShow, labels, mistakes, pooling, rotations
from tigra.figures.page import page
from tigra.figures.spectrum import filters, graph
from tigra.figures.turn import statistics, turn
from tigra.model_file import write_atomically


class Entry(NamedTuple):
    """A figure: its title, which of the paper's figures it is, and the function that draws it."""

    title: str
    paper: str
    draw: Callable


OURS = "not in the paper"
FIGURES = {  # in the order of the path from image to label
    "labels": Entry("Test images and predicted labels", "the paper's Figure 1, fig:adv", labels),
    "graph": Entry("From pixels to a graph", "the input of the paper's Figure 2, fig:architecture", graph),
    "filters": Entry("Filters in the spectral domain", "the paper's Figure 9, fig:filter_ex", filters),
    "rotations": Entry("Feature maps of rotated images", "the paper's Figure 8, fig:VFM", rotations),
    "pooling": Entry(
        "Feature maps after pooling", "the paper's Figures 4 and 10, fig:pool and fig:feature_maps_examples", pooling
    ),
    "statistics": Entry("The statistics layer", "the paper's Figure 5, fig:stat_layer_im", statistics),
    "turn": Entry("Features under a full turn", f"{OURS}; the invariance that its Figure 5 claims", turn),
    "training": Entry("Training curves", OURS, training),
    "confusion": Entry("Confusion matrix", f"{OURS}; its accuracies are in tab:comparison", confusion),
    "mistakes": Entry("Misclassified images and their maps", "the paper's Figure 12, fig:il_big", mistakes),
}
ANIMATION = "turning"
KINDS = "png", "svg"


def draw(exhibit: Exhibit, name: str):
    """(matplotlib figure, caption) of one of FIGURES; UsageError if this network has nothing to show there."""
    if name not in FIGURES:
        raise UsageError(f"There is no figure {name!r}; choose one of {', '.join(FIGURES)}.")
    try:
        with drawing():
            return FIGURES[name].draw(exhibit)
    except NothingToShow as error:
        raise UsageError(f"There is no figure {name!r}: {error}.") from error


def write(
    exhibit: Exhibit,
    folder,
    kinds: tuple[str, ...] = KINDS,
    animated: bool = True,
    on_progress: Callable[[str, int, int], None] = lambda name, done, total: None,
) -> tuple[list[dict], list[dict]]:
    """Write all figures and index.html into a folder, which is made if need be; existing files are replaced.

    kinds : "png", "svg" or both; animated : also write turning.gif
    on_progress : called with (name of the figure, how many are done, of how many)

    Returns (entries, skipped): figure, title, paper, caption and files of each figure; figure and reason of
    those that this network cannot have.
    """
    folder = Path(folder)
    entries, skipped = [], []
    with drawing():  # before the folder is made: without matplotlib nothing is left behind
        folder.mkdir(parents=True, exist_ok=True)
        for done, (name, entry) in enumerate(FIGURES.items()):
            on_progress(name, done, len(FIGURES) + animated)
            try:
                figure, caption = entry.draw(exhibit)
            except NothingToShow as error:
                skipped.append({"figure": name, "reason": str(error)})
                continue
            for kind, content in as_files(figure, kinds, f"{entry.title} ({entry.paper})", caption).items():
                write_atomically(folder / f"{name}.{kind}", content)
            entries.append(_record(name, entry.title, entry.paper, caption, [f"{name}.{kind}" for kind in kinds]))
    if animated:
        on_progress(ANIMATION, len(FIGURES), len(FIGURES) + 1)
        content, caption = turning(exhibit)
        write_atomically(folder / f"{ANIMATION}.gif", content)
        paper = "in motion, the paper's Figures 8 and 10, fig:VFM and fig:feature_maps_examples"
        entries.append(_record(ANIMATION, "One image turning", paper, caption, [f"{ANIMATION}.gif"]))
    network = exhibit.network
    facts = f"{network.options.architecture}, {network.n_parameters} parameters, on {exhibit.dataset}"
    text = page(f"Figures of a network trained on {exhibit.dataset}", facts, entries, skipped)
    write_atomically(folder / "index.html", text.encode())
    return entries, skipped


def _record(name, title, paper, caption, files) -> dict:
    return {"figure": name, "title": title, "paper": paper, "caption": caption, "files": files}
