"""The page of the recipes, made of the recipes themselves."""

from typing import Any

from srwm.experiments import experiments
from srwm.runs.config import describe
from srwm.runs.recipes import shown_value

_INTRODUCTION = """# Recipes

A recipe is a named configuration. `srwm train NAME` trains it, `srwm recipes NAME` shows all that it sets, and
`--set KEY=VALUE` changes a value. The last column is what the paper reports. What we measured stands under
"Measured"; a recipe alone is no result.
"""


def recipes_page() -> str:
    """Write the page: a table of the recipes of each kind, and one of everything that they set."""
    text = _INTRODUCTION
    for kind in experiments().values():
        text += (
            f"\n## {kind.name.capitalize().replace('-', ' ')}\n\n| recipe | what it is | paper |\n| --- | --- | --- |\n"
        )
        for name, recipe in kind.recipes.items():
            paper = "" if recipe.paper is None else f"{recipe.paper:.1f}"
            text += f"| `{name}` | {recipe.title} | {paper} |\n"
        text += f"\n### What a {kind.name.replace('-', ' ')} recipe sets\n\n"
        text += (
            "The values are those of the first recipe above.\n\n| key | value | what it means |\n| --- | --- | --- |\n"
        )
        first: Any = next(iter(kind.recipes.values()))
        for field in describe(first.config):
            text += f"| `{field.name}` | {_cell(shown_value(field.default))} | {_cell(field.text)} |\n"
    return text


def _cell(text: str) -> str:
    """Text that a table of Markdown can hold."""
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
