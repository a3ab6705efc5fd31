"""How actions are drawn."""

import torch

from srwm.data.random import stream_key
from srwm.rl.actor import draw_actions


def test_actions_come_as_often_as_the_policy_says():
    logits = torch.tensor([0.0, 1.0, 2.0, -1.0])
    number = 200_000
    actions = draw_actions(logits.expand(number, 4), stream_key(0, 1, torch.tensor(0)))
    counts = torch.bincount(actions, minlength=4) / number
    # Five standard deviations of a proportion.
    assert torch.all((counts - logits.softmax(0)).abs() < 5 * (0.25 / number) ** 0.5)


def test_actions_are_a_pure_function_of_the_key():
    logits = torch.zeros(1000, 15)
    one, again, other = (draw_actions(logits, stream_key(0, 1, torch.tensor(step))) for step in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_an_impossible_action_is_never_drawn():
    logits = torch.zeros(10_000, 3)
    logits[:, 1] = -torch.inf
    assert 1 not in draw_actions(logits, stream_key(3, 1, torch.tensor(7)))
