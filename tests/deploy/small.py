"""Models of every kind and memory, small enough to be exported within a test, with statistics that matter."""

import contextlib
from collections.abc import Iterator

import jaxtyping
import torch

from fewshot import tiny as few_shot_tiny
from languages import tiny as languages_tiny
from rl.toy_envs import toy_config
from sequential import tiny as stream_tiny
from srwm.fewshot import FewShotModel
from srwm.languages import StateTracker
from srwm.nn import LSTM, SRWM, FakeSRWM, SequenceModel, SRDeltaNet, memory_names
from srwm.rl.agent import Agent
from srwm.sequential import StreamModel
from srwm.vision import BatchNorm

MEMORIES = memory_names()

GATED = {"forget_gates": 2, "key_map": "l2", "difference_clip": 1.0, "input_projection": True, "forget_bias": -1.0}
"""Every option of a gated SRWM; it forgets so much that it shows within a few steps."""


@contextlib.contextmanager
def as_installed() -> Iterator[None]:
    """Switch off the shape checks of the test run: what records the graph of a step stumbles over them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def few_shot(memory="srwm", **options) -> FewShotModel:
    return _lived_in(few_shot_tiny.model(model={"memory": memory, **options}))


def stream(memory="srwm", channels=1, normalise="own", feed_previous_features=True, **options) -> StreamModel:
    parts = {"channels": channels, "normalise": normalise, "feed_previous_features": feed_previous_features}
    model = _lived_in(stream_tiny.model(stream=parts, model={"memory": memory, **options}))
    if normalise == "own":
        model.set_statistics(
            torch.tensor([[0.3], [0.6]]).repeat(1, channels), torch.tensor([[0.2], [0.4]]).repeat(1, channels)
        )
    return model


def tracker(memory="srwm", task="cups-3", **options) -> StateTracker:
    return languages_tiny.network(task={"name": task}, model={"memory": memory, **options}).eval()


def agent(memory="srwm", **options) -> Agent:
    torch.manual_seed(0)
    return _lived_in(Agent(toy_config(agent={"memory": memory, "memory_options": {}, **options}).agent))


def agent_of_four_memories() -> Agent:
    """An agent whose layers have four of the memories, so that one graph holds them all."""
    made = agent()
    memories = iter(
        [SRWM(8, 2, learning_rates=1, reset_every=2), SRDeltaNet(8, 2), FakeSRWM(8, 2, norm="input"), LSTM(8, 8)]
    )
    made.memory = SequenceModel(9, memory=lambda: next(memories), hidden_size=8, num_layers=4, ff_size=8)
    return made.eval()


def _lived_in(model):
    """Give the batch norms statistics as if the model had been trained."""
    generator = torch.Generator().manual_seed(2)
    for module in model.modules():
        if isinstance(module, BatchNorm):
            module.running_mean.copy_(torch.rand(module.running_mean.shape, generator=generator) - 0.5)
            module.running_var.copy_(torch.rand(module.running_var.shape, generator=generator) + 0.5)
    return model.eval()
