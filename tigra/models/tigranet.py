"""TIGraNet's layer kinds.

SC[K, M]    K spectral filters of degree M
OC[K, M]    K oriented convolutions of degree M, with batch normalisation and a rectifier
GC[2]       coarsening to a grid with half the sides
GD[d]       dilation: the following layers have neighbours d times as far apart
DP[J]       dynamic pooling to J nodes
S[K_max]    statistics up to Chebyshev order K_max, standardised
FC[n]       n hidden units with ReLU

The linear layer to the classes is added automatically.
"""

from __future__ import annotations

import numpy as np

from tigra.errors import ArchitectureError
from tigra.layers import (
    Coarsen,
    Dense,
    DynamicPool,
    FeatureNorm,
    Logarithm,
    MapNorm,
    OrientedConv,
    PairedConv,
    ReLU,
    SpectralConv,
    Standardise,
    Statistics,
)
from tigra.layers.coarsen import coarse_shape
from tigra.models.costs import STENCIL, Cost
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
from tigra.options import PAIRED_MIXINGS

LARGEST_DEGREE = 12  # initial values of alpha are then about 10^5
LAST_GAIN = 0.1  # scales the initial weights of the last layer


def check_degree(item: Item) -> None:
    """Raise ArchitectureError if the degree, the second number of a convolution, is too high."""
    if item.numbers[1] > LARGEST_DEGREE:
        raise ArchitectureError(
            f"{item} at position {item.position} has too high a degree: use at most {LARGEST_DEGREE};"
            " beyond that, powers of the Laplacian cancel up to rounding errors."
        )


def check_is_grid(item: Item, site: Site) -> None:
    """Raise ArchitectureError if the network has a custom graph, of which there is no coarse or dilated one."""
    if site.graph is not None:
        raise ArchitectureError(
            f"{item} at position {item.position} is for the grid of pixels, not for a custom graph; leave it out."
        )


@layer_kind("SC")
class SpectralConvKind(LayerKind):
    """SC[filters, degree]"""

    arguments = whole("filters", 1), whole("degree")
    takes = gives = "maps"

    def check(self, item, site):
        """The degree must suit the mixing and be low enough for the powers of L."""
        check_degree(item)
        if PAIRED_MIXINGS.get(site.options.mixing) and item.numbers[1] < 1:
            raise ArchitectureError(
                f"{item} at position {item.position} has too low a degree:"
                f" mixing={site.options.mixing!r} needs at least 1."
            )

    def size(self, numbers, site):
        """One map per filter."""
        return numbers[0]

    def shapes(self, numbers, site):
        """Shapes of alpha and beta, or of alpha and the thresholds."""
        if site.options.mixing in PAIRED_MIXINGS:
            return PairedConv.shapes(site.size, *numbers, PAIRED_MIXINGS[site.options.mixing])
        return SpectralConv.shapes(site.size, *numbers, site.options.mixing)

    def cost(self, numbers, site):
        """The powers of L and the filtered maps."""
        options, (n_out, degree) = site.options, numbers
        if options.mixing == "vector":
            held = degree + 4 + n_out
            work = site.size * degree * STENCIL + n_out * (degree + 1)
            return Cost(held * site.n_nodes, work * site.n_nodes)
        n_products = min(PAIRED_MIXINGS.get(options.mixing, 0), site.size)
        n_terms = (degree + 1 + n_products) * site.size
        held = n_terms + 2 * n_products * site.size + n_out * (1 + min(options.diffusion, 2))
        work = n_terms * (STENCIL + n_out) + options.diffusion * STENCIL * n_out
        return Cost(held * site.n_nodes, work * site.n_nodes)

    def build(self, numbers, site):
        """A SpectralConv, or a PairedConv if each pair of maps has its own filter."""
        options, start = site.options, (site.graph, site.size, *numbers, site.rng, site.dtype)
        if options.mixing in PAIRED_MIXINGS:
            return [PairedConv.init(*start, options.active_set, PAIRED_MIXINGS[options.mixing], options.diffusion)]
        if site.is_loading:  # fitting thousands of windows takes minutes
            zeros = {name: np.zeros(shape, site.dtype) for name, shape in self.shapes(numbers, site).items()}
            return [SpectralConv(site.graph, **zeros, active_set=options.active_set)]
        return [SpectralConv.init(*start, options.mixing, options.active_set)]


@layer_kind("OC")
class OrientedConvKind(LayerKind):
    """OC[filters, degree]"""

    arguments = whole("filters", 1), whole("degree", 1)
    takes = gives = "maps"

    def check(self, item, site):
        """The degree must be low enough for the powers of L, and a grid must be padded, which has an orientation."""
        check_degree(item)
        if site.options.boundary != "padded":
            raise ArchitectureError(
                f"{item} at position {item.position} needs boundary='padded', got {site.options.boundary!r}."
            )

    def size(self, numbers, site):
        """One map per filter."""
        return numbers[0]

    def shapes(self, numbers, site):
        """Shapes of alpha and pairs, and of scale and offset of the maps."""
        norm = dict.fromkeys(("gamma", "beta"), (numbers[0],))
        return OrientedConv.shapes(site.size, *numbers) | norm

    def cost(self, numbers, site):
        """The terms and pairs in frames, eight frames for gradients, and the normalised maps."""
        (n_out, degree), n_in, diffusion = numbers, site.size, site.options.diffusion
        (height, width), rim = site.shape, 2 * site.dilation
        n_terms = (degree + 3) * n_in
        framed = (n_terms + 2 * n_in + n_out + 8) * (height + rim) * (width + rim)
        work = n_in * (degree * STENCIL + 4 * n_in + 4 * STENCIL) + n_out * (n_terms + 4 + diffusion * STENCIL)
        return Cost(framed + n_out * (2 + min(diffusion, 2)) * site.n_nodes, work * site.n_nodes)

    def build(self, numbers, site):
        """An OrientedConv and a MapNorm."""
        n_filters, degree = numbers
        convolution = OrientedConv.init(site.graph, site.size, n_filters, degree, site.rng, site.dtype)
        return [convolution, MapNorm.init(site.graph, n_filters, site.dtype, site.options.diffusion)]


@layer_kind("GC")
class CoarsenKind(PlainKind):
    """GC[factor]"""

    arguments = (whole("factor", 2),)
    takes = gives = "maps"

    def check(self, item, site):
        """The factor is 2, and the grid has more than one node."""
        check_is_grid(item, site)
        if item.numbers[0] != 2:
            raise ArchitectureError(
                f"{item} at position {item.position}: write GC[2], or GC[2]-GC[2] for a factor of 4."
            )
        if site.dilation > 1:
            raise ArchitectureError(f"{item} at position {item.position} comes after a GD; coarsen first, then dilate.")
        if max(site.shape) < 2:
            raise ArchitectureError(f"{item} at position {item.position} has nothing to coarsen: the grid is one node.")

    def shape(self, numbers, site):
        """Half the sides, rounded up."""
        return coarse_shape(site.shape)

    def cost(self, numbers, site):
        """The smooth maps, and the coarse ones."""
        return Cost(1.5 * site.size * site.n_nodes, (STENCIL + 1) * site.size * site.n_nodes)

    def build(self, numbers, site):
        """A Coarsen layer."""
        return [Coarsen(site.graph)]


@layer_kind("GD")
class DilateKind(PlainKind):
    """GD[factor]"""

    arguments = (whole("factor", 2),)
    takes = gives = "maps"

    def check(self, item, site):
        """The grid must be padded and larger than the distance of its neighbours."""
        check_is_grid(item, site)
        apart = site.dilation * item.numbers[0]
        if site.options.boundary != "padded" or apart >= max(site.shape):
            raise ArchitectureError(
                f"{item} at position {item.position} needs a padded grid of more than {apart} pixels, got"
                f" {site.options.boundary} and {site.shape[0]}x{site.shape[1]}."
            )

    def dilation(self, numbers, site):
        """The factors of all GD so far, multiplied."""
        return site.dilation * numbers[0]

    def cost(self, numbers, site):
        """Nothing."""
        return Cost()

    def build(self, numbers, site):
        """No layer: only the graph of the following layers changes."""
        return []


@layer_kind("DP")
class DynamicPoolKind(PlainKind):
    """DP[nodes]"""

    arguments = (whole("nodes", 1),)
    takes = gives = "maps"

    def check(self, item, site):
        """The graph must have at least as many nodes as are kept."""
        if item.numbers[0] > site.n_nodes:
            raise ArchitectureError(
                f"{item} at position {item.position} keeps more nodes than the graph has:"
                f" use at most {site.n_nodes} nodes, the pixels with the margin, or what GC has left of them."
            )

    def cost(self, numbers, site):
        """The pooled maps, their active sets, and two copies for the selection."""
        return Cost(3.5 * site.size * site.n_nodes, 20 * site.size * site.n_nodes)

    def build(self, numbers, site):
        """A DynamicPool; by the size of responses if oriented convolutions make them negative."""
        return [DynamicPool(numbers[0], by_size=site.options.has_layer("OC"))]


@layer_kind("S")
class StatisticsKind(PlainKind):
    """S[order]"""

    arguments = (whole("order"),)
    takes, gives = "maps", "features"

    def size(self, numbers, site):
        """Mean and variance of every order and map."""
        return site.size * 2 * (numbers[0] + 1)

    def cost(self, numbers, site):
        """One map at a time, and the features."""
        n_features = self.size(numbers, site)
        return Cost(3 * site.n_nodes + 4 * n_features, n_features * (STENCIL + 5) / 2 * site.n_nodes)

    def build(self, numbers, site):
        """Statistics, followed by Logarithm and Standardise if the options ask for them."""
        options, statistics = site.options, Statistics(site.graph, *numbers)
        if not options.standardise:
            return [statistics]
        size, floor = self.size(numbers, site), options.deviation_floor
        compressed = [Logarithm.init(size, site.dtype, options.log_offset, floor)] if options.log_offset else []
        if options.batch_norm:
            return [statistics, *compressed, FeatureNorm(size, site.dtype)]
        return [statistics, *compressed, Standardise.init(size, site.dtype, floor)]


@layer_kind("FC")
class DenseKind(LayerKind):
    """FC[units]"""

    arguments = (whole("units", 1),)

    def size(self, numbers, site):
        """One feature per unit."""
        return numbers[0]

    def shapes(self, numbers, site):
        """Shapes of weight and bias."""
        return Dense.shapes(site.size, *numbers)

    def build(self, numbers, site):
        """A Dense layer and its ReLU."""
        return [Dense.init(site.size, numbers[0], site.rng, site.dtype, site.options.dense_init), ReLU()]


class LastKind(DenseKind):
    """Implicit: the linear layer to the class scores."""

    gives = "scores"

    def build(self, numbers, site):
        """A Dense layer with small initial weights, so that all classes start about equally likely."""
        return [Dense.init(site.size, numbers[0], site.rng, site.dtype, site.options.dense_init, LAST_GAIN)]


class FirstMapKind(PlainKind):
    """Implicit: the image itself is the first map, y_0."""

    takes, gives = "image", "maps"

    def build(self, numbers, site):
        """No layer is needed."""
        return []


register_flow("maps", Flow("graph layers come first, then one S[K_max], then FC layers", begin=FirstMapKind()))
register_flow("features", Flow("", last=LastKind(), last_name="linear"))
