"""Figures of a trained network, those of the paper and others, as PNG and SVG with captions.

    from tigra.figures.exhibit import exhibit
    from tigra import figures

    shown = exhibit(network, splits)
    figures.draw(shown, "filters")       # a matplotlib figure and its caption
    figures.write(shown, "folder")       # all figures, and an HTML page with them

`tigra.figures.inspection` computes what is drawn. matplotlib is optional and only imported to draw a figure.
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
from tigra.figures.maps import NothingToShow, OtherKind, labels, mistakes, pooling, rotations
from tigra.figures.oriented.orientation import orientation
from tigra.figures.page import page
from tigra.figures.spectrum import filters, graph
from tigra.figures.turn import statistics, turn
from tigra.model_file import write_atomically


class Entry(NamedTuple):
    """A figure: its title, the corresponding figure of the paper, and the function that draws it."""

    title: str
    paper: str
    draw: Callable


OURS = "not in the paper"
FIGURES = {  # in the order from image to label
    "labels": Entry("Test images and predicted labels", "the paper's Figure 1, fig:adv", labels),
    "graph": Entry("From pixels to a graph", "the input of the paper's Figure 2, fig:architecture", graph),
    "filters": Entry("Filters in the spectral domain", "the paper's Figure 9, fig:filter_ex", filters),
    "orientation": Entry("Left and right", f"{OURS}, whose filters do not tell them apart", orientation),
    "rotations": Entry("Feature maps of rotated images", "the paper's Figure 8, fig:VFM", rotations),
    "pooling": Entry(
        "Feature maps after pooling", "the paper's Figures 4 and 10, fig:pool and fig:feature_maps_examples", pooling
    ),
    "statistics": Entry("The statistics layer", "the paper's Figure 5, fig:stat_layer_im", statistics),
    "turn": Entry("Features over a full rotation", f"{OURS}; the invariance that its Figure 5 claims", turn),
    "training": Entry("Training curves", OURS, training),
    "confusion": Entry("Confusion matrix", f"{OURS}; its accuracies are in tab:comparison", confusion),
    "mistakes": Entry("Misclassified images and their maps", "the paper's Figure 12, fig:il_big", mistakes),
}
ANIMATION = "turning"
KINDS = "png", "svg"


def draw(exhibit: Exhibit, name: str):
    """Draw one of FIGURES.

    Parameters
    ----------
    exhibit : Exhibit
        The network and its test images, from `tigra.figures.exhibit.exhibit`.
    name : str
        Name of the figure.

    Returns
    -------
    figure : matplotlib.figure.Figure
    caption : str

    Raises
    ------
    UsageError
        If there is no such figure, or this network has nothing to show in it.
    """
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
    """Write all figures and index.html to a folder.

    Parameters
    ----------
    exhibit : Exhibit
        The network and its test images.
    folder : path
        Folder to write to. It is created if it does not exist; existing files are replaced.
    kinds : tuple of str
        "png", "svg" or both.
    animated : bool
        Also write turning.gif.
    on_progress : callable
        Called with (name of the figure, number done, total).

    Returns
    -------
    entries : list of dict
        Name, title, figure of the paper, caption and files of each figure.
    skipped : list of dict
        Name of each figure that this network lacks, and the reason; not those for another kind of network.
    """
    folder = Path(folder)
    entries, skipped = [], []
    with drawing():  # fails without matplotlib, before the folder is made
        folder.mkdir(parents=True, exist_ok=True)
        for done, (name, entry) in enumerate(FIGURES.items()):
            on_progress(name, done, len(FIGURES) + animated)
            try:
                figure, caption = entry.draw(exhibit)
            except OtherKind:
                continue
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
        entries.append(_record(ANIMATION, "A rotating image", paper, caption, [f"{ANIMATION}.gif"]))
    network = exhibit.network
    facts = f"{network.options.architecture}, {network.n_parameters} parameters, on {exhibit.dataset}"
    text = page(f"Figures of a network trained on {exhibit.dataset}", facts, entries, skipped)
    write_atomically(folder / "index.html", text.encode())
    return entries, skipped


def _record(name, title, paper, caption, files) -> dict:
    return {"figure": name, "title": title, "paper": paper, "caption": caption, "files": files}
