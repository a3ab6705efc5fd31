"""Plays every level of a range exactly once, all of them side by side."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Float64, Integer

from srwm.errors import InputError

from .levels import LevelRange
from .options import PoolOptions
from .pool import FRAME_SHAPE, Observation, Pool


class LevelPools:
    """One environment for each level and game; each plays one episode and then stands still.

    A pool of ProcGen draws its levels at random, so each environment is a pool of its own that has one level. To the
    outside they are one pool: environment n plays game n mod the number of games, on level n div that number, and
    `observe` and `act` are those of `Pool`. Where an episode is over, actions have no effect, the reward is 0 and the
    frame stays.

    Args:
        games: which games are played.
        levels: which levels, each by every game.
        options: how (distribution, backgrounds); its games, levels, threads and number of environments are replaced.
        threads: in how many threads the environments are stepped.

    Example:
        >>> with LevelPools(("maze",), EASY_SPLITS.tests[0]) as play:
        ...     while not play.finished.all():
        ...         frames, rewards, first = play.observe()
        ...         play.act(policy(frames, rewards, first))
        ...     print(play.returns.mean())
    """

    def __init__(
        self,
        games: Sequence[str],
        levels: LevelRange,
        options: PoolOptions | None = None,
        *,
        threads: int = 1,
    ) -> None:
        if threads < 1:
            raise InputError(f"threads: expected at least 1, got {threads}")
        games = tuple(games)
        options = replace(options, games=games, num_envs=len(games)) if options else PoolOptions(games, len(games))
        n = len(games) * levels.count
        self.games = games
        self.levels = levels
        self.num_envs = n
        self.returns = np.zeros(n)
        """The sum of the rewards of each environment's episode so far, float64 [n]."""
        self.lengths = np.zeros(n, np.int64)
        """How many steps each has taken, [n]."""
        self.finished = np.zeros(n, np.bool_)
        """Whose episode is over, bool [n]."""
        self._frames = np.zeros((n, *FRAME_SHAPE), np.uint8)
        self._rewards = np.zeros(n, np.float32)
        self._first = np.zeros(n, np.bool_)
        self._stack = ExitStack()
        self._threads = self._stack.enter_context(ThreadPoolExecutor(threads, "procgen-level")) if threads > 1 else None
        self._shares = [range(start, n, threads) for start in range(threads)]
        self._pools: list[Pool] = []
        with ExitStack() as opening:
            opening.callback(self._stack.close)
            for env in range(n):
                pool = Pool(
                    replace(
                        options,
                        games=(games[env % len(games)],),
                        num_envs=1,
                        start_level=levels.start + env // len(games),
                        num_levels=1,
                        threads=0,
                    ),
                    frames=self._frames[env : env + 1],
                    rewards=self._rewards[env : env + 1],
                    first=self._first[env : env + 1],
                )
                self._pools.append(self._stack.enter_context(pool))
            opening.pop_all()

    def game_of(self, env: int) -> str:
        """Say which game an environment plays."""
        return self.games[env % len(self.games)]

    def level_of(self, env: int) -> int:
        """Say which level an environment plays."""
        return self.levels.start + env // len(self.games)

    def returns_of(self, game: str) -> Float64[np.ndarray, "levels"]:
        """Give the returns of a game, level by level."""
        return self.returns[self.games.index(game) :: len(self.games)]

    def observe(self) -> Observation:
        """Give the observations; the arrays are overwritten by the next step.

        Raises:
            InputError: the pools are closed.
        """
        self._check_open()
        return Observation(self._frames, self._rewards, self._first)

    def act(self, actions: Integer[np.ndarray, "n"]) -> None:
        """Step every environment whose episode is not over.

        Args:
            actions: 0 to 14 for each environment; those of finished ones mean nothing.

        Raises:
            InputError: the pools are closed, or the actions are not such.
        """
        self._check_open()
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,):
            raise InputError(f"actions: expected shape [{self.num_envs}], got {list(actions.shape)}")
        step: Callable[[range], None] = partial(self._step, actions)
        if self._threads:
            list(self._threads.map(step, self._shares))
        else:
            step(self._shares[0])

    def _step(self, actions: Integer[np.ndarray, "n"], share: range) -> None:
        """Step a part of the environments."""
        for env in share:
            if self.finished[env]:
                self._rewards[env] = 0.0
                self._first[env] = False
                continue
            self._pools[env].act(actions[env : env + 1])
            self.returns[env] += self._rewards[env]
            self.lengths[env] += 1
            self.finished[env] = self._first[env]

    def close(self) -> None:
        """End all games; what was counted stays."""
        self._stack.close()

    def __enter__(self) -> "LevelPools":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._pools[0].closed:
            raise InputError("these pools of ProcGen games are closed; open new ones")
