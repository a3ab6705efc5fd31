"""Streams of data sets with delayed labels: learning without end, from recipe to result."""

from .bank import Bank, load_bank
from .config import SequentialConfig, StreamConfig, TrainConfig
from .evaluation import Evaluation, evaluate
from .model import StreamModel
from .recipes import RECIPES, Recipe, recipe
from .running import train_run
from .saved import export_stream_model, load_stream_model
from .streams import Streams, draw_streams
from .trainer import SequentialTrainer

__all__ = [
    "RECIPES",
    "Bank",
    "Evaluation",
    "Recipe",
    "SequentialConfig",
    "SequentialTrainer",
    "StreamConfig",
    "StreamModel",
    "Streams",
    "TrainConfig",
    "draw_streams",
    "evaluate",
    "export_stream_model",
    "load_bank",
    "load_stream_model",
    "recipe",
    "train_run",
]
