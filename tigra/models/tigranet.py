"""TIGraNet's layer kinds.

SC[K, M]    K spectral filters of degree M
DP[J]       dynamic pooling to J nodes
S[K_max]    statistics up to Chebyshev order K_max, standardised
FC[n]       n hidden units with ReLU

The linear layer to the classes is added automatically.
"""

from __future__ import annotations

from tigra.errors import ArchitectureError
from tigra.layers import (
    Dense,
    DynamicPool,
    Logarithm,
    PairedConv,
    ReLU,
    SpectralConv,
    Standardise,
    Statistics,
)
from tigra.models.costs import STENCIL, Cost
from tigra.models.kinds import (
    Flow,
    LayerKind,
    PlainKind,
    layer_kind,
    register_flow,
    whole,
)
from tigra.options import PAIRED_MIXINGS

LARGEST_DEGREE = 12  # initial values of alpha are then about 10^5
LAST_GAIN = 0.1  # scales the initial weights of the last layer


@layer_kind("SC")
class SpectralConvKind(LayerKind):
    """SC[filters, degree]"""

    arguments = whole("filters", 1), whole("degree")
    takes = gives = "maps"

    def check(self, item, site):
        """The degree must suit the mixing and be low enough for the powers of L."""
        if item.numbers[1] > LARGEST_DEGREE:
            raise ArchitectureError(
                f"{item} at position {item.position} has too high a degree: use at most {LARGEST_DEGREE};"
                " beyond that, powers of the Laplacian cancel up to rounding errors."
            )
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
        return [SpectralConv.init(*start, options.mixing, options.active_set)]


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
                f" use at most {site.n_nodes}, the number of pixels (with the margin)."
            )

    def cost(self, numbers, site):
        """The pooled maps, their active sets, and two copies for the selection."""
        return Cost(3.5 * site.size * site.n_nodes, 20 * site.size * site.n_nodes)

    def build(self, numbers, site):
        """A DynamicPool."""
        return [DynamicPool(*numbers)]


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
