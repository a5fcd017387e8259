"""Left and right on a graph: the gradient of maps, dot and cross products of gradients, and their adjoints.

Filters of the Laplacian respond alike to an image and its mirror image. The cross product of two gradients does not:
it keeps its value under rotations and changes its sign under reflections.

Coordinates: x runs along columns, to the right, and y along rows, downwards. So cross(a, b) > 0 where one turns
*clockwise on the screen*, by less than half a turn, from the gradient of a to that of b.

On a padded grid, all results are exact to the last bit: under quarter turns, reflections and shifts by whole pixels.
Other graphs have no coordinates. There dot comes from the Laplacian, and cross from the cyclic order of the
neighbours, which the user gives (`Graph.with_rotation`). docs/theory.md has the proofs.

Maps are arrays (K, N, B) in float32 or float64.
"""

from __future__ import annotations

import numpy as np

from tigra.errors import GraphError, ShapeError, UsageError
from tigra.graph.graph import Graph, GridGraph
from tigra.graph.polynomials import laplacian_step
from tigra.kernels.orientation import (
    grid_gradient,
    grid_gradient_adjoint,
    rotation_cross,
    rotation_cross_adjoint,
)


def has_gradient(graph: Graph) -> bool:
    """Whether dot and cross are products of discrete gradients: a padded grid, and no rotation system."""
    return isinstance(graph, GridGraph) and graph.boundary == "padded" and graph.rotation is None


def check_orientation(graph: Graph) -> None:
    """Raise GraphError if a graph has no cross product: neither a padded grid, nor a rotation system."""
    if graph.rotation is None and not has_gradient(graph):
        raise GraphError(
            "A cross product needs an orientation, and this graph has none; use a padded grid, or give the cyclic order"
            " of each node's neighbours with graph.with_rotation(order)."
        )


def gradient(graph: Graph, y: np.ndarray, dilation: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Discrete gradient of maps on a padded grid, D y(n) = c sum_m w_nm (p_m - p_n) y_m.

    Parameters
    ----------
    graph : Graph
        A padded grid. w_nm is 1 for straight edges and w, its diagonal weight, for diagonal ones. p_n is the place of
        node n. Values outside the grid are 0.
    y : array (K, N, B)
        Maps.
    dilation : int
        Distance of neighbours, a multiple of the graph's own (`grid_graph`). The dilated grid is made of dilation^2
        interleaved grids, and lengths are measured in their unit.

    Returns
    -------
    d_x, d_y : arrays (K, N, B)
        The components to the right and down.

    Notes
    -----
    c = 1 / (2 + 4 w) makes D of a linear function its slope; it is 1/3 for w = 1/4. With that weight D is isotropic to
    third order, as L is to fourth.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> ramp = np.array([[0.0, 1, 2], [0, 1, 2], [0, 1, 2]]).reshape(1, 9, 1)
    >>> d_x, d_y = gradient(grid_graph((3, 3), diagonal_weight=0.25), ramp)
    >>> float(d_x[0, 4, 0]), float(d_y[0, 4, 0])  # at the middle, away from the border
    (1.0, 0.0)
    """
    (y,) = _checked(graph, y)
    arguments = _grid(graph, y.dtype, dilation)
    d_x, d_y = np.empty((2, *y.shape), y.dtype)
    grid_gradient(*arguments[:2], y, *arguments[2:], d_x, d_y)
    return d_x, d_y


def gradient_adjoint(graph: Graph, g_x: np.ndarray, g_y: np.ndarray, dilation: int = 1) -> np.ndarray:
    """Adjoint of `gradient`: dE/dy from dE/dd_x and dE/dd_y, all (K, N, B).

    Both components are antisymmetric matrices, so this is minus the discrete divergence.
    """
    g_x, g_y = _checked(graph, g_x, g_y)
    arguments, out = _grid(graph, g_x.dtype, dilation), np.empty_like(g_x)
    grid_gradient_adjoint(*arguments[:2], g_x, g_y, *arguments[2:], out)
    return out


def dot(graph: Graph, a: np.ndarray, b: np.ndarray, dilation: int = 1) -> np.ndarray:
    """Dot product of the gradients of maps a and b; rotations and reflections do not change it.

    Parameters
    ----------
    graph : Graph
        A padded grid, or any graph.
    a, b : array (K, N, B)
        Maps, taken in pairs.
    dilation : int
        As for `gradient`; other graphs than the padded grid have none.

    Returns
    -------
    array (K, N, B)
        D_x a D_x b + D_y a D_y b on a padded grid. On other graphs a Lb + b La - L(ab).

    Notes
    -----
    The second form is that of `PairedConv`. If the edge weights of node n, divided by sqrt(d_n d_m), sum to 1, it is
    the sum over neighbours m of w_nm (a_n - a_m) (b_n - b_m). For smooth maps on a grid with diagonal weight w it is
    (1 + 2 w) / (2 + 2 w) times the first form, up to higher orders; 3/5 for w = 1/4.
    """
    a, b = _checked(graph, a, b)
    if has_gradient(graph):
        (a_x, a_y), (b_x, b_y) = gradient(graph, a, dilation), gradient(graph, b, dilation)
        a_x *= b_x  # in place: new memory would cost more than the products
        a_y *= b_y
        return np.add(a_x, a_y, out=a_x)
    _check_no_dilation(dilation)
    return a * _filtered(graph, b) + b * _filtered(graph, a) - _filtered(graph, a * b)


def dot_adjoint(graph: Graph, a: np.ndarray, b: np.ndarray, g: np.ndarray, dilation: int = 1):
    """Gradients (dE/da, dE/db) from g = dE/ddot, all (K, N, B)."""
    a, b, g = _checked(graph, a, b, g)
    if not has_gradient(graph):
        _check_no_dilation(dilation)
        filtered_g = _filtered(graph, g)  # L is symmetric
        return (
            g * _filtered(graph, b) + _filtered(graph, g * b) - b * filtered_g,
            g * _filtered(graph, a) + _filtered(graph, g * a) - a * filtered_g,
        )
    (a_x, a_y), (b_x, b_y) = gradient(graph, a, dilation), gradient(graph, b, dilation)
    return (
        gradient_adjoint(graph, g * b_x, g * b_y, dilation),
        gradient_adjoint(graph, g * a_x, g * a_y, dilation),
    )


def cross(graph: Graph, a: np.ndarray, b: np.ndarray, dilation: int = 1) -> np.ndarray:
    """Cross product of the gradients of maps a and b; its sign changes under reflections, and not under rotations.

    Parameters
    ----------
    graph : Graph
        A padded grid, or a graph with a rotation system, `graph.with_rotation(order)`.
    a, b : array (K, N, B)
        Maps, taken in pairs.
    dilation : int
        As for `gradient`; other graphs than the padded grid have none.

    Returns
    -------
    array (K, N, B)
        D_x a D_y b - D_y a D_x b on a padded grid. With a rotation system, the sum over consecutive neighbours m, m'
        of a_m b_m' - a_m' b_m.

    Raises
    ------
    GraphError
        If the graph has no orientation.

    Notes
    -----
    For linear maps in the plane, the second form is the first times twice the area of the polygon of neighbours. So
    for the four straight neighbours, clockwise, it is 4 times the first form with w = 0.

    Examples
    --------
    >>> from tigra.graph import grid_graph
    >>> rows, columns = np.mgrid[:3.0, :3.0].reshape(2, 1, 9, 1)
    >>> grid = grid_graph((3, 3), diagonal_weight=0.25)
    >>> float(cross(grid, columns, rows)[0, 4, 0])  # from right to down: clockwise
    1.0
    """
    a, b = _checked(graph, a, b)
    if has_gradient(graph):
        (a_x, a_y), (b_x, b_y) = gradient(graph, a, dilation), gradient(graph, b, dilation)
        a_x *= b_y
        a_y *= b_x
        return np.subtract(a_x, a_y, out=a_x)
    rotation, out = _rotation(graph, dilation), np.empty_like(a)
    rotation_cross(rotation.indptr, rotation.neighbours, a, b, out)
    return out


def cross_adjoint(graph: Graph, a: np.ndarray, b: np.ndarray, g: np.ndarray, dilation: int = 1):
    """Gradients (dE/da, dE/db) from g = dE/dcross, all (K, N, B)."""
    a, b, g = _checked(graph, a, b, g)
    if not has_gradient(graph):
        rotation = _rotation(graph, dilation)
        grad_a, grad_b = np.empty((2, *a.shape), a.dtype)
        rotation_cross_adjoint(rotation.indptr, rotation.neighbours, b, g, a.dtype.type(1), grad_a)
        rotation_cross_adjoint(rotation.indptr, rotation.neighbours, a, g, a.dtype.type(-1), grad_b)
        return grad_a, grad_b
    (a_x, a_y), (b_x, b_y) = gradient(graph, a, dilation), gradient(graph, b, dilation)
    return (
        gradient_adjoint(graph, g * b_y, -(g * b_x), dilation),
        gradient_adjoint(graph, -(g * a_y), g * a_x, dilation),
    )


def _filtered(graph, x) -> np.ndarray:
    """L x."""
    return laplacian_step(graph, x, x, 1, 0, 0, out=np.empty_like(x))


def _grid(graph, dtype, dilation) -> tuple:
    """(height, dilation, w, c) of a padded grid, the last two in dtype."""
    if not has_gradient(graph):
        raise GraphError(
            "Only a padded grid has a gradient, because other graphs have no coordinates; use grid_graph(shape), or"
            " dot and cross, which need none."
        )
    if not isinstance(dilation, (int, np.integer)) or dilation < 1:
        raise UsageError(f"dilation must be a whole number of pixels >= 1, got {dilation!r}.")
    weight = graph.diagonal_weight
    return graph.shape[0], int(dilation) * graph.dilation, dtype.type(weight), dtype.type(1 / (2 + 4 * weight))


def _rotation(graph, dilation):
    _check_no_dilation(dilation)
    check_orientation(graph)
    return graph.rotation


def _check_no_dilation(dilation) -> None:
    if dilation != 1:
        raise UsageError(f"dilation is for padded grids; leave it out for other graphs, got {dilation!r}.")


def _checked(graph, *maps) -> list[np.ndarray]:
    """The maps as contiguous arrays, checked: one shape (K, N, B) and one dtype for all."""
    arrays = [np.ascontiguousarray(x) for x in maps]
    first = arrays[0]
    for x in arrays:
        if x.ndim != 3 or x.shape[1] != graph.n_nodes or x.shape != first.shape or x.dtype != first.dtype:
            raise ShapeError(
                f"Expected maps of one shape (K, {graph.n_nodes}, B) and one dtype, got"
                f" {' and '.join(f'{x.dtype} {x.shape}' for x in arrays)}."
            )
    if first.dtype not in (np.float32, np.float64):
        raise ShapeError(f"Expected maps in float32 or float64, got {first.dtype}.")
    return arrays
