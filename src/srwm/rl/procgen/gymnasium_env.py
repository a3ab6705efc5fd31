"""ProcGen for users of other libraries: a vector environment, and a single one, of Gymnasium (the extra `rl`).

Two things differ from what Gymnasium's own environments do, because the library never draws the last frame of an
episode. A vector environment resets an environment in the step that ends its episode, but gives no `final_obs`; a
single one gives the frame before the last in its place.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Integer, UInt8

from srwm.errors import InputError

from .options import FORCE_RESET, MAX_SEED, NUM_ACTIONS, PoolOptions
from .pool import FRAME_SHAPE, Pool
from .video import FRAMES_PER_SECOND, VideoPool

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{__name__} needs Gymnasium: run `pip install 'srwm[rl]'`", name=error.name) from error

_RENDER_MODES = ("rgb_array",)


class ProcgenVectorEnv(VectorEnv[Any, Any, Any]):
    """A pool of games as a vector environment of Gymnasium.

    `truncations` says where an episode was ended by the game's time limit. `reset` with a seed makes new games;
    without one it ends all episodes, so that everyone begins a new one. The infos hold `level_seed`, `prev_level_seed`
    and `prev_level_complete`.

    Args:
        games: one game, or several, assigned in order: environment n plays game n mod their number.
        num_envs: how many environments; a multiple of the number of games.
        render_mode: "rgb_array" lets `render` give frames in 512 x 512.
        options: further fields of `PoolOptions`: `distribution`, `start_level`, `num_levels`, ...

    Example:
        >>> envs = ProcgenVectorEnv("starpilot", num_envs=64, distribution="easy", num_levels=200)
        >>> frames, infos = envs.reset(seed=1)
        >>> frames, rewards, terminations, truncations, infos = envs.step(envs.action_space.sample())
    """

    # Gymnasium reads this from the class and declares it without ClassVar.
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": list(_RENDER_MODES),
        "render_fps": FRAMES_PER_SECOND,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self, games: str | Sequence[str], num_envs: int, *, render_mode: str | None = None, **options: Any
    ) -> None:
        self._games = _Games(games, num_envs, render_mode, options)
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space, self.single_action_space = _spaces()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[UInt8[np.ndarray, "n 64 64 3"], dict[str, Any]]:
        """Begin new episodes everywhere, on levels that the seed chooses if there is one.

        Raises:
            InputError: the seed is no whole number from 0 to 2**31 - 1, or a part only is to be reset.
        """
        if options and "reset_mask" in options:
            raise InputError("reset_mask: these games reset themselves; a reset is for all of them")
        super().reset(seed=seed, options=options)
        self._games.restart(seed)
        return self._games.frames(), self._games.infos()

    def step(
        self, actions: Integer[np.ndarray, "n"]
    ) -> tuple[
        UInt8[np.ndarray, "n 64 64 3"],
        Float32[np.ndarray, "n"],
        Bool[np.ndarray, "n"],
        Bool[np.ndarray, "n"],
        dict[str, Any],
    ]:
        """Step every game; where an episode ends, the frame is the first of the next one.

        Raises:
            InputError: the environment is closed, or the actions are not 0 to 14.
        """
        rewards, terminations, truncations = self._games.step(actions)
        return self._games.frames(), rewards, terminations, truncations, self._games.infos()

    def render(self) -> tuple[UInt8[np.ndarray, "512 512 3"], ...] | None:
        """Give large frames, if `render_mode` asks for them."""
        return tuple(self._games.large_frames()) if self.render_mode else None

    def close_extras(self, **_: Any) -> None:
        """End the games."""
        self._games.pool.close()


class ProcgenEnv(gymnasium.Env[Any, Any]):
    """One game as an environment of Gymnasium; it is slow beside a vector environment.

    Args:
        game: its name.
        render_mode: "rgb_array" lets `render` give frames in 512 x 512.
        options: further fields of `PoolOptions`: `distribution`, `start_level`, `num_levels`, ...
    """

    # Gymnasium reads this from the class and declares it without ClassVar.
    metadata: dict[str, Any] = {"render_modes": list(_RENDER_MODES), "render_fps": FRAMES_PER_SECOND}  # noqa: RUF012

    def __init__(self, game: str, *, render_mode: str | None = None, **options: Any) -> None:
        self._games = _Games(game, 1, render_mode, options)
        self.render_mode = render_mode
        self.observation_space, self.action_space = _spaces()
        self._is_over = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[UInt8[np.ndarray, "64 64 3"], dict[str, Any]]:
        """Begin an episode, on a level that the seed chooses if there is one.

        Raises:
            InputError: the seed is no whole number from 0 to 2**31 - 1.
        """
        super().reset(seed=seed, options=options)
        # Where the last episode has come to its end, the next one is there already.
        if seed is not None or not self._is_over:
            self._games.restart(seed)
        self._is_over = False
        return self._games.frames()[0], self._info()

    def step(
        self, action: int | Integer[np.ndarray, ""] | np.integer[Any]
    ) -> tuple[UInt8[np.ndarray, "64 64 3"], float, bool, bool, dict[str, Any]]:
        """Step the game; at the end of an episode the frame is the one before.

        Raises:
            InputError: the environment is closed or waits for a reset, or the action is not 0 to 14.
        """
        if self._is_over:
            raise InputError("the episode is over: call reset() before the next step()")
        before = self._games.frames()[0]
        rewards, terminations, truncations = self._games.step(np.array([action]))
        self._is_over = bool(terminations[0] or truncations[0])
        frame = before if self._is_over else self._games.frames()[0]
        return frame, float(rewards[0]), bool(terminations[0]), bool(truncations[0]), self._info()

    def render(self) -> UInt8[np.ndarray, "512 512 3"] | None:
        """Give a large frame, if `render_mode` asks for them."""
        return self._games.large_frames()[0] if self.render_mode else None

    def close(self) -> None:
        """End the game."""
        self._games.pool.close()

    def _info(self) -> dict[str, Any]:
        return {name: values[0].item() for name, values in self._games.infos().items()}


class _Games:
    """A pool with what Gymnasium wants beside it: resets, copies, and time limits told apart from other ends."""

    def __init__(
        self, games: str | Sequence[str], num_envs: int, render_mode: str | None, options: dict[str, Any]
    ) -> None:
        if render_mode not in (None, *_RENDER_MODES):
            raise InputError(f"render_mode: expected None or 'rgb_array', got {render_mode!r}")
        names = (games,) if isinstance(games, str) else tuple(games)
        try:
            self._options = PoolOptions(names, num_envs, **options)
        except TypeError as error:
            raise InputError(f"{error}; the options are the fields of PoolOptions") from error
        self._large = render_mode is not None
        self._open(self._options)

    def _open(self, options: PoolOptions) -> None:
        self.pool = VideoPool(options) if self._large else Pool(options)
        self._seen = self.pool.observe()
        self._limits = self.pool.time_limits()
        self._lengths = np.zeros(options.num_envs, np.int64)
        self._is_new = True

    def restart(self, seed: int | None) -> None:
        """Begin new episodes everywhere."""
        self.pool.observe()  # Refuses if it is closed.
        if seed is not None:
            if not 0 <= seed <= MAX_SEED:
                raise InputError(f"seed: expected a whole number from 0 to {MAX_SEED}, got {seed}")
            self.pool.close()
            self._open(replace(self._options, seed=int(seed)))
        elif not self._is_new:
            self.step(np.full(self.pool.num_envs, FORCE_RESET))
        self._is_new = False

    def step(
        self, actions: Integer[np.ndarray, "n"]
    ) -> tuple[Float32[np.ndarray, "n"], Bool[np.ndarray, "n"], Bool[np.ndarray, "n"]]:
        """Step all; give rewards, terminations and truncations."""
        self.pool.act(actions)
        self._seen = self.pool.observe()
        first = self._seen.first.astype(np.bool_)
        self._lengths += 1
        truncations = first & (self._lengths >= self._limits)
        self._lengths[first] = 0
        self._is_new = False
        return self._seen.rewards.copy(), first & ~truncations, truncations

    def frames(self) -> UInt8[np.ndarray, "n 64 64 3"]:
        """A copy of the observations."""
        return self._seen.frames.copy()

    def large_frames(self) -> UInt8[np.ndarray, "n 512 512 3"]:
        """A copy of what is shown."""
        assert isinstance(self.pool, VideoPool)
        return self.pool.large_frames.copy()

    def infos(self) -> dict[str, np.ndarray]:
        """Copies of what is known beside."""
        return {name: values.copy() for name, values in self.pool.info._asdict().items()}


def _spaces() -> tuple[spaces.Box, spaces.Discrete]:
    return spaces.Box(0, 255, FRAME_SHAPE, np.uint8), spaces.Discrete(NUM_ACTIONS)
