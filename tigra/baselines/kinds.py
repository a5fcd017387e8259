"""Kinds of layers of the networks that TIGraNet is compared with, for architecture texts.

ConvNet: C[n], n filters of 3x3 pixels and a ReLU; P[n], max-pooling over n x n pixels. Before the first layer pixels
are standardised, and before the first FC layer planes become features.

STN: ST[6], a spatial transformer with an affine map of 6 numbers, which halves the planes as P[2] does.

HarmNet: HRC[in, out], harmonic convolution; HCN[n], the complex ReLU; HBN[n], batch normalisation of the modulus and
the complex ReLU; MP[n], mean-pooling. What the paper's text leaves out is added (`HarmonicConvKind.expanded`), and a
convolution to the classes with the invariant head ends the network. Its scores do not change when an image turns by
right angles, if every pooling divides height and width: of 25 rows pooled by 2 the last is left out, a turn moves it.
"""

from __future__ import annotations

from tigra.baselines.harmonic.harmonic_conv import HarmonicConv
from tigra.baselines.harmonic.modulus import InvariantHead, ModulusNorm, ModulusReLU
from tigra.baselines.planes.conv import Conv, MaxPool, MeanPool
from tigra.baselines.planes.planes import Flatten, StandardisePixels
from tigra.baselines.planes.spatial_transformer import SpatialTransformer
from tigra.errors import ArchitectureError
from tigra.layers import ReLU
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


class PixelsKind(PlainKind):
    """Not written: the image as one plane, its pixels standardised."""

    takes, gives = "image", "planes"

    def build(self, numbers, site):
        return [StandardisePixels.init(site.dtype)] if site.options.standardise else []


class FlattenKind(PlainKind):
    """Not written: planes as features."""

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

    def shapes(self, numbers, site):
        """Of weight and bias."""
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
            raise ArchitectureError(f"{item} at position {item.position} pools too much: use at most 15 pixels.")
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
        """How many hidden units the localisation net has."""
        return HIDDEN[site.size >= 10]

    def shapes(self, numbers, site):
        """Of the localisation net."""
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
        """An HRC with no HCN or HBN behind it gets its HBN, and MP[2] if another HRC follows.

        The original's network is made of blocks, convolution, complex ReLU, convolution, batch normalisation, with
        mean-pooling between them; the paper's text names convolutions and complex ReLUs alone.

        >>> kind = HarmonicConvKind()
        >>> [str(part) for part in kind.expanded(Item("HRC", (1, 2), 1), Item("HRC", (2, 3), 11))]
        ['HRC[1, 2]', 'HBN[2]', 'MP[2]']
        """
        after = following.name if following else None
        if after in ("HCN", "HBN"):
            return [item]
        pooling = [Item("MP", (2,), item.position)] if after == "HRC" else []
        return [item, Item("HBN", item.numbers[1:], item.position), *pooling]

    def shapes(self, numbers, site):
        """Of radial weights and phases."""
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
        """Of the bias."""
        return {"bias": (2, site.size)}

    def build(self, numbers, site):
        return [ModulusReLU.init(site.size, site.rng, site.dtype)]


@layer_kind("HBN")
class ModulusNormKind(ModulusReLUKind):
    """HBN[maps]"""

    def shapes(self, numbers, site):
        """Of gamma and beta."""
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
    """Not written: the last layers of a harmonic network, to as many scores as its number says."""

    takes, gives = "harmonics", "scores"

    def shapes(self, numbers, site):
        """Of the last convolution, and of the head's bias."""
        return HarmonicConv.shapes(site.size, numbers[0], phases=False) | {"bias": numbers}

    def build(self, numbers, site):
        last = HarmonicConv.init(site.size, numbers[0], site.rng, site.dtype, phases=False)
        return [last, InvariantHead.init(numbers[0], site.dtype)]


def same_maps(item: Item, site: Site) -> None:
    """Complain if an item names another number of maps than arrives."""
    if item.numbers[0] != site.size:
        raise ArchitectureError(
            f"{item} at position {item.position} takes {item.numbers[0]} maps, but what stands before it gives"
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
        "after HRC come HRC, HCN, HBN and MP layers alone, the scores of the classes follow by themselves",
        begin=PixelsKind(),
        begin_name="pixels",
        last=HarmonicHeadKind(),
    ),
)
