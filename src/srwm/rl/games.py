"""The environments of one actor: pools of games, each stepped by a thread, side by side in one array of frames."""

from collections.abc import Mapping
from concurrent.futures import Executor, Future
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int, UInt8
from torch import Tensor

from srwm.errors import InputError

from .config import GamesConfig
from .procgen import FRAME_SHAPE, Pool, PoolOptions


@runtime_checkable
class Games(Protocol):
    """What an actor asks of its environments; ProcGen is one kind."""

    frames: UInt8[Tensor, "n h w c"]
    """What is seen now; overwritten by the next step."""
    rewards: Float32[Tensor, "n"]
    """What came with it."""
    first: Bool[Tensor, "n"]
    """Whether an episode begins with it."""

    def start_step(self, actions: Int[np.ndarray, "n"]) -> None:
        """Begin to step every game."""

    def wait(self) -> None:
        """Wait until all have stepped, so that `frames`, `rewards` and `first` hold what is seen now."""

    def tensors(self) -> dict[str, Tensor]:
        """Give the whole state of the games."""

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to a state that `tensors` gave."""

    def close(self) -> None:
        """End the games."""


class ProcgenGames:
    """ProcGen in several pools.

    Args:
        config: what is played.
        number: environments; environment n plays game n modulo the number of games.
        seed: which levels come when.
        executor: threads to step the pools in; None to step them in the caller's.
        pinned: whether frames lie where a GPU can fetch them while other work goes on.

    Raises:
        InputError: if the library is not there, or the options do not fit.
    """

    def __init__(
        self, config: GamesConfig, number: int, seed: int, *, executor: Executor | None = None, pinned: bool = False
    ) -> None:
        self.frames = torch.zeros(number, *FRAME_SHAPE, dtype=torch.uint8, pin_memory=pinned)
        self.rewards = torch.zeros(number, pin_memory=pinned)
        self.first = torch.zeros(number, dtype=torch.bool, pin_memory=pinned)
        self._executor = executor
        self._futures: list[Future[None]] = []
        self._parts = [
            slice(start, min(start + config.pool_size, number)) for start in range(0, number, config.pool_size)
        ]
        self._pools = [
            Pool(
                PoolOptions(
                    games=config.names,
                    num_envs=part.stop - part.start,
                    distribution=config.distribution,
                    start_level=config.first_level,
                    num_levels=config.num_levels,
                    seed=_pool_seed(seed, part.start),
                ),
                frames=self.frames.numpy()[part],
                rewards=self.rewards.numpy()[part],
                first=self.first.numpy()[part],
            )
            for part in self._parts
        ]

    def start_step(self, actions: Int[np.ndarray, "n"]) -> None:
        """Begin to step every pool."""
        parts = [actions[part] for part in self._parts]
        if self._executor is None:
            for pool, part in zip(self._pools, parts, strict=True):
                _step(pool, part)
        else:
            self._futures = [
                self._executor.submit(_step, pool, part) for pool, part in zip(self._pools, parts, strict=True)
            ]

    def wait(self) -> None:
        """Wait for all pools."""
        for future in self._futures:
            future.result()
        self._futures = []

    def tensors(self) -> dict[str, Tensor]:
        """Every game's state, one after the other, their sizes, and what is seen now."""
        self.wait()
        states = [state for pool in self._pools for state in pool.get_state()]
        return {
            "states": torch.frombuffer(bytearray(b"".join(states)), dtype=torch.uint8),
            "sizes": torch.tensor([len(state) for state in states]),
            "frames": self.frames.clone(),
            "rewards": self.rewards.clone(),
            "first": self.first.clone(),
        }

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Put every game back into its state."""
        self.wait()
        sizes = tensors["sizes"].tolist()
        data = tensors["states"].numpy().tobytes()
        if len(sizes) != len(self.frames) or sum(sizes) != len(data):
            raise InputError(f"the checkpoint has {len(sizes)} games; wanted {len(self.frames)}")
        ends = np.cumsum(sizes).tolist()
        states = [data[end - size : end] for size, end in zip(sizes, ends, strict=True)]
        for pool, part in zip(self._pools, self._parts, strict=True):
            pool.set_state(states[part])
        # A state knows its game, but not what the last step brought.
        for name, own in (("frames", self.frames), ("rewards", self.rewards), ("first", self.first)):
            own.copy_(tensors[name])

    def close(self) -> None:
        """End the games."""
        self.wait()
        for pool in self._pools:
            pool.close()


def _step(pool: Pool, actions: np.ndarray) -> None:
    pool.act(actions)
    pool.observe()


def _pool_seed(seed: int, place: int) -> int:
    """A seed of its own for each pool, the same however many threads there are."""
    return int(np.random.SeedSequence([seed, place]).generate_state(1)[0]) % (2**31 - 1)
