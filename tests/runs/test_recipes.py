"""Recipes as tables."""

import io
import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from rich.console import Console

from srwm.errors import InputError
from srwm.runs.recipes import find_recipe, recipe_table, recipes_table, shown_value


@dataclass(frozen=True)
class Config:
    """A recipe's values."""

    stop_at: float | None = None
    """Where to stop; [none] goes on."""
    sources: tuple[str, ...] = field(default=("a", "b"))
    """What to read."""


TINY = SimpleNamespace(config=Config(), title="a tiny one", paper=97.25)
OWN = SimpleNamespace(config=Config(), title="one of ours", paper=None)


def shown(table):
    out = io.StringIO()
    Console(file=out, width=100).print(table)
    return out.getvalue()


def test_all_recipes_stand_beside_what_the_paper_reached():
    lines = shown(recipes_table({"tiny": TINY, "own": OWN})).splitlines()
    assert [name.strip() for name in re.split("[┃│]", lines[1]) if name.strip()] == ["recipe", "what it is", "paper"]
    (tiny,) = [line for line in lines if "a tiny one" in line]
    (own,) = [line for line in lines if "one of ours" in line]
    assert tiny.rstrip(" │").endswith(" 97.2")
    assert own.rstrip(" │").endswith(" -")


def test_a_recipe_shows_every_value_with_its_meaning_brackets_and_all():
    text = shown(recipe_table("tiny", TINY))
    assert "tiny: a tiny one" in text
    assert "Where to stop; [none] goes on." in text
    assert "What to read." in text


@pytest.mark.parametrize(
    ("value", "text"), [(None, "none"), ({}, "-"), ({"a": 1, "b": 2}, "a=1, b=2"), (0.5, "0.5"), (True, "True")]
)
def test_values_are_shown_as_they_are_written_on_the_command_line(value, text):
    assert shown_value(value) == text


def test_an_unknown_recipe_gets_the_nearest_name():
    assert find_recipe("tiny", {"tiny": TINY}) is TINY
    with pytest.raises(
        InputError, match=r"there is no recipe 'tiyn'; did you mean 'tiny'\?; `srwm recipes` lists them"
    ):
        find_recipe("tiyn", {"tiny": TINY})
