"""Playing a round: every environment plays its unrolls with the weights that stand at its beginning."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from .actor import Actor
from .agent import Agent
from .config import RLConfig
from .games import Games, ProcgenGames
from .unroll import Unroll, rows_of

_log = logging.getLogger(__name__)

MakeGames = Callable[[int, bool], Games]
"""From the number of an actor, and whether its frames are to be pinned, to its environments."""


@runtime_checkable
class Sampler(Protocol):
    """What the trainer asks of those who play; here, or on other machines."""

    def begin(self, agent: Agent) -> None:
        """Take the weights of an agent, and begin to play a round, if others than this thread play it."""

    def finish(self, room: Unroll) -> None:
        """Play the round to its end, and put its unrolls into a room; the rows of one actor lie together."""

    def take_episodes(self) -> np.ndarray:
        """Give the number, returns and lengths of the episodes that ended since the last call, by game [games, 3]."""

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give all that the next round depends on but for the weights, by actor."""

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Go back to what `tensors` gave."""

    def close(self) -> None:
        """End the games."""


class LocalSampler:
    """Plays in this process: games in threads, the actions of a group of environments in one call on the device.

    Args:
        config: the recipe.
        actors: numbers of the actors that play here.
        device: where the agent is.
        autocast: the dtype of the vision part, where it is not that of its weights.
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
        # Actions come before updates wherever both wait for the GPU: the games stand still without them.
        self._stream = torch.cuda.Stream(device, priority=-1) if device.type == "cuda" else None
        with torch.cuda.stream(self._stream):
            self._actors = {
                number: Actor(
                    self._agent,
                    make_games(number, device.type == "cuda"),
                    num_games=len(config.games.names),
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
    def begin(self, agent: Agent) -> None:
        """Copy the weights."""
        torch._foreach_copy_(list(self._agent.parameters()), list(agent.parameters()))
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def finish(self, room: Unroll) -> None:
        """Play; on a GPU the last frames may still be on their way, on the current stream's account."""
        size = self._config.envs_per_actor
        actors = list(self._actors.values())
        with torch.cuda.stream(self._stream):
            for first in range(0, len(room.actions), size * len(actors)):
                starts = range(first, first + size * len(actors), size)
                self._play(actors, [rows_of(room, start, size) for start in starts])
        if self._stream is not None:
            torch.cuda.current_stream(self._device).wait_stream(self._stream)

    def _play(self, actors: Sequence[Actor], rows: Sequence[Unroll]) -> None:
        """One unroll of every environment; while one actor's games step, the next one's actions are computed."""
        for actor, unroll in zip(actors, rows, strict=True):
            actor.begin_unroll(unroll)
        steps = rows[0].actions.shape[1]
        for step in range(steps):
            for actor, unroll in zip(actors, rows, strict=True):
                actor.see(unroll, step)
                actor.choose(unroll, step)
                actor.play()
        for actor, unroll in zip(actors, rows, strict=True):
            actor.see(unroll, steps)

    def take_episodes(self) -> np.ndarray:
        """Give what came of the episodes that ended."""
        ended: np.ndarray = np.sum([actor.episodes.take() for actor in self._actors.values()], axis=0)
        return ended

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give the state of every actor."""
        return {f"actor-{number}": actor.tensors() for number, actor in self._actors.items()}

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Put every actor back into its state."""
        for number, actor in self._actors.items():
            if f"actor-{number}" in groups:
                actor.load_tensors(groups[f"actor-{number}"])
            else:
                _log.warning(
                    "the games of actor %d begin anew: it ran in another process than the one that saves", number
                )

    def close(self) -> None:
        """End the games and their threads."""
        for actor in self._actors.values():
            actor.games.close()
