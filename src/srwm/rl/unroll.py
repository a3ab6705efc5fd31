"""What was played: frames, rewards, actions, and the state of the agent before the first frame."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from srwm.nn import SequenceState, map_state

from .procgen import FRAME_SHAPE


class Unroll(NamedTuple):
    """t steps of some environments. There is one frame more than actions: the last is the first of the next unroll."""

    frames: UInt8[Tensor, "n t+1 h w c"]
    """What was seen."""
    rewards: Float[Tensor, "n t+1"]
    """What came with each frame."""
    first: Bool[Tensor, "n t+1"]
    """Whether the frame is the first of an episode; the reward with it is then the last of the one before."""
    actions: Int[Tensor, "n t"]
    """What was done at each frame but the last."""
    log_mu: Float[Tensor, "n t"]
    """Log-probability that the agent which played gave to that action."""
    state: SequenceState
    """The agent's state before the first frame, made by the weights that played."""


def empty_unroll(number: int, steps: int, state: SequenceState, device: torch.device) -> Unroll:
    """Make room for the unrolls of a number of environments.

    Args:
        number: environments.
        steps: actions of an unroll.
        state: a state of the agent, of any number of rows, for its structure.
        device: where the unrolls lie.
    """
    return Unroll(
        torch.zeros(number, steps + 1, *FRAME_SHAPE, dtype=torch.uint8, device=device),
        torch.zeros(number, steps + 1, device=device),
        torch.zeros(number, steps + 1, dtype=torch.bool, device=device),
        torch.zeros(number, steps, dtype=torch.int64, device=device),
        torch.zeros(number, steps, device=device),
        map_state(lambda rows: torch.zeros(number, *rows.shape[1:], dtype=rows.dtype, device=device), state),
    )


def take_rows(unroll: Unroll, rows: Int[Tensor, "b"]) -> Unroll:
    """Copy the unrolls of some environments."""
    return map_state(lambda tensor: tensor.index_select(0, rows), unroll)


def rows_of(unroll: Unroll, first: int, number: int) -> Unroll:
    """A view of some environments that lie together."""
    return map_state(lambda tensor: tensor[first : first + number], unroll)
