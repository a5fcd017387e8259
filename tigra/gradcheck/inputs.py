"""Random inputs of the gradient checks, away from kinks."""

from __future__ import annotations

import numpy as np

from tigra.graph import GraphSignal

MARGIN = 1e-3  # distance of inputs from kinks, a thousand times the step of the differences
GRID, BATCH = (4, 4), 2


def random_signal(rng, n_maps: int, n_sets: int, n_nodes: int = GRID[0] * GRID[1]) -> GraphSignal:
    """Random maps, on a 4x4 grid by default, with about two thirds of the nodes active."""
    active = rng.uniform(size=(n_sets, n_nodes, BATCH)) < 0.7
    return GraphSignal(rng.standard_normal((n_maps, n_nodes, BATCH)) * active, active)


def spaced(values: np.ndarray, rng) -> np.ndarray:
    """Values of the same shape, in random order, all more than MARGIN apart."""
    return (rng.permutation(values.size).reshape(values.shape) - values.size / 2) * (10 * MARGIN)
