"""V-trace (Espeholt et al., 2018, section 4.1): off-policy value targets and advantages."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class VTrace(NamedTuple):
    """What the losses aim at; no gradient flows into it."""

    targets: Float[Tensor, "b t"]
    """v_s, what the value of each step should be."""
    advantages: Float[Tensor, "b t"]
    """Weights of the policy gradient: rho_s (r_s + gamma_s v_{s+1} - V(x_s))."""


@torch.no_grad()
def vtrace(
    log_ratios: Float[Tensor, "b t"],
    rewards: Float[Tensor, "b t"],
    discounts: Float[Tensor, "b t"],
    values: Float[Tensor, "b t"],
    last_value: Float[Tensor, "b"],
    *,
    clip_rho: float = 1.0,
    clip_c: float = 1.0,
    clip_policy_rho: float = 1.0,
) -> VTrace:
    """Correct unrolls of a behaviour policy, some updates old, towards the present (target) policy.

    Args:
        log_ratios: log pi(a_t) - log mu(a_t): the target policy against the behaviour policy.
        rewards: what each action brought.
        discounts: gamma, or 0 where the action ended the episode.
        values: V(x_t) by the present network.
        last_value: V of the frame after the last action.
        clip_rho: largest weight of a temporal difference.
        clip_c: largest weight with which a later difference is passed on.
        clip_policy_rho: largest weight in the advantages.
    """
    ratios = log_ratios.exp()
    rhos, cs = ratios.clamp(max=clip_rho), ratios.clamp(max=clip_c)
    next_values = torch.cat((values[:, 1:], last_value[:, None]), dim=1)
    differences = rhos * (rewards + discounts * next_values - values)
    decays = discounts * cs

    # v_s - V(x_s) = difference_s + gamma_s c_s (v_{s+1} - V(x_{s+1})), from the last step to the first
    correction = torch.zeros_like(last_value)
    corrections = []
    for step in reversed(range(rewards.shape[1])):
        correction = torch.addcmul(differences[:, step], decays[:, step], correction)
        corrections.append(correction)
    targets = values + torch.stack(corrections[::-1], dim=1)

    next_targets = torch.cat((targets[:, 1:], last_value[:, None]), dim=1)
    advantages = ratios.clamp(max=clip_policy_rho) * (rewards + discounts * next_targets - values)
    return VTrace(targets, advantages)
