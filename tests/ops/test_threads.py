"""The compiled backend beside threads and forks: equal bits, however many run, and no lock-up."""

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
import torch

from srwm.ops._cpu import threads as cpu_threads
from srwm.ops._cpu.kernel import Entry, Kernel

from .inputs import Results, assert_agree, assert_same, make, solve

OPENMP = pytest.param(
    1 << 62,
    id="OpenMP",
    marks=pytest.mark.skipif(cpu_threads._on_openmp is None, reason="needs a PyTorch whose threads are OpenMP's"),
)


@pytest.fixture(params=[OPENMP, pytest.param(0, id="Python")])
def whose(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose threads a loop runs on, however long it is."""
    monkeypatch.setattr(cpu_threads, "LONG_WORK", request.param)


def large(operator: str, seed: int = 0):
    """A problem that is worth several threads to the kernels."""
    return make(operator, 4, 300, 4, 16, reset=True, dtype=torch.float32, seed=seed)


def solve_with(threads: int, operator: str) -> Results:
    torch.set_num_threads(threads)
    return solve(large(operator), "cpu")


@pytest.mark.usefixtures("whose")
@pytest.mark.parametrize("threads", [2, 3])
def test_the_number_of_threads_changes_no_bit(operator, threads):
    assert_same(solve_with(threads, operator), solve_with(1, operator))


@pytest.mark.usefixtures("whose")
def test_more_threads_than_heads_change_no_bit(operator):
    assert_same(solve_with(32, operator), solve_with(1, operator))


@pytest.mark.usefixtures("whose")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_single_step_gives_equal_bits_on_any_number_of_threads(operator, dtype):
    problem = make(operator, 48, 1, 8, 16, reset=True, dtype=dtype)
    expected = problem("cpu")
    for threads in (2, 3):
        torch.set_num_threads(threads)
        for _ in range(20):
            assert all(map(torch.equal, problem("cpu"), expected))


@pytest.mark.usefixtures("whose")
@pytest.mark.parametrize("heads", [1, 2, 3, 7, 100])
def test_any_number_of_heads_is_shared_out_in_full(operator, heads, monkeypatch):
    monkeypatch.setattr(cpu_threads, "MIN_WORK", 1)
    problem = make(operator, heads, 3, 1, 5, reset=True)
    expected = solve(problem, "reference")
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        assert_agree(problem, solve(problem, "cpu"), expected, "float64")


def test_an_error_in_another_thread_reaches_the_caller(operator, monkeypatch):
    def fail(_):
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no room")

    class Failing(Kernel):
        def __init__(self):
            pass

        def entry(self, itemsize, counts):
            return Entry(fail, 0, None)

    monkeypatch.setattr(cpu_threads, "LONG_WORK", 0)
    torch.set_num_threads(2)
    problem = large(operator)
    problem("cpu")
    scratch = cpu_threads._own.memory
    with monkeypatch.context() as patch:
        kernels = "_gated_cpu" if problem.options.get("forget_gates") else "cpu"
        patch.setattr(import_module(f"srwm.ops.{problem.operator}.{kernels}"), "_forward_head", Failing())
        with pytest.raises(MemoryError, match="no room"):
            problem("cpu")
    # The threads are still there for the next call, which leaves the scratch memory of this one to them.
    assert_same(solve(problem, "cpu"), solve_with(1, operator))
    assert cpu_threads._own.memory is not scratch


def test_a_thread_that_comes_when_the_call_is_over_changes_nothing(operator, monkeypatch):
    monkeypatch.setattr(cpu_threads, "LONG_WORK", 0)
    calls = []
    monkeypatch.setattr(cpu_threads._helpers, "assign", lambda call, _: calls.append(call))
    torch.set_num_threads(2)
    found = solve(large(operator), "cpu")
    forward_and_backward = 2
    assert len(calls) == forward_and_backward
    expected = {name: result.clone() for name, result in found.items()}
    cpu_threads._own.memory[...] = 0xFF
    for call in calls:
        call.help()
    assert (cpu_threads._own.memory == 0xFF).all()
    assert_same(found, expected)


def test_what_stood_in_scratch_memory_reaches_no_result(operator, monkeypatch):
    problem = make(operator, 2, 3, 2, 5, out=7, reset=True, dtype=torch.float32)
    expected = solve(problem, "cpu")
    empty, poured = np.empty, []

    def poisoned(*args, **kwargs):
        array = empty(*args, **kwargs)
        array.view(np.uint8)[...] = 0xFF  # As floats, NaN.
        poured.append(array)
        return array

    monkeypatch.setattr(np, "empty", poisoned)
    # In a new thread, which has no scratch memory yet.
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(solve, problem, "cpu").result()
    assert poured
    assert_same(found, expected)


@pytest.mark.usefixtures("whose")
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
            # Nothing large is given to PyTorch itself, whose threads would lock up after the fork.
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
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_no_thread_is_left_when_the_interpreter_shuts_down(operator):
    """One that frees tensors at that time would abort the process."""
    code = f"""
        import atexit, sys, threading

        # Registered before the package's own, so it is called after that. The timer that waited while kernels were
        # compiled (`notice.py`) is no thread of a call, and ends by itself a moment later.
        others = lambda: (each for each in threading.enumerate() if not isinstance(each, threading.Timer))
        atexit.register(lambda: print(*(each.name for each in others())))

        import torch
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from ops.test_threads import large
        from srwm.ops._cpu import threads

        threads.LONG_WORK = 0
        torch.set_num_threads(2)
        large({operator!r})("cpu")
        print(*(each.name for each in threading.enumerate() if each.name.startswith("srwm")))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["srwm-1", "MainThread"]


def test_the_layout_of_scratch_memory_is_in_integers_of_python_whoever_asked_first():
    try:
        # As installed: the shape checks of the test run would refuse NumPy's.
        jaxtyping.config.update("jaxtyping_disable", True)
        for number in (np.int64, int):
            places, size = cpu_threads._layout(((number(8), number(1234)), (number(3), number(5))), 8)
            assert {type(each) for each in (*places, size)} == {int}
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
