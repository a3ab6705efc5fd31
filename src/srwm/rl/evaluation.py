"""Testing an agent by the standard protocol: every level of every split once, greedy actions, unclipped rewards."""

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Integer
from rich.console import Console

from srwm.nn import map_state

from .agent import Agent
from .procgen import Distribution, LevelPools, LevelRange, Observation, Pool, PoolOptions
from .procgen.scores import aggregate


@runtime_checkable
class EpisodeEnv(Protocol):
    """Environments that each play one episode; `LevelPools` and `RandomEpisodes` are such."""

    num_envs: int
    returns: np.ndarray
    lengths: np.ndarray
    finished: Bool[np.ndarray, "n"]

    def observe(self) -> Observation:
        """Give the observations."""

    def act(self, actions: Integer[np.ndarray, "n"]) -> None:
        """Step every environment whose episode is not over."""


@dataclass(frozen=True)
class SplitResult:
    """Returns and score of an agent on one range of levels."""

    levels: tuple[int, int]
    """The first level and the number of levels."""
    returns: dict[str, list[float]]
    """The return of every episode, by game; of level after level, where each was played once."""
    lengths: dict[str, float]
    """Mean length of the episodes, by game."""
    score: float
    """The aggregated score: 100 times the mean over games of the normalised mean returns."""

    @property
    def means(self) -> dict[str, float]:
        """Mean return by game."""
        return {game: float(np.mean(returns)) for game, returns in self.returns.items()}


def evaluate(
    agent: Agent,
    games: Sequence[str],
    distribution: Distribution,
    splits: Mapping[str, LevelRange],
    *,
    random_episodes: int | None = None,
    seed: int = 0,
    threads: int = 0,
    console: Console | None = None,
) -> dict[str, SplitResult]:
    """Play every level of some splits with greedy actions.

    Args:
        agent: the policy, on its device.
        games: what is played.
        distribution: how levels are made.
        splits: ranges of levels by name.
        random_episodes: play so many episodes a game on levels drawn at random, as the authors did, instead of every
            level once.
        seed: which levels are drawn, if they are.
        threads: threads that step the games; 0 for as many as there are cores.
        console: is told what is being played.

    Raises:
        InputError: if the games do not have the distribution, or ProcGen is not installed.
    """
    threads = threads or os.cpu_count() or 1
    results = {}
    for name, levels in splits.items():
        if console is not None:
            console.print(f"Playing levels {levels} ({name})", highlight=False)
        options = PoolOptions(tuple(games), len(games), distribution=distribution)
        envs: LevelPools | RandomEpisodes
        if random_episodes is None:
            envs = LevelPools(games, levels, options, threads=threads)
        else:
            envs = RandomEpisodes(games, distribution, levels, random_episodes, seed=seed, threads=threads)
        with envs:
            run_episodes(agent, envs)
        returns = {game: envs.returns[i :: len(games)].tolist() for i, game in enumerate(games)}
        lengths = {game: float(envs.lengths[i :: len(games)].mean()) for i, game in enumerate(games)}
        score = aggregate({game: float(np.mean(each)) for game, each in returns.items()}, distribution)
        results[name] = SplitResult((levels.start, levels.count), returns, lengths, score)
    return results


@torch.no_grad()
def run_episodes(agent: Agent, envs: EpisodeEnv) -> None:
    """Act greedily until every episode is over."""
    device = agent.policy.weight.device
    rows = np.arange(envs.num_envs)
    state: Any = agent.initial_state(envs.num_envs)
    actions = np.zeros(envs.num_envs, np.int32)
    while len(rows):
        observations = (torch.from_numpy(np.ascontiguousarray(part[rows])).to(device) for part in envs.observe())
        frames, rewards, first = observations
        output, state = agent(frames[:, None], rewards[:, None], first.bool()[:, None], state)
        actions[rows] = output.logits[:, 0].argmax(-1).cpu().numpy()
        envs.act(actions)
        still = ~envs.finished[rows]
        if not still.all():
            # Only those that go on are computed for.
            kept = torch.from_numpy(np.flatnonzero(still)).to(device)
            state = map_state(functools.partial(torch.index_select, dim=0, index=kept), state)
            rows = rows[still]


class RandomEpisodes:
    """Environments that play one episode each on a level drawn at random, with replacement: the authors' test.

    Args:
        games: what is played; environment n plays game n modulo their number.
        distribution: how levels are made.
        levels: what they are drawn from.
        episodes: of each game.
        seed: which are drawn.
        threads: threads of the library that step the games.
    """

    def __init__(
        self,
        games: Sequence[str],
        distribution: Distribution,
        levels: LevelRange,
        episodes: int,
        *,
        seed: int = 0,
        threads: int = 1,
    ) -> None:
        self.num_envs = len(games) * episodes
        self.returns, self.lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)
        self.finished = np.zeros(self.num_envs, np.bool_)
        self._pool = Pool(
            PoolOptions(
                tuple(games),
                self.num_envs,
                distribution=distribution,
                start_level=levels.start,
                num_levels=levels.count,
                seed=seed,
                threads=threads if threads > 1 else 0,
            )
        )

    def observe(self) -> Observation:
        """Give the observations; of finished environments they mean nothing."""
        return self._pool.observe()

    def act(self, actions: Integer[np.ndarray, "n"]) -> None:
        """Step every environment, and count for those whose episode is not over."""
        self._pool.act(actions)
        _, rewards, first = self._pool.observe()
        self.returns += np.where(self.finished, 0.0, rewards)
        self.lengths += ~self.finished
        self.finished |= first.astype(np.bool_)

    def __enter__(self) -> "RandomEpisodes":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()
