"""The compiled loops both operators are made of on a CPU.

Matrices and vectors here are scratch memory: rows lie one after another, padded with zeros to whole blocks of 64 bytes.
The time goes into moving matrices between cache and registers, so a loop does all it can with a row while it is there:
it applies the write of one step and reads for the next.
"""

from collections.abc import Callable

import numpy as np
from numba.core.registry import cpu_target

from .compiler import inlined
from .memory import at, given, load, load_first, prefetch, row_totals, store, store_first, transpose_block
from .simd import (
    absolute,
    any_above,
    block_products,
    choose_first,
    exp,
    if_negative,
    lanes,
    larger,
    largest,
    multiply_add,
    spread,
    total,
    zeros,
)

# What numba compiles for is the machine itself unless NUMBA_CPU_NAME says otherwise; it names kernels on disk likewise.
_, _, _FEATURES = cpu_target.target_context.codegen().magic_tuple()
WIDE = 4 if "+avx512f" in _FEATURES.split(",") else 2
"""Blocks of a row that are worked on together: as many as the registers hold with all that is done to them."""


def by_columns(block: Callable[..., None]) -> Callable[..., None]:
    """Make a loop over a whole matrix of one over some of its columns: from c on, as many as `zero` has lanes."""
    block = inlined(block)

    @inlined
    def whole(w, rows, columns, *arguments):  # type: ignore[no-untyped-def]
        wide, narrow = zeros(w, WIDE), zeros(w, 1)
        end = columns - columns % lanes(wide)
        for c in range(0, end, lanes(wide)):
            block(w, rows, columns, c, wide, *arguments)
        for c in range(end, columns, lanes(narrow)):
            block(w, rows, columns, c, narrow, *arguments)

    return whole


# Rows of tables and of matrices.


@inlined
def padded(n, w):  # type: ignore[no-untyped-def]
    """n, rounded up to whole blocks of the numbers that w points to."""
    block = lanes(zeros(w, 1))
    return (n + block - 1) // block * block


@inlined
def clear(target, n):  # type: ignore[no-untyped-def]
    """Set n numbers of scratch to zero, and their padding."""
    zero = zeros(target, 1)
    for i in range(0, n, lanes(zero)):
        store(target, i, zero)


@inlined
def take(source, n, target):  # type: ignore[no-untyped-def]
    """Copy n numbers into scratch, and pad them."""
    zero = zeros(target, 1)
    for i in range(0, n, lanes(zero)):
        store(target, i, load_first(source, i, n - i, zero))


@inlined
def put(source, n, target):  # type: ignore[no-untyped-def]
    """Copy n numbers out of scratch."""
    zero = zeros(target, 1)
    for i in range(0, n, lanes(zero)):
        store_first(target, i, n - i, load(source, i, zero))


@inlined
def expect_to_read(source, n):  # type: ignore[no-untyped-def]
    """Have n numbers brought to the cache, which takes about as long as a step does."""
    zero = zeros(source, 1)
    for i in range(0, n, lanes(zero)):
        prefetch(source, i, zero, 0)
    # They may begin in the middle of a cache line, and so end in one more.
    prefetch(source, n - 1, zero, 0)


@inlined
def expect_to_write(target, n):  # type: ignore[no-untyped-def]
    """Likewise for n numbers that will be overwritten."""
    zero = zeros(target, 1)
    for i in range(0, n, lanes(zero)):
        prefetch(target, i, zero, 1)
    prefetch(target, n - 1, zero, 1)


@inlined
def take_matrix(source, d, m, target):  # type: ignore[no-untyped-def]
    """Copy a matrix into scratch; zeros where there is none."""
    columns = padded(m, target)
    for i in range(d):
        if given(source):
            take(at(source, i * m), m, at(target, i * columns))
        else:
            clear(at(target, i * columns), m)


@inlined
def put_matrix(source, d, m, target):  # type: ignore[no-untyped-def]
    """Copy a matrix out of scratch."""
    for i in range(d):
        put(at(source, i * padded(m, source)), m, at(target, i * m))


@inlined
def take_transposed(source, more, d, m, rows, target):  # type: ignore[no-untyped-def]
    """Copy a matrix into scratch, its columns as rows; with `more` added, which may lead nowhere.

    Both `rows`, scratch for the matrix as it was, and the target have as many rows as make whole blocks. Beyond d,
    those of `rows` hold zeros.
    """
    columns, width, one = padded(m, rows), padded(d, target), zeros(target, 1)
    for i in range(d):
        for c in range(0, m, lanes(one)):
            row = load_first(source, i * m + c, m - c, one)
            if given(more):
                row = row + load_first(more, i * m + c, m - c, one)
            store(rows, i * columns + c, row)
    for c in range(0, m, lanes(one)):
        for i in range(0, d, lanes(one)):
            transpose_block(at(target, c * width + i), width, at(rows, i * columns + c), columns, one)


# Products with a matrix W, given by its pointer and the numbers of its rows and of its padded columns.


@by_columns
def read(w, rows, columns, c, zero, v, result):  # type: ignore[no-untyped-def]
    """Set result = v W."""
    # Two sums: an addition takes longer to finish than to be followed by another. Likewise below.
    a, b = zero, zero
    for i in range(0, rows - 1, 2):
        a = multiply_add(spread(v[i], zero), load(w, i * columns + c, zero), a)
        b = multiply_add(spread(v[i + 1], zero), load(w, (i + 1) * columns + c, zero), b)
    if rows % 2:
        a = multiply_add(spread(v[rows - 1], zero), load(w, (rows - 1) * columns + c, zero), a)
    store(result, c, a + b)


@inlined
def _write_row(w, i, k, g):  # type: ignore[no-untyped-def]
    """Add k g to a row, and return it."""
    row = multiply_add(spread(k, g), g, load(w, i, g))
    store(w, i, row)
    return row


@by_columns
def write(w, rows, columns, c, zero, k, g):  # type: ignore[no-untyped-def]
    """Add the rank-1 matrix k g to W."""
    g_c = load(g, c, zero)
    for i in range(rows):
        _write_row(w, i * columns + c, k[i], g_c)


@by_columns
def write_read(w, rows, columns, c, zero, k, g, v, result):  # type: ignore[no-untyped-def]
    """Add the rank-1 matrix k g to W, then set result = v W."""
    g_c = load(g, c, zero)
    a, b = zero, zero
    for i in range(0, rows - 1, 2):
        a = multiply_add(spread(v[i], zero), _write_row(w, i * columns + c, k[i], g_c), a)
        b = multiply_add(spread(v[i + 1], zero), _write_row(w, (i + 1) * columns + c, k[i + 1], g_c), b)
    if rows % 2:
        i = rows - 1
        a = multiply_add(spread(v[i], zero), _write_row(w, i * columns + c, k[i], g_c), a)
    store(result, c, a + b)


@inlined
def _read_write_read_row(w, i, v, k, g, u, v_sum, u_sum):  # type: ignore[no-untyped-def]
    v_sum = multiply_add(spread(v, g), load(w, i, g), v_sum)
    return v_sum, multiply_add(spread(u, g), _write_row(w, i, k, g), u_sum)


@by_columns
def read_write_read(w, rows, columns, c, zero, v, v_result, k, g, u, u_result):  # type: ignore[no-untyped-def]
    """Set v_result = v W, add the rank-1 matrix k g to W, then set u_result = u W."""
    g_c = load(g, c, zero)
    v_a, v_b, u_a, u_b = zero, zero, zero, zero
    for i in range(0, rows - 1, 2):
        j = i + 1
        v_a, u_a = _read_write_read_row(w, i * columns + c, v[i], k[i], g_c, u[i], v_a, u_a)
        v_b, u_b = _read_write_read_row(w, j * columns + c, v[j], k[j], g_c, u[j], v_b, u_b)
    if rows % 2:
        i = rows - 1
        v_a, u_a = _read_write_read_row(w, i * columns + c, v[i], k[i], g_c, u[i], v_a, u_a)
    store(v_result, c, v_a + v_b)
    store(u_result, c, u_a + u_b)


@inlined
def add_products(partial, i, c, row, v, one):  # type: ignore[no-untyped-def]
    """Add the products of columns from c on to those of the columns before, a block for each row."""
    products = block_products(row, v)
    if c > 0:
        products = products + load(partial, i * lanes(one), one)
    store(partial, i * lanes(one), products)


@inlined
def set_totals(partial, rows, result):  # type: ignore[no-untyped-def]
    """Set result to the sums of the blocks of each row."""
    one = zeros(partial, 1)
    for i in range(0, rows, lanes(one)):
        store(result, i, row_totals(at(partial, i * lanes(one)), one))


@by_columns
def _two_writes_two_reads(w, rows, columns, c, zero, k, g, k2, g2, more, v, v_result, u, partial):  # type: ignore[no-untyped-def]
    g_c, g2_c, u_c, one = load(g, c, zero), load(g2, c, zero), load(u, c, zero), zeros(w, 1)
    v_sum = zero
    for i in range(rows):
        row = multiply_add(spread(k[i], zero), g_c, load(w, i * columns + c, zero))
        row = multiply_add(spread(k2[i], zero), g2_c, row)
        store(w, i * columns + c, row)
        if given(more):
            row = row + load(more, i * columns + c, zero)
        v_sum = multiply_add(spread(v[i], zero), row, v_sum)
        add_products(partial, i, c, row, u_c, one)
    store(v_result, c, v_sum)


@inlined
def two_writes_two_reads(w, rows, columns, k, g, k2, g2, more, v, v_result, u, u_result, partial):  # type: ignore[no-untyped-def]
    """Add the rank-1 matrices k g and k2 g2 to W, then read W + `more`: set v_result to v times it, u_result to it u.

    `more` is a matrix like W, or nothing. `partial` is scratch, a block for each row and as many more as make the rows
    whole blocks; those hold zeros.
    """
    _two_writes_two_reads(w, rows, columns, k, g, k2, g2, more, v, v_result, u, partial)
    set_totals(partial, rows, u_result)


@inlined
def decayed_row(w, i, keep, k, g):  # type: ignore[no-untyped-def]
    """Let a row decay, add k g to it, and return it."""
    row = multiply_add(spread(k, g), g, keep * load(w, i, g))
    store(w, i, row)
    return row


@by_columns
def decay_write(w, rows, columns, c, zero, keeps, k, g):  # type: ignore[no-untyped-def]
    """Let w decay, then add the rank-1 matrix k g."""
    keep, g_c = load(keeps, c, zero), load(g, c, zero)
    for i in range(rows):
        decayed_row(w, i * columns + c, keep, k[i], g_c)


# How far columns have grown (`../_checkpoints.py` says what for).


@by_columns
def set_limits(w, rows, columns, c, zero, growth, limits):  # type: ignore[no-untyped-def]
    """Set limits to the largest number of each column, times `growth`."""
    most = zero
    for i in range(rows):
        most = larger(absolute(load(w, i * columns + c, zero)), most)
    store(limits, c, spread(growth, zero) * most)


@inlined
def set_limits_of_rows(w, rows, columns, growth, limits):  # type: ignore[no-untyped-def]
    """Set limits to the largest number of each row, times `growth`."""
    zero = zeros(w, 1)
    for i in range(rows):
        most = zero
        for c in range(0, columns, lanes(zero)):
            most = larger(absolute(load(w, i * columns + c, zero)), most)
        limits[i] = growth * largest(most)


@inlined
def jumps(sizes, n, scale, growth, limits):  # type: ignore[no-untyped-def]
    """Whether one of n numbers, times `scale`, is beyond its limit; such limits are set anew."""
    zero = zeros(sizes, 1)
    scales, jumped = spread(scale, zero), False
    for c in range(0, n, lanes(zero)):
        size, limit = absolute(scales * load(sizes, c, zero)), load(limits, c, zero)
        if any_above(size, limit):
            jumped = True
            new = spread(growth, zero) * size
            # Only a size beyond the limit makes it larger; the others stand `growth` times below.
            store(limits, c, if_negative(limit - size, new, limit))
    return jumped


@inlined
def raise_limits(sizes, n, scale, growth, limits):  # type: ignore[no-untyped-def]
    """Raise limits so that none of n numbers, times `scale`, is beyond its own."""
    zero = zeros(sizes, 1)
    scales = spread(scale * growth, zero)
    for c in range(0, n, lanes(zero)):
        store(limits, c, larger(absolute(scales * load(sizes, c, zero)), load(limits, c, zero)))


@inlined
def largest_of(v, n):  # type: ignore[no-untyped-def]
    """The largest of n numbers, without their signs."""
    zero = zeros(v, 1)
    most = zero
    for i in range(0, n, lanes(zero)):
        most = larger(absolute(load_first(v, i, n - i, zero)), most)
    return largest(most)


# Functions of vectors.


@inlined
def dot(a, b, n):  # type: ignore[no-untyped-def]
    """The sum of the products of n numbers."""
    zero = zeros(a, 1)
    sums = zero
    for i in range(0, n, lanes(zero)):
        sums = multiply_add(load_first(a, i, n - i, zero), load_first(b, i, n - i, zero), sums)
    return total(sums)


@inlined
def sum_of(v, n):  # type: ignore[no-untyped-def]
    """The sum of n numbers."""
    zero = zeros(v, 1)
    sums = zero
    for i in range(0, n, lanes(zero)):
        sums = sums + load_first(v, i, n - i, zero)
    return total(sums)


@inlined
def softmax(z, n, result):  # type: ignore[no-untyped-def]
    """Set result to the softmax of n numbers."""
    zero = zeros(z, 1)
    nothing = spread(-np.inf, zero)
    most = nothing
    for i in range(0, n, lanes(zero)):
        most = larger(most, choose_first(n - i, load_first(z, i, n - i, zero), nothing))
    most = spread(largest(most), zero)
    sums = zero
    for i in range(0, n, lanes(zero)):
        power = exp(choose_first(n - i, load_first(z, i, n - i, zero), nothing) - most)
        store(result, i, power)
        sums = sums + power
    scale = spread(1 / total(sums), zero)
    for i in range(0, n, lanes(zero)):
        store(result, i, load(result, i, zero) * scale)


@inlined
def sigmoid(v, one):  # type: ignore[no-untyped-def]
    """The sigmoid of a vector; `one` is a vector of ones."""
    # exp is asked for numbers below zero only, so nothing overflows.
    power = exp(if_negative(v, v, one - one - v))
    return if_negative(v, power, one) / (one + power)
