"""Left and right: products of gradients of images and of their mirror images."""

from __future__ import annotations

import numpy as np

from tigra.figures.canvas import written
from tigra.figures.exhibit import Exhibit
from tigra.figures.inspection import in_training_units
from tigra.figures.maps import OtherKind, framed
from tigra.figures.oriented.mirroring import chiral_map, mirror_changes, products
from tigra.figures.tiles import TileSheet, largest_size


def orientation(exhibit: Exhibit):
    """Draw dot and cross products and a map of images and of their mirror images."""
    network, names = exhibit.network, exhibit.class_names
    numbers = exhibit.one_of_each_class(most=4)
    images = np.asarray(exhibit.upright.images[numbers])
    both = np.concatenate([images, images[:, :, ::-1]])
    found = products(network, both)
    if found is None:
        raise OtherKind("the network has no oriented convolution")
    changes = mirror_changes(network, images)
    chiral = chiral_map(network, both, changes)
    kinds = [
        (f"layer {found.number}\n{found.name}\ndot", found.dots[:, 0]),
        (f"layer {found.number}\n{found.name}\ncross", found.crosses[:, 0]),
        (f"layer {chiral.number}\n{chiral.name}\nmap {chiral.map + 1}", chiral.values),
    ]
    heads = [head for first in ("image", "mirror image") for head in (first, *(head for head, _ in kinds))]
    row_labels = [written(names[exhibit.upright.labels[number]]) for number in numbers]
    sheet = TileSheet(network.options.grid_shape, row_labels, heads)
    predicted = network.predict(both, exhibit.threads)
    for place, image in enumerate(both):
        row, first = place % len(images), len(heads) // 2 * (place // len(images))
        sheet.image(row, first, framed(image, network.options.margin))
        sheet.corner(row, first, names[predicted[place]])
        for column, (_, values) in enumerate(kinds, start=first + 1):
            sheet.map(row, column, values[place], largest_size(values))
    by_layer = ", ".join(f"{100 * change.changes.mean():.2f}" for change in changes)
    text = (
        f"Test images of {exhibit.dataset}, upright, and their mirror images, with the predicted class in the corner."
        " dot and cross are products of the gradients of the first pair of maps in the first oriented convolution. Red"
        " is above 0, blue below; each kind of map has one scale. In a mirror image, dot is only mirrored. cross also"
        f" changes its sign, so red and blue change places{_gap(found.crosses)}. Map {chiral.map + 1} of layer"
        f" {chiral.number} is the one in its layer that mirroring changes most. Apart from being mirrored, the maps"
        f" after the oriented layers change by {by_layer} % of their mean square, from the first layer to the last."
        f" {_feature_changes(network, images)}"
    )
    return sheet.figure, text


def _gap(crosses: np.ndarray) -> str:
    """Return how far the cross products of mirror images are from minus the mirrored ones."""
    of_images, of_mirrors = np.split(crosses, 2)
    gap = float(np.abs(of_mirrors + of_images[..., ::-1]).max())
    return f" (up to {gap / float(np.abs(crosses).max()):.1g} of the largest value)" if gap else ", exactly"


def _feature_changes(network, images: np.ndarray) -> str:
    """Return how mirroring and a half turn change the features of images."""
    views = images, images[:, :, ::-1], images[:, ::-1, ::-1]
    features, is_in_deviations = in_training_units(network, np.concatenate([network.features(v) for v in views]))
    upright, mirrored, turned = np.split(features, 3)
    unit = "standard deviations over the training images" if is_in_deviations else "of its largest value"
    return (
        f"Mirroring changes a statistics feature by {np.abs(mirrored - upright).mean():.2g} {unit}, a half turn by"
        f" {np.abs(turned - upright).mean():.1g} (means over these images)."
    )
