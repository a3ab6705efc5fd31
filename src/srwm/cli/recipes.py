"""`srwm recipes`: what can be trained."""

import argparse

from ._parser import EXIT_OK, Commands, Parser


def add(parser: Parser, commands: "Commands[Parser]") -> None:
    """Add the command."""
    recipes = parser.add_command(commands, "recipes", "List the recipes, or everything that one of them sets.")
    recipes.add_argument("recipe", nargs="?", metavar="RECIPE", help="show its values, each with what it means")
    recipes.add_argument("--json", action="store_true", help="print JSON instead of tables")
    recipes.set_defaults(run=_recipes)


def _recipes(args: argparse.Namespace) -> int:
    import json

    from rich.console import Console

    from srwm.fewshot import RECIPES, recipe
    from srwm.fewshot.tables import recipe_table, recipes_table
    from srwm.runs.config import to_json

    if args.json:
        names = [args.recipe] if args.recipe else list(RECIPES)
        print(json.dumps({name: to_json(recipe(name).config) for name in names}, indent=2))
        return EXIT_OK
    table = recipe_table(args.recipe, recipe(args.recipe)) if args.recipe else recipes_table(RECIPES)
    Console().print(table)
    return EXIT_OK
