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

    from srwm import fewshot, sequential
    from srwm.fewshot.tables import recipes_table
    from srwm.runs.config import to_json
    from srwm.sequential.tables import recipes_table as streams_table

    from ._experiments import find_experiment, recipe_names

    if args.json:
        names = [args.recipe] if args.recipe else recipe_names()
        print(json.dumps({name: to_json(find_experiment(name).config) for name in names}, indent=2))
    elif args.recipe:
        Console().print(find_experiment(args.recipe).recipe_table())
    else:
        Console().print(recipes_table(fewshot.RECIPES))
        Console().print(streams_table(sequential.RECIPES))
    return EXIT_OK
