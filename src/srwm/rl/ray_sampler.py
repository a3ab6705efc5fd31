"""Playing on other machines: each actor is an actor of a Ray cluster, with its games and a copy of the agent.

Who plays what with which weights is the same as in one process, and so are the unrolls, to the bit where the machines
compute alike.
"""

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from srwm.errors import RunError
from srwm.nn import named_tensors
from srwm.runs.ray_cluster import connect

from .agent import Agent
from .config import RLConfig
from .sampler import LocalSampler, MakeGames
from .unroll import Unroll, empty_unroll, rows_of

_log = logging.getLogger(__name__)

MOST_DEATHS = 3
"""How often in a row the actor of one group may die before the run gives up."""


class RaySampler:
    """Plays on a Ray cluster; see `srwm.rl.sampler.Sampler`.

    An actor that dies is replaced by one that begins its episodes anew, and the run goes on.

    Args:
        config: the recipe.
        actors: numbers of the actors.
        address: of the cluster: `auto`, or HOST:PORT.
        make_games: makes the environments of an actor; None for ProcGen.

    Raises:
        InputError: if Ray is not installed, or no cluster answers.
    """

    def __init__(
        self, config: RLConfig, actors: Sequence[int], address: str, *, make_games: MakeGames | None = None
    ) -> None:
        self._ray = connect(address, "train.ray_address")
        self._config, self._make_games = config, make_games
        self._remote = self._ray.remote(num_cpus=1, max_concurrency=1)(_Player)
        self._players = {number: self._start(number) for number in actors}
        self._weights: Any = None
        self._turn = 0
        self._playing: dict[int, Any] = {}

    def _start(self, number: int) -> Any:
        return self._remote.remote(self._config, number, self._make_games)

    def begin(self, agent: Agent, turn: int) -> None:
        """Send the weights, and let everyone play."""
        self._turn = turn
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in agent.state_dict().items()}
        self._weights = self._ray.put(weights)
        self._playing = {number: player.play.remote(self._weights, turn) for number, player in self._players.items()}

    def finish(self, room: Unroll) -> None:
        """Wait for the unrolls of all."""
        size, count = self._config.envs_per_group, len(self._players)
        for place, number in enumerate(self._players):
            played = self._result(number)
            for unroll in range(self._config.unrolls_per_round):
                rows = rows_of(room, (unroll * count + place) * size, size)
                for name, tensor in named_tensors(rows):
                    # What Ray hands over is read-only.
                    tensor.copy_(torch.from_numpy(played[name][unroll * size : (unroll + 1) * size].copy()))

    def _result(self, number: int) -> Mapping[str, np.ndarray]:
        for _ in range(MOST_DEATHS):
            try:
                played: Mapping[str, np.ndarray] = self._ray.get(self._playing[number])
            except self._ray.exceptions.RayActorError:
                _log.warning("actor %d has died; another begins its episodes anew", number)
                self._players[number] = self._start(number)
                self._playing[number] = self._players[number].play.remote(self._weights, self._turn)
            else:
                return played
        raise RunError(f"actor {number} died {MOST_DEATHS} times in a row; its machine's Ray logs say why")

    def restart(self) -> None:
        """Let everyone begin their unrolls anew."""
        self._ask("restart")

    def take_episodes(self) -> np.ndarray:
        """Ask everyone what came of the episodes that ended."""
        ended: np.ndarray = np.sum(self._ask("take_episodes"), axis=0)
        return ended

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Ask everyone for their state."""
        return {
            group: {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
            for groups in self._ask("state")
            for group, arrays in groups.items()
        }

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Send everyone back to a state."""
        for number, player in self._players.items():
            name = f"actor-{number}"
            own = {name: {key: tensor.numpy() for key, tensor in groups[name].items()}}
            self._ray.get(player.load_state.remote(own))

    def _ask(self, method: str) -> list[Any]:
        try:
            return list(self._ray.get([getattr(player, method).remote() for player in self._players.values()]))
        except self._ray.exceptions.RayActorError as error:
            raise RunError(f"an actor died while it was asked for its {method}; start again with --resume") from error

    def close(self) -> None:
        """End everyone's games, and leave the cluster."""
        for player in self._players.values():
            self._ray.kill(player)
        self._ray.shutdown()


class _Player:
    """One actor on one machine of the cluster."""

    def __init__(self, config: RLConfig, number: int, make_games: MakeGames | None) -> None:
        torch.set_num_threads(1)
        device = torch.device("cpu")
        self._agent = Agent(config.agent)
        self._sampler = LocalSampler(config, [number], device, make_games=make_games)
        rows = config.unrolls_per_round * config.envs_per_group
        state = self._agent.initial_state(1)
        self._room = empty_unroll(rows, config.algorithm.unroll_length, state, device)

    def play(self, weights: Mapping[str, np.ndarray], turn: int) -> dict[str, np.ndarray]:
        """Play a turn with some weights."""
        self._agent.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        self._sampler.begin(self._agent, turn)
        self._sampler.finish(self._room)
        return {name: tensor.numpy() for name, tensor in named_tensors(self._room)}

    def restart(self) -> None:
        self._sampler.restart()

    def take_episodes(self) -> np.ndarray:
        return self._sampler.take_episodes()

    def pid(self) -> int:
        return os.getpid()

    def state(self) -> dict[str, dict[str, np.ndarray]]:
        return {
            group: {name: tensor.numpy() for name, tensor in tensors.items()}
            for group, tensors in self._sampler.tensors().items()
        }

    def load_state(self, groups: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        self._sampler.load_tensors(
            {
                group: {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
                for group, arrays in groups.items()
            }
        )
