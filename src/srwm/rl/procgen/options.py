"""What a pool of ProcGen games is asked for; checked here, because the library answers a bad option with `exit`."""

from dataclasses import dataclass
from typing import Literal, get_args

from srwm.errors import InputError
from srwm.runs.suggestions import did_you_mean

Distribution = Literal["easy", "hard", "extreme", "memory"]
"""How levels are made; "memory" has larger worlds of which the player sees a part."""

GAMES = (
    "bigfish",
    "bossfight",
    "caveflyer",
    "chaser",
    "climber",
    "coinrun",
    "dodgeball",
    "fruitbot",
    "heist",
    "jumper",
    "leaper",
    "maze",
    "miner",
    "ninja",
    "plunder",
    "starpilot",
)
"""The games of ProcGen."""

GAMES_WITH: dict[Distribution, tuple[str, ...]] = {
    "easy": GAMES,
    "hard": GAMES,
    "extreme": ("chaser", "dodgeball", "leaper", "starpilot"),
    "memory": ("caveflyer", "dodgeball", "heist", "jumper", "maze", "miner"),
}
"""Which games have which distribution."""

ACTIONS = (
    "left down",
    "left",
    "left up",
    "down",
    "nothing",
    "up",
    "right down",
    "right",
    "right up",
    "D",
    "A",
    "W",
    "S",
    "Q",
    "E",
)
"""What the 15 actions are: directions of the stick, and keys that mean something in some games."""
NUM_ACTIONS = len(ACTIONS)
FORCE_RESET = -1
"""An action that ends the episode and begins the next."""

MAX_ENVS = 65_536
MAX_THREADS = 256
MAX_LEVEL = 2**31 - 1
"""The numbers of levels lie below this."""
MAX_SEED = 2**31 - 1

MODES: dict[Distribution, int] = {"easy": 0, "hard": 1, "extreme": 2, "memory": 10}
"""The library's numbers for the distributions."""


@dataclass(frozen=True)
class PoolOptions:
    """Which games are played in a pool, on which levels; the defaults are the paper's training levels."""

    games: tuple[str, ...]
    """One or several games; environment n plays game n mod the number of games."""
    num_envs: int
    """Environments of the pool; a multiple of the number of games."""
    distribution: Distribution = "easy"
    """How levels are made, for all games of the pool: easy, hard, extreme or memory."""
    start_level: int = 0
    """The first level."""
    num_levels: int = 200
    """How many levels there are to draw from; 0 for all that ProcGen can make."""
    seed: int = 0
    """Which levels come when: equal seeds and actions give equal frames."""
    threads: int = 0
    """Threads of the library that step the games; 0 steps them in the thread that calls `act`."""
    center_agent: bool = True
    """Whether the picture follows the player, in games with larger worlds."""
    use_backgrounds: bool = True
    """Whether there are backgrounds, or black."""
    use_monochrome_assets: bool = False
    """Whether things are drawn as rectangles of one colour."""
    restrict_themes: bool = False
    """Whether games that have several themes use one only."""
    use_generated_assets: bool = False
    """Whether made-up pictures stand in for the drawn ones."""
    paint_vel_info: bool = False
    """Whether the player's velocity is painted into the upper left corner, in games that have one."""

    def __post_init__(self) -> None:
        self._check_games()
        _check_number("num_envs", self.num_envs, 1, MAX_ENVS)
        if self.num_envs % len(self.games):
            raise InputError(
                f"num_envs={self.num_envs} is not a multiple of the number of games, which is {len(self.games)}"
            )
        _check_number("start_level", self.start_level, 0, MAX_LEVEL - 1)
        _check_number("num_levels", self.num_levels, 0, MAX_LEVEL)
        if self.start_level + self.num_levels > MAX_LEVEL:
            raise InputError(
                f"start_level={self.start_level} with num_levels={self.num_levels} goes beyond the last level, "
                f"{MAX_LEVEL - 1}"
            )
        if self.num_levels == 0 and self.start_level != 0:
            raise InputError(
                f"start_level={self.start_level} means nothing with num_levels=0, which stands for all levels; "
                "give a number of levels, or start_level=0"
            )
        _check_number("seed", self.seed, 0, MAX_SEED)
        _check_number("threads", self.threads, 0, MAX_THREADS)
        for name in _FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"{name}: expected True or False, got {getattr(self, name)!r}")

    def _check_games(self) -> None:
        if self.distribution not in get_args(Distribution):
            raise InputError(
                f"distribution: expected one of {', '.join(get_args(Distribution))}, got {self.distribution!r}"
                f"{did_you_mean(str(self.distribution), get_args(Distribution))}"
            )
        games: object = self.games
        if not isinstance(games, tuple) or not games:
            raise InputError(f"games: expected a tuple of one or several of {', '.join(GAMES)}, got {games!r}")
        for game in self.games:
            check_game(game)
            if game not in GAMES_WITH[self.distribution]:
                raise InputError(
                    f"games: {game} has no {self.distribution} distribution; "
                    f"those that have one are {', '.join(GAMES_WITH[self.distribution])}"
                )
            if self.games.count(game) > 1:
                raise InputError(f"games: {game} is named twice")

    @property
    def level_range(self) -> range:
        """The levels that can come up."""
        return range(self.start_level, self.start_level + self.num_levels) if self.num_levels else range(MAX_LEVEL)

    def game_of(self, env: int) -> str:
        """Say which game an environment plays."""
        return self.games[env % len(self.games)]

    def for_library(self) -> dict[str, bool | int | str | bytes]:
        """Give the options by the names and types that the library knows."""
        return {
            "env_name": ",".join(self.games),
            "num_levels": self.num_levels,
            "start_level": self.start_level,
            "num_actions": NUM_ACTIONS,
            "rand_seed": self.seed,
            "num_threads": self.threads,
            "distribution_mode": MODES[self.distribution],
            **{name: getattr(self, name) for name in _FLAGS},
        }


_FLAGS = (
    "center_agent",
    "use_backgrounds",
    "use_monochrome_assets",
    "restrict_themes",
    "use_generated_assets",
    "paint_vel_info",
)


def check_game(game: object) -> None:
    """Refuse what is no game.

    Raises:
        InputError: with the nearest game's name.
    """
    if game not in GAMES:
        hint = did_you_mean(game, GAMES) if isinstance(game, str) else ""
        raise InputError(f"games: there is no game {game!r}{hint or '; the games are ' + ', '.join(GAMES)}")


def _check_number(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InputError(f"{name}: expected a whole number from {least} to {most}, got {value!r}")
