"""The compiled loops both operators are made of on a CPU, and the compiler they share.

Vectors and matrices here are scratch: rows are padded to whole machine vectors and the padding holds zeros, so the
inner loops become vector instructions. Sums may be reordered for that, always in the same way: equal inputs give equal
bits, whatever the number of threads.

Three things about numba shape this code. Zeros are typed, because `0 * float32` is float64 to it. Inner loops run from
0 and index with their counter alone, because of any other index it asks whether it is negative, which no vector
instruction does. And no array is sliced inside a loop over steps: a slice counts references to its array, and two
threads that do so stand in each other's way. So the tensors of a sequence are tables with one row for each step of
each head, and rows are copied to scratch and back.
"""

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

VECTOR = 16
"""Columns of a scratch are padded to a multiple of this: one 64-byte vector of float32."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop at its first call and keep the result on disk where there is a place for it."""
    # Tests wrap functions to check their arguments; numba wants the function itself.
    function = inspect.unwrap(function)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
    try:
        loop: Callable[..., Any] = numba.njit(cache=True, forceinline=True, **options)(function)
    except RuntimeError as problem:
        warnings.warn(f"srwm compiles its CPU kernels anew in each process: {problem}", stacklevel=2)
        loop = numba.njit(forceinline=True, **options)(function)
    return loop


@compiled
def matrix(rows, columns, dtype):  # type: ignore[no-untyped-def]
    """A scratch matrix of zeros with padded rows."""
    return np.zeros((rows, (columns + VECTOR - 1) // VECTOR * VECTOR), dtype)


@compiled
def vector(n, dtype):  # type: ignore[no-untyped-def]
    """A scratch vector of zeros, padded."""
    return np.zeros((n + VECTOR - 1) // VECTOR * VECTOR, dtype)


@compiled
def vec_mat(v, w, result):  # type: ignore[no-untyped-def]
    """Set result = v W."""
    rows, columns = w.shape
    zero = w.dtype.type(0)
    for c in range(columns):
        result[c] = zero
    for i in range(rows):
        vi = v[i]
        for c in range(columns):
            result[c] += vi * w[i, c]


@compiled
def mat_vec(w, g, result):  # type: ignore[no-untyped-def]
    """Set result = W g."""
    rows, columns = w.shape
    for i in range(rows):
        total = w.dtype.type(0)
        for c in range(columns):
            total += w[i, c] * g[c]
        result[i] = total


@compiled
def add_outer(w, v, g):  # type: ignore[no-untyped-def]
    """Add the rank-1 matrix v g to W."""
    rows, columns = w.shape
    for i in range(rows):
        vi = v[i]
        for c in range(columns):
            w[i, c] += vi * g[c]


@compiled
def subtract_outer(w, v, g):  # type: ignore[no-untyped-def]
    """Subtract the rank-1 matrix v g from W."""
    rows, columns = w.shape
    for i in range(rows):
        vi = v[i]
        for c in range(columns):
            w[i, c] -= vi * g[c]


@compiled
def softmax(z, n):  # type: ignore[no-untyped-def]
    """Replace the first n elements of z by their softmax."""
    largest = z[0]
    for i in range(n):
        largest = max(largest, z[i])
    total = z.dtype.type(0)
    for i in range(n):
        z[i] = math.exp(z[i] - largest)
        total += z[i]
    scale = z.dtype.type(1) / total
    for i in range(n):
        z[i] *= scale


@compiled
def take(table, n, target):  # type: ignore[no-untyped-def]
    """Copy row n of a table into a vector, which may be longer."""
    for c in range(table.shape[1]):
        target[c] = table[n, c]


@compiled
def put(source, table, n):  # type: ignore[no-untyped-def]
    """Copy the start of a vector into row n of a table."""
    for c in range(table.shape[1]):
        table[n, c] = source[c]
