"""How Triton's kernels are spread over threads and programs: whichever way, the results are the same."""

import itertools
import math

import pytest
import torch

from srwm.ops import available_backends
from srwm.ops.self_referential.options import Options

from .inputs import assert_agree, make, solve

if "triton" not in available_backends("cpu"):
    pytest.skip("runs in Triton's interpreter, where torch finds no CUDA device", allow_module_level=True)

import triton.language as tl

from srwm.ops import _tiles
from srwm.ops.delta_rule import triton as delta_rule
from srwm.ops.self_referential import _key_map
from srwm.ops.self_referential import triton as self_referential


@pytest.mark.parametrize("gates", [0, 1, 2])
@pytest.mark.parametrize("keys", ["softmax", "l2"])
def test_both_orders_in_which_triton_hands_out_threads_agree_in_the_self_referential_rule(gates, keys, monkeypatch):
    check_both_orders(make("self_referential", 1, 2, 1, 5, 7, reset=True, keys=keys, gates=gates), monkeypatch)


@pytest.mark.parametrize("decay", [False, True])
def test_both_orders_in_which_triton_hands_out_threads_agree_in_the_delta_rule(decay, monkeypatch):
    check_both_orders(make("delta_rule", 1, 2, 1, 5, 7, reset=True, decay=decay), monkeypatch)


def check_both_orders(problem, monkeypatch):
    expected = solve(problem, "reference")
    for lanes_first in (True, False):
        for module in (_tiles, _key_map):
            monkeypatch.setattr(module, "LANES_FIRST", tl.constexpr(lanes_first))
        assert_agree(problem, solve(problem, "triton"), expected, "float64")


SIZES = [1, 2, 3, 5, 8, 9, 16, 17, 31, 32, 33, 64, 65, 100, 128]
"""Of heads."""

COLUMNS = [*SIZES, 129, 200, 300]
"""Of outputs, which may be more."""

REGISTERS = 65536
"""Of a multiprocessor of every NVIDIA GPU since Kepler; each thread can have 255."""


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def check_launch(blocks: int, constants: dict, d: int, columns: int, dtype: torch.dtype) -> None:
    """Check what holds for all launches: tiles are powers of two and cover everything, no thread is without work."""
    rows, block, lanes, warps = (constants[name] for name in ("ROWS", "BLOCK", "LANES", "num_warps"))
    assert all(map(is_power_of_two, (rows, block, lanes, warps)))
    assert rows == max(8, 2 ** math.ceil(math.log2(d)))
    assert lanes <= min(rows, 32)
    assert warps <= 32
    threads = warps * 32
    assert block >= threads // lanes or "NB" in constants
    assert block * (blocks - 1) < columns <= block * blocks
    assert constants["ACC"] == (tl.float64 if dtype == torch.float64 else tl.float32)
    # Where a limit is set, all threads of a program can have as many registers.
    assert constants.get("maxnreg", 0) * threads <= REGISTERS
    assert constants.get("maxnreg", 32) >= 32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decays", [False, True])
@pytest.mark.parametrize("backward", [False, True])
def test_the_tiles_of_the_delta_rule_cover_its_columns(backward, decays, dtype):
    for d, e in itertools.product(SIZES, COLUMNS):
        blocks, run = delta_rule._blocks(d, e, dtype, backward, decays)
        check_launch(blocks, run.constants, d, e, dtype)
        assert (run.constants["D"], run.constants["E"], run.constants["DECAYS"]) == (d, e, decays)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("gates", [0, 1, 2])
@pytest.mark.parametrize("backward", [False, True])
def test_the_tiles_of_the_self_referential_rule_cover_its_columns(backward, gates, dtype):
    for d, out, crowded in itertools.product(SIZES, COLUMNS, (False, True)):
        parts = self_referential._parts(d, out, Options(forget_gates=gates), dtype, crowded, backward)
        # One program runs everything, or the core comes first on the way there and last on the way back.
        order = [(part.runs_core, part.runs_read) for part in parts]
        assert order == [(True, True)] or order == [(True, False), (False, True)][:: -1 if backward else 1]
        for part in parts:
            constants = part.run.constants
            columns = out if part.runs_read else min(out, constants["BLOCK"])
            check_launch(part.blocks, constants, d, columns, dtype)
            assert part.blocks == 1 or not part.runs_core
            # As many columns as lie along the threads; of the last part there are 4 rates, and 4 more places for gates.
            assert constants["NB"] == min(constants["num_warps"] * 32 // constants["LANES"], constants["ROWS"])
            assert constants["WIDE_B"] == max(constants["NB"], 8 if gates else 4)
            assert constants["BLOCK"] % constants["NB"] == 0
