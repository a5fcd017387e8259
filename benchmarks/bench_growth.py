"""How the cost of a layer's forward and backward grows with nodes, batch, maps, degree and Chebyshev order.

One size at a time is changed, the others stay; one thread; layers use their arrays again, as in training. Exponents
are slopes of log(seconds) over log(size), 1 means linear: one over the whole range, and one over the upper half of the
logarithmic range, where overheads no longer count. The second is the stricter one, and decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.growth_figure import draw
from benchmarks.harness import Contestant, exponent, fitted_sizes, take_turns
from benchmarks.machine import set_threads
from benchmarks.problems import Settings
from benchmarks.report import Report, duration
from tigra.graph import GraphSignal, grid_graph
from tigra.layers import Coarsen, DynamicPool, MapNorm, OrientedConv, SpectralConv, Statistics


@dataclass(frozen=True)
class Site:
    """The sizes on which the cost of the graph layers depends."""

    side: int = 28
    batch: int = 16
    maps: int = 4
    degree: int = 4
    max_order: int = 12


COLUMNS = ("what grows", "layer", "from", "to", "exponent, whole range", "exponent, upper half", "upper half")
LAYERS = ("SpectralConv", "DynamicPool", "Statistics")
ORIENTED = ("OrientedConv", "MapNorm", "Coarsen")
GROWTH = {  # what grows: (field of Site, layers that depend on it, values)
    "nodes N": ("side", LAYERS + ORIENTED, None),
    "batch B": ("batch", LAYERS + ORIENTED, (8, 16, 32, 64, 128, 256, 512)),
    "maps K": ("maps", (*LAYERS, *ORIENTED[1:]), (2, 4, 8, 16, 32, 64)),  # OrientedConv has K^2 weights
    "degree M": ("degree", ("SpectralConv",), (2, 4, 8, 16, 32)),
    "order K_max": ("max_order", ("Statistics",), (4, 8, 16, 32, 64)),
}


def make_pass(name: str, site: Site):
    """A function that runs one layer forward and backward; as many maps go in as come out."""
    rng = np.random.default_rng(0)
    graph = grid_graph((site.side, site.side))
    shape = site.maps, site.side**2, site.batch
    z = rng.standard_normal(shape, np.float32)
    signal = GraphSignal(z, np.ones(shape, bool))
    if name == "SpectralConv":
        alpha = rng.standard_normal((site.maps, site.degree + 1), np.float32)
        layer = SpectralConv(graph, alpha, rng.standard_normal(site.maps, np.float32))
    elif name == "DynamicPool":
        layer = DynamicPool(site.side**2 // 2)
    elif name == "OrientedConv":
        layer = OrientedConv.init(graph, site.maps, site.maps, 2, rng, np.float32)
    elif name == "MapNorm":
        layer = MapNorm.init(graph, site.maps, np.float32, diffusion=2)
    elif name == "Coarsen":
        layer = Coarsen(graph)
    else:
        layer = Statistics(graph, site.max_order)
    layer = layer.replica(keeps_results=False)  # as in training
    out = layer.forward(signal)
    grad = rng.standard_normal(out.values.shape if isinstance(out, GraphSignal) else out.shape, np.float32)

    def run():
        layer.forward(signal)
        layer.backward(grad)

    return run


def sweep_values(settings: Settings, field: str, values) -> tuple[int, ...]:
    """Values of a field, fewer for quick runs."""
    values = settings.grid_sides if values is None else values
    if settings.scale == 0:
        return values[:3]
    return values if settings.scale == 1 or field == "side" else values[: -(-len(values) * 3 // 4)]


def run(settings: Settings, report: Report) -> None:
    """All sweeps, a table of exponents, and a figure when there is a folder for it."""
    set_threads(1)
    curves, rows = {}, []
    for label, (field, names, values) in GROWTH.items():
        values = sweep_values(settings, field, values)
        site = replace(Site(), batch=8) if field == "side" else Site()
        for name in names:
            times = _sweep(settings, name, site, field, values)
            sizes = [value**2 if field == "side" else value for value in values]
            seconds = [taken.best for taken in times]
            whole, slope = exponent(sizes, seconds, share=1), exponent(sizes, seconds)
            curves[label, name] = sizes, seconds, slope
            report.numbers[f"growth/{label}/{name}"] = {
                "sizes": sizes,
                "best": seconds,
                "median": [t.median for t in times],
                "exponent": slope,
                "exponent_of_whole_range": whole,
                "fitted_from": fitted_sizes(sizes)[0],
            }
            ends = (f"{size}: {duration(second)}" for size, second in zip(sizes, seconds, strict=True))
            first, *_, last = ends
            rows.append((label, name, first, last, f"{whole:.3f}", f"{slope:.3f}", f">= {fitted_sizes(sizes)[0]}"))
    report.table("Growth, forward and backward, 1 thread", COLUMNS, rows)
    draw(curves, settings.out, report.say)


def _sweep(settings: Settings, name: str, site: Site, field: str, values) -> list:
    """Times for each value, in turns."""
    rounds = max(1, settings.rounds // 3)
    contestants = [Contestant(str(value), make_pass(name, replace(site, **{field: value}))) for value in values]
    times = take_turns(contestants, rounds, settings.shortest_turn / 2)
    return [times[str(value)] for value in values]
