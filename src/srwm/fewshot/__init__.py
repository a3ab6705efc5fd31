"""Few-shot learning: a network that learns new classes while it runs, from recipe to result."""

from .config import BootstrapConfig, FewShotConfig, ModelConfig, OptimizerConfig, TaskConfig, TrainConfig
from .evaluation import Evaluation, evaluate
from .model import FewShotModel
from .recipes import RECIPES, Recipe, recipe
from .running import train_run
from .saved import export_model, load_model, shipped_models
from .trainer import FewShotTrainer

__all__ = [
    "RECIPES",
    "BootstrapConfig",
    "Evaluation",
    "FewShotConfig",
    "FewShotModel",
    "FewShotTrainer",
    "ModelConfig",
    "OptimizerConfig",
    "Recipe",
    "TaskConfig",
    "TrainConfig",
    "evaluate",
    "export_model",
    "load_model",
    "recipe",
    "shipped_models",
    "train_run",
]
