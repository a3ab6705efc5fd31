"""Continual learning: task after task in one state, and a loss that teaches the model not to forget."""

from .bank import TaskBank, load_bank
from .config import ContinualConfig, ContinualTrainConfig, LossConfig, TasksConfig
from .evaluation import evaluate, evaluate_orders
from .experiment import CONTINUAL
from .loading import export_continual_model, load_continual_model
from .measures import ContinualEvaluation, TaskMatrix
from .model import ContinualModel
from .recipes import RECIPES, ContinualRecipe, recipe
from .sequences import TaskSequences, draw_sequences
from .trainer import ContinualTrainer

__all__ = [
    "RECIPES",
    "ContinualConfig",
    "ContinualEvaluation",
    "ContinualModel",
    "ContinualRecipe",
    "ContinualTrainConfig",
    "ContinualTrainer",
    "LossConfig",
    "TaskBank",
    "TaskMatrix",
    "TaskSequences",
    "TasksConfig",
    "draw_sequences",
    "evaluate",
    "evaluate_orders",
    "export_continual_model",
    "load_bank",
    "load_continual_model",
    "recipe",
    "train_run",
]

train_run = CONTINUAL.train_run
