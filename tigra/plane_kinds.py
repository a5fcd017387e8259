"""Kinds of layers of the networks that TIGraNet is compared with, for architecture texts.

ConvNet: C[n], n filters of 3x3 pixels and a ReLU; P[n], max-pooling over n x n pixels. Before the first layer pixels
are standardised, and before the first FC layer planes become features. STN: ST[6], a spatial transformer with an
affine map of 6 numbers, which halves the planes as P[2] does.
"""

from __future__ import annotations

from tigra.errors import ArchitectureError
from tigra.layers import Conv, Flatten, MaxPool, ReLU, SpatialTransformer, StandardisePixels
from tigra.notation import Item, LayerKind, Site, layer_kind

FILTER_SIZE = 3  # pixels, of C[n]; the paper's filters for the networks it compares with
HIDDEN = 10, 32  # units in the localisation net of ST[6]: below ten maps, and from ten maps on


def smaller_than(item: Item, site: Site, size: int) -> None:
    """Complain if the planes at a site are smaller than the window of an item."""
    if min(site.shape) < size:
        height, width = site.shape
        raise ArchitectureError(
            f"{item} at position {item.position} needs planes of at least {size}x{size} pixels, but gets"
            f" {height}x{width}; use fewer layers that shrink them, or larger images."
        )


class PixelsKind(LayerKind):
    """Not written: the image as one plane, its pixels standardised."""

    takes, gives = "image", "planes"

    def build(self, numbers, site):
        return [StandardisePixels.init(site.dtype)] if site.standardise else []


class FlattenKind(LayerKind):
    """Not written: planes as features."""

    takes = "planes"

    def size(self, numbers, site):
        return site.size * site.shape[0] * site.shape[1]

    def build(self, numbers, site):
        return [Flatten()]


@layer_kind("C")
class ConvKind(LayerKind):
    """C[filters]"""

    arguments, smallest = ("filters",), (1,)
    takes = gives = "planes"

    def check(self, item, site):
        smaller_than(item, site, FILTER_SIZE)

    def size(self, numbers, site):
        return numbers[0]

    def shape(self, numbers, site):
        return tuple(size - FILTER_SIZE + 1 for size in site.shape)

    def n_parameters(self, numbers, site):
        return (site.size * FILTER_SIZE**2 + 1) * numbers[0]

    def build(self, numbers, site):
        return [Conv.init(site.size, *numbers, FILTER_SIZE, site.rng, site.dtype), ReLU()]


@layer_kind("P")
class MaxPoolKind(LayerKind):
    """P[pixels]"""

    arguments, smallest = ("pixels",), (1,)
    takes = gives = "planes"

    def check(self, item, site):
        if item.numbers[0] > 15:
            raise ArchitectureError(f"{item} at position {item.position} pools too much: use at most 15 pixels.")
        smaller_than(item, site, item.numbers[0])

    def shape(self, numbers, site):
        return tuple(size // numbers[0] for size in site.shape)

    def build(self, numbers, site):
        return [MaxPool(*numbers)]


@layer_kind("ST")
class SpatialTransformerKind(LayerKind):
    """ST[6]"""

    arguments, smallest = ("parameters",), (6,)
    takes = gives = "planes"

    def check(self, item, site):
        if item.numbers != (6,):
            raise ArchitectureError(f"{item} at position {item.position}: an affine map has 6 parameters, write ST[6].")
        smaller_than(item, site, 2)

    def shape(self, numbers, site):
        return tuple(size // 2 for size in site.shape)

    def hidden(self, site):
        """How many hidden units the localisation net has."""
        return HIDDEN[site.size >= 10]

    def n_parameters(self, numbers, site):
        height, width = self.shape(numbers, site)
        return (site.size * height * width + 1) * self.hidden(site) + (self.hidden(site) + 1) * 6

    def build(self, numbers, site):
        shape = (site.size, *site.shape)
        return [SpatialTransformer.init(shape, self.hidden(site), site.rng, site.dtype, site.outside)]


BRIDGES = {("image", "planes"): PixelsKind(), ("planes", "features"): FlattenKind()}
