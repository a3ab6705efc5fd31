"""The compiled backend beside threads and forks: equal bits, however many run, and no lock-up."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from srwm.ops import _threads

from .inputs import Results, assert_same, make, solve


def large(operator: str, seed: int = 0):
    """A problem that is worth several threads."""
    problem = make(operator, 3, 40, 3, 16, reset=True, dtype=torch.float32, seed=seed)
    assert 2 * _threads.MIN_WORK < 3 * 40 * 3 * 16 * 16 * 3
    return problem


def solve_with(threads: int, operator: str) -> Results:
    torch.set_num_threads(threads)
    return solve(large(operator), "cpu")


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit(operator, threads):
    assert_same(solve_with(threads, operator), solve_with(1, operator))


def test_more_threads_than_heads_change_no_bit(operator):
    assert_same(solve_with(32, operator), solve_with(1, operator))


def test_work_is_shared_among_threads(operator, monkeypatch):
    spans = []

    def loop(first, last):
        spans.append((first, last))

    torch.set_num_threads(3)
    _threads.over_heads(loop, 10, 100 * _threads.MIN_WORK)
    assert sorted(spans) == [(0, 3), (3, 6), (6, 10)]


def test_an_error_in_a_thread_reaches_the_caller():
    def loop(first, last):
        if first > 0:
            raise MemoryError("no room")

    torch.set_num_threads(2)
    with pytest.raises(MemoryError, match="no room"):
        _threads.over_heads(loop, 4, 100 * _threads.MIN_WORK)


@pytest.mark.parametrize("threads", [1, 2])
def test_calls_from_four_python_threads_at_once_give_equal_bits(operator, threads):
    torch.set_num_threads(threads)
    problems = [large(operator, seed) for seed in range(4)]
    expected = [solve(problem, "cpu") for problem in problems]

    def repeatedly(problem):
        torch.set_num_threads(threads)
        return [solve(problem, "cpu") for _ in range(5)]

    with ThreadPoolExecutor(4) as pool:
        for results, wanted in zip(pool.map(repeatedly, problems), expected, strict=True):
            for found in results:
                assert_same(found, wanted)


def test_a_forked_process_gives_equal_bits(operator):
    code = f"""
        import os, sys
        import torch
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from ops.inputs import assert_same, solve
        from ops.test_threads import large

        torch.set_num_threads(2)
        expected = solve(large({operator!r}), "cpu")
        child = os.fork()
        if child == 0:
            torch.set_num_threads(2)
            try:
                assert_same(solve(large({operator!r}), "cpu"), expected)
            except BaseException:
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert_same(solve(large({operator!r}), "cpu"), expected)
    """
    # The limit is no measurement: it ends a process that has locked up.
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
