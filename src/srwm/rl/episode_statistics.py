"""Returns and lengths of episodes, added up while the environments go on."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float32
from torch import Tensor

from srwm.runs.tensor_file import copy_tensors

from .procgen import Distribution, aggregate


class EpisodeStatistics:
    """Adds up the rewards of each environment, and returns and lengths of the episodes that ended.

    Args:
        number: environments.
        games: how many games there are; environment n plays game n modulo this.
    """

    def __init__(self, number: int, games: int) -> None:
        self._returns, self._lengths = np.zeros(number), np.zeros(number)
        self._ended = np.zeros((games, 3))
        self._game = np.arange(number) % games

    def add(self, rewards: Float32[np.ndarray, "n"], first: Bool[np.ndarray, "n"]) -> None:
        """Take what came with a frame; where an episode begins, the one before has ended with this reward."""
        self._returns += rewards
        self._lengths += 1
        if first.any():
            at = np.flatnonzero(first)
            each = np.stack((np.ones(len(at)), self._returns[at], self._lengths[at]), axis=1)
            np.add.at(self._ended, self._game[at], each)
            self._returns[at] = self._lengths[at] = 0.0

    def take(self) -> np.ndarray:
        """Give the number, the returns and the lengths of the episodes that ended since the last call, by game."""
        ended, self._ended = self._ended, np.zeros_like(self._ended)
        return ended

    def tensors(self) -> dict[str, Tensor]:
        """Give all sums."""
        names = ("returns", "lengths", "ended")
        return {name: torch.from_numpy(getattr(self, f"_{name}").copy()) for name in names}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take back what `tensors` gave.

        Raises:
            InputError: if they are those of other games.
        """
        own = self.tensors()
        copy_tensors(own, tensors, "the episode statistics in the checkpoint")
        for name, tensor in own.items():
            getattr(self, f"_{name}")[...] = tensor.numpy()


def episode_metrics(ended: np.ndarray, games: Sequence[str], distribution: Distribution) -> dict[str, float]:
    """Mean return and length of the episodes of each game, and the score over all games if each has some.

    Args:
        ended: number, returns and lengths of the episodes that ended, by game; see `EpisodeStatistics.take`.
        games: their names.
        distribution: how their levels are made.
    """
    metrics, means = {"train/episodes": float(ended[:, 0].sum())}, {}
    for name, (count, returns, lengths) in zip(games, ended.tolist(), strict=True):
        if count:
            means[name] = returns / count
            metrics |= {f"train/return/{name}": means[name], f"train/length/{name}": lengths / count}
    if len(means) == len(games):
        metrics["train/score"] = aggregate(means, distribution)
    return metrics
