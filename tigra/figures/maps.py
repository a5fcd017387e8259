"""Figures made of images and feature maps: labels, rotations, pooling, mistakes."""

from __future__ import annotations

import numpy as np

from tigra.figures.canvas import written
from tigra.figures.exhibit import Exhibit
from tigra.figures.inspection import Step, spread, steps
from tigra.figures.oriented.mirroring import products
from tigra.figures.tiles import TileSheet, largest_size
from tigra.images.background import border_grey
from tigra.layers import OrientedConv

COLUMNS, BLOCKS = 10, 3  # of test images with their labels
ANGLES = np.arange(0, 360, 45)
MOST_MAPS = 6  # rows or columns of maps
CONVOLUTIONS = "SC", "OC"


class NothingToShow(Exception):
    """Raised when a network lacks what a figure shows."""


class OtherKind(NothingToShow):
    """Raised when a figure is for another kind of network, so that nobody misses it."""


def labels(exhibit: Exhibit):
    """Draw test images, upright and as tested, with their predicted labels."""
    shown = spread(len(exhibit.test.labels), BLOCKS * COLUMNS)
    blocks = [shown[start : start + COLUMNS] for start in range(0, len(shown), COLUMNS)]
    kinds = ["upright", "as tested"] if exhibit.is_transformed else ["as tested"]
    columns = min(COLUMNS, len(shown))
    sheet = TileSheet(exhibit.network.image_shape, len(blocks) * kinds, columns * [""], largest=0.9, block=len(kinds))
    for row, (block, kind) in enumerate((block, kind) for block in blocks for kind in kinds):
        for column, number in enumerate(block):
            _labelled_image(sheet, row, column, exhibit, number, kind == "upright")
    n_wrong = int(exhibit.is_wrong[shown].sum())
    text = (
        f"Test images of {exhibit.dataset} with their predicted classes ({exhibit.protocol})."
        f" A cross and a frame mark wrong predictions; as tested, {n_wrong} of these {len(shown)} are wrong."
    )
    return sheet.figure, text


def _labelled_image(sheet, row, column, exhibit: Exhibit, number: int, upright: bool = False, margin: int = 0) -> None:
    split, predicted = exhibit.test, exhibit.predicted
    if upright:
        split, predicted = exhibit.upright, exhibit.predicted_upright
    sheet.image(row, column, framed(split.images[number], margin))
    names = exhibit.class_names
    sheet.corner(row, column, names[predicted[number]], names[split.labels[number]])


def framed(image: np.ndarray, margin: int) -> np.ndarray:
    """Return an image padded by the margin of the network with its background, so that it aligns with its maps."""
    wide = np.empty((image.shape[0] + 2 * margin, image.shape[1] + 2 * margin, *image.shape[2:]), image.dtype)
    wide[:] = border_grey(image[None])[0]
    wide[margin : margin + image.shape[0], margin : margin + image.shape[1]] = image
    return wide


def rotations(exhibit: Exhibit):
    """Draw feature maps after every spectral layer, for an image and its rotations."""
    network, names = exhibit.network, exhibit.class_names
    turned = exhibit.turned(ANGLES)
    rows = [*_cross_product(network, turned), *_maps_after_convolutions(network, turned)]
    if not rows:
        raise NothingToShow("the network has no spectral layer")
    row_labels = ["image", *(heading for heading, _ in rows)]
    heads = [f"{angle}°" for angle in ANGLES]
    sheet = TileSheet(network.options.grid_shape, row_labels, heads, bars=True)
    predicted, truth = network.predict(turned, exhibit.threads), exhibit.upright.labels[exhibit.subject]
    for column in range(len(ANGLES)):
        sheet.image(0, column, framed(turned[column], network.options.margin))
        sheet.corner(0, column, names[predicted[column]], names[truth])
    for row, (_, values) in enumerate(rows, start=1):
        largest = largest_size(values)
        for column in range(len(ANGLES)):
            sheet.map(row, column, values[column], largest)
        sheet.scale(row, largest)
    text = (
        f"An image of class {names[truth]} of {exhibit.dataset}, rotated by multiples of 45 degrees"
        f" ({exhibit.interpolation} interpolation), with its predicted class in the corner, and its maps after the"
        f" spectral layers, which rotate with the image. {int((predicted == truth).sum())} of {len(ANGLES)} rotations"
        " are classified correctly. Each row has one scale."
    )
    if _is_oriented(network):
        text += " The first row of maps is a cross product of gradients, which keeps its sign when the image rotates."
    return sheet.figure, text + _about_signs(network) + _about_grids(network)


def _is_oriented(network) -> bool:
    return any(isinstance(layer, OrientedConv) for layer in network.layers)


def _about_signs(network) -> str:
    """Return what the colours of maps mean in an oriented network."""
    return " Red is above 0, blue below." if _is_oriented(network) else ""


def _about_grids(network) -> str:
    """Return what a caption says of maps on coarse grids, if there are some."""
    is_coarse = any(hasattr(layer, "coarse_shape") for layer in network.layers)
    return " After a coarsening (GC), maps have fewer nodes, which are drawn larger." if is_coarse else ""


def _heading(step: Step, what: str) -> str:
    """Return a heading with the number of the layer, as several may have one name."""
    return f"layer {step.number}\n{step.name}\n{what}"


def _cross_product(network, images) -> list[tuple[str, np.ndarray]]:
    """Return (heading, maps) of the first cross product of an oriented network; nothing for others."""
    found = products(network, images)
    return [] if found is None else [(f"layer {found.number}\n{found.name}\ncross", found.crosses[:, 0])]


def _maps_after_convolutions(network, images) -> list[tuple[str, np.ndarray]]:
    """Return (heading, maps) for at most MOST_MAPS maps of all spectral layers."""
    n_layers = sum(hasattr(layer, "filter_coefficients") for layer in network.layers)
    if not n_layers:
        return []
    every = steps(network, images, max(1, MOST_MAPS // n_layers))
    taken = [step for step in every if step.name.startswith(CONVOLUTIONS)]
    return [
        (_heading(taken[i], f"filter {number + 1}"), taken[i].values[:, place])
        for i in spread(len(taken), MOST_MAPS)
        for place, number in enumerate(taken[i].maps)
    ]


def pooling(exhibit: Exhibit):
    """Draw maps and active sets after every pooling, for one image of each of a few classes."""
    network, names = exhibit.network, exhibit.class_names
    numbers = exhibit.one_of_each_class(most=4)
    taken = [step for step in steps(network, exhibit.test.images[numbers], 2) if step.name.startswith("DP")]
    if not taken:
        raise NothingToShow("the network has no pooling layer")
    taken = [taken[i] for i in spread(len(taken), 3)]
    columns = [(step, place) for step in taken for place in [*range(len(step.maps)), None]]
    heads = ["image"]
    for step, place in columns:
        heads.append(_heading(step, "active sets" if place is None else f"map {step.maps[place] + 1}"))
    row_labels = [written(names[exhibit.test.labels[number]]) for number in numbers]
    sheet = TileSheet(network.options.grid_shape, row_labels, heads, foot=True)
    for row, number in enumerate(numbers):
        _labelled_image(sheet, row, 0, exhibit, number, margin=network.options.margin)
        for column, (step, place) in enumerate(columns, start=1):
            _pooled_tile(sheet, row, column, step, place)
    for column, (step, place) in enumerate(columns, start=1):
        if place is None:
            sheet.count_scale(column, step.n_maps)
    text = (
        "A test image of each class (at most four), and its maps after each dynamic pooling. Each column has one scale"
        " (red above 0, blue below). Grey nodes are not active and count as 0. The number of active nodes is in the"
        " corner. The columns 'active sets' show in how many maps of the layer a node is active, from none (white) over"
        " few (dark) to all (light), with the scale below. Their number is the size of the union Omega."
    )
    if any(getattr(layer, "by_size", False) for layer in network.layers):
        text += " In this network pooling keeps the largest absolute values."
    return sheet.figure, text + _about_grids(network)


def _pooled_tile(sheet, row: int, column: int, step: Step, place: int | None) -> None:
    """Draw a map on its active nodes, or, without a place, the active sets of all maps."""
    if place is None:
        sheet.counts(row, column, step.counts[row], step.n_maps)
        n_active = int((step.counts[row] > 0).sum())
    else:
        sheet.map(row, column, step.values[row, place], largest_size(step.values[:, place]), step.active[row, place])
        n_active = int(step.active[row, place].sum())
    sheet.corner(row, column, str(n_active), size=6)


def mistakes(exhibit: Exhibit, n_rows: int = 7):
    """Draw misclassified test images and some correct ones, with their maps after the spectral layers."""
    network, names = exhibit.network, exhibit.class_names
    wrong, right = np.flatnonzero(exhibit.is_wrong), np.flatnonzero(~exhibit.is_wrong)
    shown_wrong = wrong[spread(len(wrong), n_rows - 2 if len(right) else n_rows)]
    shown_right = right[spread(len(right), n_rows - len(shown_wrong))]
    numbers = np.concatenate([shown_wrong, shown_right])
    columns = _maps_after_convolutions(network, exhibit.test.images[numbers])
    heads = ["image", *(heading for heading, _ in columns)]
    row_labels = [
        f"{'wrong' if exhibit.is_wrong[number] else 'right'}:\nis {written(names[exhibit.test.labels[number]], 12)}"
        for number in numbers
    ]
    sheet = TileSheet(network.options.grid_shape, row_labels, heads)
    for row, number in enumerate(numbers):
        _labelled_image(sheet, row, 0, exhibit, number, margin=network.options.margin)
        for column, (_, values) in enumerate(columns, start=1):
            sheet.map(row, column, values[row], largest_size(values))
    text = (
        f"{len(shown_wrong)} of the {len(wrong)} misclassified among {len(exhibit.test.labels)} test images of"
        f" {exhibit.dataset}, marked by a frame and a cross, and {len(shown_right)} that are classified correctly, with"
        " their maps after the spectral layers. Each column has one scale, with white for 0."
    )
    return sheet.figure, text + _about_signs(network) + _about_grids(network)
