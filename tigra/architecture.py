"""From an architecture text to a network: the kinds of layers of TIGraNet, and `build_network`.

SC[K, M]: K spectral filters of degree M. DP[J]: dynamic pooling to J nodes. S[K_max]: statistics
up to Chebyshev order K_max, standardised. FC[n]: n hidden units with ReLU. A last linear layer to
the classes follows by itself. A further kind of layer is one more class with `@layer_kind`; those of
the networks that TIGraNet is compared with stand in `tigra.plane_kinds`.
"""

from __future__ import annotations

from numbers import Real

import numpy as np

from tigra.errors import ArchitectureError, UsageError
from tigra.graph import check_shape, grid_graph
from tigra.layers import Dense, DynamicPool, Logarithm, PairedConv, ReLU, SpectralConv, Standardise, Statistics
from tigra.layers.spatial_transformer import OUTSIDE
from tigra.network import Network
from tigra.notation import (
    LAYER_KINDS,
    Item,
    LayerKind,
    Site,
    format_architecture,
    layer_kind,
    parse_architecture,
)
from tigra.plane_kinds import BRIDGES, HarmonicHeadKind, with_harmonic_blocks

LARGEST_DEGREE = 12  # where the start values of alpha are some 10^5
LAST_GAIN = 0.1  # of the start values of the last layer
MIXINGS = "vector", "full", "pairs", "gradients", "products"
MOST_STEPS = 100  # of diffusion
PAIRED = {"pairs": 0, "gradients": 1, "products": 2}  # mixings by `PairedConv`: products of gradients for each map
GROUNDS = "black", "border"
LARGEST_NETWORK = 10**8  # parameters; a slip of the finger should not fill the memory


@layer_kind("SC")
class SpectralConvKind(LayerKind):
    """SC[filters, degree]"""

    arguments, smallest = ("filters", "degree"), (1, 0)
    takes = gives = "maps"

    def check(self, item, site):
        if item.numbers[1] > LARGEST_DEGREE:
            raise ArchitectureError(
                f"{item} at position {item.position} has too high a degree: use at most {LARGEST_DEGREE},"
                " beyond that powers of the Laplacian cancel to nothing but rounding errors."
            )
        if PAIRED.get(site.mixing) and item.numbers[1] < 1:
            raise ArchitectureError(
                f"{item} at position {item.position} has too low a degree: mixing={site.mixing!r} needs at least 1."
            )

    def size(self, numbers, site):
        return numbers[0]

    def n_parameters(self, numbers, site):
        n_filters, degree = numbers
        if site.mixing in PAIRED:
            return n_filters * ((degree + 1 + min(PAIRED[site.mixing], site.size)) * site.size + 1)
        return n_filters * (degree + 1) + site.size * (n_filters if site.mixing == "full" else 1)

    def build(self, numbers, site):
        if site.mixing in PAIRED:
            more = site.rng, site.dtype, site.active, PAIRED[site.mixing], site.diffusion
            return [PairedConv.init(site.graph, site.size, *numbers, *more)]
        return [SpectralConv.init(site.graph, site.size, *numbers, site.rng, site.dtype, site.mixing, site.active)]


@layer_kind("DP")
class DynamicPoolKind(LayerKind):
    """DP[nodes]"""

    arguments, smallest = ("nodes",), (1,)
    takes = gives = "maps"

    def check(self, item, site):
        if item.numbers[0] > site.n_nodes:
            raise ArchitectureError(
                f"{item} at position {item.position} keeps more nodes than the graph has:"
                f" use at most {site.n_nodes}, the number of pixels (with the margin)."
            )

    def build(self, numbers, site):
        return [DynamicPool(*numbers)]


@layer_kind("S")
class StatisticsKind(LayerKind):
    """S[order]"""

    arguments, smallest = ("order",), (0,)
    takes, gives = "maps", "features"

    def size(self, numbers, site):
        return site.size * 2 * (numbers[0] + 1)

    def build(self, numbers, site):
        statistics = Statistics(site.graph, *numbers)
        if not site.standardise:
            return [statistics]
        size = self.size(numbers, site)
        compressed = [Logarithm.init(size, site.dtype, site.log, site.floor)] if site.log else []
        return [statistics, *compressed, Standardise.init(size, site.dtype, site.floor)]


@layer_kind("FC")
class DenseKind(LayerKind):
    """FC[units]"""

    arguments, smallest = ("units",), (1,)

    def size(self, numbers, site):
        return numbers[0]

    def n_parameters(self, numbers, site):
        return (site.size + 1) * numbers[0]

    def build(self, numbers, site):
        return [Dense.init(site.size, *numbers, site.rng, site.dtype, site.init), ReLU()]


class LastKind(LayerKind):
    """Not written: the linear layer to as many scores as its number says."""

    gives = "scores"

    def n_parameters(self, numbers, site):
        return (site.size + 1) * numbers[0]

    def build(self, numbers, site):
        return [Dense.init(site.size, *numbers, site.rng, site.dtype, site.init, gain=LAST_GAIN)]


HINTS = {
    "maps": "graph layers come first, then one S[K_max], then FC layers",
    "planes": "C, P and ST layers come first, then FC layers",
    "harmonics": "after HRC come HRC, HCN, HBN and MP layers alone, the scores of the classes follow by themselves",
}
LAST = {"features": LastKind(), "harmonics": HarmonicHeadKind()}


def _walk(items: list[Item], site: Site, n_classes: int):
    """Yield (kind, item) of all layers, also of those that are not written, with `site` set to what arrives there."""
    n_parameters = 0
    for kind, item in _with_unwritten(items, site, n_classes):
        kind.check(item, site)
        n_parameters += kind.n_parameters(item.numbers, site)
        if n_parameters > LARGEST_NETWORK:
            raise ArchitectureError(
                f"{item} at position {item.position} takes the network past {LARGEST_NETWORK:,} parameters;"
                " use smaller layers."
            )
        yield kind, item
        after = kind.gives, kind.size(item.numbers, site), kind.shape(item.numbers, site)
        site.gives, site.size, site.shape = after


def _with_unwritten(items: list[Item], site: Site, n_classes: int):
    """(kind, item) of the items and of what goes without saying; `site` moves on in the meantime."""
    for item in with_harmonic_blocks(items):
        kind = LAYER_KINDS[item.name]
        if (site.gives, kind.takes) in BRIDGES:
            yield BRIDGES[site.gives, kind.takes], item
        if site.gives not in (kind.takes, *kind.also) and (site.gives, kind.takes) != ("image", "maps"):
            raise ArchitectureError(
                f"{item} at position {item.position} takes {kind.takes}, but what stands before it gives"
                f" {site.gives}; {HINTS.get(site.gives, HINTS['maps'])}."
            )
        yield kind, item
    last = Item("The last layer", (n_classes,), len(format_architecture(items)))
    if (site.gives, "features") in BRIDGES:
        yield BRIDGES[site.gives, "features"], last
    if site.gives not in LAST:
        raise ArchitectureError("The architecture ends in maps; add a statistics layer such as S[10].")
    yield LAST[site.gives], last


def count_parameters(architecture: str, image_shape, n_classes: int, mixing: str = "vector") -> int:
    """How many numbers the network learns, found without building it.

    image_shape : (height, width) of the grid, that is, of the image with its margin

    >>> count_parameters("S[0]-FC[2]", image_shape=(2, 2), n_classes=3)  # (2+1) * 2 + (2+1) * 3
    15
    """
    height, width = check_shape(image_shape)
    if mixing not in MIXINGS:
        raise UsageError(f"mixing must be one of {', '.join(MIXINGS)}, got {mixing!r}.")
    site = Site((height, width), mixing=mixing)
    items = parse_architecture(architecture)
    return sum(kind.n_parameters(item.numbers, site) for kind, item in _walk(items, site, n_classes))


def with_pooling_limited(architecture: str, n_nodes: int) -> str:
    """The architecture for a graph of n_nodes: its first DP keeps at most half of them, the next a quarter, ...

    >>> with_pooling_limited("SC[3, 3]-DP[300]-SC[6, 3]-DP[100]-S[4]", 256)
    'SC[3, 3]-DP[128]-SC[6, 3]-DP[64]-S[4]'
    """
    items, limit = parse_architecture(architecture), n_nodes
    for place, item in enumerate(items):
        if item.name == "DP":
            limit = max(1, limit // 2)
            items[place] = item._replace(numbers=(min(item.numbers[0], limit),))
    return format_architecture(items)


def build_network(
    architecture: str,
    image_shape: tuple[int, int],
    n_classes: int,
    seed: int = 0,
    dtype: str = "float32",
    neighbours: int = 8,
    diagonal_weight: float = 1.0,
    boundary: str = "padded",
    active: str = "map",
    mixing: str = "vector",
    init: str = "default",
    smoothing: float = 0.0,
    margin: int = 0,
    standardise: bool = True,
    outside: str = "zeros",
    floor: float = 0.0,
    log: float = 0.0,
    ground: str = "black",
    diffusion: int = 0,
) -> Network:
    """A network with start values drawn from `seed`.

    architecture : text, see the top of this module
    image_shape, n_classes : (height, width) of the images, number of classes
    dtype : "float32", or "float64" for checks
    neighbours, diagonal_weight, boundary : the grid, see `grid_graph`
    active, mixing : which sets limit a filter, and how maps are mixed: "vector" or "full", see `SpectralConv`, or
        "pairs", "gradients" and "products", see `PairedConv`
    init : start values of the FC layers, "default", "paper" or "he", see `Dense.init`
    smoothing : standard deviation in pixels of a Gaussian blur of the input
    margin : width in pixels of a frame of zeros around the image, so that what lies near its border is
        filtered like the rest (the paper's remedy for border artefacts, section 6.4)
    standardise : bring the statistics (of a network of planes, the pixels) to mean 0 and deviation 1, when training
        starts
    floor : of the deviations by which statistics are divided, as a share of the largest, see `Standardise`
    log : 0, or take the logarithm of statistics before they are standardised, plus this share of their deviation, see
        `Logarithm`
    ground : what the empty part of an image looks like: "black", or "border", like the median of its border pixels,
        which is then subtracted, so that the image does not end in an edge all around
    diffusion : steps by which maps are smoothed behind each convolution of pairs, see `PairedConv`
    outside : what spatial transformers read outside of their planes, "zeros" or "border"

    >>> network = build_network("SC[2, 1]-DP[3]-S[1]-FC[4]", image_shape=(2, 2), n_classes=2)
    >>> network.n_parameters  # alpha 4, beta 1, FC (8+1) * 4, classes (4+1) * 2
    51
    """
    options = dict(locals())
    _check_options(options)
    dtype = options["dtype"]
    items = parse_architecture(architecture)
    grid_shape = tuple(size + 2 * margin for size in image_shape)
    count_parameters(architecture, grid_shape, n_classes, mixing)  # complains before anything large is built
    graph = grid_graph(grid_shape, neighbours, diagonal_weight, boundary)
    rng = np.random.default_rng(seed)
    more = outside, floor, log, diffusion, dtype, graph, rng
    site = Site(grid_shape, "image", 1, mixing, active, init, standardise, *more)
    layers = []
    for kind, item in _walk(items, site, n_classes):
        layers += kind.build(item.numbers, site)
    plain = {"image_shape": lambda shape: [int(size) for size in shape], "standardise": bool}
    plain |= {"diagonal_weight": float, "smoothing": float, "floor": float, "log": float, "neighbours": int}
    options |= {name: convert(options[name]) for name, convert in plain.items()}  # numbers that JSON knows
    options["architecture"] = format_architecture(items)
    return Network(layers, graph, options)


def _check_options(options: dict) -> None:
    """Complain about what neither the grid nor the layers would complain about in time."""
    check_shape(options["image_shape"])
    whole = {
        "n_classes": ("A classifier needs at least 2 classes", 2),
        "seed": ("seed must be a whole number >= 0", 0),
        "margin": ("margin must be a whole number of pixels >= 0", 0),
        "diffusion": ("diffusion must be a whole number of steps >= 0", 0),
    }
    for name, (demand, smallest) in whole.items():
        value = options[name]
        if not isinstance(value, (int, np.integer)) or value < smallest:
            raise UsageError(f"{demand}, got {name}={value!r}.")
        options[name] = int(value)
    options["dtype"] = getattr(options["dtype"], "__name__", str(options["dtype"]))  # np.float32, too
    if options["dtype"] not in ("float32", "float64"):
        raise UsageError(f"dtype must be 'float32' or 'float64', got {options['dtype']!r}.")
    if not isinstance(options["standardise"], (bool, np.bool_)):
        raise UsageError(f"standardise must be True or False, got {options['standardise']!r}.")
    if options["outside"] not in OUTSIDE:
        raise UsageError(f"outside must be one of {', '.join(OUTSIDE)}, got {options['outside']!r}.")
    if options["ground"] not in GROUNDS:
        raise UsageError(f"ground must be one of {', '.join(GROUNDS)}, got {options['ground']!r}.")
    for name in ("floor", "log"):
        if not isinstance(options[name], Real) or not 0 <= options[name] <= 1:
            raise UsageError(f"{name} must be a share from 0 to 1, got {options[name]!r}.")
        if options[name] and not options["standardise"]:
            raise UsageError(
                f"{name} is for statistics that are standardised, and these are left as they are (standardise=False, as"
                f" in the recipe 'paper'): leave it out, got {options[name]!r}."
            )
    if options["diffusion"] > MOST_STEPS:  # a model file from outside may say anything
        raise UsageError(f"diffusion must be at most {MOST_STEPS} steps, got {options['diffusion']}.")
    if options["diffusion"] and options["mixing"] not in PAIRED:
        raise UsageError(
            f"diffusion is for mixing {', '.join(PAIRED)}, got mixing={options['mixing']!r}; leave it out."
        )
    if not isinstance(options["smoothing"], Real):
        raise UsageError(f"smoothing must be a number of pixels, got {options['smoothing']!r}.")
    largest = max(options["image_shape"])
    if options["margin"] > 10 * largest:
        raise UsageError(f"margin must be at most ten times the image's {largest} pixels, got {options['margin']}.")
    if not 0 <= options["smoothing"] <= largest:
        raise UsageError(f"smoothing must be from 0 to the image's {largest} pixels, got {options['smoothing']!r}.")
