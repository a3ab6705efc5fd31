"""A game of our own that learns fast: the colour of the frame says which of two actions brings a reward."""

import torch

from srwm.rl.config import AgentConfig, AlgorithmConfig, GamesConfig, RLConfig, RLTrainConfig, RMSpropConfig
from srwm.rl.procgen import FRAME_SHAPE


class ToyEnv:
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
        self._rewarded = (self._env * 7 + self._step * self._step // 3) % 2
        self.frames[:] = (self._rewarded * 200).to(torch.uint8)[:, None, None, None]

    def step_async(self, actions):
        self.rewards.copy_((torch.from_numpy(actions) == self._rewarded).float())
        self._step += 1
        self._age += 1
        self.first.copy_(self._age > 3 + self._env % 4)
        self._age[self.first] = 0
        self._draw()

    def step_wait(self):
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


def make_toy_envs(config):
    return lambda number, pinned: ToyEnv(config.schedule.envs_per_actor, seed=number * config.schedule.envs_per_actor)


def toy_config(*, agent=None, games=None, algorithm=None, optimizer=None, train=None, seed=0):
    small = {"downsample": 8, "channels": (4,), "feature_size": 8, "hidden_size": 8}
    small |= {"num_layers": 1, "num_heads": 2, "ff_size": 16}
    return RLConfig(
        seed=seed,
        games=GamesConfig(**{"names": ("maze",), "num_envs": 6} | (games or {})),
        agent=AgentConfig(**small | (agent or {})),
        algorithm=AlgorithmConfig(**{"unroll_length": 5} | (algorithm or {})),
        optimizer=RMSpropConfig(**{"learning_rate": 3e-3} | (optimizer or {})),
        train=RLTrainConfig(
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


def resume_after_stop(make_trainer, *, stop, iterations):
    """Stop after some iterations, go on in a new trainer, and hold it to a run without a stop; give what was saved."""
    unbroken, first, second = (make_trainer() for _ in range(3))
    for step in range(iterations):
        unbroken.train_step(step)
    for step in range(stop):
        first.train_step(step)
    saved = copies(first)
    second.load_tensors(saved)
    for step in range(stop, iterations):
        second.train_step(step)
    assert_equal(unbroken.tensors(), second.tensors())
    return saved


def unrolls_learnt_from(trainer, iterations, monkeypatch):
    """The unrolls that the learner gets, phase by phase, in the order of the buffer: as they lie when it gets them."""
    found = []
    learn = trainer._learn

    def spy(phase):
        order = torch.arange(trainer._schedule.unrolls_per_phase(trainer._actors))
        found.append(trainer._buffer.unrolls(*trainer._schedule.locate(phase, order, actors=trainer._actors)))
        learn(phase)

    monkeypatch.setattr(trainer, "_learn", spy)
    for step in iterations:
        trainer.train_step(step)
    return found


def assert_learner_computes_the_behaviour_policy(agent, unroll):
    """Promise 26: from the stored state and frames it computes the policy that acted, across episode borders."""
    with torch.no_grad():
        output, _ = agent(unroll.frames, unroll.rewards, unroll.first, unroll.state)
    log_prob = output.logits[:, :-1].log_softmax(-1).gather(-1, unroll.actions[..., None]).squeeze(-1)
    torch.testing.assert_close(log_prob, unroll.behaviour_log_prob, atol=1e-5, rtol=0)
