import pytest
import torch

from srwm.nn.periodic_reset import periodic_reset


def by_counting(start, resets, every):
    """Go step by step with a counter: what the function must give."""
    count, out = start, []
    for is_first in resets:
        count = 0 if is_first else count
        out.append(bool(is_first) or (count > 0 and count % every == 0))
        count += 1
    return out, count


@pytest.mark.parametrize("every", [1, 2, 3, 100])
def test_equals_counting_step_by_step(every):
    generator = torch.Generator().manual_seed(0)
    steps = torch.randint(0, 7, (20,), generator=generator)
    reset = torch.rand(20, 15, generator=generator) < 0.15
    found, after = periodic_reset(steps, 15, reset, every)
    for row in range(20):
        expected, count = by_counting(steps[row].item(), reset[row].tolist(), every)
        assert found[row].tolist() == expected
        assert after[row].item() == count


def test_no_mask_is_a_mask_of_false():
    steps = torch.tensor([0, 4])
    found, after = periodic_reset(steps, 6, None, 5)
    expected, expected_after = periodic_reset(steps, 6, torch.zeros(2, 6, dtype=torch.bool), 5)
    assert torch.equal(found, expected)
    assert torch.equal(after, expected_after)


def test_no_steps_change_nothing():
    found, after = periodic_reset(torch.tensor([2, 3]), 0, None, 2)
    assert found.shape == (2, 0)
    assert after.tolist() == [2, 3]
