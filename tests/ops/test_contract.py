"""What every backend of every operator promises: equal inputs give equal bits, and nothing is changed or leaked."""

import pytest
import torch

from .inputs import assert_same, make, normal, random_loss, solve


def cotangents(y, end):
    """Gradients to begin with."""
    return [normal(*each.shape, seed=seed).to(each) for seed, each in enumerate((y, end))]


@pytest.mark.parametrize("reset", [False, True])
def test_inputs_stay_as_they_are(operator, backend, reset):
    problem = make(operator, t=2, reset=reset).leaves()
    tensors = [*problem.tensors.values(), *([problem.reset] if reset else [])]
    before = [(tensor.detach().clone(), tensor._version) for tensor in tensors]
    random_loss(*problem(backend)).backward()
    for tensor, (copy, version) in zip(tensors, before, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor._version == version


def test_results_and_incoming_gradients_stay_as_they_are(operator, backend):
    problem = make(operator, t=2, reset=True).leaves()
    results = problem(backend)
    incoming = cotangents(*results)
    before = [(tensor.detach().clone(), tensor._version) for tensor in (*results, *incoming)]
    torch.autograd.grad(results, list(problem.tensors.values()), incoming)
    for tensor, (copy, version) in zip((*results, *incoming), before, strict=True):
        assert torch.equal(tensor, copy)
        assert tensor._version == version


def test_a_second_backward_gives_equal_bits(operator, backend):
    problem = make(operator, t=2, reset=True).leaves()
    results = problem(backend)
    incoming, leaves = cotangents(*results), list(problem.tensors.values())
    first = torch.autograd.grad(results, leaves, incoming, retain_graph=True)
    second = torch.autograd.grad(results, leaves, incoming)
    assert all(map(torch.equal, first, second))


def test_equal_inputs_give_equal_bits(operator, backend):
    problem = make(operator, 2, 2, 2, 5, reset=True, dtype=torch.float32)
    assert_same(solve(problem, backend), solve(problem, backend))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_values_are_the_same_bits_without_gradients(operator, backend, mode):
    problem = make(operator, t=2, reset=True)
    y, end = problem.leaves()(backend)
    with mode():
        y_plain, end_plain = problem(backend)
    assert torch.equal(y_plain, y)
    assert torch.equal(end_plain, end)


def test_uninitialised_memory_reaches_no_result(operator, backend, monkeypatch):
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    problem = make(operator, 2, 2, 1, 5, out=2, reset=True)
    expected = solve(problem, backend)
    torch.use_deterministic_algorithms(True)  # Fills every new empty tensor with NaN.
    try:
        assert torch.empty(3).isnan().all()
        assert_same(solve(problem, backend), expected)
        with torch.no_grad():
            y, end = problem(backend)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(y, expected["y"])
    assert torch.equal(end, expected["end"])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("bad_row", [0, 1])
def test_nan_in_one_row_reaches_no_other(operator, backend, bad_row):
    problem = make(operator, t=2, reset=True)
    poisoned = problem.but(**{name: tensor.clone() for name, tensor in problem.timed.items()})
    for tensor in poisoned.timed.values():
        tensor[bad_row] = float("nan")
    good = 1 - bad_row

    def loss(y, end):
        return random_loss(y[good], end[good])

    found, expected = solve(poisoned, backend, loss), solve(problem, backend, loss)
    for name in ("y", "end", *(f"d {name}" for name in problem.timed), "d state"):
        assert torch.equal(found[name][good], expected[name][good]), name


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nan_shows_where_it_shows_in_the_reference(operator, kernel, dtype):
    problem = make(operator, t=3, dtype=dtype)
    for name, tensor in problem.timed.items():
        poisoned = tensor.clone()
        poisoned[0, 1].view(-1)[0] = float("nan")
        found, expected = (problem.but(**{name: poisoned})(backend) for backend in (kernel, "reference"))
        assert expected[0].isnan().any()
        assert not expected[0].isnan().all()
        for one, two in zip(found, expected, strict=True):
            assert torch.equal(one.isnan(), two.isnan()), name
