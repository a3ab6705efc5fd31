"""Machine vectors as values in numba code.

Numba leaves vector instructions to LLVM, which finds them in simple loops only: it must first prove that arrays do not
overlap, and it keeps sums in memory. Here a vector is a value like a float, its sums stay in registers whatever
surrounds them, and every sum is made in the order in which it is written. `memory.py` loads and stores them.

A vector is one or several blocks of 64 bytes. LLVM makes of a block what the machine has: one register with AVX-512,
two with AVX2, four elsewhere.
"""

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.extending import lower_builtin, models, register_model, type_callable

BLOCK_BYTES = 64
"""Length of the shortest vector: a cache line."""


def intrinsic(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a function that writes LLVM's code, as numba does."""
    if function is None:
        return lambda function: intrinsic(function, **options)
    # Tests wrap functions to check their arguments; numba wants the function itself.
    function = inspect.unwrap(function)
    return extending.intrinsic(**options)(function) if options else extending.intrinsic(function)


class Vector(types.Type):
    """The numba type of a vector of `blocks` blocks."""

    def __init__(self, dtype: types.Float, blocks: int) -> None:
        self.dtype = dtype
        self.blocks = blocks
        self.lanes = blocks * BLOCK_BYTES * 8 // dtype.bitwidth
        super().__init__(name=f"Vector({dtype}, {blocks})")

    @property
    def ir_type(self) -> ir.VectorType:
        """Its type in LLVM."""
        return ir.VectorType(ir.FloatType() if self.dtype == types.float32 else ir.DoubleType(), self.lanes)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.ir_type)


# What the intrinsics below are built of.


def _call(builder, name, result, arguments):  # type: ignore[no-untyped-def]
    """Call one of LLVM's own functions."""
    function_type = ir.FunctionType(result, [each.type for each in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, function_type, name), arguments)


def _suffix(vector):  # type: ignore[no-untyped-def]
    """What LLVM appends to the names of its functions for vectors of this type."""
    return f"v{vector.count}f{32 if isinstance(vector.element, ir.FloatType) else 64}"


def _integers(bits, values):  # type: ignore[no-untyped-def]
    """A constant vector."""
    return ir.Constant(ir.VectorType(ir.IntType(bits), len(values)), [ir.IntType(bits)(value) for value in values])


def _spread(builder, x, lanes):  # type: ignore[no-untyped-def]
    alone = builder.insert_element(ir.Constant(ir.VectorType(x.type, lanes), ir.Undefined), x, ir.IntType(32)(0))
    return builder.shuffle_vector(alone, alone, _integers(32, [0] * lanes))


def _multiply_add(builder, a, b, c):  # type: ignore[no-untyped-def]
    return _call(builder, f"llvm.fmuladd.{_suffix(a.type)}", a.type, [a, b, c])


def _first(builder, n, lanes):  # type: ignore[no-untyped-def]
    """The mask of the first n lanes."""
    most = ir.IntType(64)(lanes)
    n = builder.trunc(builder.select(builder.icmp_signed("<", n, most), n, most), ir.IntType(32))
    return builder.icmp_signed("<", _integers(32, range(lanes)), _spread(builder, n, lanes))


def _parts(builder, v, lanes):  # type: ignore[no-untyped-def]
    """The vector cut into shorter ones."""
    starts = range(0, v.type.count, lanes)
    return [builder.shuffle_vector(v, v, _integers(32, range(start, start + lanes))) for start in starts]


def _fold(builder, v, combine):  # type: ignore[no-untyped-def]
    """Combine the halves of a vector until one number is left."""
    while v.type.count > 1:
        v = combine(*_parts(builder, v, v.type.count // 2))
    return builder.extract_element(v, ir.IntType(32)(0))


def _larger(builder, a, b):  # type: ignore[no-untyped-def]
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


# Making vectors, and taking them apart.


@intrinsic(prefer_literal=True)
def zeros(_, p, blocks):  # type: ignore[no-untyped-def]
    """A vector of zeros of the type p points to."""
    vector = Vector(p.dtype, blocks.literal_value)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return ir.Constant(vector.ir_type, None)

    return vector(p, blocks), build


@intrinsic
def lanes(_, like):  # type: ignore[no-untyped-def]
    """How many numbers a vector holds."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return ir.IntType(64)(like.lanes)

    return types.int64(like), build


@intrinsic
def spread(_, x, like):  # type: ignore[no-untyped-def]
    """A vector as long as `like` with x in every lane."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _spread(builder, arguments[0], like.lanes)

    return like(like.dtype, like), build


@intrinsic
def choose_first(_, n, a, b):  # type: ignore[no-untyped-def]
    """The first n lanes of a, the others of b; n may be negative, or larger than a vector."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.select(_first(builder, arguments[0], a.lanes), arguments[1], arguments[2])

    return a(types.intp, a, a), build


@intrinsic
def total(_, v):  # type: ignore[no-untyped-def]
    """The sum over the lanes."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _fold(builder, arguments[0], builder.fadd)

    return v.dtype(v), build


@intrinsic
def largest(_, v):  # type: ignore[no-untyped-def]
    """The largest of the lanes; NaNs are passed over or returned."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _fold(builder, arguments[0], lambda a, b: _larger(builder, a, b))

    return v.dtype(v), build


# Arithmetic.


def _lane_by_lane(function, method):  # type: ignore[no-untyped-def]
    """Make an operator of Python work on vectors."""

    @type_callable(function)
    def typed(context):  # type: ignore[no-untyped-def]
        return lambda a, b: a if isinstance(a, Vector) and a == b else None

    @lower_builtin(function, Vector, Vector)
    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return getattr(builder, method)(*arguments)


_lane_by_lane(operator.add, "fadd")
_lane_by_lane(operator.sub, "fsub")
_lane_by_lane(operator.mul, "fmul")
_lane_by_lane(operator.truediv, "fdiv")


@intrinsic
def multiply_add(_, a, b, c):  # type: ignore[no-untyped-def]
    """A b + c, rounded once where the machine can."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _multiply_add(builder, *arguments)

    return a(a, a, a), build


@intrinsic
def block_products(_, a, b):  # type: ignore[no-untyped-def]
    """A b summed over the blocks: a vector of one block, the total of which is the dot product."""
    one = Vector(a.dtype, 1)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (first, *others) = zip(*(_parts(builder, each, one.lanes) for each in arguments), strict=True)
        result = builder.fmul(*first)
        for left, right in others:
            result = _multiply_add(builder, left, right, result)
        return result

    return one(a, a), build


@intrinsic
def larger(_, a, b):  # type: ignore[no-untyped-def]
    """The larger of each pair of lanes; b where one is NaN."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _larger(builder, *arguments)

    return a(a, a), build


@intrinsic
def if_negative(_, v, a, b):  # type: ignore[no-untyped-def]
    """The lanes of a where v is below zero, those of b elsewhere."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        negative = builder.fcmp_ordered("<", arguments[0], ir.Constant(v.ir_type, None))
        return builder.select(negative, arguments[1], arguments[2])

    return v(v, v, v), build


@intrinsic
def absolute(_, v):  # type: ignore[no-untyped-def]
    """The lanes without their signs."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return _call(builder, f"llvm.fabs.{_suffix(arguments[0].type)}", arguments[0].type, arguments)

    return v(v), build


@intrinsic
def any_above(_, a, b):  # type: ignore[no-untyped-def]
    """Whether a lane of a is above that of b; NaNs are not."""

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        above = builder.bitcast(builder.fcmp_ordered(">", *arguments), ir.IntType(a.lanes))
        return builder.icmp_unsigned("!=", above, ir.IntType(a.lanes)(0))

    return types.boolean(a, a), build


@intrinsic
def exp(_, v):  # type: ignore[no-untyped-def]
    """The exponential of numbers that are not above zero, to about the last bit.

    x = n ln 2 + r with |r| <= ln(2) / 2, so e^x = 2^n e^r; e^r is its power series. Where the result would be too small
    for a normal number, it is zero. NaN stays NaN.
    """
    # Terms of the series until they are lost in rounding; bits of the fraction; ln 2 in two parts, the first so short
    # that n times it is exact; the smallest x.
    terms, fraction, ln2, ln2_rest, lowest = (
        (8, 23, 0.693359375, -2.12194440e-4, -87.0)
        if v.dtype == types.float32
        else (14, 52, 0.693145751953125, 1.42860682030941723212e-6, -708.0)
    )
    bits = ir.VectorType(ir.IntType(v.dtype.bitwidth), v.lanes)

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        (x,) = arguments

        def constant(value):  # type: ignore[no-untyped-def]
            return ir.Constant(x.type, [x.type.element(value)] * v.lanes)

        # A number this large has no bits left behind the point: adding it rounds, and leaves n in the last bits.
        large = constant(1.5 * 2**fraction)
        shifted = _multiply_add(builder, x, constant(1 / math.log(2)), large)
        n = builder.fsub(shifted, large)
        r = _multiply_add(builder, n, constant(-ln2), x)
        r = _multiply_add(builder, n, constant(-ln2_rest), r)
        series = constant(1 / math.factorial(terms - 1))
        for power in range(terms - 2, 1, -1):
            series = _multiply_add(builder, series, r, constant(1 / math.factorial(power)))
        series = _multiply_add(builder, series, builder.fmul(r, r), r)
        series = builder.fadd(series, constant(1.0))
        # n, moved to where the exponent stands and added there, multiplies by 2^n.
        exponent = builder.shl(builder.bitcast(shifted, bits), _integers(v.dtype.bitwidth, [fraction] * v.lanes))
        result = builder.bitcast(builder.add(builder.bitcast(series, bits), exponent), x.type)
        return builder.select(builder.fcmp_ordered("<", x, constant(lowest)), constant(0.0), result)

    return v(v), build
