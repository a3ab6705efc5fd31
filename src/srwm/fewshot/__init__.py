"""Few-shot learning: a network that learns new classes while it runs, from recipe to result."""

from srwm.supervised.config import ModelConfig, OptimizerConfig, TrainConfig

from .config import BootstrapConfig, FewShotConfig, TaskConfig
from .evaluation import Evaluation, evaluate
from .loading import export_model, load_model, shipped_models
from .model import FewShotModel
from .recipes import RECIPES, Recipe, recipe
from .trainer import FewShotTrainer
from .training_run import train_run

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
