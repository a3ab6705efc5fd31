"""Languages as one kind of experiment among others."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from srwm.errors import InputError
from srwm.runs.devices import choose_device
from srwm.runs.experiment import EvaluateOptions, Experiment
from srwm.runs.model_card import model_card

from .evaluation import evaluate
from .inspection import watch_tracker
from .loading import KIND, export_tracker, load_tracker
from .metrics import charts, measures
from .recipes import RECIPES, Figures
from .registry import find_task
from .tables import evaluation_table, read_evaluation, result_table
from .training_run import train_run


def evaluate_model(name: str, options: EvaluateOptions) -> tuple[dict[str, Any], Table]:
    """Test a network; see `Experiment.evaluate`. `--episodes` are the sequences of each of the lengths."""
    options.refuse(("split", "sets", "shots", "source", "invert"), f"is for images; {name} reads sequences of symbols")
    options.refuse(("tasks", "learner", "picture"), f"is for continual learning; {name} reads sequences of symbols")
    device = choose_device(options.device)
    network = load_tracker(name, device)
    config = network.config
    sequences = config.train.test_sequences if options.episodes is None else options.episodes
    if sequences < 1:
        raise InputError(f"--episodes: expected at least 1, got {sequences}")
    task = find_task(config.task, test=True)
    tested = evaluate(network, task, config.task.test_lengths, sequences=sequences, seed=options.seed, device=device)
    content = {"model": name, "task": dataclasses.asdict(config.task), **dataclasses.asdict(tested)}
    return content, evaluation_table(f"{name}: {task.title}", tested, _figures(config.recipe))


def export_run(run: Path, out: Path, result: Mapping[str, Any], half: bool, licence: str) -> None:
    """Write the network of a run to a folder of its own; see `Experiment.export`."""
    network = load_tracker(run)
    config, tested = network.config, read_evaluation(result["test"])
    rows = {"task": f"{config.task.name}, trained on lengths {config.task.shortest} to {config.task.longest}"}
    for each in tested.by_length:
        rows[f"right at every position, length {each.lengths}"] = f"{each.whole:.2%} of {each.sequences:,} sequences"
    card = model_card(
        config,
        result,
        about="A network that reads a sequence of symbols and answers at every position.",
        rows=rows,
        caution="It was trained on no sequences longer than that, and on this task alone.",
        licence=licence,
        half=half,
    )
    export_tracker(network, out, half=half, measured=result, card=card)


def _figures(recipe: str) -> Figures:
    return RECIPES[recipe].figures if recipe in RECIPES else {}


LANGUAGES = Experiment(
    KIND,
    RECIPES,
    train_run,
    lambda result: result_table(result, _figures(result["recipe"])),
    evaluate_model,
    export_run,
    measures,
    charts,
    watch_tracker,
)
