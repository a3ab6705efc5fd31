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
    """A problem that is worth several threads to the kernels."""
    return make(operator, 4, 100, 4, 16, reset=True, dtype=torch.float32, seed=seed)


def solve_with(threads: int, operator: str) -> Results:
    torch.set_num_threads(threads)
    return solve(large(operator), "cpu")


@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit(operator, threads):
    assert_same(solve_with(threads, operator), solve_with(1, operator))


def test_more_threads_than_heads_change_no_bit(operator):
    assert_same(solve_with(32, operator), solve_with(1, operator))


def share_out(loop, heads: int) -> None:
    """Have a loop called on shares of the heads, on several threads."""
    _threads.over_heads(loop, heads, 100 * _threads.MIN_WORK, ((1, 1),), (), None, (torch.zeros(1),))


def test_every_head_is_worked_on_once():
    spans = []

    def loop(first, last, *_):
        spans.append((first, last))

    torch.set_num_threads(3)
    share_out(loop, 100)
    assert len(spans) > 1
    assert sorted(head for first, last in spans for head in range(first, last)) == list(range(100))


def test_an_error_in_a_thread_reaches_the_caller():
    def loop(first, last, *_):
        if first > 0:
            raise MemoryError("no room")

    torch.set_num_threads(2)
    with pytest.raises(MemoryError, match="no room"):
        share_out(loop, 4)


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
        from ops.test_threads import large

        torch.set_num_threads(1)
        problem = large({operator!r}).leaves()

        def results():
            # Nothing here is large enough for the threads of PyTorch, which would lock up after the fork.
            torch.set_num_threads(2)
            y, end = problem("cpu")
            gradients = torch.autograd.grad((y, end), list(problem.tensors.values()), (y.detach(), end.detach()))
            torch.set_num_threads(1)
            return y, end, *gradients

        expected = results()
        child = os.fork()
        if child == 0:
            os._exit(0 if all(map(torch.equal, results(), expected)) else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert all(map(torch.equal, results(), expected))
    """
    # The limit is no measurement: it ends a process that has locked up.
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
