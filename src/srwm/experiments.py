"""Every experiment that there is, and every recipe of them all."""

from pathlib import Path

from srwm.errors import InputError
from srwm.runs.experiment import Experiment
from srwm.runs.model_files import kind_of
from srwm.runs.recipes import Recipe, find_recipe

__all__ = ["all_recipes", "experiment_in", "experiments", "find_experiment"]


def experiments() -> dict[str, Experiment]:
    """All experiments by name; a new one is added here, and every command then serves it."""
    from srwm.continual.experiment import CONTINUAL
    from srwm.fewshot.experiment import FEW_SHOT
    from srwm.languages.experiment import LANGUAGES
    from srwm.rl.experiment import REINFORCEMENT_LEARNING
    from srwm.sequential.experiment import SEQUENTIAL

    return {each.name: each for each in (FEW_SHOT, SEQUENTIAL, CONTINUAL, LANGUAGES, REINFORCEMENT_LEARNING)}


def all_recipes() -> dict[str, Recipe]:
    """Every recipe of every experiment, by name."""
    return {name: recipe for each in experiments().values() for name, recipe in each.recipes.items()}


def find_experiment(recipe: str) -> Experiment:
    """Find the experiment that a recipe belongs to.

    Raises:
        InputError: if there is no such recipe, with the nearest one.
    """
    find_recipe(recipe, all_recipes())
    return next(each for each in experiments().values() if recipe in each.recipes)


def experiment_in(folder: Path) -> Experiment | None:
    """Find the experiment of the run or exported model in a folder; None if there is neither.

    Raises:
        InputError: if it is of an experiment that this version does not know.
    """
    name, known = kind_of(folder), experiments()
    if name is not None and name not in known:
        raise InputError(f"{folder} is of kind {name!r}; this version of srwm knows {', '.join(known)}")
    return None if name is None else known[name]
