"""Returns of different games on one scale (Cobbe et al., 2020): 0 is a random policy, 1 about the best there is."""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from srwm.errors import InputError

from .options import Distribution, check_game


class Bounds(NamedTuple):
    """The returns that count as 0 and as 1."""

    least: float
    most: float


BOUNDS: dict[Literal["easy", "hard"], dict[str, Bounds]] = {
    "easy": {
        "bigfish": Bounds(1, 40),
        "bossfight": Bounds(0.5, 13),
        "caveflyer": Bounds(3.5, 12),
        "chaser": Bounds(0.5, 13),
        "climber": Bounds(2, 12.6),
        "coinrun": Bounds(5, 10),
        "dodgeball": Bounds(1.5, 19),
        "fruitbot": Bounds(-1.5, 32.4),
        "heist": Bounds(3.5, 10),
        "jumper": Bounds(3, 10),
        "leaper": Bounds(3, 10),
        "maze": Bounds(5, 10),
        "miner": Bounds(1.5, 13),
        "ninja": Bounds(3.5, 10),
        "plunder": Bounds(4.5, 30),
        "starpilot": Bounds(2.5, 64),
    },
    "hard": {
        "bigfish": Bounds(0, 40),
        "bossfight": Bounds(0.5, 13),
        "caveflyer": Bounds(2, 13.4),
        "chaser": Bounds(0.5, 14.2),
        "climber": Bounds(1, 12.6),
        "coinrun": Bounds(5, 10),
        "dodgeball": Bounds(1.5, 19),
        "fruitbot": Bounds(-0.5, 27.2),
        "heist": Bounds(2, 10),
        "jumper": Bounds(1, 10),
        "leaper": Bounds(1.5, 10),
        "maze": Bounds(4, 10),
        "miner": Bounds(1.5, 20),
        "ninja": Bounds(2, 10),
        "plunder": Bounds(3, 30),
        "starpilot": Bounds(1.5, 35),
    },
}
"""The bounds of each game (Cobbe et al. 2020, appendix C)."""


def bounds(game: str, distribution: Distribution) -> Bounds:
    """Give the returns of a game that count as 0 and as 1.

    Raises:
        InputError: there is no such game, or nobody has published bounds for the distribution.
    """
    check_game(game)
    if distribution == "extreme":
        raise InputError("there are no published scores to compare with for the extreme distribution")
    # The paper measures the memory distribution by the bounds of the hard one.
    return BOUNDS["easy" if distribution == "easy" else "hard"][game]


def normalised_score(game: str, mean_return: float, distribution: Distribution) -> float:
    """Put a return on the common scale; it is not clipped, so what is worse than chance is negative.

    Raises:
        InputError: there is no such game, or nobody has published bounds for the distribution.
    """
    least, most = bounds(game, distribution)
    return (mean_return - least) / (most - least)


def aggregate(mean_returns: Mapping[str, float], distribution: Distribution) -> float:
    """Give the paper's aggregated score: 100 times the mean of the normalised returns of several games.

    Args:
        mean_returns: the mean return of each game.
        distribution: the one they were played in.

    Raises:
        InputError: there are none, or one cannot be normalised.
    """
    if not mean_returns:
        raise InputError("there are no returns to aggregate")
    scores = [normalised_score(game, value, distribution) for game, value in mean_returns.items()]
    return 100 * sum(scores) / len(scores)
