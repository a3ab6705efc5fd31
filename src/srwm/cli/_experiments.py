"""Every recipe that can be trained, of whatever kind, and what serves it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from srwm.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Experiment:
    """A recipe and the functions of its room."""

    config: Any
    """The configuration, a dataclass of its kind."""
    train: Callable[..., Any]
    """`train_run` of its room."""
    result_table: "Callable[[Mapping[str, Any]], Table]"
    """From the content of `result.json` to a table with the paper's figures beside ours."""
    recipe_table: "Callable[[], Table]"
    """Every value of the recipe, with what it means."""


def recipe_names() -> list[str]:
    """Name every recipe."""
    from srwm import fewshot, sequential

    return [*fewshot.RECIPES, *sequential.RECIPES]


def find_experiment(name: str) -> Experiment:
    """Look up a recipe of any kind.

    Raises:
        InputError: if there is none of this name, with the nearest one.
    """
    from srwm import fewshot, sequential
    from srwm.fewshot import tables as fewshot_tables
    from srwm.runs._nearest import did_you_mean
    from srwm.sequential import tables as sequential_tables

    if name in sequential.RECIPES:
        stream = sequential.RECIPES[name]
        return Experiment(
            stream.config,
            sequential.train_run,
            lambda result: sequential_tables.result_table(result, stream.figures),
            lambda: sequential_tables.recipe_table(name, stream),
        )
    if name in fewshot.RECIPES:
        episode = fewshot.RECIPES[name]
        return Experiment(
            episode.config,
            fewshot.train_run,
            lambda result: fewshot_tables.result_table(result, episode.paper),
            lambda: fewshot_tables.recipe_table(name, episode),
        )
    nearest = did_you_mean(name, recipe_names())
    raise InputError(f"there is no recipe {name!r}{nearest}; `srwm recipes` lists them")
