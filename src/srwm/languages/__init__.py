"""State tracking and formal languages: what can a memory keep count of, and up to which length?"""

from .config import CurriculumConfig, LanguagesConfig, LanguagesTrainConfig, NetworkConfig, TaskConfig, WarmupAdamConfig
from .evaluation import LanguagesEvaluation, evaluate
from .experiment import LANGUAGES
from .groups import alternating_group, symmetric_group
from .loading import export_tracker, load_tracker
from .network import StateTracker
from .recipes import RECIPES, LanguagesRecipe, recipe
from .registry import TASKS, find_task, register_task
from .regular import cups, group_product, sum_modulo
from .tasks import Sequences, Task, draw_sequences, numpy_task
from .trainer import LanguagesTrainer

__all__ = [
    "RECIPES",
    "TASKS",
    "CurriculumConfig",
    "LanguagesConfig",
    "LanguagesEvaluation",
    "LanguagesRecipe",
    "LanguagesTrainConfig",
    "LanguagesTrainer",
    "NetworkConfig",
    "Sequences",
    "StateTracker",
    "Task",
    "TaskConfig",
    "WarmupAdamConfig",
    "alternating_group",
    "cups",
    "draw_sequences",
    "evaluate",
    "export_tracker",
    "find_task",
    "group_product",
    "load_tracker",
    "numpy_task",
    "recipe",
    "register_task",
    "sum_modulo",
    "symmetric_group",
    "train_run",
]

train_run = LANGUAGES.train_run
