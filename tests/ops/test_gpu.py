"""The Triton kernels on a GPU.

Runs under pytest, and where there is none as `python tests/ops/test_gpu.py [WORD...]`, which takes the tests that have
one of the words in their names.
"""

import dataclasses
import sys
import warnings
from pathlib import Path

import torch

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from ops.gpu_cases import cases, pytest, run
from ops.growth import (
    PARTS,
    decaying,
    growing_keys,
    growing_outputs,
    with_a_large_value,
    with_few_resets,
    with_keys,
    worst_error,
)
from ops.inputs import (
    OPERATORS,
    Case,
    Problem,
    assert_agree,
    assert_same,
    assert_within_the_error_of_half_precision,
    make,
    normal,
    solve,
)
from ops.tolerances import TOLERANCES, assert_near
from srwm.ops import available_backends
from srwm.ops.self_referential.options import Options

pytestmark = pytest.mark.gpu if pytest else None


NAMES = [*OPERATORS, "gated delta_rule"]
"""The operators, and the delta rule with a decay."""


def on_gpu(operator, *args, **options) -> Problem:
    return make(operator, *args, **options).to("cuda")


def with_options(problem: Problem, **options) -> Problem:
    return dataclasses.replace(problem, options={**problem.options, **options})


def operator_of(problem: Problem):
    """The call as a function of the inputs alone: Dynamo of torch 2.11 cannot trace a problem being made."""
    rule, names, reset, options = (
        OPERATORS[problem.operator],
        tuple(problem.inputs),
        problem.reset,
        dict(problem.options),
    )
    return lambda *tensors: rule(**dict(zip(names, tensors, strict=True)), reset=reset, backend="triton", **options)


def truth_of(problem: Problem):
    """The reference in float64, on the GPU."""
    return solve(problem.to(torch.float64), "reference")


def with_a_value_that_fits(operator: str, case: Case) -> Case:
    """The delta rule takes values up to 128; a matrix that modifies itself takes y of any size."""
    fits = operator == "self_referential" or case.out is None
    return case if fits else case._replace(out=min(case.out, 128))


# The six shapes of the benchmark, with as many steps as the reference has room for; and 1,000 steps of a small batch.
SHAPES = [
    Case(128, 6, 16, 16, state=False),
    Case(32, 150, 16, 16, state=False),
    Case(2, 1000, 16, 16, state=False),
    Case(128, 100, 16, 16, state=False),
    Case(64, 100, 8, 32, state=False),
    Case(64, 100, 4, 64, state=False),
    Case(2, 1000, 2, 32, state=False),
    Case(2, 1000, 1, 64, state=False),
]

HEAD_SIZES = [1, 3, 8, 16, 20, 28, 32, 48, 64, 96, 128]

WIDE = [Case(2, 9, 2, d, out=3 * d + 1, rates=1, reset=True) for d in (1, 3, 16, 28, 64)]
"""As wide as the SR-DeltaNet needs it, with one learning rate."""


@cases(operator=NAMES, case=SHAPES)
def test_float32_agrees_with_float64(operator, case):
    problem = on_gpu(operator, *case, dtype=torch.float32)
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


VARIANTS = [
    Case(keys="l2"),
    Case(gates=1, rates=1),
    Case(gates=2),
    Case(gates=2, keys="l2"),
    Case(gates=1, clip=0.5),
    Case(gates=2, keys="l2", clip=0.5),
]
"""Of the self-referential matrix beside the paper's rule."""


@cases(variant=VARIANTS, d=[3, 16, 32, 64, 128], reset=[False, True])
def test_every_variant_agrees_with_float64(variant, d, reset):
    case = variant._replace(b=2, t=20, h=2, d=d, reset=reset)
    problem = on_gpu("self_referential", *case, dtype=torch.float32)
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


@cases(variant=VARIANTS, d=[16, 64])
def test_every_variant_agrees_over_many_steps(variant, d):
    case = variant._replace(b=2, t=500, h=2, d=d)
    problem = with_options(on_gpu("self_referential", *case, dtype=torch.float32), forget_bias=-4.0)
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


@cases(most=[0.1, 0.5, 0.999], d=[16, 64], reset=[False, True])
def test_gradients_are_right_when_much_is_forgotten(most, d, reset):
    case = Case(2, 300, 2, d, keys="l2", gates=2, reset=reset)
    problem = with_options(on_gpu("self_referential", *case, dtype=torch.float32), forget_max=most)
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


@cases(d=[16, 32, 64, 128], keeps=[0.9, 0.99, 0.999], reset=[False, True])
def test_matrices_that_decay_agree_over_many_steps(d, keeps, reset):
    problem = on_gpu("gated delta_rule", 2, 500, 2, d, reset=reset, dtype=torch.float32)
    unit = {name: torch.nn.functional.normalize(problem.inputs[name], dim=-1) for name in "qk"}
    problem = problem.but(**unit, decay=1 - (1 - keeps) * problem.inputs["decay"])
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


@cases(operator=NAMES, d=HEAD_SIZES)
def test_every_head_size_agrees_with_float64(operator, d):
    problem = on_gpu(operator, 3, 9, 2, d, reset=True, dtype=torch.float32)
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


GROWING = {
    "keys": lambda d: growing_keys(1e12, 2, 100, 2, d),
    "keys, with resets": lambda d: with_few_resets(growing_keys(1e12, 2, 150, 2, d)),
    "a large value": lambda d: with_a_large_value(1e8, 100, 2, 200, 2, d),
    "keys, a little forgotten": lambda d: decaying(growing_keys(1e12, 2, 100, 2, d), 0.9),
    "keys, half forgotten": lambda d: decaying(with_keys(3.0, 2, 60, 2, d), 0.3),
    "a large value that is forgotten": lambda d: decaying(with_a_large_value(1e8, 70, 2, 200, 2, d), 0.5),
    "much forgotten": lambda d: decaying(make("delta_rule", 2, 300, 2, d), 0.3),
    "almost all forgotten": lambda d: decaying(make("delta_rule", 2, 200, 2, d), 1e-12),
    "all forgotten, with resets": lambda d: with_few_resets(decaying(make("delta_rule", 2, 200, 2, d), 0.8, 0.05)),
    "outputs": lambda d: growing_outputs(1e12, 2, 150, 2, d),
    "outputs, with resets": lambda d: with_few_resets(growing_outputs(1e12, 2, 200, 2, d), 0.01),
}


@cases(name=GROWING, d=[16, 32, 64], part=["first half", "all and end state"])
def test_gradients_are_right_when_the_matrix_grows(name, d, part):
    limit = TOLERANCES["float32 under growth gradients"].limit
    assert worst_error(GROWING[name](d).to("cuda"), "triton", PARTS[part]) <= limit


@cases(operator=NAMES, case=[*WIDE, Case(2, 5, 1, 128, out=385)])
def test_y_may_be_wider_than_a_head(operator, case):
    problem = on_gpu(operator, *with_a_value_that_fits(operator, case), dtype=torch.float32)
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


@cases(operator=NAMES, case=[Case(2, 9, 2, d, reset=True) for d in (5, 16, 64)])
def test_float64_agrees_with_the_reference(operator, case):
    problem = on_gpu(operator, *case)
    assert_agree(problem, solve(problem, "triton"), solve(problem, "reference"), "float64 on a GPU")


@cases(operator=NAMES, state=[False, True], reset=[False, True], rates=[1, 4])
def test_every_option_agrees_with_float64(operator, state, reset, rates):
    problem = on_gpu(operator, 3, 20, 2, 16, rates=rates, state=state, reset=reset, dtype=torch.float32)
    assert_agree(problem, solve(problem, "triton"), truth_of(problem), "float32")


@cases(operator=NAMES, d=[16, 20, 64], dtype=[torch.bfloat16, torch.float16])
def test_half_precision_inputs_cost_little_more_than_in_the_reference(operator, d, dtype):
    problem = on_gpu(operator, 4, 30, 2, d, reset=True, dtype=dtype)
    found, reference = (solve(problem, backend) for backend in ("triton", "reference"))
    assert (found["y"].dtype, found["end"].dtype) == (dtype, torch.float32)
    assert_within_the_error_of_half_precision(found, reference, truth_of(problem))


@cases(operator=NAMES, dtype=[torch.bfloat16, torch.float16])
def test_half_precision_inputs_with_a_float32_state_agree(operator, dtype):
    problem = on_gpu(operator, 4, 30, 2, 16, dtype=torch.float32)
    problem = problem.but(**{name: tensor.to(dtype) for name, tensor in problem.timed.items()})
    found, reference = (solve(problem, backend) for backend in ("triton", "reference"))
    assert_within_the_error_of_half_precision(found, reference, truth_of(problem))


@cases(operator=NAMES)
def test_steps_one_at_a_time_equal_the_whole(operator):
    problem = on_gpu(operator, 48, 12, 8, 16, dtype=torch.float32)
    y, end = problem("triton")
    ys, state = [], problem.inputs["state"]
    for t in range(problem.steps):
        y_t, state = problem.cut(t, t + 1, state)("triton")
        ys.append(y_t)
    assert_near(torch.cat(ys, dim=1), y, "float32 split")
    assert_near(state, end, "float32 split")


@cases(operator=NAMES)
def test_split_equals_whole_at_every_cut(operator):
    problem = on_gpu(operator, 2, 9, 2, 16, dtype=torch.float32)
    y, end = problem("triton")
    for cut in range(problem.steps + 1):
        y_1, middle = problem.cut(None, cut, problem.inputs["state"])("triton")
        y_2, end_2 = problem.cut(cut, None, middle)("triton")
        assert_near(torch.cat([y_1, y_2], dim=1), y, "float32 split")
        assert_near(end_2, end, "float32 split")


@cases(
    operator=NAMES,
    case=[
        Case(16, 60, 4, 16, reset=True),
        Case(4, 20, 2, 28),
        Case(4, 20, 2, 64),
        Case(4, 60, 2, 16, keys="l2", gates=2, clip=0.5),
        Case(4, 60, 2, 16, decay=True),
    ],
)
def test_20_runs_give_equal_bits(operator, case):
    problem = on_gpu(operator, *case, dtype=torch.float32)
    first = solve(problem, "triton")
    for _ in range(19):
        assert_same(solve(problem, "triton"), first)


@cases(operator=NAMES)
def test_20_runs_give_equal_bits_in_half_precision(operator):
    problem = on_gpu(operator, 16, 60, 4, 16, reset=True, dtype=torch.bfloat16)
    first = solve(problem, "triton")
    for _ in range(19):
        assert_same(solve(problem, "triton"), first)


@cases(operator=NAMES)
def test_values_agree_without_gradients(operator):
    # Nothing is saved then: another kernel, whose roundings may differ.
    problem = on_gpu(operator, 4, 20, 2, 16, reset=True, dtype=torch.float32)
    y, end = problem.leaves()("triton")
    with torch.no_grad():
        y_plain, end_plain = problem("triton")
    assert_near(y_plain, y, "float32 values")
    assert_near(end_plain, end, "float32 values")


def gradients(problem: Problem, incoming):
    """y, end and the gradients of all inputs, from given gradients of y and end; capturable in a CUDA graph."""
    results = problem("triton")
    return [*results, *torch.autograd.grad(results, list(problem.tensors.values()), incoming)]


@cases(operator=NAMES, reset=[False, True])
def test_replay_of_a_cuda_graph_gives_equal_bits(operator, reset):
    problem = on_gpu(operator, 4, 20, 2, 16, reset=reset, dtype=torch.float32).leaves()
    with torch.no_grad():  # A graph of autograd kept from outside the capture would tie it to the default stream.
        y, end = problem("triton")
    incoming = [normal(*each.shape, seed=5, device="cuda").float() for each in (y, end)]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # PyTorch asks for a rehearsal on another stream.
        for _ in range(3):
            gradients(problem, incoming)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = gradients(problem, incoming)
    # Other numbers in the same places, twice.
    for seed in (11, 12):
        other = on_gpu(operator, 4, 20, 2, 16, dtype=torch.float32, seed=seed).tensors
        with torch.no_grad():
            for name, tensor in problem.tensors.items():
                tensor.copy_(other[name])
        graph.replay()
        torch.cuda.synchronize()
        found = [each.detach().clone() for each in captured]
        expected = gradients(problem, incoming)
        assert all(map(torch.equal, found, expected))


@cases(operator=NAMES, reset=[False, True])
def test_compiled_to_one_graph_it_gives_equal_bits(operator, reset):
    problem = on_gpu(operator, 4, 20, 2, 16, reset=reset, dtype=torch.float32)
    torch.compiler.reset()
    compiled = torch.compile(operator_of(problem), fullgraph=True)
    found = solve(problem, lambda leaves: compiled(*leaves.inputs.values()))
    assert_same(found, solve(problem, "triton"))


@cases(operator=NAMES)
def test_compiled_for_any_sizes_it_gives_equal_bits_at_each(operator):
    torch.compiler.reset()
    compiled = torch.compile(operator_of(on_gpu(operator)), fullgraph=True, dynamic=True)
    for b, t, h in [(4, 20, 2), (3, 7, 5), (2, 31, 3)]:
        problem = on_gpu(operator, b, t, h, 16, dtype=torch.float32)
        found = solve(problem, lambda leaves: compiled(*leaves.inputs.values()))
        assert_same(found, solve(problem, "triton"))


@cases(operator=NAMES)
def test_the_operator_passes_opcheck(operator):
    problem = on_gpu(operator, 2, 3, 2, 5, out=4, reset=True).leaves()
    options = Options(**problem.options) if problem.operator == "self_referential" else ()
    given = (*problem.inputs.values(), problem.reset, *options, True, "triton")
    torch.library.opcheck(getattr(torch.ops.srwm, problem.operator).default, given)


@cases(operator=NAMES)
def test_autocast_changes_no_bit_of_float32(operator):
    problem = on_gpu(operator, 4, 20, 2, 16, dtype=torch.float32)

    def in_autocast(leaves):
        with torch.autocast("cuda", torch.bfloat16):
            return leaves("triton")

    found = solve(problem, in_autocast)
    assert found["end"].dtype == torch.float32
    assert_same(found, solve(problem, "triton"))


@cases(operator=NAMES)
def test_another_stream_gives_equal_bits(operator):
    problem = on_gpu(operator, 16, 60, 4, 16, reset=True, dtype=torch.float32)
    expected = solve(problem, "triton")
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        found = solve(problem, "triton")
    side.synchronize()
    assert_same(found, expected)


@cases(operator=NAMES)
def test_4096_steps_stay_finite(operator):
    problem = on_gpu(operator, 4, 4096, 4, 16, dtype=torch.float32)
    results = solve(problem, "triton")
    sys.stdout.write(f"{operator}: norm of the state after 4096 steps {results['end'].norm().item():.3g}\n")
    assert all(tensor.isfinite().all() for tensor in results.values())


@cases(operator=NAMES)
def test_uninitialised_memory_reaches_no_result(operator):
    problem = on_gpu(operator, 3, 5, 2, 20, out=7, reset=True, dtype=torch.float32)
    expected = solve(problem, "triton")
    torch.use_deterministic_algorithms(True)  # Fills every new empty tensor with NaN.
    try:
        assert torch.empty(3, device="cuda").isnan().all()
        found = solve(problem, "triton")
    finally:
        torch.use_deterministic_algorithms(False)
    assert_same(found, expected)


@cases(operator=NAMES)
def test_inputs_stay_as_they_are(operator):
    problem = on_gpu(operator, 3, 5, 2, 20, reset=True, dtype=torch.float32)
    before = problem.map(torch.clone)
    solve(problem, "triton")
    assert all(map(torch.equal, problem.tensors.values(), before.tensors.values()))


@cases(operator=NAMES)
def test_strides_do_not_matter(operator):
    problem = on_gpu(operator, 3, 5, 2, 20, dtype=torch.float32)
    strided = problem.map(lambda tensor: tensor.transpose(0, -1).contiguous().transpose(0, -1))
    assert not any(tensor.is_contiguous() for tensor in strided.tensors.values())
    assert_same(solve(strided, "triton"), solve(problem, "triton"))


@cases(operator=NAMES, d=[16, 20])
def test_no_gradient_crosses_a_reset(operator, d):
    reset = torch.zeros(3, 6, dtype=torch.bool, device="cuda")
    reset[:, 4] = True
    problem = on_gpu(operator, 3, 6, 2, d, dtype=torch.float32).with_reset(reset)
    found = solve(problem, "triton", lambda y, end: y[:, 4:].square().sum() + end.square().sum())
    assert all((found[f"d {name}"][:, :4] == 0.0).all() for name in problem.timed)
    assert (found["d state"] == 0.0).all()


@cases(operator=NAMES, d=[16, 20])
def test_nan_in_one_row_reaches_no_other(operator, d):
    problem = on_gpu(operator, 3, 6, 2, d, dtype=torch.float32)
    poisoned = problem.map(torch.clone)
    for tensor in poisoned.timed.values():
        tensor[0] = float("nan")

    def loss(y, end):
        return y[1:].square().sum() + end[1:].square().sum()

    found, expected = solve(poisoned, "triton", loss), solve(problem, "triton", loss)
    for name in ("y", "end", *(f"d {name}" for name in problem.timed), "d state"):
        assert torch.equal(found[name][1:], expected[name][1:]), name
    assert found["y"][0].isnan().all()


@cases(operator=NAMES)
def test_a_second_derivative_is_refused(operator):
    problem = on_gpu(operator, dtype=torch.float32).leaves()
    y, end = problem("triton")
    leaves = list(problem.tensors.values())
    first = torch.autograd.grad(y.sin().sum() + end.sum(), leaves, create_graph=True)
    sentence = "no error was raised"
    try:
        torch.autograd.grad(sum(each.square().sum() for each in first), leaves)
    except RuntimeError as error:
        sentence = str(error)
    assert 'backend="reference"' in sentence


@cases(operator=NAMES, empty=["b", "t", "h"])
def test_empty_sizes_give_empty_results(operator, empty):
    problem = on_gpu(operator, **{"b": 2, "t": 3, "h": 2, empty: 0}, dtype=torch.float32)
    found = solve(problem, "triton")
    assert found["y"].numel() == 0
    assert torch.equal(found["end"], problem.inputs["state"])
    assert all(not found[f"d {name}"].any() for name in problem.timed)


@cases(operator=NAMES)
def test_automatic_choice_is_triton_up_to_its_largest_head_and_warns_beyond(operator):
    assert available_backends("cuda", 128)[0] == "triton"
    assert available_backends("cuda", 129) == ("reference",)
    problem = on_gpu(operator, 2, 3, 2, 16, dtype=torch.float32)
    assert all(map(torch.equal, problem("auto"), problem("triton")))
    # The warning comes once for each size.
    too_large = 129 + NAMES.index(operator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        on_gpu(operator, 1, 1, 1, too_large, dtype=torch.float32)("auto")
    assert any(f"slow reference on cuda with head size {too_large}" in str(each.message) for each in caught)


if __name__ == "__main__":
    sys.exit(run([test for name, test in globals().items() if name.startswith("test_")], sys.argv[1:]))
