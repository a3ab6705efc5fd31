"""A game of our own that learns fast: the colour of the frame says which of two actions brings a reward."""

import torch

from srwm.rl.config import AgentConfig, AlgorithmConfig, GamesConfig, RLConfig, RMSpropConfig, TrainConfig
from srwm.rl.procgen import FRAME_SHAPE


class ToyGames:
    """Episodes last 3 steps and a few more; environment and step decide the colour, nothing is random."""

    def __init__(self, number, seed=0):
        self.frames = torch.zeros(number, *FRAME_SHAPE, dtype=torch.uint8)
        self.rewards = torch.zeros(number)
        self.first = torch.ones(number, dtype=torch.bool)
        self._env = torch.arange(number) + seed
        self._step = torch.zeros(number, dtype=torch.int64)
        self._age = torch.zeros(number, dtype=torch.int64)
        self._draw()

    def _draw(self):
        self._wanted = (self._env * 7 + self._step * self._step // 3) % 2
        self.frames[:] = (self._wanted * 200).to(torch.uint8)[:, None, None, None]

    def start_step(self, actions):
        self.rewards.copy_((torch.from_numpy(actions) == self._wanted).float())
        self._step += 1
        self._age += 1
        self.first.copy_(self._age > 3 + self._env % 4)
        self._age[self.first] = 0
        self._draw()

    def wait(self):
        pass

    def tensors(self):
        return {
            "step": self._step.clone(),
            "age": self._age.clone(),
            "rewards": self.rewards.clone(),
            "first": self.first.clone(),
        }

    def load_tensors(self, tensors):
        for name, own in (("step", self._step), ("age", self._age), ("rewards", self.rewards), ("first", self.first)):
            own.copy_(tensors[name])
        self._draw()

    def close(self):
        pass


def make_toy_games(config):
    return lambda number, pinned: ToyGames(config.envs_per_actor, seed=number * config.envs_per_actor)


def toy_config(*, agent=None, games=None, algorithm=None, optimizer=None, train=None, seed=0):
    small = {"shrink": 8, "channels": (4,), "feature_size": 8, "hidden_size": 8}
    small |= {"num_layers": 1, "num_heads": 2, "ff_size": 16}
    return RLConfig(
        seed=seed,
        games=GamesConfig(**{"names": ("maze",), "num_envs": 6} | (games or {})),
        agent=AgentConfig(**small | (agent or {})),
        algorithm=AlgorithmConfig(**{"unroll_length": 5} | (algorithm or {})),
        optimizer=RMSpropConfig(**{"learning_rate": 3e-3} | (optimizer or {})),
        train=TrainConfig(
            **{
                "total_frames": 600,
                "batch_size": 4,
                "actors": 2,
                "threads": 1,
                "precision": "float32",
                "log_every": 2,
                "checkpoint_every": 4,
            }
            | (train or {})
        ),
    )


def copies(trainer):
    """All that a checkpoint of a trainer holds."""
    return {
        group: {name: tensor.clone() for name, tensor in tensors.items()}
        for group, tensors in trainer.tensors().items()
    }


def assert_equal(first, second):
    assert first.keys() == second.keys()
    for group in first:
        for name, tensor in first[group].items():
            assert torch.equal(tensor, second[group][name]), f"{group}: {name}"


def go_on_after_a_stop(make_trainer, *, stop, rounds):
    """Stop after some rounds, go on in a new trainer, and hold it to a run without a stop; give what was saved."""
    unbroken, first, second = (make_trainer() for _ in range(3))
    for step in range(rounds):
        unbroken.train_step(step)
    for step in range(stop):
        first.train_step(step)
    saved = copies(first)
    second.load_tensors(saved)
    for step in range(stop, rounds):
        second.train_step(step)
    assert_equal(unbroken.tensors(), second.tensors())
    return saved
