"""Every experiment that there is, and every recipe of them all."""

from pathlib import Path

from srwm.errors import InputError
from srwm.named_import import import_named, is_import_name
from srwm.runs.experiment import Experiment
from srwm.runs.model_files import kind_of
from srwm.runs.recipes import Recipe, find_recipe

__all__ = ["all_recipes", "experiment_in", "experiments", "find_experiment", "find_recipe_by_name", "named_experiment"]


def experiments() -> dict[str, Experiment]:
    """All experiments of srwm by name; a new one is added here, and every command then serves it."""
    from srwm.continual.experiment import CONTINUAL
    from srwm.fewshot.experiment import FEW_SHOT
    from srwm.languages.experiment import LANGUAGES
    from srwm.rl.experiment import REINFORCEMENT_LEARNING
    from srwm.sequential.experiment import SEQUENTIAL
    from srwm.tabular.experiment import TABULAR

    return {each.name: each for each in (FEW_SHOT, SEQUENTIAL, CONTINUAL, LANGUAGES, REINFORCEMENT_LEARNING, TABULAR)}


def named_experiment(name: str) -> Experiment:
    """Find an experiment by its name; a class of `package.module:Class` is imported, as Python imports it.

    Raises:
        InputError: if there is no such name, module or class, or the class is no `Experiment`.
    """
    if not is_import_name(name):
        known = experiments()
        if name not in known:
            raise InputError(f"experiment={name!r}; this version of srwm knows {', '.join(known)}")
        return known[name]
    cls = import_named(name, said=f"experiment={name!r}", holds="experiments")
    if not (isinstance(cls, type) and issubclass(cls, Experiment)):
        raise InputError(f"experiment={name!r} is no class of an experiment; expected a subclass of {Experiment!r}")
    if cls.name != name:
        raise InputError(f"{name} calls itself {cls.name!r}; expected name = {name!r}, by which its runs find it")
    return cls()


def all_recipes() -> dict[str, Recipe]:
    """Every recipe of every experiment of srwm, by name."""
    return {name: recipe for each in experiments().values() for name, recipe in each.recipes.items()}


def find_recipe_by_name(name: str) -> tuple[Experiment, Recipe]:
    """Find a recipe and the experiment that it belongs to.

    Args:
        name: of a recipe of srwm; or `package.module:Class/RECIPE` for one of an experiment of your own, without
            `/RECIPE` where it has a single one.

    Raises:
        InputError: if there is no such recipe, with the nearest one.
    """
    path, _, own = name.partition("/")
    if name not in all_recipes() and is_import_name(path):
        experiment = named_experiment(path)
        own = own or (next(iter(experiment.recipes)) if len(experiment.recipes) == 1 else own)
        return experiment, find_recipe(own, experiment.recipes)
    recipe = find_recipe(name, all_recipes())
    return next(each for each in experiments().values() if name in each.recipes), recipe


def find_experiment(recipe: str) -> Experiment:
    """Find the experiment that a recipe belongs to; see `find_recipe_by_name`."""
    return find_recipe_by_name(recipe)[0]


def experiment_in(folder: Path) -> Experiment | None:
    """Find the experiment of the run or exported model in a folder; None if there is neither.

    Raises:
        InputError: if it is of an experiment that this version does not know.
    """
    name = kind_of(folder)
    if name is None:
        return None
    try:
        return named_experiment(name)
    except InputError as error:
        raise InputError(f"{folder}: {error}") from error
