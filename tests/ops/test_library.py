"""The kernels as operators of PyTorch: opcheck, one graph under torch.compile, autocast."""

import pytest
import torch

from .inputs import Problem, assert_agree, assert_same, make, normal, solve

pytestmark = pytest.mark.usefixtures("as_installed", "fresh_compiler")


def arguments(problem: Problem, backend: str, *, save: bool):
    """What the registered operator takes."""
    options = tuple(problem.options.values())
    return (*problem.inputs.values(), problem.reset, *options, save, backend)


def registered(problem: Problem, suffix: str = ""):
    return getattr(torch.ops.srwm, problem.operator + suffix).default


@pytest.mark.parametrize("case", ["plain", "state, reset", "empty"])
def test_the_forward_operator_passes_opcheck(operator, kernel, case):
    t = 0 if case == "empty" else 2
    problem = make(operator, 1, t, 1, 3, out=4, state="state" in case, reset="reset" in case)
    torch.library.opcheck(registered(problem), arguments(problem.leaves(), kernel, save=True))


def test_without_gradients_nothing_is_saved_and_no_memory_taken_for_it(operator, kernel):
    problem = make(operator, 1, 2, 1, 3, reset=True)
    _, _, *saved = registered(problem)(*arguments(problem, kernel, save=False))
    assert [each.numel() for each in saved] == [0] * len(saved)


def test_the_forward_operator_passes_opcheck_without_gradients(operator, kernel):
    problem = make(operator, 1, 2, 1, 3, reset=True)
    torch.library.opcheck(registered(problem), arguments(problem, kernel, save=False))


@pytest.mark.parametrize("case", ["plain", "state, reset", "empty"])
def test_the_backward_operator_passes_opcheck(operator, kernel, case):
    t = 0 if case == "empty" else 2
    problem = make(operator, 1, t, 1, 3, out=4, state="state" in case, reset="reset" in case)
    given = arguments(problem, kernel, save=True)
    y, end, *saved = registered(problem)(*given)
    incoming = [normal(*each.shape, seed=seed) for seed, each in enumerate((y, end))]
    inputs = (*problem.inputs.values(), problem.reset)
    torch.library.opcheck(
        registered(problem, "_backward"), (*incoming, *inputs, end, *saved, *problem.options.values(), kernel)
    )


def compiled(problem: Problem, backend: str, **options):
    """A function that solves such problems in one compiled graph."""

    def run(*tensors_and_reset):
        *tensors, reset = tensors_and_reset
        return problem.but(**dict(zip(problem.inputs, tensors, strict=True))).with_reset(reset)(backend)

    one_graph = torch.compile(run, fullgraph=True, backend="aot_eager", **options)
    return lambda leaves: one_graph(*leaves.inputs.values(), leaves.reset)


@pytest.mark.parametrize("case", ["plain", "state, reset"])
def test_compiled_to_one_graph_it_gives_equal_bits(operator, kernel, case):
    problem = make(operator, 2, 2, 1, 3, state="state" in case, reset="reset" in case)
    assert_same(solve(problem, compiled(problem, kernel)), solve(problem, kernel))


def test_compiled_without_gradients_it_gives_equal_bits(operator, kernel):
    problem = make(operator, 2, 2, 1, 3, reset=True)
    with torch.no_grad():
        found, expected = compiled(problem, kernel)(problem), problem(kernel)
    assert all(map(torch.equal, found, expected))


def test_compiled_for_any_sizes_it_gives_equal_bits_at_each(operator, kernel):
    run = compiled(make(operator, 2, 2, 1, 3), kernel, dynamic=True)
    for b, t, h, d in [(2, 2, 1, 3), (3, 1, 1, 5)]:
        problem = make(operator, b, t, h, d, reset=True)
        assert_same(solve(problem, run), solve(problem, kernel))


def test_the_reference_compiles_to_one_graph(operator):
    problem = make(operator, 2, 3, 2, 3, reset=True)
    assert_agree(problem, solve(problem, compiled(problem, "reference")), solve(problem, "reference"), "float64")


def test_automatic_choice_compiles_to_one_graph(operator):
    problem = make(operator, 2, 3, 2, 3, reset=True)
    assert_same(solve(problem, compiled(problem, "auto")), solve(problem, "auto"))


def in_autocast(backend: str):
    def run(leaves):
        with torch.autocast("cpu", torch.bfloat16):
            return leaves(backend)

    return run


def test_autocast_changes_no_bit_of_float32(operator, backend):
    problem = make(operator, t=2, dtype=torch.float32)
    found = solve(problem, in_autocast(backend))
    assert found["end"].dtype == torch.float32
    assert_same(found, solve(problem, backend))


def test_what_autocast_makes_half_precision_goes_in_beside_float32(operator, backend):
    problem = make(operator, t=2, dtype=torch.float32)
    name = problem.sets_dtype
    with torch.autocast("cpu", torch.bfloat16):
        # A projection before the operator comes out in half precision, as in a layer.
        projected = problem.inputs[name] @ torch.eye(problem.inputs[name].shape[-1])
        y, end = problem.but(**{name: projected})(backend)
    assert projected.dtype == y.dtype == torch.bfloat16
    assert end.dtype == torch.float32
    expected = problem.but(**{name: projected})(backend)
    assert torch.equal(y, expected[0])
    assert torch.equal(end, expected[1])
