"""Trained networks of languages on disk: in the folder of a run, or exported to a small folder of their own."""

from srwm.runs.loading import TrainedModels

from .config import LanguagesConfig
from .network import StateTracker

KIND = "languages"

_NETWORKS = TrainedModels(KIND, LanguagesConfig, lambda config, about: StateTracker(config))

load_tracker = _NETWORKS.load
"""Load a trained network; see `TrainedModels.load`."""

export_tracker = _NETWORKS.export
"""Write a network to a folder of its own; see `TrainedModels.export`."""

build_network = _NETWORKS.build
"""Make the network of a recipe."""
