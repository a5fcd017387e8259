"""LLVM code for vectors in registers: loads, stores, fused multiply-adds, sums and loops.

`tigra.kernels.compiling.registers` puts it together.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

INDEX, LANE = ir.IntType(64), ir.IntType(32)


class Reach:
    """The places of a row that a block holds in registers, as vectors.

    Several vectors are whole. A single one may have more lanes than there are places: those are neither read nor
    written.
    """

    def __init__(self, builder, vector, n_vectors, n):
        self.builder, self.vector, self.count = builder, vector, n_vectors
        self.mask = first_lanes(builder, vector, n) if n_vectors == 1 < vector.count else None

    def load(self, pointer):
        """The vectors of a row."""
        return [load_vector(self.builder, place, self.vector, self.mask) for place in self._vectors(pointer)]

    def store(self, values, pointer):
        """Write the vectors of a row."""
        for value, place in zip(values, self._vectors(pointer), strict=True):
            store_vector(self.builder, value, place, self.mask)

    def _vectors(self, pointer):
        return [self.builder.gep(pointer, [INDEX(k * self.vector.count)]) for k in range(self.count)]


def first_lanes(builder, vector, n):
    """Mask of the first n lanes."""
    lanes = ir.VectorType(LANE, vector.count)
    count = repeated(builder, builder.trunc(n, LANE), lanes)
    return builder.icmp_signed("<", ir.Constant(lanes, list(range(vector.count))), count)


def address(context, builder, array_type, array, offset):
    """Pointer to an entry of an array of one axis."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [offset])


def at_most(builder, index, count):
    """The smaller of index and count - 1."""
    return builder.select(builder.icmp_signed("<", INDEX(index), count), INDEX(index), builder.sub(count, INDEX(1)))


def load_vector(builder, pointer, vector, mask=None):
    """A vector from any address; with a mask, zeros in the other lanes, which are not read."""
    pointer, size = builder.bitcast(pointer, vector.as_pointer()), width(vector.element)
    if mask is None:
        return builder.load(pointer, align=size)
    kinds = [pointer.type, LANE, mask.type, vector]
    function = _for_vectors(builder, "llvm.masked.load", vector, ir.FunctionType(vector, kinds))
    return builder.call(function, [pointer, LANE(size), mask, ir.Constant(vector, None)])


def store_vector(builder, value, pointer, mask=None):
    """Write a vector to any address; with a mask, only those lanes."""
    vector = value.type
    pointer, size = builder.bitcast(pointer, vector.as_pointer()), width(vector.element)
    if mask is None:
        builder.store(value, pointer, align=size)
        return
    kinds = [vector, pointer.type, LANE, mask.type]
    function = _for_vectors(builder, "llvm.masked.store", vector, ir.FunctionType(ir.VoidType(), kinds))
    builder.call(function, [value, pointer, LANE(size), mask])


def _for_vectors(builder, name, vector, kind):
    """LLVM's function of that name for vectors in memory."""
    name = f"{name}.v{vector.count}f{8 * width(vector.element)}.p0"
    return cgutils.get_or_insert_function(builder.module, kind, name)


def fetch_ahead(builder, pointer):
    """Ask for the cache line of an address that will be read soon; addresses outside of arrays do no harm."""
    pointer = builder.bitcast(pointer, ir.IntType(8).as_pointer())
    kinds = [pointer.type, LANE, LANE, LANE]
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), kinds), "llvm.prefetch.p0i8"
    )
    builder.call(function, [pointer, LANE(0), LANE(3), LANE(1)])  # for reading, into L1, data


def width(number):
    """Bytes of a float or double."""
    return 4 if isinstance(number, ir.FloatType) else 8


def repeated(builder, value, vector):
    """A vector with one value in all lanes."""
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, LANE(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(LANE, vector.count), None))


def fused(builder, a, b, c):
    """a b + c, rounded once, for numbers or vectors."""
    kind = c.type
    number = kind.element if isinstance(kind, ir.VectorType) else kind
    name = f"f{8 * width(number)}"
    name = f"v{kind.count}{name}" if isinstance(kind, ir.VectorType) else name
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.{name}")
    return builder.call(function, [a, b, c])


def tree_sums(builder, vectors):
    """The sum of the lanes of each vector: the upper half is added to the lower half, until one number is left.

    The halved sums of two vectors fit into one, so they are added by one instruction.
    """
    packed = [(vector, [number]) for number, vector in enumerate(vectors)]  # and whose sums its parts will be
    count = vectors[0].type.count
    lanes, size = ir.VectorType(LANE, count), count  # of a part
    while size > 1:
        size //= 2
        low = [start + lane for start in range(0, 2 * count, 2 * size) for lane in range(size)]
        low, high = (ir.Constant(lanes, [lane + shift for lane in low]) for shift in (0, size))
        pairs = zip(packed[::2], packed[1::2] + packed[-1:], strict=False)  # the last one may have no partner
        packed = [
            (builder.fadd(*(builder.shuffle_vector(a, b, half) for half in (low, high))), of_a + of_b)
            for (a, of_a), (b, of_b) in pairs
        ]
    owners = [(vector, lane, number) for vector, numbers in packed for lane, number in enumerate(numbers)]
    sums = {number: builder.extract_element(vector, LANE(lane)) for vector, lane, number in owners}
    return [sums[number] for number in range(len(vectors))]


def loop(builder, count, starts, step):
    """Values after `count` steps from `starts`; step(index, values) gives the next values."""
    before = builder.block
    head, body, end = (builder.append_basic_block(name) for name in ("head", "body", "end"))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(INDEX)
    values = [builder.phi(start.type) for start in starts]
    builder.cbranch(builder.icmp_signed("<", index, count), body, end)
    builder.position_at_end(body)
    new = [builder.add(index, INDEX(1)), *step(index, values)]
    for phi, start, value in zip([index, *values], [INDEX(0), *starts], new, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(end)
    return values
