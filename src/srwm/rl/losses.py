"""The losses of an actor-critic, summed over steps and unrolls as in TorchBeast."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .agent import PolicyOutput
from .config import AlgorithmConfig
from .rollout_buffer import Unroll
from .vtrace import vtrace


class Losses(NamedTuple):
    """The loss of an update and its parts, each a sum over all steps."""

    total: Float[Tensor, ""]
    """What is minimised."""
    policy: Float[Tensor, ""]
    """Minus advantage times log-probability."""
    value: Float[Tensor, ""]
    """Half the squared error of the values."""
    entropy: Float[Tensor, ""]
    """Entropy of the policy."""


def actor_critic_losses(output: PolicyOutput, unroll: Unroll, config: AlgorithmConfig) -> Losses:
    """Compute the losses of the present network on unrolls.

    Args:
        output: its policy and values at each of the t + 1 frames of the unrolls.
        unroll: observations, actions and behaviour policy.
        config: discount, costs and clipping.
    """
    log_policy = output.logits[:, :-1].log_softmax(dim=-1)
    # A sum over the chosen: the gradient of `gather` adds up in no fixed order on a GPU.
    is_chosen = unroll.actions[..., None] == torch.arange(log_policy.shape[-1], device=log_policy.device)
    log_prob = torch.where(is_chosen, log_policy, 0.0).sum(-1)
    # The reward of an action comes with the frame after it, and so does the news that the episode ended.
    rewards = unroll.rewards[:, 1:]
    target = vtrace(
        log_prob.detach() - unroll.behaviour_log_prob,
        rewards.clamp(-1, 1) if config.clip_rewards else rewards,
        config.discount * (~unroll.first[:, 1:]).to(rewards.dtype),
        output.values[:, :-1].detach(),
        output.values[:, -1].detach(),
        clip_rho=config.clip_rho,
        clip_policy_rho=config.clip_policy_rho,
    )
    policy = -(target.advantages * log_prob).sum()
    value = 0.5 * (target.targets - output.values[:, :-1]).square().sum()
    entropy = -torch.sum(log_policy.exp() * log_policy)
    return Losses(policy + config.value_cost * value - config.entropy_cost * entropy, policy, value, entropy)
