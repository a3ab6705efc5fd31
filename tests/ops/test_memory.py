"""What kernels read and write: the tensors they are given, and nothing beside them in memory."""

from importlib import import_module

import pytest
import torch

from srwm.ops import _checkpoints

from .growth import Part, decaying, with_a_large_value
from .inputs import OPERATORS, VARIANTS, Results, assert_agree, assert_same, make, random_loss, solve
from .tolerances import assert_near

MARGIN = 1024
"""Numbers on both sides of each tensor: more than any vector or tile here would reach beyond its end."""

FILLINGS = {torch.int32: 12345, torch.uint8: 1, torch.bool: True}
"""Of margins; that of others is NaN, which spoils every sum it gets into."""


class Surrounded:
    """A module of kernels that gets every tensor between two margins, and leaves these as they are."""

    def __init__(self, module) -> None:
        self.module, self.tensors = module, 0

    def forward(self, *arguments) -> None:
        self.call(self.module.forward, arguments)

    def backward(self, *arguments) -> None:
        self.call(self.module.backward, arguments)

    def call(self, run, arguments) -> None:
        placed = []
        run(*(self.place(each, placed) for each in arguments))
        for tensor, memory in placed:
            filling = torch.full_like(memory, FILLINGS.get(tensor.dtype, torch.nan))
            for margin in (slice(MARGIN), slice(MARGIN + tensor.numel(), None)):
                torch.testing.assert_close(memory[margin], filling[margin], rtol=0, atol=0, equal_nan=True)
            tensor.copy_(memory[MARGIN : MARGIN + tensor.numel()].view(tensor.shape))
        self.tensors += len(placed)

    def place(self, argument, placed):
        """The same argument, or the same tuple of arguments, with its tensors elsewhere."""
        if isinstance(argument, torch.Tensor):
            memory = argument.new_full((argument.numel() + 2 * MARGIN,), FILLINGS.get(argument.dtype, torch.nan))
            inside = memory[MARGIN : MARGIN + argument.numel()].view(argument.shape)
            inside.copy_(argument)
            placed.append((argument, memory))
            return inside
        if isinstance(argument, tuple) and any(isinstance(each, torch.Tensor) for each in argument):
            return argument._make(self.place(each, placed) for each in argument)
        return argument


def solved_in_margins(monkeypatch, problem, backend: str, loss=random_loss) -> Results:
    """What kernels give that get their tensors between margins."""
    library = import_module(f"srwm.ops.{problem.operator}._library")
    surrounded = Surrounded(import_module(f"srwm.ops.{problem.operator}.{backend}"))
    with monkeypatch.context() as patch:
        patch.setattr(library, "kernels", lambda package, name: surrounded)
        found = solve(problem, backend, loss)
    assert surrounded.tensors > 10
    return found


# One program for a head, and several, of which the last has columns left over; and the least of everything.
SIZES = [(1, 2, 2, 3, 5), (1, 2, 1, 20, 37), (1, 1, 1, 1, 1)]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_kernel_reads_and_writes_nothing_beside_its_tensors(operator, kernel, sizes, reset, monkeypatch):
    problem = make(operator, *sizes, reset=reset)
    found = solved_in_margins(monkeypatch, problem, kernel)
    assert_agree(problem, found, solve(problem, "reference"), "float64")


@pytest.mark.parametrize("least", [1.0, 0.9])
def test_that_the_last_interval_has_a_jump_is_read_from_its_place(kernel, least, monkeypatch):
    monkeypatch.setattr(_checkpoints, "steps_between", lambda rows, columns, decays=False: 5)
    # Beside that place it says that there is none.
    monkeypatch.setitem(FILLINGS, torch.int32, -1)
    problem = decaying(with_a_large_value(1e8, 11, 1, 12, 1, 3), least).to(torch.float32)
    loss = Part(last=11 / 12).loss
    found = solved_in_margins(monkeypatch, problem, kernel, loss)
    truth = solve(problem.to(torch.float64), "reference", loss)
    for name in ("d q", "d k", "d v", "d beta", "d decay", "d state"):
        assert_near(found[name], truth[name], "float32 under growth gradients")


# Sizes of heads between the powers of two, where vectors and tiles are fuller and emptier; in the interpreter too slow.
@pytest.mark.parametrize(("d", "out"), [(7, 8), (8, 9), (16, 15), (17, 33), (33, 64)])
@pytest.mark.parametrize("operator", [*OPERATORS, *VARIANTS])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_compiled_kernels_read_and_write_nothing_beside_tensors_of_any_size(operator, d, out, dtype, monkeypatch):
    problem = make(operator, 2, 3, 2, d, out, reset=True, dtype=dtype)
    assert_same(solved_in_margins(monkeypatch, problem, "cpu"), solve(problem, "cpu"))
