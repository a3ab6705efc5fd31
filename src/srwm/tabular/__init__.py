"""Feature vectors: a network that learns any task of them in context, trained on a prior over random tasks."""

from .config import FeaturesConfig, PriorConfig, TabularConfig, TabularModelConfig, TabularTrainConfig
from .ensemble import Ensemble, EnsembleState, principal_projection
from .evaluation import TabularEvaluation, evaluate
from .loading import load_tabular
from .moments import Standardised, scale_of
from .network import TabularModel, TabularState, random_projection
from .prior import Tasks, draw_tasks
from .recipes import RECIPES

__all__ = [
    "RECIPES",
    "Ensemble",
    "EnsembleState",
    "FeaturesConfig",
    "PriorConfig",
    "Standardised",
    "TabularConfig",
    "TabularEvaluation",
    "TabularModel",
    "TabularModelConfig",
    "TabularState",
    "TabularTrainConfig",
    "Tasks",
    "draw_tasks",
    "evaluate",
    "load_tabular",
    "principal_projection",
    "random_projection",
    "scale_of",
]
