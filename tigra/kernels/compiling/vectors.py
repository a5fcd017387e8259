"""LLVM code for vectors in registers: loads, stores, fused multiply-adds, sums and loops.

`tigra.kernels.compiling.registers` puts it together.
"""

from __future__ import annotations

from llvmlite import ir
from numba.core import cgutils

INDEX, LANE = ir.IntType(64), ir.IntType(32)


class Reach:
    """The places of a row that a block holds in registers, as vectors.

    Several vectors are whole. A single one (n_vectors = 1) ends with the last place: where n is smaller than the
    vector, its first lanes are places before the block, which keep their values. Without those (n_vectors = 0), lanes
    beyond the last place are copies of it.
    """

    def __init__(self, builder, vector, n_vectors, n):
        self.builder, self.vector, self.n_vectors = builder, vector, n_vectors
        self.count, self.start = max(n_vectors, 1), INDEX(0)
        self.places = [at_most(builder, lane, n) for lane in range(vector.count)]
        if n_vectors == 1:
            self.start = builder.sub(n, INDEX(vector.count))
            lanes = ir.VectorType(LANE, vector.count)
            before = repeated(builder, builder.trunc(builder.neg(self.start), LANE), lanes)
            self.is_own = builder.icmp_signed(">=", ir.Constant(lanes, list(range(vector.count))), before)

    def load(self, pointer):
        """The vectors of a row."""
        builder, vector = self.builder, self.vector
        if self.n_vectors:
            return [load_vector(builder, place, vector) for place in self._vectors(pointer)]
        value = ir.Constant(vector, ir.Undefined)
        for lane, place in enumerate(self.places):
            value = builder.insert_element(value, builder.load(builder.gep(pointer, [place])), LANE(lane))
        return [value]

    def store(self, values, pointer):
        """Write the vectors of a row."""
        builder, vector = self.builder, self.vector
        if not self.n_vectors:
            for lane, place in enumerate(self.places):
                builder.store(builder.extract_element(values[0], LANE(lane)), builder.gep(pointer, [place]))
            return
        if self.n_vectors == 1:
            values = [builder.select(self.is_own, values[0], *self.load(pointer))]
        for value, place in zip(values, self._vectors(pointer), strict=True):
            builder.store(value, builder.bitcast(place, vector.as_pointer()), align=width(vector.element))

    def _vectors(self, pointer):
        first = self.builder.gep(pointer, [self.start])
        return [self.builder.gep(first, [INDEX(k * self.vector.count)]) for k in range(self.count)]


def address(context, builder, array_type, array, offset):
    """Pointer to an entry of an array of one axis."""
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [offset])


def at_most(builder, index, count):
    """The smaller of index and count - 1."""
    return builder.select(builder.icmp_signed("<", INDEX(index), count), INDEX(index), builder.sub(count, INDEX(1)))


def load_vector(builder, pointer, vector):
    """A vector from any address."""
    return builder.load(builder.bitcast(pointer, vector.as_pointer()), align=width(vector.element))


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
