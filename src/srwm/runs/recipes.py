"""Recipes of any kind: named configurations, looked up by name and shown as tables."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from rich.markup import escape
from rich.table import Table

from srwm.errors import InputError

from .config import describe
from .suggestions import did_you_mean

__all__ = ["NamedRecipe", "Recipe", "find_recipe", "recipe_finder", "recipe_table", "recipes_table", "shown_value"]


@runtime_checkable
class Recipe(Protocol):
    """A named configuration: a `NamedRecipe`, or a dataclass of its experiment that says more."""

    @property
    def config(self) -> Any:
        """What is run: a frozen dataclass with `recipe` and `seed` (see `srwm.runs.training.RunConfig`)."""

    @property
    def title(self) -> str:
        """One line on what it is."""

    @property
    def paper(self) -> float | None:
        """What the paper reached in its test, accuracy in percent or a score; none if it did not try."""


R = TypeVar("R")
C = TypeVar("C")


@dataclass(frozen=True)
class NamedRecipe(Generic[C]):
    """A recipe with nothing of its own."""

    config: C
    """What is run."""
    title: str
    """One line on what it is."""
    paper: float | None = None
    """Test accuracy in the paper, in percent; beside a recipe of our own, that of the paper's network on this task."""


def find_recipe(name: str, recipes: Mapping[str, R]) -> R:
    """Look up a recipe.

    Raises:
        InputError: if there is none of this name, with the nearest one.
    """
    if name not in recipes:
        raise InputError(f"there is no recipe {name!r}{did_you_mean(name, recipes)}; `srwm recipes` lists them")
    return recipes[name]


def recipe_finder(recipes: Mapping[str, R]) -> Callable[[str], R]:
    """A function that looks up a recipe of these by its name; see `find_recipe`."""
    return functools.partial(find_recipe, recipes=recipes)


def recipes_table(recipes: Mapping[str, Recipe]) -> Table:
    """All recipes, one a line."""
    table = Table("recipe", "what it is")
    table.add_column("paper", justify="right")
    for name, entry in recipes.items():
        table.add_row(name, entry.title, "-" if entry.paper is None else f"{entry.paper:.1f}")
    return table


def recipe_table(name: str, entry: Recipe) -> Table:
    """Every value of a recipe, with what it means."""
    table = Table("key", "value", "what it means", title=f"{name}: {entry.title}")
    for field in describe(entry.config):
        table.add_row(field.name, escape(shown_value(field.default)), escape(field.text))
    return table


def shown_value(value: Any) -> str:
    """A value of a recipe, as it is written on the command line."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={part}" for name, part in value.items()) or "-"
    return str(value)
