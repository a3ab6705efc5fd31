"""Few-shot learning as one kind of run among others."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from srwm.errors import InputError
from srwm.runs.devices import choose_device
from srwm.runs.experiment import EvaluateOptions, Experiment

from .evaluation import evaluate
from .images import image_loader
from .inspection import watch_few_shot
from .loading import KIND, export_model, load_model
from .metrics import charts, measures
from .model_card import model_card
from .recipes import RECIPES
from .tables import evaluation_table, result_table
from .training_run import train_run


def evaluate_model(name: str, options: EvaluateOptions) -> tuple[dict[str, Any], Table]:
    """Test a model; see `Experiment.evaluate`."""
    sets = 5 if options.sets is None else options.sets
    episodes = 16_000 if options.episodes is None else options.episodes
    if min(sets, episodes) < 1:
        raise InputError(f"{sets} sets of {episodes} episodes; expected at least one of each")
    if options.shots is not None and options.shots < 1:
        raise InputError(f"--shots {options.shots}; expected at least 1")
    if options.invert and options.source is None:
        raise InputError("--invert needs --source: the recipe says by task.invert what its own images show")
    options.refuse(("tasks", "learner", "picture"), f"is for continual learning; {name} is a few-shot model")
    device = choose_device(options.device)
    model = load_model(name, device=device)
    config = model.config
    channels, size, _ = model.image_shape
    try:
        task = dataclasses.replace(
            config.task,
            source=options.source or config.task.source,
            shots=options.shots or config.task.shots,
            image_size=size,
            channels=channels,
            invert=config.task.invert if options.source is None else bool(options.invert),
        )
    except ValueError as error:
        raise InputError(f"{name} cannot be tested on such episodes: {error}") from error
    images = image_loader(task, options.data)(options.split or "test").to(device)
    tested = evaluate(model, images, task, sets=sets, episodes=episodes, seed=options.seed)
    content = {"model": name, "task": dataclasses.asdict(task), **dataclasses.asdict(tested)}
    same_task = (task.source, task.shots) == (config.task.source, config.task.shots)
    paper = RECIPES[config.recipe].paper if config.recipe in RECIPES and same_task else None
    return content, evaluation_table(f"{images.name}, {task.ways}-way {task.shots}-shot", tested, paper)


def export_run(run: Path, out: Path, result: Mapping[str, Any], half: bool, licence: str) -> None:
    """Write the best model of a run to a folder of its own; see `Experiment.export`."""
    model = load_model(run)
    card = model_card(model.config, result, licence=licence, half=half)
    export_model(model, out, half=half, measured=result, card=card)


def _result_table(result: Mapping[str, Any]) -> Table:
    entry = RECIPES.get(result["recipe"])
    return result_table(result, entry.paper if entry else None)


FEW_SHOT = Experiment(
    KIND, RECIPES, train_run, _result_table, evaluate_model, export_run, measures, charts, watch_few_shot
)
