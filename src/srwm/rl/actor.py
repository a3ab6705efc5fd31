"""An actor: some environments that step together, the agent's states in them, and the actions it takes.

On a GPU all its actions come from one CUDA graph; while they are computed, other actors' environments step.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.errors import InputError
from srwm.nn import map_state, named_tensors
from srwm.runs.cuda_graph import record

from .agent import Agent
from .environments import VectorEnv
from .episode_statistics import EpisodeStatistics
from .rollout_buffer import RolloutBuffer

_ACTION_STREAM = 1 << 32
"""Where the streams of random numbers for actions begin; one for each actor."""


class Actor:
    """Acts in some environments, and writes the steps to a rollout buffer.

    Args:
        agent: the policy; whoever trains it puts new weights into it between phases.
        envs: the environments.
        buffer: where the steps go.
        place: number of this actor among those of the buffer.
        num_games: how many games there are among the environments.
        number: number of this actor among all; gives it random numbers of its own.
        seed: seed of the run.
        device: where the agent is.
        autocast: the dtype of the encoder, where it is not that of its weights.
    """

    def __init__(
        self,
        agent: Agent,
        envs: VectorEnv,
        buffer: RolloutBuffer,
        *,
        place: int,
        num_games: int,
        number: int,
        seed: int,
        device: torch.device,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.agent, self.envs = agent, envs
        size = len(envs.frames)
        self.statistics = EpisodeStatistics(size, num_games)
        self._buffer, self._rows = buffer, slice(place * size, (place + 1) * size)
        self._seed, self._stream, self._autocast = seed, _ACTION_STREAM + number, autocast
        on_gpu = device.type == "cuda"
        self._shown = (envs.frames, envs.rewards, envs.first)
        # On a CPU the policy reads the memory of the environments, which stand still meanwhile.
        self._observation: tuple[Tensor, ...] = self._shown
        if on_gpu:
            self._observation = tuple(torch.zeros_like(part, device=device) for part in self._shown)
        self._state = map_state(torch.clone, agent.initial_state(size))
        self._step = torch.zeros((), dtype=torch.int64, device=device)
        self._actions = torch.zeros(size, dtype=torch.int64, device=device)
        self._behaviour_log_prob = torch.zeros(size, device=device)
        self._has_stepped = False  # the environments have stepped and were not observed yet
        self._written: int | None = None  # the time whose observations were written last
        self._host_actions = torch.zeros(size, dtype=torch.int64, pin_memory=on_gpu)
        self._chosen = torch.cuda.Event() if on_gpu else None
        self._choose: Callable[[], None] = self._choose_actions
        if on_gpu:
            self._choose = self._record()
        self._upload()

    def begin_unrolls(self, time: int, group: slice) -> None:
        """Let unrolls of some of the environments begin at a time, the present one."""
        rows = slice(self._rows.start + group.start, self._rows.start + group.stop)
        self._buffer.begin_unrolls(time, rows, map_state(lambda own: own[group], self._state))

    def observe(self, time: int) -> None:
        """Wait for the environments, and write what they show at a time."""
        if self._has_stepped:
            self.envs.step_wait()
            self.statistics.add(self.envs.rewards.numpy(), self.envs.first.numpy())
            self._upload()
            self._has_stepped = False
        if self._written != time:
            self._buffer.write_observations(time, self._rows, *self._observation)
            self._written = time

    def act(self, time: int) -> None:
        """Begin to choose the actions for what was observed at a time, and write them."""
        self._choose()
        self._host_actions.copy_(self._actions, non_blocking=True)
        if self._chosen is not None:
            self._chosen.record()
        self._buffer.write_actions(time, self._rows, self._actions, self._behaviour_log_prob)

    def step(self) -> None:
        """Wait for the actions, and begin to step the environments with them."""
        if self._chosen is not None:
            self._chosen.synchronize()
        self.envs.step_async(self._host_actions.numpy().astype(np.int32))
        self._has_stepped = True

    def tensors(self, *, unrolls_until: int | None) -> dict[str, Tensor]:
        """Give all that the next steps depend on, but for the weights.

        Args:
            unrolls_until: the time, where unrolls are still needed; None where they are not.
        """
        unrolls = {} if unrolls_until is None else self._buffer.tensors(self._rows, unrolls_until)
        return {
            "step": self._step,
            **{f"state.{name}": tensor for name, tensor in named_tensors(self._state)},
            **{f"envs.{name}": tensor for name, tensor in self.envs.tensors().items()},
            **{f"statistics.{name}": tensor for name, tensor in self.statistics.tensors().items()},
            **{f"unrolls.{name}": tensor for name, tensor in unrolls.items()},
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> int | None:
        """Go back to what `tensors` gave, in place: a CUDA graph holds on to the tensors' memory.

        Returns:
            The time, where there are unrolls among them.
        """
        for name, tensor in (("step", self._step), *((f"state.{n}", t) for n, t in named_tensors(self._state))):
            if name not in tensors or tensors[name].shape != tensor.shape:
                raise InputError(f"the checkpoint is of another agent or number of environments: {name} does not fit")
            tensor.copy_(tensors[name])
        self.envs.load_tensors(under("envs.", tensors))
        self.statistics.load_tensors(under("statistics.", tensors))
        self._has_stepped, self._written = False, None
        self._upload()
        unrolls = under("unrolls.", tensors)
        return self._buffer.load_tensors(self._rows, unrolls) if unrolls else None

    def _upload(self) -> None:
        """Copy what the environments show to a GPU."""
        if self._observation is not self._shown:
            for own, shown in zip(self._observation, self._shown, strict=True):
                own.copy_(shown, non_blocking=True)

    @torch.no_grad()
    def _choose_actions(self) -> None:
        """Run the policy, draw actions, and go on to the next state, without waiting for the device."""
        frames, rewards, first = (part[:, None] for part in self._observation)
        output, state = self.agent(frames, rewards, first, self._state, autocast=self._autocast)
        logits = output.logits[:, 0]
        key = stream_key(self._seed, self._stream, self._step)
        self._actions.copy_(draw_actions(logits, key))
        log_probs = logits.log_softmax(-1)
        self._behaviour_log_prob.copy_(log_probs.gather(-1, self._actions[:, None]).squeeze(-1))
        for (_, own), (_, new) in zip(named_tensors(self._state), named_tensors(state), strict=True):
            own.copy_(new)
        self._step.add_(1)

    def _record(self) -> Callable[[], None]:
        replay = record(self._choose_actions, priority=-1)
        for _, tensor in named_tensors(self._state):
            tensor.zero_()
        self._step.zero_()
        return replay


def draw_actions(logits: Float[Tensor, "n actions"], key: Int[Tensor, ""]) -> Int[Tensor, "n"]:
    """Draw an action from each policy, as a pure function of the key.

    The largest of logits plus Gumbel noise is a draw from their softmax.
    """
    # 23 bits and a half: float32 holds them exactly, and neither 0 nor 1 can come.
    uniform = ((random_bits(key, logits.shape) >> 9).to(logits.dtype) + 0.5) / (1 << 23)
    return (logits - (-uniform.log()).log()).argmax(dim=-1)


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
