"""Causal self-attention, against its equations."""

import math

import pytest
import torch

from srwm.nn import Attention, map_state

SIZE, HEADS = 8, 2


def layer(**options):
    torch.manual_seed(0)
    return Attention(SIZE, HEADS, **{"window": 16, **options}).double()


def by_its_equations(one, x, first=None, window=16):
    """Head by head, step by step; `first` says at which step a row's episode begins."""
    normal = one.norm(x)
    q, k, v = one.projection(normal).chunk(3, dim=-1)
    width, y = SIZE // HEADS, torch.zeros_like(x)
    for row in range(len(x)):
        begin = 0 if first is None else first[row]
        for t in range(x.shape[1]):
            begins = [begin if t >= begin else 0, t + 1 - window, 0]
            seen = slice(max(begins), t + 1)
            for head in range(HEADS):
                own = slice(head * width, (head + 1) * width)
                weights = (k[row, seen, own] @ q[row, t, own] / math.sqrt(width)).softmax(dim=0)
                y[row, t, own] = weights @ v[row, seen, own]
    return x + one.out_projection(y)


def test_it_is_what_its_equations_say():
    one, x = layer(), torch.randn(3, 9, SIZE, dtype=torch.float64)
    assert torch.allclose(one(x)[0], by_its_equations(one, x), atol=1e-12)


def test_a_step_sees_no_more_than_the_window():
    one, x = layer(window=4), torch.randn(3, 9, SIZE, dtype=torch.float64)
    wanted = by_its_equations(one, x, window=4)
    assert torch.allclose(one(x)[0], wanted, atol=1e-12)
    state, parts = None, []
    for piece in x.split((1, 5, 3), dim=1):
        y, state = one(piece, state)
        parts.append(y)
    assert torch.allclose(torch.cat(parts, dim=1), wanted, atol=1e-12)


def test_a_step_sees_nothing_from_before_a_reset():
    one, x = layer(), torch.randn(2, 9, SIZE, dtype=torch.float64)
    reset = torch.zeros(2, 9, dtype=torch.bool)
    reset[0, 3] = reset[1, 6] = True
    assert torch.allclose(one(x, reset=reset)[0], by_its_equations(one, x, first=(3, 6)), atol=1e-12)


def test_the_state_is_the_last_keys_and_values_newest_last():
    one, x = layer(window=4), torch.randn(2, 6, SIZE, dtype=torch.float64)
    _, k, v = one.projection(one.norm(x)).chunk(3, dim=-1)
    _, state = one(x)
    assert torch.allclose(state.keys, k[:, 2:])
    assert torch.allclose(state.values, v[:, 2:])
    assert state.steps.tolist() == [6, 6]
    _, short = one(x[:, :3])
    assert not short.keys[:, 0].any()
    assert torch.allclose(short.keys[:, 1:], k[:, :3])


def test_the_order_of_what_came_before_does_not_matter_without_positions():
    """Of the last step; the causal mask is all that tells steps apart."""
    one, x = layer(), torch.randn(2, 7, SIZE, dtype=torch.float64)
    mixed = x[:, [3, 0, 5, 1, 4, 2, 6]]
    assert torch.allclose(one(x)[0][:, -1], one(mixed)[0][:, -1], atol=1e-12)


def test_the_state_stays_as_large_as_it_is():
    one, state = layer(window=4), None
    for _ in range(3):
        _, state = one(torch.randn(2, 5, SIZE, dtype=torch.float64), state)
    assert [list(part.shape) for part in state] == [[2, 4, SIZE], [2, 4, SIZE], [2]]


def test_a_window_of_nothing_gets_a_sentence():
    with pytest.raises(ValueError, match="window=0"):
        Attention(SIZE, HEADS, window=0)


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="num_heads=3"):
        Attention(SIZE, 3)


def test_a_state_of_another_window_is_refused():
    _, state = layer(window=4)(torch.randn(2, 3, SIZE, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"state\.keys has shape \[2, 4, 8\]; expected \[b, window, d\]"):
        layer(window=5)(torch.randn(2, 3, SIZE, dtype=torch.float64), state)


def test_a_state_with_the_steps_of_another_batch_is_refused():
    one = layer(window=4)
    _, state = one(torch.randn(2, 3, SIZE, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"state\.steps has shape"):
        one(torch.randn(2, 3, SIZE, dtype=torch.float64), state._replace(steps=state.steps[:1]))


def test_half_precision_keeps_the_state_in_float32():
    one = Attention(SIZE, HEADS, window=4, dtype=torch.bfloat16)
    y, state = one(torch.randn(2, 3, SIZE, dtype=torch.bfloat16))
    assert (y.dtype, state.keys.dtype) == (torch.bfloat16, torch.float32)
    again, _ = one(torch.randn(2, 3, SIZE, dtype=torch.bfloat16), map_state(torch.clone, state))
    assert again.isfinite().all()
