"""Memory in numba code: plain pointers, and machine vectors loaded from them and stored to them.

Nothing counts references, and no index is checked.
"""

# What numba compiles it types by itself.
# mypy: disallow-untyped-calls=False

from llvmlite import ir
from numba import types
from numba.core import cgutils

from .simd import BLOCK_BYTES, Vector, _call, _first, _integers, _parts, _suffix, intrinsic


def _vector_at(builder, p, i, vector):  # type: ignore[no-untyped-def]
    return builder.bitcast(builder.gep(p, [i]), vector.ir_type.as_pointer())


def _blocks(builder, p, i, n, vector):  # type: ignore[no-untyped-def]
    """Where the blocks of the vector at p[i:] lie, and how many of n numbers are left from each on."""
    block = Vector(vector.dtype, 1)
    starts = [ir.IntType(64)(block.lanes * each) for each in range(vector.blocks)]
    return [(_vector_at(builder, p, builder.add(i, each), block), builder.sub(n, each)) for each in starts]


def _join(builder, parts):  # type: ignore[no-untyped-def]
    """One vector of several; their number is a power of two."""
    while len(parts) > 1:
        indices = _integers(32, range(2 * parts[0].type.count))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [builder.shuffle_vector(left, right, indices) for left, right in pairs]
    return parts[0]


@intrinsic
def given(_, p):  # type: ignore[no-untyped-def]
    """Whether a pointer leads anywhere."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.icmp_unsigned("!=", arguments[0], ir.Constant(arguments[0].type, None))

    return types.boolean(p), build


@intrinsic
def nowhere(_, p):  # type: ignore[no-untyped-def]
    """A pointer like p that leads nowhere."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return ir.Constant(arguments[0].type, None)

    return p(p), build


@intrinsic
def viewed(_, p, like):  # type: ignore[no-untyped-def]
    """The same memory, as numbers of the type of `like`."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(p, like), build


@intrinsic
def at(_, p, i):  # type: ignore[no-untyped-def]
    """The pointer to p[i]."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.gep(arguments[0], [arguments[1]])

    return p(p, types.intp), build


@intrinsic
def load(_, p, i, like):  # type: ignore[no-untyped-def]
    """The vector at p[i:], as long as `like`."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(_vector_at(builder, arguments[0], arguments[1], like), align=like.dtype.bitwidth // 8)

    return like(p, types.intp, like), build


@intrinsic
def store(_, p, i, v):  # type: ignore[no-untyped-def]
    """Set p[i:] to the vector v."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[2], _vector_at(builder, arguments[0], arguments[1], v), align=v.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(p, types.intp, v), build


@intrinsic
def load_first(_, p, i, n, like):  # type: ignore[no-untyped-def]
    """The vector of p[i:i + n] and, where `like` is longer, zeros; memory further on is not touched.

    Of several blocks, all but the last must be whole.
    """
    block = Vector(like.dtype, 1)
    size = like.dtype.bitwidth // 8

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        p, i, n, _ = arguments
        *whole, (last, n_last) = _blocks(builder, p, i, n, like)
        parts = [builder.load(place, align=size) for place, _ in whole]
        mask, zero = _first(builder, n_last, block.lanes), ir.Constant(block.ir_type, None)
        name = f"llvm.masked.load.{_suffix(block.ir_type)}.p0"
        return _join(builder, [*parts, _call(builder, name, block.ir_type, [last, ir.IntType(32)(size), mask, zero])])

    return like(p, types.intp, types.intp, like), build


@intrinsic
def store_first(_, p, i, n, v):  # type: ignore[no-untyped-def]
    """Set p[i:i + n] to the first n numbers of v, or all of v where it is shorter.

    Of several blocks, all but the last must be whole.
    """
    block = Vector(v.dtype, 1)
    size = v.dtype.bitwidth // 8

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        p, i, n, value = arguments
        *whole, (last, n_last) = _blocks(builder, p, i, n, v)
        *parts, last_part = _parts(builder, value, block.lanes)
        for (place, _), part in zip(whole, parts, strict=True):
            builder.store(part, place, align=size)
        name = f"llvm.masked.store.{_suffix(block.ir_type)}.p0"
        mask = _first(builder, n_last, block.lanes)
        _call(builder, name, ir.VoidType(), [last_part, last, ir.IntType(32)(size), mask])
        return context.get_dummy_value()

    return types.void(p, types.intp, types.intp, v), build


@intrinsic(prefer_literal=True)
def prefetch(_, p, i, like, for_writing):  # type: ignore[no-untyped-def]
    """Ask for the cache lines of p[i:], to read them (0) or to write them (1); any address will do."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        start = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), cgutils.voidptr_t)
        keep, data = 3, 1
        options = [ir.IntType(32)(each) for each in (for_writing.literal_value, keep, data)]
        for block in range(like.blocks):
            line = builder.gep(start, [ir.IntType(64)(block * BLOCK_BYTES)])
            _call(builder, "llvm.prefetch.p0", ir.VoidType(), [line, *options])
        return context.get_dummy_value()

    return types.void(p, types.intp, like, for_writing), build


@intrinsic
def fetch_add(_, p, i):  # type: ignore[no-untyped-def]
    """Add one to p[i] and return what it was; of several threads, each gets another number."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.atomic_rmw("add", builder.gep(arguments[0], [arguments[1]]), ir.IntType(64)(1), "seq_cst")

    return types.int64(p, types.intp), build


@intrinsic
def row_totals(_, p, like):  # type: ignore[no-untyped-def]
    """The sums over the lanes of consecutive vectors at p, as many of them as each has lanes."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        n, align = like.lanes, like.dtype.bitwidth // 8
        places = [_vector_at(builder, arguments[0], ir.IntType(64)(n * i), like) for i in range(n)]
        rows = [builder.load(place, align=align) for place in places]
        even, odd = _integers(32, range(0, 2 * n, 2)), _integers(32, range(1, 2 * n, 2))
        # Adding neighbours halves a row, and two halves make a new one, until one row holds a sum of each.
        while len(rows) > 1:
            pairs = list(zip(rows[::2], rows[1::2], strict=True))
            rows = [builder.fadd(*(builder.shuffle_vector(a, b, half) for half in (even, odd))) for a, b in pairs]
        return rows[0]

    return like(p, like), build


@intrinsic
def transpose_block(_, target, target_stride, source, source_stride, like):  # type: ignore[no-untyped-def]
    """Set as many rows of a matrix as a vector has lanes to as many columns of another one."""
    n, align = like.lanes, like.dtype.bitwidth // 8

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        target, target_stride, source, source_stride, _ = arguments

        def places(p, stride):  # type: ignore[no-untyped-def]
            return [_vector_at(builder, p, builder.mul(stride, ir.IntType(64)(i)), like) for i in range(n)]

        rows = [builder.load(place, align=align) for place in places(source, source_stride)]
        # Squares beside the diagonal change places: of 1 x 1, of 2 x 2, and so on.
        size = 1
        while size < n:
            upper = _integers(32, [n + j - size if j & size else j for j in range(n)])
            lower = _integers(32, [n + j if j & size else j + size for j in range(n)])
            for i in range(n):
                if not i & size:
                    a, b = rows[i], rows[i + size]
                    rows[i] = builder.shuffle_vector(a, b, upper)
                    rows[i + size] = builder.shuffle_vector(a, b, lower)
            size *= 2
        for row, place in zip(rows, places(target, target_stride), strict=True):
            builder.store(row, place, align=align)
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, like), build
