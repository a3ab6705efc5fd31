"""The losses against a plain computation, step by step."""

import torch

from srwm.nn import SequenceState
from srwm.rl.agent import PolicyOutput
from srwm.rl.config import AlgorithmConfig
from srwm.rl.losses import actor_critic_losses
from srwm.rl.rollout_buffer import Unroll
from srwm.rl.vtrace import vtrace


def problem():
    torch.manual_seed(0)
    b, t, actions = 2, 4, 3
    output = PolicyOutput(
        torch.randn(b, t + 1, actions, dtype=torch.float64, requires_grad=True),
        torch.randn(b, t + 1, dtype=torch.float64, requires_grad=True),
    )
    first = torch.zeros(b, t + 1, dtype=torch.bool)
    first[1, 2] = True
    unroll = Unroll(
        torch.zeros(b, t + 1, 1, 1, 1, dtype=torch.uint8),
        3 * torch.randn(b, t + 1, dtype=torch.float64),
        first,
        torch.randint(actions, (b, t)),
        -torch.rand(b, t, dtype=torch.float64) - 0.5,
        SequenceState(()),
    )
    return output, unroll


def test_losses_are_sums_over_steps_and_unrolls():
    output, unroll = problem()
    config = AlgorithmConfig(entropy_cost=0.3, value_cost=0.7, discount=0.9)
    losses = actor_critic_losses(output, unroll, config)
    log_prob = output.logits.log_softmax(-1)
    chosen = torch.stack([torch.stack([log_prob[i, j, unroll.actions[i, j]] for j in range(4)]) for i in range(2)])
    rewards = unroll.rewards[:, 1:].clamp(-1, 1)
    discounts = torch.where(unroll.first[:, 1:], 0.0, 0.9).double()
    values = output.values.detach()
    target = vtrace(chosen.detach() - unroll.behaviour_log_prob, rewards, discounts, values[:, :-1], values[:, -1])
    policy = value = entropy = 0.0
    for i in range(2):
        for j in range(4):
            policy -= target.advantages[i, j] * chosen[i, j]
            value += 0.5 * (target.targets[i, j] - output.values[i, j]) ** 2
            entropy -= sum(log_prob[i, j, a].exp() * log_prob[i, j, a] for a in range(3))
    torch.testing.assert_close(losses.policy, policy)
    torch.testing.assert_close(losses.value, value)
    torch.testing.assert_close(losses.entropy, entropy)
    torch.testing.assert_close(losses.total, policy + 0.7 * value - 0.3 * entropy)


def test_the_bootstrap_value_gets_no_gradient():
    output, unroll = problem()
    actor_critic_losses(output, unroll, AlgorithmConfig()).total.backward()
    assert output.values.grad[:, -1].abs().max() == 0
    assert output.logits.grad[:, -1].abs().max() == 0
    assert output.values.grad[:, :-1].abs().min() > 0


def test_rewards_are_clamped_unless_told_not_to():
    output, unroll = problem()
    plain = AlgorithmConfig(clip_rewards=False)
    clipped_loss = actor_critic_losses(output, unroll, AlgorithmConfig()).value
    assert not torch.isclose(clipped_loss, actor_critic_losses(output, unroll, plain).value)
    clamped = unroll._replace(rewards=unroll.rewards.clamp(-1, 1))
    torch.testing.assert_close(actor_critic_losses(output, clamped, plain).value, clipped_loss)
