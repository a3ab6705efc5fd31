"""Sweeps: a grid of recipes, settings and seeds as many runs, here or on a Ray cluster, and one report."""

from ._grid import PAPER, parse_grid, parse_seeds, parse_sets
from ._plan import Job, Plan, make_plan, read_plan
from ._sweep import check_with_recipes, sweep

__all__ = [
    "PAPER",
    "Job",
    "Plan",
    "check_with_recipes",
    "make_plan",
    "parse_grid",
    "parse_seeds",
    "parse_sets",
    "read_plan",
    "sweep",
]
