"""Streams as one kind of run among others."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from srwm.errors import InputError
from srwm.runs.devices import choose_device
from srwm.runs.experiment import EvaluateOptions, Experiment

from .bank import load_bank
from .evaluation import evaluate
from .inspection import watch_stream
from .loading import KIND, export_stream_model, load_stream_model
from .metrics import charts, measures
from .model_card import model_card
from .recipes import RECIPES, Figures
from .tables import evaluation_table, result_table
from .training_run import train_run


def evaluate_model(name: str, options: EvaluateOptions) -> tuple[dict[str, Any], Table]:
    """Test a model; see `Experiment.evaluate`."""
    sets = 5 if options.sets is None else options.sets
    streams = 816 if options.episodes is None else options.episodes
    split = options.split or "test"
    if min(sets, streams) < 1:
        raise InputError(f"{sets} sets of {streams} streams; expected at least one of each")
    options.refuse(("shots", "source", "invert"), f"is for few-shot models; {name} was trained on streams")
    options.refuse(("tasks", "learner", "picture"), f"is for continual learning; {name} was trained on streams")
    device = choose_device(options.device)
    model = load_stream_model(name, device)
    config = model.config
    bank = load_bank(config.stream, split, options.data).to(device)
    tested = evaluate(model, bank, sets=sets, streams=streams, seed=options.seed)
    content = {"model": name, "stream": dataclasses.asdict(config.stream), **dataclasses.asdict(tested)}
    return content, evaluation_table(f"{name}, {split}: accuracy in %", tested, _figures(config.recipe))


def export_run(run: Path, out: Path, result: Mapping[str, Any], half: bool, licence: str) -> None:
    """Write the best model of a run to a folder of its own; see `Experiment.export`."""
    model = load_stream_model(run)
    card = model_card(model.config, result, licence=licence, half=half)
    export_stream_model(model, out, half=half, measured=result, card=card)


def _figures(recipe: str) -> Figures:
    return RECIPES[recipe].figures if recipe in RECIPES else {}


SEQUENTIAL = Experiment(
    KIND,
    RECIPES,
    train_run,
    lambda result: result_table(result, _figures(result["recipe"])),
    evaluate_model,
    export_run,
    measures,
    charts,
    watch_stream,
)
