"""THE STORY, 1: the graph of an image's pixels, its Laplacian, and polynomials of the Laplacian.

graph         the grid, or any graph, and its Laplacian, Eq. (1)
polynomials   powers and Chebyshev polynomials of the Laplacian, Eqs. (10), (14), and their adjoints
operators     the operations that layers need, each in one call
orientation   left and right: gradients of maps, their dot and cross products, and the adjoints
rotation      the cyclic order of neighbours, which orients any graph
"""

from tigra.graph.graph import (
    Graph,
    GraphSignal,
    GridGraph,
    Stencil,
    check_shape,
    grid_graph,
    inverse_square_root,
)
from tigra.graph.rotation import RotationSystem

__all__ = [
    "Graph",
    "GraphSignal",
    "GridGraph",
    "RotationSystem",
    "Stencil",
    "check_shape",
    "grid_graph",
    "inverse_square_root",
]
