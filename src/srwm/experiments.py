"""Every kind of run that there is, and every recipe of them all."""

from pathlib import Path

from srwm.errors import InputError
from srwm.runs.kind import Kind
from srwm.runs.recipes import Recipe, find_recipe
from srwm.runs.saved import kind_of

__all__ = ["all_recipes", "find_kind", "kind_in", "kinds"]


def kinds() -> dict[str, Kind]:
    """All kinds of runs by name; a new one is added here, and every command then serves it."""
    from srwm.fewshot.kind import FEW_SHOT
    from srwm.rl.experiment import REINFORCEMENT_LEARNING
    from srwm.sequential.kind import SEQUENTIAL

    return {kind.name: kind for kind in (FEW_SHOT, SEQUENTIAL, REINFORCEMENT_LEARNING)}


def all_recipes() -> dict[str, Recipe]:
    """Every recipe of every kind, by name."""
    return {name: recipe for kind in kinds().values() for name, recipe in kind.recipes.items()}


def find_kind(recipe: str) -> Kind:
    """Find the kind that a recipe is of.

    Raises:
        InputError: if there is no such recipe, with the nearest one.
    """
    find_recipe(recipe, all_recipes())
    return next(kind for kind in kinds().values() if recipe in kind.recipes)


def kind_in(folder: Path) -> Kind | None:
    """Find the kind of the run or exported model in a folder; None if there is neither.

    Raises:
        InputError: if it is of a kind that this version does not know.
    """
    name, known = kind_of(folder), kinds()
    if name is not None and name not in known:
        raise InputError(f"{folder} is of kind {name!r}; this version of srwm knows {', '.join(known)}")
    return None if name is None else known[name]
