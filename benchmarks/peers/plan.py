"""Plan: a network taken apart into plain arrays, for peers to build it again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tigra.graph import Graph
from tigra.layers import Dense, DynamicPool, SpectralConv, Standardise, Statistics
from tigra.models.network import Network


@dataclass(frozen=True)
class Plan:
    """What a network of the form SC-DP-SC-DP-...-S-FC-FC-... consists of.

    filters : (alpha, beta) of each spectral convolution
    pools : J of each dynamic pooling
    mean, deviation : of the standardised statistics
    dense : (weight, bias) of each fully connected layer; ReLU between them
    """

    graph: Graph
    filters: list[tuple[np.ndarray, np.ndarray]]
    pools: list[int]
    max_order: int
    mean: np.ndarray
    deviation: np.ndarray
    dense: list[tuple[np.ndarray, np.ndarray]]
    dtype: np.dtype

    @classmethod
    def of(cls, network: Network) -> Plan:
        """The plan of a network; its arrays are copies."""

        def layers(kind):
            return [layer for layer in network.layers if isinstance(layer, kind)]

        (statistics,), (standardise,) = layers(Statistics), layers(Standardise)
        return cls(
            network.graph,
            [(layer.params["alpha"].copy(), layer.params["beta"].copy()) for layer in layers(SpectralConv)],
            [layer.n_active for layer in layers(DynamicPool)],
            statistics.max_order,
            standardise.state["mean"].copy(),
            standardise.state["deviation"].copy(),
            [(layer.params["weight"].copy(), layer.params["bias"].copy()) for layer in layers(Dense)],
            network.dtype,
        )

    @property
    def arrays(self) -> list[np.ndarray]:
        """All parameters, in the order of `Network.parameters`."""
        return [array for pair in [*self.filters, *self.dense] for array in pair]

    @property
    def shape(self) -> tuple[int, int]:
        """(height, width) of the grid."""
        return self.graph.shape

    @property
    def stencil_weights(self) -> tuple[float, float]:
        """Weights of straight and diagonal neighbours in the normalised adjacency; the boundary is padded."""
        _, straight, diagonal, scale = self.graph.stencil
        if scale is not None:
            raise ValueError("Peers know the padded boundary only.")
        return straight, diagonal
