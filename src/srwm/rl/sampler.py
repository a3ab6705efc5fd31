"""Acting: every environment plays the steps of a phase with the weights that stand at its beginning."""

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from srwm.errors import InputError

from .actor import Actor
from .agent import Agent
from .config import RLConfig
from .environments import ProcgenTrainingEnv, VectorEnv
from .rollout_buffer import RolloutBuffer

MakeEnvs = Callable[[int, bool], VectorEnv]
"""From the number of an actor, and whether its frames are to be pinned, to its environments."""


@runtime_checkable
class Sampler(Protocol):
    """What the trainer asks of those who act; here, or on other machines."""

    def start(self, agent: Agent, phase: int) -> None:
        """Take the weights of an agent, and begin to play a phase; the one before is then complete."""

    def finish(self) -> None:
        """Play the phase to its last action."""

    def complete(self) -> None:
        """Wait for what the last actions bring; the unrolls that end with the phase are then in the rollout buffer."""

    def restart(self) -> None:
        """Give up the unrolls that have begun: before the next phase there is a warm-up."""

    def take_episodes(self) -> np.ndarray:
        """Give the number, returns and lengths of the episodes that ended since the last call, by game [games, 3]."""

    def tensors(self, *, is_pending: bool) -> dict[str, dict[str, Tensor]]:
        """Give all that the next phase depends on but for the weights, by actor."""

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to what `tensors` gave."""

    def close(self) -> None:
        """Close the environments."""


def encoder_dtype(config: RLConfig, device: torch.device) -> torch.dtype | None:
    """The dtype of the encoder, where it is not that of its weights."""
    return torch.bfloat16 if device.type == "cuda" and config.train.precision == "bfloat16" else None


class LocalSampler:
    """Acts in this process: environments in threads, the actions of an actor in one call on the device.

    Args:
        config: the recipe.
        actors: numbers of the actors that act here.
        buffer: where their steps go.
        device: where the agent is.
        autocast: the dtype of the encoder, where it is not that of its weights.
        make_envs: makes the environments of an actor; None for ProcGen.
    """

    def __init__(
        self,
        config: RLConfig,
        actors: Sequence[int],
        buffer: RolloutBuffer,
        device: torch.device,
        *,
        autocast: torch.dtype | None = None,
        make_envs: MakeEnvs | None = None,
    ) -> None:
        self._config, self._schedule, self._device = config, config.schedule, device
        self._agent = Agent(config.agent).to(device)
        threads = config.train.threads or max((os.cpu_count() or 1) - 1, 1)
        self._threads = -(-threads // len(actors)) if threads > 1 else 0
        make_envs = make_envs or self._procgen
        # Where weights come from, and the parameters of both: to go through all modules takes longer than to copy them.
        self._source: Agent | None = None
        self._weights: tuple[list[Tensor], list[Tensor]] = ([], [])
        self._phase = 0
        self._time: int | None = None  # up to which unrolls were played; None where the next phase has a warm-up
        # Actions come before updates wherever both wait for the GPU: the environments stand still without them.
        self._stream = torch.cuda.Stream(device, priority=-1) if device.type == "cuda" else None
        self._observed = torch.cuda.Event() if device.type == "cuda" else None
        with torch.cuda.stream(self._stream):
            self._actors = {
                number: Actor(
                    self._agent,
                    make_envs(number, device.type == "cuda"),
                    buffer,
                    place=place,
                    num_games=len(config.games.names),
                    number=number,
                    seed=config.seed,
                    device=device,
                    autocast=autocast,
                )
                for place, number in enumerate(actors)
            }

    def _procgen(self, number: int, pinned: bool) -> ProcgenTrainingEnv:
        config = self._config
        seed = (config.seed * 65_537 + number) % 2**31
        return ProcgenTrainingEnv(
            config.games, self._schedule.envs_per_actor, seed, threads=self._threads, pinned=pinned
        )

    @torch.no_grad()
    def start(self, agent: Agent, phase: int) -> None:
        """Copy the weights, and play the first step: what the caller does next, it does while the environments step."""
        self._phase = phase
        if agent is not self._source:
            self._source, self._weights = agent, (list(self._agent.parameters()), list(agent.parameters()))
        torch._foreach_copy_(*self._weights)
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(self._stream):
            if self._time is None:
                self._warm_up()
            begin = self._schedule.begin(phase)
            self._begin_unrolls(begin, self._schedule.ended_before(phase))
            self._play(begin)
        self._let_wait(self._observed)

    def finish(self) -> None:
        """Play; nobody waits here for what the last actions bring, for the next phase begins with it."""
        schedule, phase = self._schedule, self._phase
        begin, end = schedule.begin(phase), schedule.end(phase)
        with torch.cuda.stream(self._stream):
            for time in range(begin + 1, end):
                # Where there is one group only, it may have several unrolls, one after the other.
                if (time - begin) % schedule.unroll_length == 0:
                    self._begin_unrolls(time, schedule.ended_before(phase))
                self._play(time)
        self._time = end
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)

    def complete(self) -> None:
        """Observe; on a GPU the last frames may still be on their way, on the current stream's account."""
        if self._time is None:
            return
        with torch.cuda.stream(self._stream):
            for actor in self._actors.values():
                actor.observe(self._time)
            self._has_observed()
        self._let_wait(self._observed)

    def restart(self) -> None:
        """Let the next phase have a warm-up."""
        self._time = None

    def _warm_up(self) -> None:
        """Play until every group is as far in its unroll as it must be to end it with its phase."""
        starts = self._schedule.warm_up(self._phase)
        for (time, group), (until, _) in itertools.pairwise(starts):
            self._begin_unrolls(time, group)
            for each in range(time, until):
                self._play(each)

    def _begin_unrolls(self, time: int, group: int) -> None:
        for actor in self._actors.values():
            actor.begin_unrolls(time, self._schedule.group_envs(group))

    def _play(self, time: int) -> None:
        """A step of every environment; while those of one actor step, the next one's actions are computed."""
        last = len(self._actors) - 1
        for place, actor in enumerate(self._actors.values()):
            actor.observe(time)
            if place == last:
                self._has_observed()
            actor.act(time)
            actor.step()

    def _has_observed(self) -> None:
        """Note the place in the stream where the observations of all are written."""
        if self._observed is not None:
            self._observed.record()

    def _let_wait(self, event: torch.cuda.Event | None) -> None:
        """Let the current stream wait for an event."""
        if event is not None:
            torch.cuda.current_stream(self._device).wait_event(event)

    def take_episodes(self) -> np.ndarray:
        """Give the statistics of the episodes that ended."""
        ended: np.ndarray = np.sum([actor.statistics.take() for actor in self._actors.values()], axis=0)
        return ended

    def tensors(self, *, is_pending: bool) -> dict[str, dict[str, Tensor]]:
        """Give the state of every actor; its unrolls only where some have not ended, or are to be learnt from."""
        until = self._time if is_pending or self._schedule.groups > 1 else None
        return {f"actor-{number}": actor.tensors(unrolls_until=until) for number, actor in self._actors.items()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Put every actor back into its state."""
        names = {f"actor-{number}": actor for number, actor in self._actors.items()}
        if missing := ", ".join(names.keys() - groups.keys()):
            raise InputError(f"the checkpoint has no {missing}; it is of another number of actors")
        times = {actor.load_tensors(groups[name]) for name, actor in names.items()}
        if len(times) > 1:
            raise InputError("the checkpoint has actors whose unrolls end at different times")
        self._time = times.pop()

    def close(self) -> None:
        """Close the environments, and end their threads."""
        for actor in self._actors.values():
            actor.envs.close()
