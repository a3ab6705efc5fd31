"""Few-shot learning: a network that learns new classes while it runs, from recipe to result."""

from srwm.supervised.config import ModelConfig, OptimizerConfig, TrainConfig

from .config import BootstrapConfig, FewShotConfig, FewShotTaskConfig
from .evaluation import FewShotEvaluation, evaluate
from .experiment import FEW_SHOT
from .loading import export_model, load_model, shipped_models
from .model import FewShotModel
from .recipes import RECIPES, FewShotRecipe, recipe
from .trainer import FewShotTrainer

__all__ = [
    "RECIPES",
    "BootstrapConfig",
    "FewShotConfig",
    "FewShotEvaluation",
    "FewShotModel",
    "FewShotRecipe",
    "FewShotTaskConfig",
    "FewShotTrainer",
    "ModelConfig",
    "OptimizerConfig",
    "TrainConfig",
    "evaluate",
    "export_model",
    "load_model",
    "recipe",
    "shipped_models",
    "train_run",
]

train_run = FEW_SHOT.train_run
