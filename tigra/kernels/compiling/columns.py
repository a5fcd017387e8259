"""Formulas of a node and its neighbours, for all nodes of a frame: down columns of vectors that stay in registers.

A loop along a frame reads nine vectors for each that it writes. Down a column, six of them are those of the row before.
Only nodes are written, so a rim of zeros stays as it is. Frames are those of `tigra.kernels.oriented.frames`.

A formula is an ordinary Python function. Interpreted, it gets rows of NumPy arrays. When a caller is compiled, it gets
vectors that write LLVM instructions in the order of its additions and multiplications, none of them fused. So the bits
are the same, on any processor and for any width of vectors.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from tigra.kernels.compiling import registers
from tigra.kernels.compiling.vectors import (
    INDEX,
    address,
    fetch_ahead,
    first_lanes,
    load_vector,
    loop,
    repeated,
    store_vector,
    width,
)

GROUP = 4  # rows that sums add to each other first


class Window(NamedTuple):
    """A node and its neighbours: vectors, or rows of arrays."""

    nw: Any
    north: Any
    ne: Any
    west: Any
    node: Any
    east: Any
    sw: Any
    south: Any
    se: Any


class Vector:
    """A vector in registers. Operators write instructions."""

    def __init__(self, builder, value):
        self.builder, self.value = builder, value

    def __add__(self, other):
        return Vector(self.builder, self.builder.fadd(self.value, other.value))

    def __sub__(self, other):
        return Vector(self.builder, self.builder.fsub(self.value, other.value))

    def __mul__(self, other):
        return Vector(self.builder, self.builder.fmul(self.value, other.value))

    def __abs__(self):
        kind = self.value.type
        name = f"llvm.fabs.v{kind.count}f{8 * width(kind.element)}"
        function = cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(kind, [kind]), name)
        return Vector(self.builder, self.builder.call(function, [self.value]))

    def __array_ufunc__(self, function, method, *inputs):
        """`np.sign`: 1, -1 or 0, and NaN for NaN."""
        if function is not np.sign:
            return NotImplemented
        builder, x = self.builder, self.value
        zero, one, minus_one = (ir.Constant(x.type, [number] * x.type.count) for number in (0.0, 1.0, -1.0))
        sign = builder.fadd(x, zero)  # 0 for -0, too
        sign = builder.select(builder.fcmp_ordered("<", x, zero), minus_one, sign)
        return Vector(builder, builder.select(builder.fcmp_ordered(">", x, zero), one, sign))


def columns(formula, windows=1, points=0, lines=0, results=1, sums=0, ahead=0):
    """Function that evaluates a formula at all nodes of frames.

    Parameters
    ----------
    formula : function
        Takes windows, then numbers of nodes, then numbers of lines, then weights, and returns a tuple of results, then
        of numbers to be summed over the rows.
    windows, points, lines : int
        How many frames it reads with their neighbours, how many without, and how many lines: one number for each place
        of a row.
    results, sums : int
        How many frames it fills, and how many lines with sums.
    ahead : int
        How many columns ahead frames are fetched into the L1 cache; 0 for not at all. It saves time where frames are
        in the L3 cache, as when there are many of them, and costs time elsewhere.

    Returns
    -------
    function
        Takes a layout, frames of the windows and of the points, lines, frames of the results, lines for the sums, all
        of them flat arrays, and the weights. Results and sums must not overlap with anything else.

    Notes
    -----
    Sums begin with 0 and add four rows at a time, (a + b) + (c + d), then those that are left. With sums, the rim of
    the layout must be 1: with distant neighbours, compiled code would leave rows out.

    Examples
    --------
    >>> slope = columns(lambda x, weight: (weight * (x.east - x.west),))
    >>> frame, out = np.arange(15.0) ** 2, np.zeros(15)
    >>> slope((1, 5, 1, 1), frame, out, 0.5)  # one row of three nodes, within a rim
    >>> out.reshape(3, 5)[1]
    array([ 0., 12., 14., 16.,  0.])
    """
    ends = np.cumsum([windows, points, lines, results, sums]).tolist()

    def over_frames(layout, *arguments):
        height, row, beside, rim = layout
        groups = [arguments[start:stop] for start, stop in zip([0, *ends], [*ends, None], strict=True)]
        of_windows, of_points, of_lines, of_results, of_sums, weights = groups
        totals: list[list] = [[] for _ in of_sums]
        for first in range(rim * row + beside, (rim + height) * row, row):
            here = slice(first, first + row - 2 * beside)
            values = [_window(x, here, rim * row, beside) for x in of_windows] + [x[here] for x in of_points]
            found = formula(*values, *of_lines, *weights)
            for x, value in zip(of_results, found[:results], strict=True):
                x[here] = value
            for total, value in zip(totals, found[results:], strict=True):
                total.append(value)
        for x, total in zip(of_sums, totals, strict=True):
            x[:] = _sum_of_rows(total, x)

    @type_callable(over_frames)
    def type_over_frames(context):
        def signature(layout, *arguments):
            arrays, weights = arguments[: ends[-1]], arguments[ends[-1] :]
            if all((x.ndim, x.dtype, x.is_contig) == (1, arrays[0].dtype, True) for x in arrays):
                return types.none(types.UniTuple(types.intp, 4), *arrays, *[arrays[0].dtype] * len(weights))
            return None  # numba then reports that no signature fits

        n_weights = len(inspect.signature(formula).parameters) - (windows + points + lines)
        names = ["layout", *(f"argument{k}" for k in range(ends[-1] + n_weights))]
        signature.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # numba asks for the names
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )
        return signature

    @lower_builtin(over_frames, types.VarArg(types.Any))
    def lower_over_frames(context, builder, signature, args):
        number = context.get_value_type(signature.args[1].dtype)
        arrays = [
            address(context, builder, kind, x, INDEX(0))
            for kind, x in zip(signature.args[1 : 1 + ends[-1]], args[1:], strict=False)
        ]
        layout, weights = cgutils.unpack_tuple(builder, args[0], 4), args[1 + ends[-1] :]
        frames = _Frames(builder, layout, arrays, ends, weights, ahead)
        vector = ir.VectorType(number, registers.VECTOR_BYTES // width(number))
        is_wide = builder.icmp_signed(">=", frames.run, INDEX(vector.count))
        with builder.if_else(is_wide) as (wide, narrow):
            with wide:
                frames.fill(formula, vector)
            with narrow:
                frames.fill(formula, vector, first_lanes(builder, vector, frames.run))
        return context.get_dummy_value()

    over_frames.__module__ = formula.__module__  # `tigra.kernels.decorator` looks there for changes
    return over_frames


def _window(x, here, apart, beside) -> Window:
    """A row of a frame and its neighbours."""
    return Window(
        *(x[here.start + v + h : here.stop + v + h] for v in (-apart, 0, apart) for h in (-beside, 0, beside))
    )


def _sum_of_rows(rows, like):
    """Sum of the rows, four at a time."""
    total, whole = np.zeros_like(like), len(rows) // GROUP * GROUP
    for start in range(0, whole, GROUP):
        a, b, c, d = rows[start : start + GROUP]
        total = total + ((a + b) + (c + d))
    for row in rows[whole:]:
        total = total + row
    return total


class _Frames:
    """The arrays of a call, as LLVM pointers."""

    def __init__(self, builder, layout, arrays, ends, weights, ahead):
        self.builder, self.weights, self.ahead = builder, weights, ahead
        self.height, self.row, self.beside, self.rim = layout
        self.run = builder.sub(self.row, builder.mul(INDEX(2), self.beside))
        groups = [arrays[start:stop] for start, stop in zip([0, *ends], ends, strict=False)]
        self.windows, self.points, self.lines, self.results, self.sums = groups

    def fill(self, formula, vector, mask=None):
        """All nodes, in columns of vectors, or one masked column; neighbouring rows are `rim` rows apart."""
        builder, lanes, self.mask = self.builder, vector.count, mask
        weights = [Vector(builder, repeated(builder, weight, vector)) for weight in self.weights]
        n_columns, last = INDEX(1), INDEX(0)
        if mask is None:
            n_columns = builder.sdiv(builder.add(self.run, INDEX(lanes - 1)), INDEX(lanes))
            last = builder.sub(self.run, INDEX(lanes))

        def from_row(offset, _):
            rows = builder.sub(builder.add(self.height, builder.sub(self.rim, INDEX(1))), offset)
            n_rows, above = builder.sdiv(rows, self.rim), builder.mul(builder.add(self.rim, offset), self.row)

            def in_column(number, _):
                place = builder.mul(number, INDEX(lanes))  # the last column may overlap with the one before
                place = builder.select(builder.icmp_signed("<", place, last), place, last)
                first = builder.add(builder.add(above, self.beside), place)
                self._down(formula, vector, place, first, n_rows, weights)
                return []

            loop(builder, n_columns, [], in_column)
            return []

        loop(builder, self.rim, [], from_row)

    def _down(self, formula, vector, place, first, n_rows, weights):
        """One column, whose first node is at `first`, and at `place` in its row."""
        builder, add, n_kept = self.builder, self.builder.fadd, 6 * len(self.windows)
        apart = builder.mul(self.rim, self.row)
        windows, points, results = (
            [builder.gep(x, [first]) for x in group] for group in (self.windows, self.points, self.results)
        )
        lines = [Vector(builder, self._load(builder.gep(x, [place]), vector)) for x in self.lines]

        def load(x, here):
            there = builder.gep(x, [here])
            shifts = builder.neg(self.beside), INDEX(0), self.beside
            return [self._load(builder.gep(there, [shift]), vector) for shift in shifts]

        def step(here, known):
            """A row: the vectors that the next one needs, and the summands."""
            below, kept = builder.add(here, apart), []
            self._fetch(builder.add(here, INDEX(self.ahead * vector.count)), apart, (windows, points, results))
            found: list[Any] = []
            for k, x in enumerate(windows):
                nine = [*known[6 * k : 6 * k + 6], *load(x, below)]
                found.append(Window(*(Vector(builder, value) for value in nine)))
                kept += nine[3:]
            found += [Vector(builder, self._load(builder.gep(x, [here]), vector)) for x in points]
            found = [value.value for value in formula(*found, *lines, *weights)]
            for x, value in zip(results, found, strict=False):
                self._store(value, builder.gep(x, [here]))
            return below, kept, found[len(results) :]

        def several(count):
            """Step of a loop over `count` rows, whose summands are added in pairs."""

            def rows(_, values):
                here, known, totals = values[0], values[1 : 1 + n_kept], values[1 + n_kept :]
                summands = []
                for _ in range(count):
                    here, known, new = step(here, known)
                    summands.append(new)
                while len(summands) > 1:
                    pairs = zip(summands[::2], summands[1::2], strict=True)
                    summands = [[add(a, b) for a, b in zip(*pair, strict=True)] for pair in pairs]
                return [here, *known, *(add(total, new) for total, new in zip(totals, summands[0], strict=True))]

            return rows

        starts = [value for x in windows for row in (builder.neg(apart), INDEX(0)) for value in load(x, row)]
        values = [INDEX(0), *starts, *[ir.Constant(vector, None)] * len(self.sums)]
        if self.sums:
            n_groups = builder.sdiv(n_rows, INDEX(GROUP))
            values = loop(builder, n_groups, values, several(GROUP))
            n_rows = builder.sub(n_rows, builder.mul(n_groups, INDEX(GROUP)))
        values = loop(builder, n_rows, values, several(1))
        for x, total in zip(self.sums, values[1 + n_kept :], strict=True):
            self._store(total, builder.gep(x, [place]))

    def _fetch(self, place, apart, frames):
        """Ask for what a later column reads first or writes: the row below, and the row itself."""
        windows, points, results = frames
        below = self.builder.add(self.builder.add(place, apart), self.beside)
        wanted = [(x, below) for x in windows] + [(x, place) for x in (*points, *results)]
        for x, there in wanted if self.ahead else []:
            fetch_ahead(self.builder, self.builder.gep(x, [there]))

    def _load(self, pointer, vector):
        return load_vector(self.builder, pointer, vector, self.mask)

    def _store(self, value, pointer):
        store_vector(self.builder, value, pointer, self.mask)
