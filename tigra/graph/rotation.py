"""Rotation systems: the cyclic order of the neighbours of each node, which gives any graph an orientation."""

from __future__ import annotations

from itertools import chain
from numbers import Integral

import numpy as np

from tigra.errors import GraphError


class RotationSystem:
    """The cyclic order of the neighbours of each node, as an embedding on an oriented surface gives it.

    Use `Graph.with_rotation`. The order decides the sign of `tigra.graph.orientation.cross`. Where the graph is drawn,
    list the neighbours of every node clockwise as seen on the screen (rows downwards) for the sign of the pixel grid.

    Parameters
    ----------
    adjacency : sparse array (N, N)
        Edges of the graph as CSR.
    order : sequence of sequences of int
        order[v] lists every neighbour of node v once; which one comes first has no effect.

    Attributes
    ----------
    indptr, neighbours : int arrays (N+1,) and (edges,)
        order[v] is neighbours[indptr[v] : indptr[v+1]].

    Raises
    ------
    GraphError
        If order[v] is not a permutation of the neighbours of v.
    """

    def __init__(self, adjacency, order):
        lists = [_node_list(order, v) for v in range(_length(order, adjacency.shape[0]))]
        self.indptr = adjacency.indptr.astype(np.int64)
        for v, around in enumerate(lists):
            expected = sorted(adjacency.indices[self.indptr[v] : self.indptr[v + 1]].tolist())
            if sorted(around) != expected:
                raise GraphError(
                    f"The rotation system must list every neighbour of node {v} once, {_short(expected)}, got"
                    f" {_short(around)}; give them in cyclic order."
                )
        self.neighbours = np.array(list(chain.from_iterable(lists)), dtype=np.int64)

    def reversed(self) -> list[list[int]]:
        """The opposite order, that of the mirror image, as `Graph.with_rotation` takes it."""
        return [around[::-1] for around in self.tolist()]

    def tolist(self) -> list[list[int]]:
        """order as a list of lists."""
        return [part.tolist() for part in np.split(self.neighbours, self.indptr[1:-1])]


def _length(order, n_nodes: int) -> int:
    try:
        length = len(order)
    except TypeError:
        length = None
    if length != n_nodes or isinstance(order, (str, bytes, dict)):
        raise GraphError(
            f"A rotation system is a list of {n_nodes} lists, the neighbours of each node in cyclic order, got"
            f" {type(order).__name__}{'' if length is None else f' of length {length}'}."
        )
    return n_nodes


def _node_list(order, v: int) -> list[int]:
    try:
        around = list(order[v])
    except TypeError:
        around = [None]
    if not all(isinstance(node, Integral) and not isinstance(node, bool) for node in around):
        raise GraphError(f"The rotation system must list the neighbours of node {v} as integers, got {order[v]!r}.")
    return [int(node) for node in around]


def _short(nodes) -> str:
    return repr(nodes) if len(nodes) <= 10 else f"[{', '.join(map(str, nodes[:10]))}, ...] of length {len(nodes)}"
