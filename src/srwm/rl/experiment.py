"""Reinforcement learning as one experiment among others."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from srwm.errors import InputError
from srwm.runs.experiment import CardText, EvaluateOptions, Experiment
from srwm.runs.results import require

from .agent import Agent
from .config import RLConfig
from .evaluation import evaluate
from .loading import KIND, build_agent
from .metrics import measures
from .recipes import RECIPES
from .tables import PaperReturns, read_splits, result_table, returns_table
from .training_run import MAY_CHANGE, level_splits, to_json, train


class ReinforcementLearning(Experiment):
    """Agents that play ProcGen."""

    name = KIND
    hub_task = "reinforcement-learning"
    recipes = RECIPES
    may_change = MAY_CHANGE
    train = staticmethod(train)
    measures = staticmethod(measures)

    def build(self, config: RLConfig, about: Mapping[str, Any]) -> Agent:
        return build_agent(config)

    def test(self, model: Agent, config: RLConfig, options: EvaluateOptions) -> dict[str, Any]:
        """With `--episodes` on levels drawn at random, as the authors did; else on each level once."""
        options.refuse(("sets",), "is not for agents, who play levels")
        if options.episodes is not None and options.episodes < 1:
            raise InputError(f"--episodes: expected at least 1, got {options.episodes}")
        splits = level_splits(config).named()
        if options.split is None:
            splits.pop("validation")
        else:
            splits = {part: levels for part, levels in splits.items() if part.startswith(options.split)}
        tested = evaluate(
            model,
            config.games.names,
            config.games.distribution,
            splits,
            random_episodes=options.episodes,
            seed=options.seed,
            console=Console(stderr=True),
        )
        return {"games": dataclasses.asdict(config.games), "splits": to_json(tested)}

    def evaluation_table(self, name: str, config: RLConfig, tested: Mapping[str, Any]) -> Table:
        return returns_table(f"{name}: mean returns", tested["splits"], _paper_returns(config.recipe))

    def result_table(self, result: Mapping[str, Any]) -> Table:
        return result_table(result, _paper_returns(result["recipe"]))

    def charts(self, result: Mapping[str, Any]) -> list[Any]:
        return []

    def measured(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Of the test the mean returns, and not those of every episode."""
        kept = ("levels", "means", "score")
        tested = {part: {name: each[name] for name in kept} for part, each in read_splits(result).items()}
        return {**result, "test": tested}

    def card_text(self, config: RLConfig, result: Mapping[str, Any]) -> CardText:
        require(result, "frames")
        games = ", ".join(config.games.names)
        rows = {"games": f"{games} ({config.games.distribution}), {result['frames']:,} frames"}
        for part, each in read_splits(result).items():
            returns = ", ".join(f"{game} {mean:.1f}" for game, mean in each["means"].items())
            first, count = each["levels"]
            rows[f"mean return, {part}"] = f"{returns} (levels {first} to {first + count - 1}, each once)"
        about = "An agent that plays ProcGen and modifies its own weights while it plays."
        return CardText(about, rows, "It knows these games only.")

    def inspect(self, name: str, options: Any) -> Any:
        raise InputError(f"{name} is an agent that plays games; see `srwm watch`")


def _paper_returns(recipe: str) -> PaperReturns:
    return RECIPES[recipe].paper_returns if recipe in RECIPES else {}


REINFORCEMENT_LEARNING = ReinforcementLearning()
