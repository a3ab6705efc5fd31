"""Tensors of more than 2^31 elements on a GPU; runs under pytest, and as `python tests/ops/test_gpu_large.py`."""

import sys
from pathlib import Path

import torch

if not __package__:
    sys.path.insert(0, str(Path(__file__).parents[1]))

from ops.gpu_cases import Skipped, cases, pytest, run
from ops.inputs import OPERATORS, Problem

pytestmark = pytest.mark.gpu if pytest else None


def many_rows(operator: str, b: int) -> Problem:
    """A problem of 262,144 numbers for each row and input, in half precision, drawn on the GPU."""
    t, h, d = 1024, 16, 16
    torch.manual_seed(0)
    draw = {"dtype": torch.bfloat16, "device": "cuda"}
    if operator == "self_referential":
        weight = torch.randn(h, d, 3 * d + 4, device="cuda") / 4
        return Problem(operator, {"x": torch.randn(b, t, h, d, **draw), "weight": weight, "state": None})
    q, k, v = (torch.randn(b, t, h, d, **draw) for _ in range(3))
    beta = torch.rand(b, t, h, **draw)
    return Problem(operator, {"q": q.softmax(-1), "k": k.softmax(-1), "v": v, "beta": beta, "state": None})


def needs(gib: int):
    free, _ = torch.cuda.mem_get_info()
    if free < gib << 30:
        raise Skipped(f"runs where {gib} GiB of GPU memory are free")


@cases(operator=OPERATORS)
def test_tensors_of_more_than_2_to_the_31_elements_are_addressed_right(operator):
    needs(60)
    b = 8200  # Element 2^31 is the first of row 8192.
    problem = many_rows(operator, b)
    assert all(tensor.numel() > 2**31 for name, tensor in problem.timed.items() if name != "beta")
    y, end = problem("triton")
    # Enough rows to fill the GPU, as the whole does: then the same program runs.
    for rows in (slice(0, 100), slice(b - 100, b)):
        y_few, end_few = problem.rows(rows)("triton")
        assert torch.equal(y[rows], y_few)
        assert torch.equal(end[rows], end_few)
    assert y[-1].isfinite().all()


@cases(operator=OPERATORS)
def test_saved_tensors_of_more_than_2_to_the_31_elements_are_addressed_right(operator):
    needs(60)
    # The matrix has 52 columns of which every step saves a difference; the error of the delta rule has 16.
    b = 2600 if operator == "self_referential" else 8200
    problem = many_rows(operator, b)
    last = slice(b - 100, b)

    def gradients_of(problem, rows):
        leaves = problem.leaves(problem.timed)
        y, _ = leaves("triton")
        return torch.autograd.grad(y[rows].float().square().sum(), list(leaves.timed.values()))

    found = gradients_of(problem, last)
    expected = gradients_of(problem.rows(last), slice(None))
    for name, one, two in zip(problem.timed, found, expected, strict=True):
        assert torch.equal(one[last], two), name
        assert (two != 0).any(), name
    # No gradient was given to the others.
    assert all(not each[:4].any() for each in found)


if __name__ == "__main__":
    sys.exit(run([test for name, test in globals().items() if name.startswith("test_")], sys.argv[1:]))
