"""Layer kinds of the baseline networks, for architecture texts.

ConvNet: C[n] has n filters of 3x3 pixels and a ReLU; P[n] is max-pooling over n x n pixels. Pixels are standardised
before the first layer, and planes are flattened before the first FC layer.

STN: ST[6] is a spatial transformer with an affine map of 6 numbers. It halves the planes, as P[2] does.

HarmNet: HRC[in, out] is harmonic convolution, HCN[n] the complex ReLU, HBN[n] batch normalisation of the modulus with
the complex ReLU, and MP[n] mean-pooling. Layers that the paper's notation omits are added
(`HarmonicConvKind.expanded`). The network ends with a convolution to the classes and the invariant head. Its scores
are invariant to rotations by right angles if every pooling divides height and width. Otherwise the last row or column
is left out, and a rotation changes which one.
"""

from __future__ import annotations

import math

from tigra.baselines.harmonic.harmonic_conv import HarmonicConv
from tigra.baselines.harmonic.modulus import InvariantHead, ModulusNorm, ModulusReLU
from tigra.baselines.planes.conv import Conv, MaxPool, MeanPool
from tigra.baselines.planes.planes import Flatten, StandardisePixels
from tigra.baselines.planes.spatial_transformer import SpatialTransformer
from tigra.errors import ArchitectureError
from tigra.layers import ReLU
from tigra.models.costs import Cost
from tigra.models.kinds import (
    Flow,
    Item,
    LayerKind,
    PlainKind,
    Site,
    layer_kind,
    register_flow,
    whole,
)

FILTER_SIZE = 3  # pixels of the filters of C[n], as in the paper
HIDDEN = 10, 32  # hidden units of ST[6]: for fewer than ten maps, and for ten or more


def smaller_than(item: Item, site: Site, size: int) -> None:
    """Raise ArchitectureError if the planes at a site are smaller than the window of an item."""
    if min(site.shape) < size:
        height, width = site.shape
        raise ArchitectureError(
            f"{item} at position {item.position} needs planes of at least {size}x{size} pixels, got"
            f" {height}x{width}; use fewer layers that shrink them, or larger images."
        )


class PixelsKind(PlainKind):
    """The image as one plane with standardised pixels; not written in the text."""

    takes, gives = "image", "planes"

    def build(self, numbers, site):
        return [StandardisePixels.init(site.dtype)] if site.options.standardise else []


class FlattenKind(PlainKind):
    """Planes as features; not written in the text."""

    takes = "planes"

    def size(self, numbers, site):
        return site.size * site.shape[0] * site.shape[1]

    def build(self, numbers, site):
        return [Flatten()]


@layer_kind("C")
class ConvKind(LayerKind):
    """C[filters]"""

    arguments = (whole("filters", 1),)
    takes = gives = "planes"

    def check(self, item, site):
        smaller_than(item, site, FILTER_SIZE)

    def size(self, numbers, site):
        return numbers[0]

    def shape(self, numbers, site):
        return tuple(size - FILTER_SIZE + 1 for size in site.shape)

    def cost(self, numbers, site):
        """Return the cost of the windows and of their product with the filters."""
        n_values, places = site.size * FILTER_SIZE**2, math.prod(self.shape(numbers, site))
        return Cost((n_values + 2 * numbers[0]) * places, n_values * numbers[0] * places)

    def shapes(self, numbers, site):
        """Return the shapes of weight and bias."""
        return Conv.shapes(site.size, numbers[0], FILTER_SIZE)

    def build(self, numbers, site):
        return [Conv.init(site.size, numbers[0], FILTER_SIZE, site.rng, site.dtype), ReLU()]


@layer_kind("P")
class MaxPoolKind(PlainKind):
    """P[pixels]"""

    arguments = (whole("pixels", 1),)
    takes = gives = "planes"

    def check(self, item, site):
        if item.numbers[0] > 15:
            raise ArchitectureError(f"{item} at position {item.position} pools too much; use at most 15 pixels.")
        smaller_than(item, site, item.numbers[0])

    def shape(self, numbers, site):
        return tuple(size // numbers[0] for size in site.shape)

    def build(self, numbers, site):
        return [MaxPool(*numbers)]


@layer_kind("ST")
class SpatialTransformerKind(LayerKind):
    """ST[6]"""

    arguments = (whole("parameters", 6),)
    takes = gives = "planes"

    def check(self, item, site):
        if item.numbers != (6,):
            raise ArchitectureError(f"{item} at position {item.position}: an affine map has 6 parameters, write ST[6].")
        smaller_than(item, site, 2)

    def shape(self, numbers, site):
        return tuple(size // 2 for size in site.shape)

    def hidden(self, site):
        """Return the number of hidden units of the localisation network."""
        return HIDDEN[site.size >= 10]

    def shapes(self, numbers, site):
        """Return the shapes of the localisation network."""
        return SpatialTransformer.shapes((site.size, *site.shape), self.hidden(site))

    def build(self, numbers, site):
        shape = (site.size, *site.shape)
        return [SpatialTransformer.init(shape, self.hidden(site), site.rng, site.dtype, site.options.outside)]


@layer_kind("HRC")
class HarmonicConvKind(LayerKind):
    """HRC[in, out]"""

    arguments = whole("maps in", 1), whole("maps out", 1)
    takes = gives = "harmonics"
    also = ("planes",)

    def check(self, item, site):
        same_maps(item, site)

    def size(self, numbers, site):
        return numbers[1]

    def expanded(self, item, following):
        """Add HBN after an HRC without HCN or HBN, and MP[2] if another HRC follows.

        The original network has blocks of convolution, complex ReLU, convolution and batch normalisation, with
        mean-pooling between them. The paper's notation only has the convolutions and complex ReLUs.

        >>> kind = HarmonicConvKind()
        >>> [str(part) for part in kind.expanded(Item("HRC", (1, 2), 1), Item("HRC", (2, 3), 11))]
        ['HRC[1, 2]', 'HBN[2]', 'MP[2]']
        """
        after = following.name if following else None
        if after in ("HCN", "HBN"):
            return [item]
        pooling = [Item("MP", (2,), item.position)] if after == "HRC" else []
        return [item, Item("HBN", item.numbers[1:], item.position), *pooling]

    def cost(self, numbers, site):
        """Return the cost of real and imaginary parts of two orders, each from sums over six rings."""
        (n_in, n_out), places = numbers, math.prod(site.shape)
        return Cost(4 * (n_in + n_out) * places, 8 * 6 * n_in * n_out * places)

    def shapes(self, numbers, site):
        """Return the shapes of radial weights and phases."""
        return HarmonicConv.shapes(*numbers)

    def build(self, numbers, site):
        n_in, n_out = numbers
        return [HarmonicConv.init(n_in, n_out, site.rng, site.dtype, real=site.gives == "planes")]


@layer_kind("HCN")
class ModulusReLUKind(LayerKind):
    """HCN[maps]"""

    arguments = (whole("maps", 1),)
    takes = gives = "harmonics"

    def check(self, item, site):
        same_maps(item, site)

    def shapes(self, numbers, site):
        """Return the shape of the bias."""
        return {"bias": (2, site.size)}

    def build(self, numbers, site):
        return [ModulusReLU.init(site.size, site.rng, site.dtype)]


@layer_kind("HBN")
class ModulusNormKind(ModulusReLUKind):
    """HBN[maps]"""

    def shapes(self, numbers, site):
        """Return the shapes of gamma and beta."""
        return {"gamma": (2, site.size), "beta": (2, site.size)}

    def build(self, numbers, site):
        return [ModulusNorm.init(site.size, site.dtype)]


@layer_kind("MP")
class MeanPoolKind(MaxPoolKind):
    """MP[pixels]"""

    takes = gives = "harmonics"

    def build(self, numbers, site):
        return [MeanPool(*numbers)]


class HarmonicHeadKind(LayerKind):
    """The last layers of a harmonic network, to the scores of the classes; not written in the text."""

    takes, gives = "harmonics", "scores"

    def shapes(self, numbers, site):
        """Return the shapes of the last convolution and of the bias of the head."""
        return HarmonicConv.shapes(site.size, numbers[0], phases=False) | {"bias": numbers}

    def build(self, numbers, site):
        last = HarmonicConv.init(site.size, numbers[0], site.rng, site.dtype, phases=False)
        return [last, InvariantHead.init(numbers[0], site.dtype)]


def same_maps(item: Item, site: Site) -> None:
    """Raise ArchitectureError if an item has another number of maps than its input."""
    if item.numbers[0] != site.size:
        raise ArchitectureError(
            f"{item} at position {item.position} expects {item.numbers[0]} maps, but the layer before it gives"
            f" {site.size}; write {item.name}[{', '.join(map(str, (site.size, *item.numbers[1:])))}]."
        )


register_flow(
    "planes",
    Flow(
        "C, P and ST layers come first, then FC layers",
        begin=PixelsKind(),
        begin_name="pixels",
        to_features=FlattenKind(),
    ),
)
register_flow(
    "harmonics",
    Flow(
        "only HRC, HCN, HBN and MP layers can follow HRC, and the scores of the classes are added automatically",
        begin=PixelsKind(),
        begin_name="pixels",
        last=HarmonicHeadKind(),
    ),
)
