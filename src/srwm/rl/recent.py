"""The last steps of the environments of one actor, out of which their unrolls are taken as they end."""

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from srwm.nn import SequenceState, named_tensors
from srwm.runs.tensor_file import copy_tensors

from .unroll import Unroll, empty_unroll, rows_of


class Recent:
    """As many steps as an unroll has, in a ring: the next step is written over the oldest.

    All environments step together, so each field is written in one place; their unrolls may begin at different times.

    Args:
        number: environments.
        steps: actions of an unroll.
        state: a state of the agent, of any number of rows, for its structure.
        device: where the steps lie.
    """

    def __init__(self, number: int, steps: int, state: SequenceState, device: torch.device) -> None:
        self._steps = steps
        self._kept = empty_unroll(number, steps, state, device)
        self._time = 0  # actions so far

    def restart(self) -> None:
        """Forget all of it."""
        self._time = 0

    def begin(self, first: int, number: int, state: SequenceState) -> None:
        """Note the state of some environments that lie together: what they see next begins an unroll."""
        kept = rows_of(self._kept, first, number).state
        for (_, room), (_, own) in zip(named_tensors(kept), named_tensors(state), strict=True):
            room.copy_(own[first : first + number])

    def see(self, frames: UInt8[Tensor, "n h w c"], rewards: Float[Tensor, "n"], first: Bool[Tensor, "n"]) -> None:
        """Keep what is seen now."""
        for kept, own in ((self._kept.frames, frames), (self._kept.rewards, rewards), (self._kept.first, first)):
            kept[:, self._time % (self._steps + 1)].copy_(own)

    def act(self, actions: Int[Tensor, "n"], log_mu: Float[Tensor, "n"]) -> None:
        """Keep what is done about it."""
        for kept, own in ((self._kept.actions, actions), (self._kept.log_mu, log_mu)):
            kept[:, self._time % self._steps].copy_(own)
        self._time += 1

    def give(self, first: int, room: Unroll) -> None:
        """Copy the unrolls that end with what is seen now, of as many environments as there is room for."""
        kept = rows_of(self._kept, first, len(room.actions))
        for to, own in zip(room[:-1], kept[:-1], strict=True):
            oldest = (self._time - self._steps) % own.shape[1]
            newer = own.shape[1] - oldest
            to[:, :newer].copy_(own[:, oldest:])
            to[:, newer:].copy_(own[:, :oldest])
        for (_, to), (_, own) in zip(named_tensors(room.state), named_tensors(kept.state), strict=True):
            to.copy_(own)

    def tensors(self) -> dict[str, Tensor]:
        """Give all of it."""
        return {"time": torch.tensor(self._time), **dict(named_tensors(self._kept))}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to what `tensors` gave.

        Raises:
            InputError: if they are those of other games or another agent.
        """
        time = torch.tensor(0)
        copy_tensors({"time": time, **dict(named_tensors(self._kept))}, tensors, "the unrolls in the checkpoint")
        self._time = int(time)
