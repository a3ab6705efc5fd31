"""Trained models of streams on disk: in the folder of a run, or exported to a small folder of their own."""

from srwm.runs.loading import TrainedModels

from .config import SequentialConfig
from .model import StreamModel

KIND = "sequential"

_MODELS = TrainedModels(KIND, SequentialConfig, lambda config, about: StreamModel(config))

load_stream_model = _MODELS.load
"""Load a trained model, ready for streams; see `TrainedModels.load`."""

export_stream_model = _MODELS.export
"""Write a model to a folder of its own; see `TrainedModels.export`."""

build_model = _MODELS.build
"""Make the network of a recipe."""
