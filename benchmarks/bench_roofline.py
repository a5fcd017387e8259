"""What the machine could do, and how much of it the Laplacian step and the statistics reach; one thread, float32.

Counted by hand, for one node of one image of one map (a "place"):

Laplacian step, out = a x + b S x + c D x + d y, S and D sums of four neighbours each:
    S x 3 additions, D x 3, four products and three additions to put them together: 13 flops;
    bytes: x and y read, out written, 4 each: 12. The neighbours come from rows that were read before.
    What is timed is `laplacian_powers`, where y and d are missing: 11 flops and 8 bytes for each power; memory
    sees x read and M + 1 arrays written.

Statistics, orders 0..K, forward:
    a step of the recursion has no centre, because L - I has none: S x 3 additions, D x 3, three products and two
    additions: 11 flops for each order from 1 on (9 would do for the first, which has no t_{k-2}); abs, sum for the
    mean 2; subtract, square, sum for the variance 3: 11 K + 5 (K + 1). The abs is taken a second time for the
    variance; that is not counted. Bytes from and to memory, if a map stays in the cache: z read once, 4. Inside
    the cache: 12 for each step, 4 + 4 for the two passes of the moments.
Statistics, backward:
    dE/dt = slope * t + jump * sign(t), added to what is there: sign, two products, two additions 5; Clenshaw step 11
    for each order but the last, whose sums are 0: 11 K + 5 (K + 1). The t_k are computed a second time by some
    implementations (11 K more), and the last order's step, too (11): that is no useful work and is not counted. Memory:
    z read, dE/dz written, 8. Inside the cache: 4 to read t, 12 + 4.

Oriented convolution of K maps to K_out, with R = K pairs and T = 5 K terms, for each node of one image: the products
of matrices alone, 2 flops for each weight: 2 (K_out T + 2 R 2 K) forward, and twice as many backward. Bytes inside the
cache: each term and pair is written and read, y is read and x written; backward, the terms are read once more, and
gradients of terms and pairs are written and read.
tests/benchmarks/test_roofline.py runs the kernels on numbers that count what is done with them, and finds the same.

Peaks are measured in the same run: flops by a BLAS sgemm of 1024 x 1024 (fused multiply-adds; sums alone can
reach one half of that), bytes by copies of arrays that fit the L2 cache (128 kB each) and of arrays that fit no
cache (256 MB each). A copy of n bytes moves 2 n.
"""

from __future__ import annotations

import numpy as np

from benchmarks.bench_kernels import numbers_of
from benchmarks.harness import Contestant, take_turns
from benchmarks.machine import set_threads
from benchmarks.problems import Settings
from benchmarks.report import Report, duration
from tigra.graph import GraphSignal, grid_graph
from tigra.graph.polynomials import laplacian_powers
from tigra.layers import OrientedConv, Statistics
from tigra.models.workers import micro_batches

ORIENTED = (16, 16, 32), (16, 32, 48), (8, 48, 64)  # side, maps in, maps out: the default network of MNIST-rot
COPIES = {"L2 copy": 2**17, "memory copy": 2**28}


def laplacian_work(degree: int) -> dict[str, float]:
    """Flops, and bytes in the cache and from memory, of L^0 x ... L^degree x, for each place."""
    return {"flops": 11.0 * degree, "cache": 8.0 * degree, "memory": 4.0 * (degree + 2)}


def statistics_work(max_order: int) -> dict[str, dict[str, float]]:
    """The same of the statistics' forward and of forward and backward, for each place."""
    k = max_order
    forward = {"flops": 11.0 * k + 5 * (k + 1), "cache": 12.0 * k + 8 * (k + 1), "memory": 4.0}
    backward = {"flops": 11.0 * k + 5 * k + 4, "cache": 4.0 * (k + 1) + 16 * k, "memory": 8.0}
    return {"forward": forward, "both": {name: forward[name] + backward[name] for name in forward}}


def oriented_work(n_in: int, n_out: int) -> dict[str, dict[str, float]]:
    """The same of an oriented convolution of degree 2, for each node of one image."""
    n_terms, n_pairs = 5 * n_in, 2 * n_in
    flops = 2.0 * (n_out * n_terms + n_pairs * 2 * n_in)
    forward = {"flops": flops, "cache": 8.0 * (n_terms + n_pairs) + 4 * (n_in + n_out), "memory": 4.0 * (n_in + n_out)}
    back = {"flops": 2 * flops, "cache": forward["cache"] + 4.0 * n_terms, "memory": 8.0 * (n_in + n_out)}
    return {"forward": forward, "both": {name: forward[name] + back[name] for name in forward}}


def measure_peaks(settings: Settings) -> dict[str, float]:
    """Flops each second of sgemm, bytes each second of the copies."""
    n = 1024 if settings.scale else 32
    a, b, c = np.ones((3, n, n), np.float32)
    contestants = [Contestant("sgemm", lambda: np.matmul(a, b, out=c))]
    moved = {"sgemm": 2.0 * n**3}
    for name, n_bytes in COPIES.items():
        n_bytes = n_bytes if settings.scale else 2**10
        source, target = np.ones((2, n_bytes // 4), np.float32)
        repeats = max(1, 2**20 // n_bytes)  # so that Python's share is small

        def copy(source=source, target=target, repeats=repeats):
            for _ in range(repeats):
                np.copyto(target, source)

        contestants.append(Contestant(name, copy))
        moved[name] = 2.0 * n_bytes * repeats
    times = take_turns(contestants, settings.rounds, settings.shortest_turn)
    return {name: moved[name] / taken.best for name, taken in times.items()}


def run(settings: Settings, report: Report) -> None:
    """Peaks, then kernels as fractions of them."""
    set_threads(1)
    peaks = measure_peaks(settings)
    report.numbers["roofline/peaks"] = peaks
    report.table(
        "Peaks, 1 thread",
        ("what", "measured"),
        [(name, f"{value / 1e9:.1f} {'Gflop/s' if name == 'sgemm' else 'GB/s'}") for name, value in peaks.items()],
    )
    for size in settings.sizes:
        _table(size.name, _cases(size), peaks, settings, report)
    _table("oriented convolutions", _oriented_cases(settings), peaks, settings, report)


def _table(title, cases, peaks, settings, report) -> None:
    """Each case against the peaks."""
    rows = []
    for name, (call, work, n_places) in cases.items():
        taken = take_turns([Contestant(name, call)], settings.rounds, settings.shortest_turn)[name]
        fractions = fractions_reached(work, n_places, taken.best, peaks)
        report.numbers[f"roofline/{title}/{name}"] = taken.numbers | work | fractions | {"places": n_places}
        speed = f"{work['flops'] * n_places / taken.best / 1e9:.1f} Gflop/s"
        rows.append((name, duration(taken.best), speed, *(f"{100 * part:.0f} %" for part in fractions.values())))
    columns = ("kernel", "best", "speed", "of sgemm", "of L2 copy", "of memory copy", "of its roof")
    report.table(f"Roofline, {title}, one micro-batch, 1 thread", columns, rows)


def fractions_reached(work, n_places, seconds, peaks) -> dict[str, float]:
    """Parts of each peak, and of the roof: the time that the tightest of the three would take, over the time taken."""
    needs = {
        "of sgemm": work["flops"] * n_places / peaks["sgemm"],
        "of L2 copy": work["cache"] * n_places / peaks["L2 copy"],
        "of memory copy": work["memory"] * n_places / peaks["memory copy"],
    }
    return {name: need / seconds for name, need in needs.items()} | {"of its roof": max(needs.values()) / seconds}


def _cases(size) -> dict:
    """name -> (call, work for each place, number of places)."""
    numbers, graph = numbers_of(size), grid_graph(size.shape)
    n_images = micro_batches(size.batch)[0].stop
    rng = np.random.default_rng(0)
    z = rng.standard_normal((numbers["maps"], size.n_nodes, n_images), np.float32)
    signal = GraphSignal(z, np.ones(z.shape, bool))
    layer = Statistics(graph, numbers["max_order"]).replica(keeps_results=False)  # as in training
    grad = rng.standard_normal(layer.forward(signal).shape, np.float32)

    def both():
        layer.forward(signal)
        layer.backward(grad)

    work = statistics_work(numbers["max_order"])
    return {
        "laplacian_powers": (
            lambda: laplacian_powers(graph, z, numbers["degree"]),
            laplacian_work(numbers["degree"]),
            z.size,
        ),
        "Statistics forward": (lambda: layer.forward(signal), work["forward"], z.size),
        "Statistics forward and backward": (both, work["both"], z.size),
    }


def _oriented_cases(settings: Settings) -> dict:
    """The same for oriented convolutions."""
    cases, rng = {}, np.random.default_rng(0)
    for side, n_in, n_out in ORIENTED if settings.scale else ((4, 2, 3),):
        graph, n_images = grid_graph((side, side), diagonal_weight=0.25), OrientedConv.micro_batch
        y = rng.standard_normal((n_in, side**2, n_images), np.float32)
        signal = GraphSignal(y, np.ones((1, *y.shape[1:]), bool))
        layer = OrientedConv.init(graph, n_in, n_out, 2, rng, np.float32).replica(keeps_results=False)
        grad = rng.standard_normal((n_out, *y.shape[1:]), np.float32)

        def forward(layer=layer, signal=signal):
            layer.forward(signal)

        def both(layer=layer, signal=signal, grad=grad):
            layer.forward(signal)
            layer.backward(grad)

        work, name = oriented_work(n_in, n_out), f"{n_in} to {n_out} maps, {side}x{side}"
        cases[f"{name}, forward"] = forward, work["forward"], side**2 * n_images
        cases[f"{name}, forward and backward"] = both, work["both"], side**2 * n_images
    return cases
