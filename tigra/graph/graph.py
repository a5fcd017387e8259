"""Graphs: the pixel grid, or any undirected weighted graph, and their Laplacians (paper, section 3)."""

from __future__ import annotations

import copy
from functools import cached_property
from numbers import Real
from typing import NamedTuple

import numpy as np
import scipy

from tigra.errors import GraphError, UsageError
from tigra.graph.rotation import RotationSystem


class GraphSignal(NamedTuple):
    """Feature maps on the nodes of a graph, and the nodes on which they are active.

    Attributes
    ----------
    values : array (K, N, B)
        values[k, v, b] is map k of image b at node v.
    active : bool array (K, N, B) or (1, N, B)
        The sets N_k, or one set for all maps.
    """

    values: np.ndarray
    active: np.ndarray


class Stencil(NamedTuple):
    """Edge weights of a grid, for kernels that need no edge list.

    Attributes
    ----------
    shape : (int, int)
        Height and width of the grid.
    straight, diagonal : float
        Edge weights in the normalised adjacency matrix.
    scale : array (N,) or None
        d^-1/2 of each node, or None if the weights are the same everywhere.
    """

    shape: tuple[int, int]
    straight: float
    diagonal: float
    scale: np.ndarray | None


class Graph:
    """An undirected weighted graph, given by its adjacency matrix A.

    Parameters
    ----------
    adjacency : array or sparse matrix (N, N)
        Symmetric, finite and non-negative, with zero diagonal.
    degrees : array (N,), optional
        Degrees d of the nodes, by default the row sums of A. They may be larger, for nodes with edges to zero padding
        outside the graph (`grid_graph`).

    Raises
    ------
    GraphError
        If the matrix or the degrees are not valid.

    Notes
    -----
    The Laplacian is L = I - D^-1/2 A D^-1/2, Eq. (1) [eq:laplacian]. An isolated node has d = 0 and, by that equation,
    a row of zeros in L.

    Departs from the paper: Eq. (1) prints the off-diagonal entries without the minus sign that Eq. (23)
    [eq:filtered_signal] needs (docs/errata.md).

    Examples
    --------
    >>> path = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> path.degrees
    array([1., 2., 1.])
    >>> path.laplacian.toarray().round(3)
    array([[ 1.   , -0.707,  0.   ],
           [-0.707,  1.   , -0.707],
           [ 0.   , -0.707,  1.   ]])
    """

    stencil: Stencil | None = None
    rotation: RotationSystem | None = None

    def __init__(self, adjacency, degrees=None):
        self.adjacency = _checked_adjacency(adjacency)
        self.degrees = _checked_degrees(degrees, self.adjacency)
        self._in_dtype: dict = {}

    def with_rotation(self, order) -> Graph:
        """The same graph with an orientation: the cyclic order of each node's neighbours, a `RotationSystem`.

        Examples
        --------
        >>> triangle = Graph([[0, 1, 1], [1, 0, 1], [1, 1, 0]]).with_rotation([[1, 2], [2, 0], [0, 1]])
        >>> triangle.rotation.reversed()
        [[2, 1], [0, 2], [1, 0]]
        """
        graph = copy.copy(self)
        graph.rotation = RotationSystem(self.adjacency, order)
        return graph

    @property
    def n_nodes(self) -> int:
        """N, the number of nodes."""
        return len(self.degrees)

    @cached_property
    def normalised_adjacency(self) -> scipy.sparse.csr_array:
        """D^-1/2 A D^-1/2 as CSR; the rows of isolated nodes are empty."""
        edges = self.adjacency.tocoo()
        i, j = edges.coords
        unit = self.degrees.max() or 1.0  # avoids overflow for very large or small degrees; L does not depend on it
        degrees = self.degrees / unit
        weights = edges.data / unit / np.sqrt(degrees[i] * degrees[j])
        return scipy.sparse.csr_array((weights, (i, j)), shape=edges.shape)

    @cached_property
    def laplacian(self) -> scipy.sparse.csr_array:
        """L = I - D^-1/2 A D^-1/2, Eq. (1) [eq:laplacian], as CSR; eigenvalues in [0, 2]."""
        identity = scipy.sparse.diags_array((self.degrees > 0).astype(float))
        return scipy.sparse.csr_array(identity - self.normalised_adjacency)

    @cached_property
    def shifted_laplacian(self) -> scipy.sparse.csr_array:
        """L - I, whose eigenvalues lie in [-1, 1] as Chebyshev polynomials require."""
        return scipy.sparse.csr_array(self.laplacian - scipy.sparse.eye_array(self.n_nodes))

    def csr_arrays(self, dtype) -> tuple:
        """(indptr, indices, data) of the Laplacian, with data in dtype; cached."""
        key = "csr", np.dtype(dtype)
        if key not in self._in_dtype:
            matrix = self.laplacian
            self._in_dtype[key] = matrix.indptr, matrix.indices, matrix.data.astype(dtype)
        return self._in_dtype[key]

    def scale_column(self, dtype) -> np.ndarray:
        """d^-1/2 of every node as (N, 1) in dtype, cached; only for grids with a free boundary."""
        key = "scale", np.dtype(dtype)
        if key not in self._in_dtype:
            assert self.stencil is not None and self.stencil.scale is not None
            self._in_dtype[key] = self.stencil.scale.astype(dtype)[:, None]
        return self._in_dtype[key]


class GridGraph(Graph):
    """The graph of an image's pixels. Use `grid_graph`, which checks and documents the arguments.

    Computations use the stencil, so the adjacency matrix is built only on request.
    """

    def __init__(self, shape, neighbours, diagonal_weight, boundary, dilation=1):
        height, width = self.shape = shape
        self.neighbours, self.boundary, self.dilation = neighbours, boundary, dilation
        self.diagonal_weight = diagonal_weight = float(diagonal_weight) if neighbours == 8 else 0.0
        self._in_dtype: dict = {}
        if boundary == "padded":
            degree = 4.0 + 4.0 * diagonal_weight
            self.degrees = np.full(height * width, degree)
            if dilation == 1:
                self.stencil = Stencil(shape, 1.0 / degree, diagonal_weight / degree, None)  # Eq. (1) [eq:laplacian]
            return
        above_or_below, beside = _path_degrees(height)[:, None], _path_degrees(width)
        self.degrees = (above_or_below + beside + diagonal_weight * above_or_below * beside).ravel()
        if height * width > 1:  # a single free node is isolated, and has no stencil
            self.stencil = Stencil(shape, 1.0, diagonal_weight, inverse_square_root(self.degrees))

    @property
    def arguments(self) -> dict:
        """The arguments of `grid_graph` that make this grid, as JSON allows."""
        weight = {"diagonal_weight": self.diagonal_weight} if self.neighbours == 8 else {}
        apart = {"dilation": self.dilation} if self.dilation > 1 else {}
        return {"shape": list(self.shape), "neighbours": self.neighbours, "boundary": self.boundary, **weight, **apart}

    @cached_property
    def adjacency(self) -> scipy.sparse.csr_array:
        """A as CSR."""
        height, width = self.shape
        rows, columns = _path(height, self.dilation), _path(width, self.dilation)
        straight = scipy.sparse.kron(rows, scipy.sparse.eye_array(width)) + scipy.sparse.kron(
            scipy.sparse.eye_array(height), columns
        )
        if self.neighbours == 4:
            return scipy.sparse.csr_array(straight)
        return scipy.sparse.csr_array(straight + self.diagonal_weight * scipy.sparse.kron(rows, columns))


def grid_graph(shape, neighbours=8, diagonal_weight=1.0, boundary="padded", dilation=1) -> Graph:
    """Graph of an image's pixels, with edges to 4 or 8 neighbours.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the image. Node row * width + column is the pixel (row, column).
    neighbours : {8, 4}
        With or without diagonal neighbours; the paper uses 8.
    diagonal_weight : float
        Weight of diagonal edges; other edges have weight 1. With 1/4 the Laplacian is isotropic to fourth order,
        which helps with rotations by arbitrary angles.
    boundary : {"padded", "free"}
        "padded": every node has the degree of an inner node, as if the image were surrounded by zeros (paper,
        section 5). Shifts are then exact. "free": there are no edges beyond the border.
    dilation : int
        Distance of neighbours in pixels. With 2, the graph sees twice as far as with 1 and consists of four grids that
        are not connected; it needs the padded boundary.

    Returns
    -------
    Graph
        The grid, with N = height * width nodes.

    Examples
    --------
    >>> corner = grid_graph((2, 2), neighbours=4).laplacian.toarray()[0]
    >>> corner  # degree 4, two of the neighbours lie outside
    array([ 1.  , -0.25, -0.25,  0.  ])
    >>> grid_graph((2, 2), boundary="free").degrees
    array([3., 3., 3., 3.])
    """
    shape = _checked_grid(shape, neighbours, diagonal_weight, boundary)
    if not isinstance(dilation, (int, np.integer)) or dilation < 1 or (dilation > 1 and boundary != "padded"):
        raise UsageError(
            "dilation must be a whole number of pixels of at least 1, and 1 on a grid with a free boundary, got"
            f" {dilation!r}."
        )
    return GridGraph(shape, neighbours, diagonal_weight, boundary, int(dilation))


def inverse_square_root(degrees: np.ndarray) -> np.ndarray:
    """d^-1/2 for each degree d, and 0 where d = 0.

    Examples
    --------
    >>> inverse_square_root(np.array([4.0, 0.0]))
    array([0.5, 0. ])
    """
    return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)


def _path(length: int, dilation: int = 1) -> scipy.sparse.sparray:
    """Adjacency of `length` nodes in a row, each an edge to the nodes `dilation` before and after it."""
    ones = np.ones(max(length - dilation, 0))
    if not ones.size:
        return scipy.sparse.csr_array((length, length))
    return scipy.sparse.diags_array([ones, ones], offsets=[-dilation, dilation], shape=(length, length))


def _path_degrees(length: int) -> np.ndarray:
    """Degrees of the nodes of a path: 1 at the ends, 2 in between."""
    return np.minimum(np.arange(length), 1.0) + np.minimum(np.arange(length)[::-1], 1.0)


def check_shape(shape) -> tuple[int, int]:
    """Check the shape of an image.

    Parameters
    ----------
    shape : sequence of int
        Height and width.

    Returns
    -------
    (int, int)
        The shape as Python integers.

    Raises
    ------
    UsageError
        If it is not a pair of positive integers.
    """
    sizes = tuple(shape) if isinstance(shape, (tuple, list, np.ndarray)) else ()
    if len(sizes) != 2 or not all(isinstance(n, (int, np.integer)) and n >= 1 for n in sizes):
        raise UsageError(f"An image needs a shape (height, width) of two positive integers, got {shape!r}.")
    return int(sizes[0]), int(sizes[1])


def _checked_grid(shape, neighbours, diagonal_weight, boundary) -> tuple[int, int]:
    sizes = check_shape(shape)
    if neighbours not in (4, 8):
        raise UsageError(f"neighbours must be 4 or 8, got {neighbours!r}.")
    if not (isinstance(diagonal_weight, Real) and 0 < float(diagonal_weight) < np.inf):
        raise UsageError(
            f"diagonal_weight must be a positive number, got {diagonal_weight!r};"
            " for a grid without diagonals use neighbours=4."
        )
    if boundary not in ("padded", "free"):
        raise UsageError(f"boundary must be 'padded' or 'free', got {boundary!r}.")
    return sizes


def _checked_adjacency(adjacency) -> scipy.sparse.csr_array:
    try:
        if np.iscomplexobj(adjacency):
            raise TypeError("its entries are complex")
        matrix = scipy.sparse.csr_array(adjacency, dtype=np.float64, copy=True)  # it is modified below
    except (TypeError, ValueError) as error:
        raise GraphError(f"A graph needs a real (N, N) adjacency matrix: {error}.") from error
    matrix.sum_duplicates()
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise GraphError(f"An adjacency matrix is square and not empty, got shape {matrix.shape}.")
    if not np.all(np.isfinite(matrix.data)):
        raise GraphError("The adjacency matrix holds NaN or infinite weights; give finite ones.")
    if np.any(matrix.data < 0):
        raise GraphError(f"Edge weights must be non-negative, the smallest is {matrix.data.min():g}.")
    if np.any(matrix.diagonal() != 0):
        raise GraphError("The adjacency matrix has self-loops; set its diagonal to 0.")
    if (matrix != matrix.T).nnz:
        raise GraphError("The adjacency matrix is not symmetric; for a directed graph use (A + A.T) / 2.")
    matrix.eliminate_zeros()
    return matrix


def _checked_degrees(degrees, adjacency) -> np.ndarray:
    sums = np.asarray(adjacency.sum(axis=1), dtype=np.float64)
    if degrees is None:
        return sums
    try:
        degrees = np.asarray(degrees, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"degrees must be numbers, one for each node: {error}.") from error
    if degrees.shape != sums.shape:
        raise GraphError(f"degrees must have shape {sums.shape}, one for each node, got {degrees.shape}.")
    if not np.all(np.isfinite(degrees)) or np.any(degrees < sums * (1 - 1e-12)):
        raise GraphError("degrees must be finite and at least the sums of the edge weights at each node.")
    return degrees
