"""Trained agents on disk."""

from pathlib import Path

import torch

from srwm.errors import InputError
from srwm.runs.loading import load_trained

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
    return load_trained(path, KIND, RLConfig, lambda config, about: build_agent(config), device)


def build_agent(config: RLConfig) -> Agent:
    """Make the agent of a recipe.

    Raises:
        InputError: if an option does not fit.
    """
    try:
        return Agent(config.agent)
    except ValueError as error:
        raise InputError(f"the agent cannot be built: {error}") from error
