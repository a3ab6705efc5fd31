"""The results of a test as measures for a report."""

from collections.abc import Mapping
from typing import Any

from srwm.runs.charts import Measure

from .recipes import RECIPES
from .tables import grouped, read_splits, value_of


def measures(result: Mapping[str, Any]) -> list[Measure]:
    """Mean returns by part of the levels and game, and the score over several games; see `Experiment.measures`."""
    groups = grouped(read_splits(result))
    entry = RECIPES.get(result.get("recipe", ""))
    paper_returns = entry.paper_returns if entry else {}
    found = []
    for part, splits in groups.items():
        games = list(splits[0]["means"])
        for game in [*games, "score"] if len(games) > 1 else games:
            value = sum(value_of(split, game) for split in splits) / len(splits)
            paper = paper_returns.get(part, {}).get(game)
            name = "score over all games" if game == "score" else f"return in {game}"
            found.append(Measure(f"{name}, {part} levels", value, None, paper.mean if paper else None))
    return found
