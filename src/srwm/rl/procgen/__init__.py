"""ProcGen: the official library played through NumPy arrays, its levels and its scores.

`srwm.rl.procgen.gymnasium_env` has the same games for users of Gymnasium.
"""

from .level_pools import LevelPools
from .levels import EASY_SPLITS, MEMORY_SPLITS, LevelRange, LevelSplits, splits_of
from .options import ACTIONS, FORCE_RESET, GAMES, GAMES_WITH, NUM_ACTIONS, Distribution, PoolOptions
from .pool import FRAME_SHAPE, Info, Observation, Pool
from .scores import aggregate, normalised_score
from .video import VideoPool

__all__ = [
    "ACTIONS",
    "EASY_SPLITS",
    "FORCE_RESET",
    "FRAME_SHAPE",
    "GAMES",
    "GAMES_WITH",
    "MEMORY_SPLITS",
    "NUM_ACTIONS",
    "Distribution",
    "Info",
    "LevelPools",
    "LevelRange",
    "LevelSplits",
    "Observation",
    "Pool",
    "PoolOptions",
    "VideoPool",
    "aggregate",
    "normalised_score",
    "splits_of",
]
