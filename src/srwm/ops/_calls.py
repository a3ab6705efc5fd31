"""How a loop over heads is compiled, called and shared out among threads."""

# What numba compiles it types by itself.
# mypy: disallow-untyped-calls=False

import ctypes
import functools
import hashlib
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
from llvmlite import ir
from numba import types

from ._memory import fetch_add, integers
from ._simd import intrinsic

# What a loop is told, as a list of integers that `_threads.py` writes: counters first, which the threads share, then
# what follows here, then sizes, places in scratch memory and addresses of tables.
ARRIVED, TAKEN, FRONT, BACK, LEFT_OVER, DONE, SHARES, THREADS, HEADS, RESET, SCRATCH, SCRATCH_BYTES, HEADER = range(13)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a part of a loop into whatever calls it."""
    # Tests wrap functions to check their arguments; numba wants the function itself.
    part: Callable[..., Any] = numba.njit(error_model="numpy", forceinline=True)(inspect.unwrap(function))
    return part


class Entry(NamedTuple):
    """A loop compiled for one dtype."""

    call: Callable[[int], None]
    """Runs it, without holding the interpreter, on the address of what it is told."""
    address: int
    """Of its machine code, which takes the same argument."""
    code: object
    """Keeps the machine code in memory."""


@functools.cache
def _sources(folder: Path) -> str:
    """A digest of the sources that are compiled into the loops of a folder: its own, and those in the folder above."""
    files = sorted([*Path(__file__).parent.glob("*.py"), *folder.glob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Loop:
    """A loop over heads: compiled for a dtype at its first use, and kept on disk where there is a place for it.

    It is a function that C can call, because threads that are not Python's do so. Its argument is the address of what
    it is told; in numba's eyes that is a pointer to numbers of the dtype, which is how it learns the dtype.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = inspect.unwrap(function)
        # Numba looks at the file of the function alone to tell whether what it kept on disk is old. The name of what it
        # keeps says which sources it was made of.
        self._function.__qualname__ += f"-{_sources(Path(self._function.__code__.co_filename).parent)}"
        self._entries: dict[int, Entry] = {}

    def entry(self, itemsize: int) -> Entry:
        """The loop for numbers of 4 or 8 bytes."""
        if itemsize not in self._entries:
            self._entries[itemsize] = self._compile(types.float32 if itemsize == 4 else types.float64)
        return self._entries[itemsize]

    def _compile(self, number: types.Float) -> Entry:
        signature = types.void(types.CPointer(number))
        try:
            code = numba.cfunc(signature, cache=True, error_model="numpy")(self._function)
        except RuntimeError as problem:
            warnings.warn(f"srwm compiles its CPU kernels anew in each process: {problem}", stacklevel=2)
            code = numba.cfunc(signature, error_model="numpy")(self._function)
        address: int = code.address  # type: ignore[assignment]
        return Entry(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address), address, code)


@inlined
def enter(call):  # type: ignore[no-untyped-def]
    """Count this thread in: what the loop is told, as integers, and which of the threads this is."""
    told = integers(call)
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
