"""Playing: every environment plays the steps of a turn with the weights that stand at its beginning."""

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
from .games import Games, ProcgenGames
from .unroll import Unroll, rows_of

MakeGames = Callable[[int, bool], Games]
"""From the number of an actor, and whether its frames are to be pinned, to its environments."""


@runtime_checkable
class Sampler(Protocol):
    """What the trainer asks of those who play; here, or on other machines."""

    def begin(self, agent: Agent, turn: int) -> None:
        """Take the weights of an agent, and begin to play a turn of a round, if others than this thread play it."""

    def finish(self, room: Unroll) -> None:
        """Play the turn to its end, and put the unrolls that end with it into a room, an actor's rows together."""

    def restart(self) -> None:
        """Give up the unrolls that have begun: before the next turn, as many steps are played as begin them anew."""

    def take_episodes(self) -> np.ndarray:
        """Give the number, returns and lengths of the episodes that ended since the last call, by game [games, 3]."""

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give all that the next turn depends on but for the weights, by actor."""

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to what `tensors` gave."""

    def close(self) -> None:
        """End the games."""


class LocalSampler:
    """Plays in this process: games in threads, the actions of an actor's environments in one call on the device.

    Args:
        config: the recipe.
        actors: numbers of the actors that play here.
        device: where the agent is.
        autocast: the dtype of the encoder, where it is not that of its weights.
        make_games: makes the environments of an actor; None for ProcGen.
    """

    def __init__(
        self,
        config: RLConfig,
        actors: Sequence[int],
        device: torch.device,
        *,
        autocast: torch.dtype | None = None,
        make_games: MakeGames | None = None,
    ) -> None:
        self._config, self._device = config, device
        self._agent = Agent(config.agent).to(device)
        threads = config.train.threads or max((os.cpu_count() or 1) - 1, 1)
        self._threads = -(-threads // len(actors)) if threads > 1 else 0
        make_games = make_games or self._procgen
        self._turn = 0
        self._is_under_way = False  # the unrolls that are to end with the next turns have begun
        # Actions come before updates wherever both wait for the GPU: the games stand still without them.
        self._stream = torch.cuda.Stream(device, priority=-1) if device.type == "cuda" else None
        with torch.cuda.stream(self._stream):
            self._actors = {
                number: Actor(
                    self._agent,
                    make_games(number, device.type == "cuda"),
                    num_games=len(config.games.names),
                    steps=config.algorithm.unroll_length,
                    number=number,
                    seed=config.seed,
                    device=device,
                    autocast=autocast,
                )
                for number in actors
            }

    def _procgen(self, number: int, pinned: bool) -> ProcgenGames:
        config = self._config
        seed = (config.seed * 65_537 + number) % 2**31
        return ProcgenGames(config.games, config.envs_per_actor, seed, threads=self._threads, pinned=pinned)

    @torch.no_grad()
    def begin(self, agent: Agent, turn: int) -> None:
        """Copy the weights."""
        self._turn = turn
        torch._foreach_copy_(list(self._agent.parameters()), list(agent.parameters()))
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def finish(self, room: Unroll) -> None:
        """Play; on a GPU the last frames may still be on their way, on the current stream's account."""
        config, actors = self._config, list(self._actors.values())
        ends, size = [0, *config.ends_of_turns], config.envs_per_group
        first = self._turn * size
        with torch.cuda.stream(self._stream):
            if not self._is_under_way:
                self._begin_unrolls()
            for unroll in range(config.unrolls_per_round):
                self._play(ends[self._turn + 1] - ends[self._turn])
                for place, actor in enumerate(actors):
                    actor.end(first, rows_of(room, (unroll * len(actors) + place) * size, size))
                    actor.begin(first, size)
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)

    def restart(self) -> None:
        """Let the next turn begin all unrolls anew."""
        self._is_under_way = False

    def _begin_unrolls(self) -> None:
        """Play until every group is as far in its unroll as it must be to end it with its turn."""
        config, size = self._config, self._config.envs_per_group
        steps, ends = config.algorithm.unroll_length, config.ends_of_turns
        # Steps since each group's last end; the turn before the first one of a round is the last one of another.
        ages = [(ends[self._turn - 1] - end) % steps for end in ends]
        for actor in self._actors.values():
            actor.restart()
        for age in range(max(ages), -1, -1):
            for actor in self._actors.values():
                for group in (group for group, own in enumerate(ages) if own == age):
                    actor.begin(group * size, size)
            if age:
                self._play(1)
        self._is_under_way = True

    def _play(self, steps: int) -> None:
        """Some steps of every environment; while one actor's games step, the next one's actions are computed."""
        for _ in range(steps):
            for actor in self._actors.values():
                actor.see()
                actor.choose()
                actor.play()
        for actor in self._actors.values():
            actor.see()

    def take_episodes(self) -> np.ndarray:
        """Give what came of the episodes that ended."""
        ended: np.ndarray = np.sum([actor.episodes.take() for actor in self._actors.values()], axis=0)
        return ended

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give the state of every actor; its unrolls only where some have begun and not ended."""
        unfinished = self._is_under_way and self._config.turns > 1
        return {f"actor-{number}": actor.tensors(unfinished=unfinished) for number, actor in self._actors.items()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Put every actor back into its state."""
        names = {f"actor-{number}": actor for number, actor in self._actors.items()}
        if missing := ", ".join(names.keys() - groups.keys()):
            raise InputError(f"the checkpoint has no {missing}; it is of another number of actors")
        under_way = [actor.load_tensors(groups[name]) for name, actor in names.items()]
        self._is_under_way = all(under_way)

    def close(self) -> None:
        """End the games and their threads."""
        for actor in self._actors.values():
            actor.games.close()
