"""Fused multiply-adds, and blocks of matrix products that stay in registers.

A fused multiply-add, a b + c rounded once, gives the same bits on every processor. The functions here are Python
code that defines the result. Compiled callers get vector instructions in their place, written below as LLVM code. The
number of rows and vectors in a block depends on the processor; the order of additions, and thus the bits, does not.
Where a processor has no such instruction, LLVM calls the C library's `fma`: slower, with equal bits.

Blocks may be smaller than the registers allow. Rows, terms and places beyond the last one are then computed as copies
of the last, and written to the same place: nothing is read or written outside, without any branch.
"""

from __future__ import annotations

import functools

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import lower_builtin, type_callable

from tigra.kernels.compiling.vectors import (
    INDEX,
    LANE,
    Reach,
    address,
    at_most,
    fetch_ahead,
    fused,
    load_vector,
    loop,
    repeated,
    tree_sums,
    width,
)

CACHE_LINE = 64  # bytes
if config.CPU_FEATURES is None:
    HAS_AVX512 = bool(llvm.get_host_cpu_features().get("avx512f"))
else:
    HAS_AVX512 = "+avx512f" in config.CPU_FEATURES
VECTOR_BYTES = 64 if HAS_AVX512 else 32


def fma(a, b, c):
    """a b + c, rounded once, for floats or arrays of one dtype.

    Without over- and underflow of the intermediate results, which float64 does not guard against in Python.

    Examples
    --------
    >>> x = 1 + 2.0**-52
    >>> float(fma(x, x, -1 - 2.0**-51)) == 2.0**-104, x * x - 1 - 2.0**-51
    (True, 0.0)
    """
    if np.result_type(a, b, c) == np.float32:  # float64 holds the product exactly
        return _to_odd(*_two_sum(np.multiply(a, b, dtype=np.float64), np.float64(c))).astype(np.float32)[()]
    with np.errstate(over="ignore", invalid="ignore"):
        plain = a * b + c
        high, low = _two_product(a, b)
        middle, least = _two_sum(c, low)  # Boldo and Melquiond (2008), algorithm Fma
        total, rest = _two_sum(high, middle)
        exact = total + _to_odd(*_two_sum(least, rest))
    return np.where(np.isfinite(exact), exact, plain)[()]


def _two_sum(a, b):
    """a + b rounded, and the error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a, b):
    """a b rounded, and the error, for float64."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    high = a * b
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a):
    scaled = (2.0**27 + 1) * a
    high = scaled - (scaled - a)
    return high, a - high


def _to_odd(total, error):
    """total + error, rounded to the neighbour with an odd last bit: a second rounding is then as good as one."""
    total, error = np.asarray(total), np.asarray(error)
    even = (total.view(np.int64) & 1) == 0
    return np.where(even & (error != 0) & np.isfinite(error), np.nextafter(total, np.copysign(np.inf, error)), total)


@type_callable(fma)
def _type_fma(context):
    return lambda a, b, c: c(c, c, c)


@lower_builtin(fma, types.VarArg(types.Any))
def _lower_fma(context, builder, signature, args):
    return fused(builder, *args)


def sum_block(max_rows, n_vectors, lanes=0):
    """Function for a block of `tigra.kernels.products.product`.

    Parameters
    ----------
    max_rows : int
        Rows held in registers.
    n_vectors : int
        Vectors held per row. From 2 on, all their places are computed. With 1, the block may be smaller.
    lanes : int
        Numbers in a vector; 0 for those that a register of the processor holds.

    Returns
    -------
    function
        Compiled callers may ask for up to `max_rows` rows, and `n` places as above. Python ignores these limits.
    """

    def block(w, w0, row, term, n_terms, x, x0, x_pitch, out, out0, out_pitch, rows, n, fresh):
        for i in range(rows):
            to = out[out0 + i * out_pitch : out0 + i * out_pitch + n]
            total = np.zeros(n, out.dtype) if fresh else to
            for r in range(n_terms):
                total = fma(w[w0 + i * row + r * term], x[x0 + r * x_pitch : x0 + r * x_pitch + n], total)
            to[:] = total

    @type_callable(block)
    def type_block(context):
        def signature(w, w0, row, term, n_terms, x, x0, x_pitch, out, out0, out_pitch, rows, n, fresh):
            i = types.intp
            return _flat_and_alike(w, x, out) and types.none(w, i, i, i, i, x, i, i, out, i, i, i, i, types.boolean)

        return signature

    @lower_builtin(block, types.VarArg(types.Any))
    def lower_block(context, builder, signature, args):
        w, w0, row, term, n_terms, x, x0, x_pitch, out, out0, out_pitch, rows, n, fresh = args
        w_type, x_type, out_type = (signature.args[k] for k in (0, 5, 8))
        number = context.get_value_type(out_type.dtype)
        vector = ir.VectorType(number, lanes or VECTOR_BYTES * 8 // out_type.dtype.bitwidth)
        w, x = address(context, builder, w_type, w, w0), address(context, builder, x_type, x, x0)
        out = address(context, builder, out_type, out, out0)
        row_numbers = [at_most(builder, i, rows) for i in range(max_rows)]
        weights = [builder.gep(w, [builder.mul(row, i)]) for i in row_numbers]
        targets = [builder.gep(out, [builder.mul(out_pitch, i)]) for i in row_numbers]
        reach = Reach(builder, vector, n_vectors, n)
        slots = [cgutils.alloca_once_value(builder, ir.Constant(vector, None)) for _ in range(max_rows * reach.count)]
        with builder.if_then(builder.not_(fresh)):
            for slot, value in zip(slots, (value for target in targets for value in reach.load(target)), strict=True):
                builder.store(value, slot)
        starts = [builder.load(slot) for slot in slots]

        def step(r, sums):
            line = builder.gep(x, [builder.mul(r, x_pitch)])
            values = reach.load(line)
            for k in range(n_vectors if n_vectors > 1 else 0):  # rows are far apart: no processor guesses what is next
                fetch_ahead(builder, builder.gep(line, [INDEX((n_vectors + k) * vector.count)]))
            place = builder.mul(r, term)
            factors = (repeated(builder, builder.load(builder.gep(weight, [place])), vector) for weight in weights)
            products = ((factor, value) for factor in factors for value in values)
            return [fused(builder, *pair, total) for pair, total in zip(products, sums, strict=True)]

        sums = loop(builder, n_terms, starts, step)
        for i, target in enumerate(targets):
            reach.store(sums[i * reach.count : (i + 1) * reach.count], target)
        return context.get_dummy_value()

    return block


def dot_block(max_rows, max_terms):
    """Function for a block of `tigra.kernels.products.outer`.

    Parameters
    ----------
    max_rows, max_terms : int
        Rows of g and of x whose dot products are held in registers.

    Returns
    -------
    function
        Compiled callers may ask for up to `max_rows` rows and `max_terms` terms. Python ignores these limits.
    """

    def block(g, g0, g_pitch, rows, x, x0, x_pitch, terms, n, out, out0, out_pitch, fresh):
        lanes = CACHE_LINE // out.itemsize
        for i in range(rows):
            for r in range(terms):
                total = np.zeros(lanes, out.dtype)
                for q in range(0, n, lanes):
                    a, b = np.zeros((2, lanes), out.dtype)
                    left = min(lanes, n - q)
                    a[:left] = g[g0 + i * g_pitch + q : g0 + i * g_pitch + q + left]
                    b[:left] = x[x0 + r * x_pitch + q : x0 + r * x_pitch + q + left]
                    total = fma(a, b, total)
                while total.size > 1:
                    total = total[: total.size // 2] + total[total.size // 2 :]
                place = out0 + i * out_pitch + r
                out[place] = total[0] if fresh else out[place] + total[0]

    @type_callable(block)
    def type_block(context):
        def signature(g, g0, g_pitch, rows, x, x0, x_pitch, terms, n, out, out0, out_pitch, fresh):
            i = types.intp
            return _flat_and_alike(g, x, out) and types.none(g, i, i, i, x, i, i, i, i, out, i, i, types.boolean)

        return signature

    @lower_builtin(block, types.VarArg(types.Any))
    def lower_block(context, builder, signature, args):
        g, g0, g_pitch, rows, x, x0, x_pitch, terms, n, out, out0, out_pitch, fresh = args
        g_type, x_type, out_type = (signature.args[k] for k in (0, 4, 9))
        number = context.get_value_type(out_type.dtype)
        lanes, parts = CACHE_LINE * 8 // out_type.dtype.bitwidth, CACHE_LINE // VECTOR_BYTES
        vector = ir.VectorType(number, lanes // parts)
        g, x = address(context, builder, g_type, g, g0), address(context, builder, x_type, x, x0)
        out = address(context, builder, out_type, out, out0)
        row_numbers = [at_most(builder, i, rows) for i in range(max_rows)]
        term_numbers = [at_most(builder, r, terms) for r in range(max_terms)]
        lines = [builder.gep(g, [builder.mul(g_pitch, i)]) for i in row_numbers]
        others = [builder.gep(x, [builder.mul(x_pitch, r)]) for r in term_numbers]
        starts_inside = _begin_in_the_middle(builder, width(number), (g, g_pitch), (x, x_pitch), n)
        halves = builder.zext(starts_inside, INDEX)
        start = builder.mul(halves, INDEX(lanes // 2))
        whole = builder.sub(builder.udiv(n, INDEX(lanes)), halves)
        left = builder.select(starts_inside, INDEX(0), builder.urem(n, INDEX(lanes)))

        def step_with(load):
            def step(number, sums):
                first = builder.add(start, builder.mul(number, INDEX(lanes)))
                new: list[ir.Instruction] = []
                for part in range(parts):
                    place = builder.add(first, INDEX(part * vector.count))
                    b = [load(builder.gep(other, [place]), part) for other in others]
                    for line in lines:
                        a = load(builder.gep(line, [place]), part)
                        new += [fused(builder, a, value, sums[len(new) + k]) for k, value in enumerate(b)]
                return new

            return step

        def load_rest(pointer, part):
            """Zeros beyond the last place."""
            value = ir.Constant(vector, None)
            for lane in range(vector.count):
                used = builder.icmp_signed("<", INDEX(part * vector.count + lane), left)
                last = builder.sub(builder.sub(left, INDEX(1)), INDEX(part * vector.count))
                entry = builder.load(builder.gep(pointer, [builder.select(used, INDEX(lane), last)]))
                entry = builder.select(used, entry, ir.Constant(number, 0.0))
                value = builder.insert_element(value, entry, LANE(lane))
            return value

        def load_half(which):
            """The lower (0) or upper (1) half of the lanes, and zeros in the others."""
            half = ir.VectorType(number, lanes // 2)

            def load(pointer, part):
                if parts == 2:
                    return load_vector(builder, pointer, vector) if part == which else ir.Constant(vector, None)
                value = load_vector(builder, builder.gep(pointer, [INDEX(which * half.count)]), half)
                both = (value, ir.Constant(half, None))[:: 1 if which == 0 else -1]
                return builder.shuffle_vector(*both, ir.Constant(ir.VectorType(LANE, lanes), list(range(lanes))))

            return step_with(load)

        some = builder.zext(builder.icmp_signed(">", left, INDEX(0)), INDEX)
        before, middle, after, rest = (
            load_half(1),
            step_with(lambda pointer, part: load_vector(builder, pointer, vector)),
            load_half(0),
            step_with(load_rest),
        )
        sums = [ir.Constant(vector, None)] * (parts * max_rows * max_terms)
        sums = loop(builder, halves, sums, lambda _, totals: before(INDEX(-1), totals))
        sums = loop(builder, whole, sums, middle)
        sums = loop(builder, halves, sums, lambda _, totals: after(whole, totals))
        sums = loop(builder, some, sums, lambda _, totals: rest(whole, totals))
        places = [builder.add(builder.mul(out_pitch, i), r) for i in row_numbers for r in term_numbers]
        targets = [builder.gep(out, [place]) for place in places]
        old = [builder.load(target) for target in targets]  # all of them before the first is written
        if parts == 2:
            sums = [builder.fadd(a, b) for a, b in zip(sums[: len(targets)], sums[len(targets) :], strict=True)]
        for before, total, target in zip(old, tree_sums(builder, sums), targets, strict=True):
            builder.store(builder.select(fresh, total, builder.fadd(before, total)), target)
        return context.get_dummy_value()

    return block


def _begin_in_the_middle(builder, size, g, x, n):
    """Whether all rows of g and x begin in the middle of a cache line, and have whole lines; size in bytes."""
    first, pitches = [], [n]
    for pointer, pitch in (g, x):
        first.append(builder.and_(builder.ptrtoint(pointer, INDEX), INDEX(CACHE_LINE - 1)))
        pitches.append(pitch)
    rests = [builder.sub(address, INDEX(CACHE_LINE // 2)) for address in first]
    rests += [builder.urem(length, INDEX(CACHE_LINE // size)) for length in pitches]
    return builder.icmp_unsigned("==", functools.reduce(builder.or_, rests), INDEX(0))


def _flat_and_alike(*arrays):
    """True for contiguous arrays of one axis and dtype, else None: numba then reports that no signature fits."""
    return all((array.ndim, array.dtype, array.is_contig) == (1, arrays[0].dtype, True) for array in arrays) or None
