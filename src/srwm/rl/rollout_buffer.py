"""The rollout buffer: the one memory of what was played, written step by step, read as batches of unrolls.

On its way from an environment to an update a frame lies in these places, and in no others:

1. in the memory of the environments, which their next step overwrites. On a CPU the policy reads it there; on a GPU it
   is uploaded to an input of the policy's CUDA graph, which must stay where it is, unlike a step's place in the ring,
2. in this buffer, which outlives both,
3. in the batch of an update: a CUDA graph needs that, too, at one place, and so does the backward pass in one piece.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from srwm.nn import SequenceState, map_state, named_tensors
from srwm.runs.tensor_file import check_fits

from .procgen import FRAME_SHAPE
from .staggered import RolloutSchedule

_Time = TypeVar("_Time", int, Tensor)


class Unroll(NamedTuple):
    """t steps of some environments. There is one frame more than actions: the last is the first of the next unroll."""

    frames: UInt8[Tensor, "n t+1 h w c"]
    """What was observed."""
    rewards: Float[Tensor, "n t+1"]
    """What came with each frame."""
    first: Bool[Tensor, "n t+1"]
    """Whether the frame is the first of an episode; the reward with it is then the last of the one before."""
    actions: Int[Tensor, "n t"]
    """The action at each frame but the last."""
    behaviour_log_prob: Float[Tensor, "n t"]
    """Log-probability of that action under the behaviour policy, the one that acted."""
    state: SequenceState
    """The agent's state before the first frame, made by the weights that acted."""


class RolloutBuffer:
    """A ring of the last steps of all environments of a process, and the state of the agent where unrolls began.

    Steps come first in memory, then environments: what all environments of an actor observe at a step is one piece. A
    step lies at its time modulo the length of the ring, so unrolls may begin at any time, and none is ever moved. The
    ring holds the unrolls of a phase and, where they are learnt from while the next phases are played, those, too.

    Args:
        schedule: when unrolls begin and end.
        actors: actors of this process.
        state: a state of the agent, of any number of rows, for its structure.
        device: where the steps lie.
        phases_ahead: how many phases are written while the unrolls of one are read.
    """

    def __init__(
        self, schedule: RolloutSchedule, actors: int, state: SequenceState, device: torch.device, *, phases_ahead: int
    ) -> None:
        self._unroll_length, self._kept_steps = schedule.unroll_length, schedule.steps_per_iteration
        self._steps = self._kept_steps + phases_ahead * schedule.longest_phase + 1
        # The next unroll of an environment begins where one ends, the one after that an iteration later.
        iterations_ahead = -(-phases_ahead // schedule.groups)
        self._num_unrolls = schedule.unrolls_per_iteration * (1 + iterations_ahead)
        self._num_envs = num_envs = actors * schedule.envs_per_actor
        shape = (self._steps, num_envs)
        self._observations = {
            "frames": torch.zeros(*shape, *FRAME_SHAPE, dtype=torch.uint8, device=device),
            "rewards": torch.zeros(shape, device=device),
            "first": torch.zeros(shape, dtype=torch.bool, device=device),
        }
        self._actions = {
            "actions": torch.zeros(shape, dtype=torch.int64, device=device),
            "behaviour_log_prob": torch.zeros(shape, device=device),
        }
        # Rows are those of all environments for one unroll after the other.
        self._states = map_state(
            lambda rows: torch.zeros(self._num_unrolls * num_envs, *rows.shape[1:], dtype=rows.dtype, device=device),
            state,
        )
        self._window = torch.arange(-self._unroll_length, 1, device=device)

    def begin_unrolls(self, time: int, envs: slice, state: SequenceState) -> None:
        """Keep the state of the agent in some environments whose unrolls begin at a time."""
        start = self._slot(time + self._unroll_length) * self._num_envs
        for (_, own), (_, new) in zip(named_tensors(self._states), named_tensors(state), strict=True):
            own[start + envs.start : start + envs.stop].copy_(new)

    def write_observations(
        self,
        time: int,
        envs: slice,
        frames: UInt8[Tensor, "n h w c"],
        rewards: Float[Tensor, "n"],
        first: Bool[Tensor, "n"],
    ) -> None:
        """Keep what some environments show at a time."""
        for own, new in zip(self._observations.values(), (frames, rewards, first), strict=True):
            own[time % self._steps, envs].copy_(new)

    def write_actions(
        self, time: int, envs: slice, actions: Int[Tensor, "n"], behaviour_log_prob: Float[Tensor, "n"]
    ) -> None:
        """Keep what the agent does about it."""
        for own, new in zip(self._actions.values(), (actions, behaviour_log_prob), strict=True):
            own[time % self._steps, envs].copy_(new)

    def unrolls(self, envs: Int[Tensor, "n"], ends: Int[Tensor, "n"]) -> Unroll:
        """Copy unrolls of environments, by the time at which each ended, to a batch; does not wait for the device."""
        rows, states = self._rows(envs, ends), self._state_rows(envs, ends)
        return Unroll(
            frames=_take(self._observations["frames"], rows),
            rewards=_take(self._observations["rewards"], rows),
            first=_take(self._observations["first"], rows),
            actions=_take(self._actions["actions"], rows[:, :-1]),
            behaviour_log_prob=_take(self._actions["behaviour_log_prob"], rows[:, :-1]),
            state=map_state(lambda own: own.index_select(0, states), self._states),
        )

    def write_unrolls(self, envs: Int[Tensor, "n"], ends: Int[Tensor, "n"], unrolls: Mapping[str, Tensor]) -> None:
        """Keep unrolls that were played elsewhere, by environment and the time at which each ended."""
        device = self._window.device
        rows, states = self._rows(envs.to(device), ends.to(device)), self._state_rows(envs, ends).to(device)
        for name, own in self._observations.items():
            _put(own, rows, unrolls[name])
        for name, own in self._actions.items():
            _put(own, rows[:, :-1], unrolls[name])
        for name, own in named_tensors(self._states, "state"):
            own.index_copy_(0, states, unrolls[name].to(device))

    def tensors(self, envs: slice, end: int) -> dict[str, Tensor]:
        """Give what is still needed of some environments at a time, oldest step first."""
        times = self._times(end)
        return {
            "end": torch.tensor(end),
            **{name: own[times, envs] for name, own in self._observations.items()},
            **{name: own[times[:-1], envs] for name, own in self._actions.items()},
            **{f"state.{name}": own[:, envs].contiguous() for name, own in self._states_by_unroll()},
        }

    def load_tensors(self, envs: slice, tensors: Mapping[str, Tensor]) -> int:
        """Go back to what `tensors` gave, and give the time.

        Raises:
            InputError: if it is of other environments or another agent.
        """
        check_fits(self.tensors(envs, 0), tensors, "the unrolls in the checkpoint", finite=False)
        end = int(tensors["end"])
        times = self._times(end)
        for name, own in self._observations.items():
            own[times, envs] = tensors[name].to(own.device)
        for name, own in self._actions.items():
            own[times[:-1], envs] = tensors[name].to(own.device)
        for name, own in self._states_by_unroll():
            own[:, envs].copy_(tensors[f"state.{name}"])
        return end

    def _states_by_unroll(self) -> list[tuple[str, Tensor]]:
        return [(name, own.unflatten(0, (-1, self._num_envs))) for name, own in named_tensors(self._states)]

    def _times(self, end: int) -> Tensor:
        """Where the last steps lie, and what was observed after them."""
        return torch.arange(end - self._kept_steps, end + 1, device=self._window.device) % self._steps

    def _rows(self, envs: Int[Tensor, "n"], ends: Int[Tensor, "n"]) -> Int[Tensor, "n steps"]:
        """Where the steps of unrolls lie, the steps of all environments taken as one row."""
        return (ends[:, None] + self._window) % self._steps * self._num_envs + envs[:, None]

    def _state_rows(self, envs: Int[Tensor, "n"], ends: Int[Tensor, "n"]) -> Int[Tensor, "n"]:
        return self._slot(ends) * self._num_envs + envs

    def _slot(self, end: _Time) -> _Time:
        """Where the state lies with which the unroll began that ends at a time; one unroll ends in each length."""
        return (end - 1) // self._unroll_length % self._num_unrolls


def _take(own: Tensor, rows: Int[Tensor, "n t"]) -> Tensor:
    taken = own.flatten(0, 1).index_select(0, rows.flatten())
    return taken.view(*rows.shape, *taken.shape[1:])


def _put(own: Tensor, rows: Int[Tensor, "n t"], new: Tensor) -> None:
    own.flatten(0, 1).index_copy_(0, rows.flatten(), new.flatten(0, 1).to(own.device))
