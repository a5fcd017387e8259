"""Graph isometries: permutations of a grid's nodes that keep neighbours neighbours (paper, section 5.1)."""

from __future__ import annotations

import numpy as np

from tigra.errors import ShapeError, UsageError
from tigra.graph import Graph, check_shape


class Isometry:
    """A permutation g of the nodes of a grid, Definition 1 [eq:def]: y_g(v_k) = y(v_j) with j = nodes[k].

    Made by `rotation`, `reflection` and `shift`. They form a group: `g @ h` does h first, then g;
    `g.inverse()` takes g back; `shift(shape, (0, 0))` is the identity.

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
            raise UsageError(
                f"An isometry lists each of the nodes 0 to {n_nodes - 1} once, as whole numbers, got {nodes!r}."
            )

    def __call__(self, image: np.ndarray) -> np.ndarray:
        """The moved image: (height, width), or more images (..., height, width)."""
        image = np.asarray(image)
        if image.shape[-2:] != self.shape:
            raise UsageError(f"This isometry moves images of {self.shape} pixels, got {image.shape}.")
        flat = image.reshape(*image.shape[:-2], -1)
        return flat[..., self.nodes].reshape(image.shape)  # [eq:def]

    def __matmul__(self, first: Isometry) -> Isometry:
        if first.shape != self.shape:
            raise UsageError(f"Isometries of {self.shape} and {first.shape} pixels cannot follow each other.")
        return Isometry(self.shape, first.nodes[self.nodes])

    def inverse(self) -> Isometry:
        """The isometry that takes this one back."""
        return Isometry(self.shape, np.argsort(self.nodes))

    def __eq__(self, other) -> bool:
        return isinstance(other, Isometry) and self.shape == other.shape and np.array_equal(self.nodes, other.nodes)

    def preserves(self, graph: Graph) -> bool:
        """Whether every edge of the graph goes to an edge of the same weight, and every degree to the same.

        A shift goes around: what leaves on one side comes in on the other. So it preserves the grid on a torus,
        and not the padded grid, where it is exact only for images whose responses keep away from the border.

        >>> from tigra.graph import grid_graph
        >>> grid = grid_graph((3, 3))
        >>> rotation((3, 3), 1).preserves(grid), shift((3, 3), (0, 1)).preserves(grid)
        (True, False)
        """
        if graph.n_nodes != len(self.nodes):
            raise UsageError(f"This isometry moves {len(self.nodes)} nodes, got a graph of {graph.n_nodes}.")
        moved = graph.adjacency[self.nodes][:, self.nodes]
        return (moved != graph.adjacency).nnz == 0 and np.array_equal(graph.degrees[self.nodes], graph.degrees)


def rotation(shape, quarter_turns: int) -> Isometry:
    """Turn by quarter_turns times 90 degrees, counter-clockwise, as `tigra.images.transforms.rotate`."""
    height, width = shape = check_shape(shape)
    if _whole(quarter_turns) % 2 and height != width:
        raise UsageError(f"A quarter turn of {height}x{width} pixels has another shape; use a square, or half turns.")
    return Isometry(shape, np.rot90(_places(shape), quarter_turns).ravel())


def reflection(shape, axis: str) -> Isometry:
    """Mirror image: axis "vertical" swaps left and right, "horizontal" above and below."""
    if axis not in ("vertical", "horizontal"):
        raise UsageError(f"axis must be 'vertical' or 'horizontal', got {axis!r}.")
    shape = check_shape(shape)
    return Isometry(shape, np.flip(_places(shape), 1 if axis == "vertical" else 0).ravel())


def shift(shape, pixels: tuple[int, int]) -> Isometry:
    """Move by whole pixels (down, right); what leaves on one side comes in on the other."""
    shape = check_shape(shape)
    if not isinstance(pixels, (tuple, list, np.ndarray)) or len(pixels) != 2:
        raise UsageError(f"A shift is a pair of whole numbers (down, right), got {pixels!r}.")
    down, right = (_whole(n) for n in pixels)
    return Isometry(shape, np.roll(_places(shape), (down, right), axis=(0, 1)).ravel())


def closest_turn(gamma: float) -> tuple[int, float]:
    """(k, rest) with gamma = k pi/2 + rest and abs(rest) <= pi/4: the closest graph isometry, and what it leaves.

    >>> closest_turn(np.pi)
    (2, 0.0)
    """
    gamma = finite_number(gamma, "The angle")
    quarter_turns = round(gamma / (np.pi / 2))
    return quarter_turns, float(gamma - quarter_turns * (np.pi / 2))


def closest_shift(pixels) -> tuple[np.ndarray, np.ndarray]:
    """(k, rest) with shift = k + rest, k whole pixels and abs(rest) <= 1/2.

    >>> closest_shift((1.25, -0.25))
    (array([ 1., -0.]), array([ 0.25, -0.25]))
    """
    pixels = finite_array(pixels, (2,), "a shift (down, right)")
    return np.rint(pixels), pixels - np.rint(pixels)


# --- checks, for real numbers as well ------------------------------------------------------------------


def finite_number(number, name: str) -> float:
    """number as a float, or UsageError where it is none, or NaN, or infinite."""
    try:
        value = float(number)
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise UsageError(f"{name} must be a finite number, got {number!r}.")
    return value


def finite_array(values, shape: tuple, what: str) -> np.ndarray:
    """values as an array of this shape (None: any size there), or ShapeError where it is not, or is not finite."""
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
    """The node at each pixel: (height, width)."""
    return np.arange(shape[0] * shape[1]).reshape(shape)


def _whole(number) -> int:
    if not isinstance(number, (int, np.integer)):
        raise UsageError(f"Graph isometries move by whole numbers, got {number!r}; see tigra.theory.bounds for others.")
    return int(number)
