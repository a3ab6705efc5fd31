"""The reset-every-n-steps ablation (paper, section 4.3): the self-modification is forgotten on a schedule."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def periodic_reset(
    steps: Int[Tensor, "b"], time: int, reset: Bool[Tensor, "b t"] | None, every: int
) -> tuple[Bool[Tensor, "b t"], Int[Tensor, "b"]]:
    """Add to `reset` the steps before which `every` steps of an episode have passed since its start or the last reset.

    Args:
        steps: steps since the episode began, before this call [b].
        time: steps in this call.
        reset: bool [b, t], where episodes begin; None for nowhere.
        every: n; the state is reset after every n steps.

    Returns:
        The resets with the periodic ones [b, t], and the steps since the episode began after this call [b].
    """
    at = torch.arange(time, device=steps.device)
    since = steps[:, None] + at
    if reset is None:
        reset = torch.zeros_like(since, dtype=torch.bool)
    if time == 0:
        return reset, steps
    began = torch.where(reset, at, -1).cummax(dim=1).values
    since = torch.where(began >= 0, at - began, since)
    return reset | ((since > 0) & (since % every == 0)), since[:, -1] + 1
