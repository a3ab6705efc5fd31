"""Streams of data sets with delayed labels: learning without end, from recipe to result."""

from .bank import Bank, load_bank
from .config import SequentialConfig, StreamConfig, StreamTrainConfig
from .evaluation import StreamEvaluation, evaluate
from .experiment import SEQUENTIAL
from .loading import export_stream_model, load_stream_model
from .model import StreamModel
from .recipes import RECIPES, StreamRecipe, recipe
from .streams import Streams, draw_streams
from .trainer import SequentialTrainer

__all__ = [
    "RECIPES",
    "Bank",
    "SequentialConfig",
    "SequentialTrainer",
    "StreamConfig",
    "StreamEvaluation",
    "StreamModel",
    "StreamRecipe",
    "StreamTrainConfig",
    "Streams",
    "draw_streams",
    "evaluate",
    "export_stream_model",
    "load_bank",
    "load_stream_model",
    "recipe",
    "train_run",
]

train_run = SEQUENTIAL.train_run
