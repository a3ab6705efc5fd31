"""Trained agents on disk."""

from pathlib import Path

import torch

from srwm.errors import InputError
from srwm.runs.config import from_json
from srwm.runs.model_files import build_saved, read_model

from .agent import Agent
from .config import RLConfig

KIND = "reinforcement-learning"


def load_agent(path: str | Path, device: torch.device | str = "cpu") -> tuple[Agent, RLConfig]:
    """Load a trained agent and the recipe that it came from.

    Args:
        path: the folder of a run (its newest checkpoint), or of an exported model.
        device: where to put it.

    Raises:
        InputError: if there is no such agent, or its files are broken.
    """
    saved = read_model(Path(path), KIND)
    config = from_json(RLConfig, saved.config)
    agent = build_saved(saved, lambda: _build(config))
    return agent.to(device).eval(), config


def _build(config: RLConfig) -> Agent:
    try:
        return Agent(config.agent)
    except ValueError as error:
        raise InputError(f"the agent cannot be built: {error}") from error
