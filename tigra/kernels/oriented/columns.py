"""Stencils on one column of vectors of a frame: three rows stay in registers, and each is read once.

A loop along a frame reads nine vectors for each that it writes. Down a column, six of them are those of the row before.
Only nodes are written, so a rim of zeros stays as it is.

The functions here are Python code that defines the result. Compiled callers get vector instructions in their place.
Additions and multiplications are those of `tigra.kernels.oriented.frames`, in the same order.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable

from tigra.kernels.compiling.vectors import INDEX, address, load_vector, loop, repeated, width
from tigra.kernels.registers import VECTOR_BYTES


def stencil_column(n_parts):
    """Function that fills a column of a frame with `tigra.kernels.oriented.frames.stencil`.

    Parameters
    ----------
    n_parts : int
        The column has the width of a vector register, divided by this number.

    Returns
    -------
    function
        Takes x, the place of the first node, the length of a row, the distance of neighbours in a row, the number of
        rows, the weights of a node, its straight and its diagonal neighbours, and the result.
    """

    def column(x, first, row, beside, n_rows, times_x, straight, diagonal, out):
        lanes = VECTOR_BYTES // x.itemsize // n_parts
        for place in range(first, first + n_rows * row, row):
            (nw, north, ne), (west, node, east), (sw, south, se) = (
                [x[q + shift : q + shift + lanes] for shift in (-beside, 0, beside)]
                for q in (place - row, place, place + row)
            )
            s = (north + south) + (west + east)
            d = (nw + se) + (ne + sw)
            out[place : place + lanes] = times_x * node + straight * s + diagonal * d

    @type_callable(column)
    def type_column(context):
        def signature(x, first, row, beside, n_rows, times_x, straight, diagonal, out):
            i, number = types.intp, x.dtype
            return types.none(x, i, i, i, i, number, number, number, out)

        return signature

    @lower_builtin(column, types.VarArg(types.Any))
    def lower_column(context, builder, signature, args):
        x, first, row, beside, n_rows, *weights, out = args
        rows = _Rows(context, builder, signature.args[0], x, first, row, beside, n_parts)
        times_x, straight, diagonal = (repeated(builder, weight, rows.vector) for weight in weights)
        add, times = builder.fadd, builder.fmul

        def step(number, values):
            nw, north, ne, west, node, east = values
            sw, south, se = below = rows.load(builder.add(number, INDEX(1)))
            s = add(add(north, south), add(west, east))
            d = add(add(nw, se), add(ne, sw))
            total = add(add(times(times_x, node), times(straight, s)), times(diagonal, d))
            rows.store(total, signature.args[8], out, number)
            return [west, node, east, *below]

        loop(builder, n_rows, [*rows.load(INDEX(-1)), *rows.load(INDEX(0))], step)
        return context.get_dummy_value()

    return column


def gradient_column(n_parts):
    """Function that fills a column of two frames with `tigra.kernels.oriented.frames.gradient_products`.

    Parameters
    ----------
    n_parts : int
        The column has the width of a vector register, divided by this number.

    Returns
    -------
    function
        Takes a and b, the place of the first node, the length of a row, the distance of neighbours in a row, the number
        of rows, the weight of a diagonal edge, the unit, and the results.
    """

    def column(a, b, first, row, beside, n_rows, weight, unit, dots, crosses):
        lanes = VECTOR_BYTES // a.itemsize // n_parts
        for place in range(first, first + n_rows * row, row):
            slopes = []
            for x in (a, b):
                (nw, north, ne), (west, _, east), (sw, south, se) = (
                    [x[q + shift : q + shift + lanes] for shift in (-beside, 0, beside)]
                    for q in (place - row, place, place + row)
                )
                slopes.append((east + weight * (ne + se)) - (west + weight * (nw + sw)))
                slopes.append((south + weight * (sw + se)) - (north + weight * (nw + ne)))
            ax, ay, bx, by = slopes
            dots[place : place + lanes] = unit * (ax * bx + ay * by)
            crosses[place : place + lanes] = unit * (ax * by - ay * bx)

    @type_callable(column)
    def type_column(context):
        def signature(a, b, first, row, beside, n_rows, weight, unit, dots, crosses):
            i, number = types.intp, a.dtype
            return types.none(a, b, i, i, i, i, number, number, dots, crosses)

        return signature

    @lower_builtin(column, types.VarArg(types.Any))
    def lower_column(context, builder, signature, args):
        a, b, first, row, beside, n_rows, weight, unit, dots, crosses = args
        maps = [
            _Rows(context, builder, kind, x, first, row, beside, n_parts)
            for kind, x in zip(signature.args[:2], (a, b), strict=True)
        ]
        weight, unit = (repeated(builder, number, maps[0].vector) for number in (weight, unit))
        add, subtract, times = builder.fadd, builder.fsub, builder.fmul

        def one_side(middle, *corners):
            return add(middle, times(weight, add(*corners)))

        def step(number, values):
            slopes, new = [], []
            for x, rows in zip(maps, (values[:6], values[6:]), strict=True):
                nw, north, ne, west, node, east = rows
                sw, south, se = below = x.load(builder.add(number, INDEX(1)))
                slopes.append(subtract(one_side(east, ne, se), one_side(west, nw, sw)))
                slopes.append(subtract(one_side(south, sw, se), one_side(north, nw, ne)))
                new += [west, node, east, *below]
            ax, ay, bx, by = slopes
            dot = times(unit, add(times(ax, bx), times(ay, by)))
            cross = times(unit, subtract(times(ax, by), times(ay, bx)))
            maps[0].store(dot, signature.args[8], dots, number)
            maps[0].store(cross, signature.args[9], crosses, number)
            return new

        starts = [value for x in maps for number in (-1, 0) for value in x.load(INDEX(number))]
        loop(builder, n_rows, starts, step)
        return context.get_dummy_value()

    return column


class _Rows:
    """The rows of a column of a frame, as LLVM vectors."""

    def __init__(self, context, builder, kind, x, first, row, beside, n_parts):
        number = context.get_value_type(kind.dtype)
        self.vector = ir.VectorType(number, VECTOR_BYTES * 8 // kind.dtype.bitwidth // n_parts)
        self.context, self.builder, self.first, self.row = context, builder, first, row
        self.middle = address(context, builder, kind, x, first)
        self.shifts = [builder.neg(beside), INDEX(0), beside]

    def load(self, number):
        """A row and its neighbours to the left and to the right: left, middle, right."""
        start = self.builder.gep(self.middle, [self.builder.mul(number, self.row)])
        places = (self.builder.gep(start, [shift]) for shift in self.shifts)
        return [load_vector(self.builder, place, self.vector) for place in places]

    def store(self, value, kind, out, number):
        """Write a row of another frame."""
        place = self.builder.add(self.first, self.builder.mul(number, self.row))
        pointer = address(self.context, self.builder, kind, out, place)
        self.builder.store(
            value, self.builder.bitcast(pointer, self.vector.as_pointer()), align=width(self.vector.element)
        )
