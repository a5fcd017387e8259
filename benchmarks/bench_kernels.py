"""Single functions of tigra against NumPy and SciPy in the same layout (maps, nodes, batch), on one thread.

KERNELS is the table to extend: name -> function of (graph, signals, size) that gives (ours, {peer: call}).
Each call returns what it computed, and all are compared before the clock runs.
"""

from __future__ import annotations

import re
from functools import partial

import numpy as np

from benchmarks.harness import Contestant, assert_same, take_turns
from benchmarks.machine import set_threads
from benchmarks.peers import scipy_path
from benchmarks.problems import Settings, Size
from benchmarks.report import Report
from tigra.graph import grid_graph
from tigra.graph.polynomials import (
    chebyshev,
    chebyshev_adjoint,
    laplacian_powers,
    laplacian_powers_adjoint,
)
from tigra.layers.dynamic_pool import top_nodes
from tigra.models.workers import micro_batches

TOLERANCE = 1e-4  # float32, relative error of the norm


def numbers_of(size: Size) -> dict[str, int]:
    """Degree, J and K_max of the last layers of an architecture, and the maps that reach the statistics."""
    filters = re.findall(r"SC\[(\d+), (\d+)\]", size.architecture)
    return {
        "maps": int(filters[-1][0]),
        "inputs": int(filters[-1][1]) and int(filters[-2][0]) if len(filters) > 1 else 1,
        "degree": int(filters[-1][1]),
        "n_active": int(re.findall(r"DP\[(\d+)\]", size.architecture)[-1]),
        "max_order": int(re.findall(r"-S\[(\d+)\]", size.architecture)[0]),
    }


def laplacian_powers_kernel(graph, x, size):
    degree = numbers_of(size)["degree"]
    laplacian = graph.laplacian.astype(x.dtype)
    return partial(laplacian_powers, graph, x, degree), {"SciPy CSR": lambda: scipy_path.powers(laplacian, x, degree)}


def laplacian_powers_adjoint_kernel(graph, x, size):
    terms = np.stack([x * number for number in range(1, numbers_of(size)["degree"] + 2)])
    laplacian = graph.laplacian.astype(x.dtype)
    return (
        partial(laplacian_powers_adjoint, graph, terms),
        {"SciPy CSR": lambda: scipy_path.powers_adjoint(laplacian, terms)},
    )


def chebyshev_kernel(graph, x, size):
    """All t_k; the last is returned and compared, and it depends on all others."""
    max_order = numbers_of(size)["max_order"]
    shifted = graph.shifted_laplacian.astype(x.dtype)
    doubled = 2 * shifted

    def ours():
        for t in chebyshev(graph, x, max_order):
            last = t
        return last

    terms, last = np.empty((max_order + 1, *x.shape[1:]), x.dtype), np.empty_like(x)

    def scipy():
        for k in range(len(x)):  # the room of one map serves all: it stays in the cache
            scipy_path.chebyshev(shifted, doubled, x[k], terms)
            last[k] = terms[-1]
        return last

    return ours, {"SciPy CSR": scipy}


def chebyshev_adjoint_kernel(graph, x, size):
    terms = np.stack([x / number for number in range(1, numbers_of(size)["max_order"] + 2)])
    shifted = graph.shifted_laplacian.astype(x.dtype)
    doubled = 2 * shifted

    def scipy():
        each = [scipy_path.chebyshev_adjoint(shifted, doubled, terms[:, k]) for k in range(len(x))]
        return np.stack(each)

    return partial(chebyshev_adjoint, graph, terms), {"SciPy CSR": scipy}


def top_nodes_kernel(graph, x, size):
    omega, n_active = np.ones((1, *x.shape[1:]), bool), numbers_of(size)["n_active"]
    return (
        partial(top_nodes, x, omega, n_active),
        {"np.partition, batch last": lambda: scipy_path.top_nodes(x, omega, n_active)},
    )


KERNELS = {
    "laplacian_powers": laplacian_powers_kernel,
    "laplacian_powers_adjoint": laplacian_powers_adjoint_kernel,
    "chebyshev": chebyshev_kernel,
    "chebyshev_adjoint": chebyshev_adjoint_kernel,
    "top_nodes": top_nodes_kernel,
}


def run(settings: Settings, report: Report) -> None:
    """Every kernel of the table, at the size of one micro-batch."""
    for size in settings.sizes:
        n_images = micro_batches(size.batch)[0].stop
        graph = grid_graph(size.shape)
        shape = numbers_of(size)["maps"], size.n_nodes, n_images
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        for name, factory in KERNELS.items():
            ours, peers = factory(graph, x, size)
            wanted = np.asarray(ours()).copy()
            for peer, call in peers.items():
                assert_same(f"{name}, {peer}", call(), wanted, TOLERANCE)
            contestants = [Contestant("tigra", ours), *(Contestant(peer, call) for peer, call in peers.items())]
            set_threads(1)
            report.race(
                f"{name}, {size.name}, {shape[0]} maps, {shape[1]} nodes, {n_images} images, 1 thread",
                f"kernels/{name}/{size.name}",
                take_turns(contestants, settings.rounds, settings.shortest_turn),
            )
