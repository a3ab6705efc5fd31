"""The environments of one actor: they step side by side and write their frames into one array."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int, UInt8
from torch import Tensor

from srwm.errors import InputError

from .config import GamesConfig
from .procgen import FRAME_SHAPE, Pool, PoolOptions


@runtime_checkable
class VectorEnv(Protocol):
    """What an actor asks of its environments."""

    frames: UInt8[Tensor, "n h w c"]
    """What is observed now; overwritten by the next step."""
    rewards: Float32[Tensor, "n"]
    """What came with it."""
    first: Bool[Tensor, "n"]
    """Whether an episode begins with it."""

    def step_async(self, actions: Int[np.ndarray, "n"]) -> None:
        """Begin to step every environment."""

    def step_wait(self) -> None:
        """Wait until all have stepped, so that `frames`, `rewards` and `first` hold the observations."""

    def tensors(self) -> dict[str, Tensor]:
        """Give the whole state of the environments."""

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to a state that `tensors` gave."""

    def close(self) -> None:
        """Close the environments."""


class ProcgenTrainingEnv:
    """ProcGen, stepped by the library's own threads: Python's would wait for each other at every step.

    Args:
        config: what is played.
        number: environments; environment n plays game n modulo the number of games.
        seed: which levels come when.
        threads: threads that step them; 0 to step them in the caller's.
        pinned: whether frames lie where a GPU can fetch them while other work goes on.

    Raises:
        InputError: if the library is not there, or the options do not fit.
    """

    def __init__(self, config: GamesConfig, number: int, seed: int, *, threads: int = 0, pinned: bool = False) -> None:
        self.frames = torch.zeros(number, *FRAME_SHAPE, dtype=torch.uint8, pin_memory=pinned)
        self.rewards = torch.zeros(number, pin_memory=pinned)
        self.first = torch.zeros(number, dtype=torch.bool, pin_memory=pinned)
        self._is_stepping = False
        options = PoolOptions(
            games=config.names,
            num_envs=number,
            distribution=config.distribution,
            start_level=config.first_level,
            num_levels=config.num_levels,
            seed=seed,
            threads=threads,
        )
        self._pool = Pool(options, frames=self.frames.numpy(), rewards=self.rewards.numpy(), first=self.first.numpy())

    def step_async(self, actions: Int[np.ndarray, "n"]) -> None:
        """Begin to step every environment."""
        self._is_stepping = True
        self._pool.act(actions)

    def step_wait(self) -> None:
        """Wait for all of them."""
        if self._is_stepping:
            self._pool.observe()
        self._is_stepping = False

    def tensors(self) -> dict[str, Tensor]:
        """Every game's state, one after the other, their sizes, and the observations."""
        self.step_wait()
        states = self._pool.get_state()
        return {
            "states": torch.frombuffer(bytearray(b"".join(states)), dtype=torch.uint8),
            "sizes": torch.tensor([len(state) for state in states]),
            "frames": self.frames.clone(),
            "rewards": self.rewards.clone(),
            "first": self.first.clone(),
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Put every game back into its state."""
        self.step_wait()
        sizes = tensors["sizes"].tolist()
        data = tensors["states"].numpy().tobytes()
        if len(sizes) != len(self.frames) or sum(sizes) != len(data):
            raise InputError(f"expected the state of {len(self.frames)} games, got {len(sizes)} from the checkpoint")
        ends = np.cumsum(sizes).tolist()
        self._pool.set_state([data[end - size : end] for size, end in zip(sizes, ends, strict=True)])
        # A state knows its game, but not what the last step brought.
        for name, own in (("frames", self.frames), ("rewards", self.rewards), ("first", self.first)):
            own.copy_(tensors[name])

    def close(self) -> None:
        """Close the environments."""
        self.step_wait()
        self._pool.close()
