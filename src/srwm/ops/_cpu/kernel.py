"""A kernel: what is done for one head, made into a loop over heads that several threads run together."""

# What numba compiles it types by itself.
# mypy: disallow-untyped-calls=False

import contextlib
import ctypes
import functools
import gc
import hashlib
import inspect
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba import types as numba_types

from .compiler import inlined
from .notice import said_when_slow
from .shares import contents, enter, next_share


class Entry(NamedTuple):
    """A kernel compiled for one dtype."""

    call: Callable[[int], None]
    """Runs it, without holding the interpreter, on the address of what it is told."""
    address: int
    """Of its machine code, which takes the same argument."""
    code: object
    """Keeps the machine code in memory."""


class Counts(NamedTuple):
    """How many there are of what a kernel is given."""

    sizes: int
    scratch: int
    tables: int


@functools.cache
def _sources(folder: Path) -> str:
    """A digest of the sources that are compiled into the kernels of a folder: its own, and what all kernels share."""
    here = Path(__file__).parent
    files = sorted(file for each in (here.parent, here, folder) for file in each.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keep Python's garbage collector from looking through all of PyTorch while numba builds its trees.

    It takes a tenth of the time to compile, and finds nothing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Kernel:
    """What is done for one head: compiled for a dtype at its first use, and kept on disk where there is a place for it.

    It is a function that C can call, because threads that are not Python's do so. Its argument is the address of what
    it is told; in numba's eyes that is a pointer to numbers of the dtype, which is how it learns the dtype.
    """

    def __init__(self, one_head: Callable[..., Any], prepare: Callable[..., Any]) -> None:
        self._one_head, self._prepare = inlined(one_head), inlined(prepare)
        source = Path(inspect.unwrap(one_head).__code__.co_filename)
        # Numba names what it keeps on disk after the function, and looks at the file of that alone to tell whether it
        # is old. So the name says which kernel this is, and which sources it was made of.
        self._name = f"{source.parent.name}.{source.stem}.{one_head.__name__}-{_sources(source.parent)}"
        self._entries: dict[int, Entry] = {}

    def entry(self, itemsize: int, counts: Counts) -> Entry:
        """The kernel for numbers of 4 or 8 bytes; it is always given as many sizes, scratch and tables."""
        if itemsize not in self._entries:
            self._entries[itemsize] = self._compile(itemsize, counts)
        return self._entries[itemsize]

    def _compile(self, itemsize: int, counts: Counts) -> Entry:
        number = numba_types.float32 if itemsize == 4 else numba_types.float64
        signature = numba_types.void(numba_types.CPointer(number))
        loop = self._loop(counts)
        with said_when_slow(self._name), _collector_at_rest():
            try:
                code = numba.cfunc(signature, cache=True, error_model="numpy")(loop)
            except RuntimeError as problem:
                warnings.warn(f"srwm compiles its CPU kernels anew in each process: {problem}", stacklevel=2)
                code = numba.cfunc(signature, error_model="numpy")(loop)
        address: int = code.address  # type: ignore[assignment]
        return Entry(ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address), address, code)

    def _loop(self, counts: Counts) -> Callable[..., Any]:
        """The loop over heads, with what it calls as its globals: numba takes them for constants."""
        known = {
            "_one_head": self._one_head,
            "_prepare": self._prepare,
            "_N_SIZES": counts.sizes,
            "_N_SCRATCH": counts.scratch,
            "_N_TABLES": counts.tables,
        }
        loop = types.FunctionType(inspect.unwrap(_over_heads).__code__, {**globals(), **known})
        loop.__qualname__ = self._name
        return loop


def _nothing(sizes, scratch):  # type: ignore[no-untyped-def]
    """Prepare nothing."""


def kernel(prepare: Callable[..., Any] = _nothing) -> Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of what is done for one head.

    Args:
        prepare: called as `prepare(sizes, scratch)` once in each thread, before its first head.

    Returns:
        A decorator of `one_head(head, sizes, scratch, tables)`: which head this is, over the whole batch, and three
        tuples as `over_heads` is given them. Scratch memory and tables come as pointers to numbers of the dtype. Heads
        are independent and may run at the same time.
    """
    return lambda one_head: Kernel(one_head, prepare)


# What stands in the loop below for a kernel's own.
_one_head: Any = _nothing
_prepare: Any = _nothing
_N_SIZES = _N_SCRATCH = _N_TABLES = 0


def _over_heads(call):  # type: ignore[no-untyped-def]
    """The loop: every thread takes shares of the heads until none is left."""
    told, thread = enter(call)
    sizes, scratch, tables = contents(told, thread, call, _N_SIZES, _N_SCRATCH, _N_TABLES)
    first, last = next_share(told, thread, False)
    if first < last:
        _prepare(sizes, scratch)
    while first < last:
        for head in range(first, last):
            _one_head(head, sizes, scratch, tables)
        first, last = next_share(told, thread, True)
