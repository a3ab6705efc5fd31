"""What the registered operators have in common."""

import pytest
import torch

from srwm.ops.kernels import contiguous, requires_grad, segments


def test_a_gradient_is_asked_for_where_a_tensor_wants_one_and_gradients_are_on():
    plain, learnt = torch.zeros(2), torch.zeros(2, requires_grad=True)
    assert requires_grad(None, plain, learnt)
    assert not requires_grad(plain, None)
    assert not requires_grad()
    with torch.no_grad():
        assert not requires_grad(learnt)


@pytest.mark.parametrize(
    ("reset", "found"),
    [([0, 0, 0], [-1, -1, -1]), ([1, 0, 0], [0, 0, 0]), ([0, 1, 0], [-1, 1, 1]), ([1, 1, 0], [0, 1, 1])],
)
def test_each_step_knows_the_last_reset_at_or_before_it(reset, found):
    rows = segments(torch.tensor([reset, reset], dtype=torch.bool))
    assert rows.dtype == torch.int32
    assert rows.tolist() == [found, found]


def test_tensors_become_row_major_and_none_stays_none():
    whole = torch.arange(6).reshape(2, 3)
    first, second, third = contiguous(whole.T, None, whole)
    assert first.is_contiguous()
    assert torch.equal(first, whole.T)
    assert second is None
    assert third.data_ptr() == whole.data_ptr()
