"""How the threads of a call share out its heads: what they are told, and how each takes its next share."""

# What numba compiles it types by itself.
# mypy: disallow-untyped-calls=False

from llvmlite import ir
from numba import types

from .compiler import inlined
from .memory import fetch_add, viewed
from .simd import intrinsic

# What a loop is told, as a list of integers that `threads.py` writes: counters first, which the threads share, then
# what follows here, then sizes, places in scratch memory and addresses of tables.
ARRIVED, TAKEN, FRONT, BACK, LEFT_OVER, DONE, SHARES, THREADS, HEADS, SCRATCH, SCRATCH_BYTES, HEADER = range(12)


@inlined
def enter(call):  # type: ignore[no-untyped-def]
    """Count this thread in: what the loop is told, as integers, and which of the threads this is."""
    told = viewed(call, 0)
    return told, fetch_add(told, ARRIVED)


@intrinsic(prefer_literal=True)
def contents(_, told, thread, like, n_sizes, n_scratch, n_tables):  # type: ignore[no-untyped-def]
    """The sizes, this thread's scratch memory and the tables, the latter two as pointers of the type of `like`."""
    integer, counts = types.int64, [each.literal_value for each in (n_sizes, n_scratch, n_tables)]
    kinds = [types.UniTuple(kind, count) for kind, count in zip((integer, like, like), counts, strict=True)]

    def build(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        def told_at(i):  # type: ignore[no-untyped-def]
            return builder.load(builder.gep(arguments[0], [ir.IntType(64)(i)]))

        def pointer_to(address):  # type: ignore[no-untyped-def]
            return builder.inttoptr(address, context.get_value_type(like))

        start = builder.add(told_at(SCRATCH), builder.mul(arguments[1], told_at(SCRATCH_BYTES)))
        values = [told_at(HEADER + i) for i in range(sum(counts))]
        sizes, places, addresses = values[: counts[0]], values[counts[0] : -counts[2]], values[-counts[2] :]
        scratch = [pointer_to(builder.add(start, place)) for place in places]
        tables = [pointer_to(address) for address in addresses]
        parts = zip(kinds, (sizes, scratch, tables), strict=True)
        tuples = [context.make_tuple(builder, kind, part) for kind, part in parts]
        return context.make_tuple(builder, signature.return_type, tuples)

    return types.Tuple(kinds)(told, types.int64, like, n_sizes, n_scratch, n_tables), build


@inlined
def next_share(told, thread, finished):  # type: ignore[no-untyped-def]
    """Take the next share of the heads: first and last of them, or two equal numbers if no share is left.

    The thread that came first, which is mostly the one that made the call, takes shares from the front, the others from
    the back: what they had in an earlier call may still be in their caches. The one that is left over goes to the
    first, so the others are done before it has to wait. A thread without a share must not touch scratch memory: it
    may have come when the call was over.

    Args:
        told: what the loop is told.
        thread: which of the threads this is, from 0 on.
        finished: True when the thread comes back from a share.
    """
    shares, heads = told[SHARES], told[HEADS]
    if finished:
        fetch_add(told, DONE)
    if thread >= told[THREADS]:
        return 0, 0
    if fetch_add(told, TAKEN) < shares - 1:
        if thread == 0:
            share = told[FRONT]
            told[FRONT] += 1
        else:
            share = shares - 1 - fetch_add(told, BACK)
    elif thread == 0 and told[LEFT_OVER] == 0:
        told[LEFT_OVER] = 1
        share = told[FRONT]
    else:
        return 0, 0
    return heads * share // shares, heads * (share + 1) // shares
