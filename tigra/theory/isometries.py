"""Graph isometries: permutations of the nodes of a grid that preserve neighbours (paper, section 5.1)."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, check_shape


class Isometry:
    """A permutation g of the nodes of a grid, Definition 1 [eq:def]: y_g(v_k) = y(v_j) with j = nodes[k].

    Use `rotation`, `reflection` and `shift` to make isometries. They form a group: `g @ h` applies h first, then g,
    `g.inverse()` is the inverse, and `shift(shape, (0, 0))` is the identity.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the grid.
    nodes : array of int, shape (N,)
        The permutation.

    Examples
    --------
    >>> g = rotation((2, 2), 1)
    >>> g(np.array([[1, 2], [3, 4]]))
    array([[2, 4],
           [1, 3]])
    >>> (g @ g) == rotation((2, 2), 2), g.inverse() == rotation((2, 2), 3)
    (True, True)
    """

    def __init__(self, shape, nodes):
        self.shape = check_shape(shape)
        n_nodes = self.shape[0] * self.shape[1]
        try:
            self.nodes = np.asarray(nodes)
        except ValueError:  # lists of unequal lengths
            self.nodes = np.empty(0)
        is_whole = np.issubdtype(self.nodes.dtype, np.integer)
        if (
            not is_whole
            or not np.array_equal(np.sort(self.nodes, axis=None), np.arange(n_nodes))
            or self.nodes.ndim != 1
        ):
            raise UsageError(f"nodes must have each of the whole numbers 0 to {n_nodes - 1} once, got {nodes!r}.")

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """Return the transformed image (height, width), or images (..., height, width)."""
        image = np.asarray(image)
        if image.shape[-2:] != self.shape:
            raise UsageError(f"This isometry expects images of {self.shape} pixels, got {image.shape}.")
        flat = image.reshape(*image.shape[:-2], -1)
        return flat[..., self.nodes].reshape(image.shape)  # [eq:def]

    def __matmul__(self, first: Isometry) -> Isometry:
        if first.shape != self.shape:
            raise UsageError(f"Only isometries of the same shape can be combined, got {self.shape} and {first.shape}.")
        return Isometry(self.shape, first.nodes[self.nodes])

    def inverse(self) -> Isometry:
        """Return the inverse isometry."""
        return Isometry(self.shape, np.argsort(self.nodes))

    def __eq__(self, other) -> bool:
        return isinstance(other, Isometry) and self.shape == other.shape and np.array_equal(self.nodes, other.nodes)

    def preserves(self, graph: Graph) -> bool:
        """Return True if the isometry preserves the edges, their weights and the degrees of a graph.

        A shift is cyclic: what leaves on one side enters on the other. So it preserves the grid on a torus, but not
        the padded grid. There it is only exact for images whose responses do not reach the border.

        >>> from tigra.graph import grid_graph
        >>> grid = grid_graph((3, 3))
        >>> rotation((3, 3), 1).preserves(grid), shift((3, 3), (0, 1)).preserves(grid)
        (True, False)
        """
        if graph.n_nodes != len(self.nodes):
            raise UsageError(f"This isometry expects a graph of {len(self.nodes)} nodes, got one of {graph.n_nodes}.")
        moved = graph.adjacency[self.nodes][:, self.nodes]
        return (moved != graph.adjacency).nnz == 0 and np.array_equal(graph.degrees[self.nodes], graph.degrees)

    def sense(self, graph: Graph) -> int:
        """Return 1 if the isometry keeps the cyclic order of all neighbours, -1 if it reverses all, and 0 otherwise.

        The graph needs a rotation system, `Graph.with_rotation`. Cross products move with an isometry of sense 1, and
        change their sign with one of sense -1.

        >>> graph = Graph(np.ones((4, 4)) - np.eye(4)).with_rotation([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
        >>> Isometry((1, 4), [0, 2, 3, 1]).sense(graph), Isometry((1, 4), [0, 1, 3, 2]).sense(graph)  # a tetrahedron
        (1, -1)
        """
        if graph.rotation is None:
            raise UsageError(
                "The sense of an isometry needs a graph with an orientation; use graph.with_rotation(order)."
            )
        if not self.preserves(graph):
            return 0
        order = graph.rotation.tolist()
        possible = {1, -1}  # nodes with one or two neighbours allow both
        for node, image in enumerate(self.nodes.tolist()):
            moved = self.nodes[order[node]].tolist()
            possible &= {sign for sign in (1, -1) if _is_turned(moved[::sign], order[image])}
        return max(possible, default=0)


def rotation(shape, quarter_turns: int) -> Isometry:
    """Return the rotation by quarter_turns times 90 degrees, counter-clockwise, as `tigra.images.transforms.rotate`.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the grid.
    quarter_turns : int
        Number of quarter turns.

    Returns
    -------
    Isometry
        The rotation.
    """
    height, width = shape = check_shape(shape)
    if _whole(quarter_turns) % 2 and height != width:
        raise UsageError(f"A quarter turn needs a square grid, got {height}x{width} pixels; use half turns.")
    return Isometry(shape, np.rot90(_places(shape), quarter_turns).ravel())


def reflection(shape, axis: str) -> Isometry:
    """Return the reflection of a grid.

    Parameters
    ----------
    shape : (int, int)
        Height and width of the grid.
    axis : {"vertical", "horizontal"}
        "vertical" swaps left and right, "horizontal" top and bottom.

    Returns
    -------
    Isometry
        The reflection.
    """
    if axis not in ("vertical", "horizontal"):
        raise UsageError(f"axis must be 'vertical' or 'horizontal', got {axis!r}.")
    shape = check_shape(shape)
    return Isometry(shape, np.flip(_places(shape), 1 if axis == "vertical" else 0).ravel())


def shift(shape, pixels: tuple[int, int]) -> Isometry:
    """Return the cyclic shift by whole pixels (down, right).

    Parameters
    ----------
    shape : (int, int)
        Height and width of the grid.
    pixels : (int, int)
        Pixels to shift (down, right).

    Returns
    -------
    Isometry
        The shift.
    """
    shape = check_shape(shape)
    if not isinstance(pixels, (tuple, list, np.ndarray)) or len(pixels) != 2:
        raise UsageError(f"A shift must be a pair of whole numbers (down, right), got {pixels!r}.")
    down, right = (_whole(n) for n in pixels)
    return Isometry(shape, np.roll(_places(shape), (down, right), axis=(0, 1)).ravel())


def closest_turn(gamma: float) -> tuple[int, float]:
    """Split an angle into quarter turns and a rest: gamma = k pi/2 + rest with abs(rest) <= pi/4.

    Parameters
    ----------
    gamma : float
        Angle in radians.

    Returns
    -------
    k : int
        Number of quarter turns, the closest graph isometry.
    rest : float
        The remaining angle.

    Examples
    --------
    >>> closest_turn(np.pi)
    (2, 0.0)
    """
    gamma = finite_number(gamma, "The angle")
    quarter_turns = round(gamma / (np.pi / 2))
    return quarter_turns, float(gamma - quarter_turns * (np.pi / 2))


def closest_shift(pixels) -> tuple[np.ndarray, np.ndarray]:
    """Split a shift into whole pixels and a rest: shift = k + rest with abs(rest) <= 1/2.

    Parameters
    ----------
    pixels : (float, float)
        Shift (down, right) in pixels.

    Returns
    -------
    k : array of shape (2,)
        Whole pixels, the closest graph isometry.
    rest : array of shape (2,)
        The remaining shift.

    Examples
    --------
    >>> closest_shift((1.25, -0.25))
    (array([ 1., -0.]), array([ 0.25, -0.25]))
    """
    pixels = finite_array(pixels, (2,), "a shift (down, right)")
    return np.rint(pixels), pixels - np.rint(pixels)


# --- checks, for real numbers as well ------------------------------------------------------------------


def finite_number(number, name: str) -> float:
    """Check a number.

    Parameters
    ----------
    number : object
        The number to check.
    name : str
        Its name, for the message.

    Returns
    -------
    float
        The number.

    Raises
    ------
    UsageError
        If it is not a finite number.
    """
    try:
        value = float(number)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise UsageError(f"{name} must be a finite number, got {number!r}.")
    return value


def finite_array(values, shape: tuple, what: str) -> np.ndarray:
    """Check an array.

    Parameters
    ----------
    values : array_like
        The values to check.
    shape : tuple
        Expected shape; None allows any size.
    what : str
        Description, for the message.

    Returns
    -------
    array
        The values in float64.

    Raises
    ------
    ShapeError
        If a value is not finite, or the shape is another one.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ShapeError(f"Expected {what}, got {values!r}.") from None
    if array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        raise ShapeError(f"Expected {what}, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise ShapeError(f"Expected {what}, finite numbers, got {values!r}.")
    return array


def _places(shape) -> np.ndarray:
    """Return the node at each pixel: (height, width)."""
    return np.arange(shape[0] * shape[1]).reshape(shape)


def _is_turned(first: list, second: list) -> bool:
    """Return True if two lists of the same different numbers are equal up to their starting points."""
    start = second.index(first[0]) if first else 0
    return first == second[start:] + second[:start]


def _whole(number) -> int:
    if not isinstance(number, (int, np.integer)):
        raise UsageError(f"Graph isometries need whole numbers, got {number!r}; see tigra.theory.bounds for others.")
    return int(number)
