"""The compiled loops both operators are made of on a CPU, and the compiler they share.

Vectors and matrices here are scratch: rows are padded to whole machine vectors and the padding holds zeros, so the inner
loops become vector instructions. Sums may be reordered for that, always in the same way: equal inputs give equal bits,
whatever the number of threads.

Three things about numba shape this code. Zeros are typed, because `0 * float32` is float64 to it. Inner loops run from 0
and index with their counter alone, because of any other index it asks whether it is negative, which no vector
instruction does. And no array is sliced inside a loop over steps: a slice counts references to its array, and two
threads that do so stand in each other's way. So the tensors of a sequence are tables with one row for each step of
each head, and rows are copied to scratch and back.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import overload

VECTOR = 16
"""Columns of a scratch are padded to a multiple of this: one 64-byte vector of float32."""


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop at its first call and keep the result on disk where there is a place for it."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"}}
    try:
        return numba.njit(cache=True, forceinline=True, **options)(function)
    except RuntimeError as problem:
        warnings.warn(f"srwm compiles its CPU kernels anew in each process: {problem}", stacklevel=2)
        return numba.njit(forceinline=True, **options)(function)


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


def exp_below_zero(x: float) -> float:
    """The exponential of x <= 0."""
    return math.exp(x)


@overload(exp_below_zero)
def _exp_below_zero(x):  # type: ignore[no-untyped-def]
    if x == numba.types.float32:
        return _exp_float32
    return lambda x: math.exp(x)


def _exp_float32(x):  # type: ignore[no-untyped-def]
    """To the last bit, in operations that become vector instructions: a call of math.exp does not.

    x = n ln 2 + r with |r| <= ln(2) / 2, and e^x = 2^n e^r. ln 2 comes in two parts, so that n times the first is exact;
    e^r is a polynomial (Cephes); 2^n is made of the bits of its exponent.
    """
    f = np.float32
    x = f(-87) if x < f(-87) else x
    n = np.int32(x * f(1.44269504) - f(0.5))
    r = x - f(n) * f(0.693359375) + f(n) * f(2.12194440e-4)
    p = f(1.9875691500e-4)
    p = p * r + f(1.3981999507e-3)
    p = p * r + f(8.3334519073e-3)
    p = p * r + f(4.1665795894e-2)
    p = p * r + f(1.6666665459e-1)
    p = p * r + f(5.0000001201e-1)
    p = p * r * r + r + f(1)
    return p * np.int32((n + np.int32(127)) << np.int32(23)).view(np.float32)


@compiled
def softmax(z, n):  # type: ignore[no-untyped-def]
    """Replace the first n elements of z by their softmax."""
    largest = z[0]
    for i in range(n):
        largest = max(largest, z[i])
    total = z.dtype.type(0)
    for i in range(n):
        z[i] = exp_below_zero(z[i] - largest)
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
