"""Reinforcement learning as one kind of experiment among others."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from srwm.errors import InputError
from srwm.runs.config import to_json as config_to_json
from srwm.runs.devices import choose_device
from srwm.runs.experiment import EvaluateOptions, Experiment
from srwm.runs.model_card import model_card
from srwm.runs.model_files import write_model
from srwm.runs.results import require

from .evaluation import evaluate
from .loading import KIND, load_agent
from .metrics import charts, measures
from .recipes import RECIPES
from .tables import PaperReturns, read_splits, result_table, returns_table
from .training_run import level_splits, to_json, train_run


def evaluate_model(name: str, options: EvaluateOptions) -> tuple[dict[str, Any], Table]:
    """Test an agent; see `Experiment.evaluate`. With `--episodes` on levels drawn at random, as the authors did."""
    options.refuse(("sets", "shots", "source", "invert"), f"is for few-shot models; {name} plays games")
    options.refuse(("tasks", "learner", "picture"), f"is for continual learning; {name} plays games")
    if options.episodes is not None and options.episodes < 1:
        raise InputError(f"--episodes: expected at least 1, got {options.episodes}")
    agent, config = load_agent(name, choose_device(options.device))
    splits = level_splits(config).named()
    if options.split is None:
        splits.pop("validation")
    else:
        splits = {part: levels for part, levels in splits.items() if part.startswith(options.split)}
    tested = evaluate(
        agent,
        config.games.names,
        config.games.distribution,
        splits,
        random_episodes=options.episodes,
        seed=options.seed,
        console=Console(stderr=True),
    )
    splits_content = to_json(tested)
    content = {"model": name, "games": dataclasses.asdict(config.games), "splits": splits_content}
    return content, returns_table(f"{name}: mean returns", splits_content, _paper_returns(config.recipe))


def export_run(run: Path, out: Path, result: Mapping[str, Any], half: bool, licence: str) -> None:
    """Write the agent of a run to a folder of its own; see `Experiment.export`."""
    agent, config = load_agent(run)
    games = ", ".join(config.games.names)
    require(result, "frames")
    rows = {"games": f"{games} ({config.games.distribution}), {result['frames']:,} frames"}
    tested = read_splits(result)
    for part, each in tested.items():
        returns = ", ".join(f"{game} {mean:.1f}" for game, mean in each["means"].items())
        first, count = each["levels"]
        rows[f"mean return, {part}"] = f"{returns} (levels {first} to {first + count - 1}, each once)"
    card = model_card(
        config,
        result,
        about="An agent that plays ProcGen and modifies its own weights while it plays.",
        rows=rows,
        caution="It knows these games only.",
        licence=licence,
        half=half,
    )
    measured = {**result, "test": {part: each["means"] for part, each in tested.items()}}
    write_model(agent, out, kind=KIND, config=config_to_json(config), half=half, measured=measured, card=card)


def _paper_returns(recipe: str) -> PaperReturns:
    return RECIPES[recipe].paper_returns if recipe in RECIPES else {}


REINFORCEMENT_LEARNING = Experiment(
    KIND,
    RECIPES,
    train_run,
    lambda result: result_table(result, _paper_returns(result["recipe"])),
    evaluate_model,
    export_run,
    measures,
    charts,
)
