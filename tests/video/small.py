"""A tiny agent, and views of no game at all."""

import numpy as np
import torch

from srwm.rl.agent import Agent
from srwm.rl.config import AgentConfig, GamesConfig, RLConfig
from srwm.rl.loading import KIND
from srwm.runs.config import to_json
from srwm.runs.model_files import write_model
from srwm.video import MatrixView, View


def small_config(memory="srwm", games=("starpilot",), **options):
    agent = AgentConfig(
        channels=(2, 2),
        feature_size=8,
        memory=memory,
        hidden_size=8,
        num_layers=2,
        num_heads=2,
        ff_size=16,
        memory_options=options,
    )
    return RLConfig(agent=agent, games=GamesConfig(names=games, num_envs=2 * len(games)))


def small_agent(memory="srwm", **options):
    torch.manual_seed(0)
    return Agent(small_config(memory, **options).agent).eval()


def save_agent(folder, agent=None, **config):
    """Write an agent as `srwm export` does."""
    agent = agent or small_agent()
    write_model(agent, folder, kind=KIND, config=to_json(small_config(**config)), half=False, measured={}, card="")
    return folder


def make_matrix(title="layer 1", rates=(0.1, 0.2, 0.3, 0.4), change=(1.0, 2.0, 2.0, 4.0), initial=10.0, forget=()):
    parts = (("y", "q", "k", "beta") + ("forget",) * (len(forget) > 0)) if len(rates) == 4 else ("fast",)
    heads, gates = np.array([rates, rates], np.float32), np.array([forget, forget], np.float32)
    weights = np.zeros((2, 4, len(parts)), np.float32)
    return MatrixView(title, parts, heads, gates, np.array(change, np.float32), weights, initial)


def make_view(step=2, matrices=None, action=3, probabilities=None, value=1.0, reward=0.0, is_last=False):
    picture = np.full((512, 512, 3), 40, np.uint8)
    picture[100:200, 300:400] = (200, 30, 90)
    if probabilities is None:
        probabilities = np.full(15, 1 / 15, np.float32)
    return View(
        game="maze",
        distribution="easy",
        level=7,
        episode=1,
        episodes=2,
        step=step,
        picture=picture,
        frame=np.zeros((64, 64, 3), np.uint8),
        probabilities=np.asarray(probabilities, np.float32),
        value=value,
        action=action,
        reward=reward,
        total=3.0,
        is_last=is_last,
        is_complete=False,
        matrices=(make_matrix(),) if matrices is None else tuple(matrices),
    )
