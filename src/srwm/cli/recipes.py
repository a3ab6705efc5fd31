"""`srwm recipes`: what can be trained."""

import argparse

from ._parser import EXIT_OK, Parser


def add(recipes: Parser) -> None:
    """Add its options."""
    recipes.add_argument("recipe", nargs="?", metavar="RECIPE", help="show its values, each with what it means")
    recipes.add_argument("--json", action="store_true", help="print JSON instead of tables")
    recipes.set_defaults(run=_recipes)


def _recipes(args: argparse.Namespace) -> int:
    import json

    from rich.console import Console

    from srwm.experiments import all_recipes, experiments, find_recipe_by_name
    from srwm.runs.config import to_json
    from srwm.runs.recipes import recipe_table, recipes_table

    recipes = {args.recipe: find_recipe_by_name(args.recipe)[1]} if args.recipe else all_recipes()
    if args.json:
        print(json.dumps({name: to_json(entry.config) for name, entry in recipes.items()}, indent=2))
    elif args.recipe:
        Console().print(recipe_table(args.recipe, recipes[args.recipe]))
    else:
        for experiment in experiments().values():
            Console().print(recipes_table(experiment.recipes))
    return EXIT_OK
