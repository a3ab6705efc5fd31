"""Continual learning as one kind of run among others."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from srwm.errors import InputError
from srwm.runs.devices import choose_device
from srwm.runs.experiment import EvaluateOptions, Experiment

from .bank import load_bank
from .baselines import FineTuning, NearestMean
from .config import TasksConfig
from .evaluation import InContext, Learner, evaluate_orders
from .inspection import watch_continual
from .loading import KIND, export_continual_model, load_continual_model
from .measures import ContinualEvaluation
from .metrics import charts, measures
from .model import ContinualModel
from .model_card import model_card
from .plots import plot_matrices
from .recipes import RECIPES, paper_figures
from .split import evaluate_split, load_split_source
from .tables import evaluation_table, result_table
from .training_run import train_run

LEARNERS: dict[str, Callable[[ContinualModel], Learner]] = {
    "model": InContext,
    "nearest-mean": NearestMean,
    "fine-tuning": FineTuning,
}
"""What can learn the tasks of a test, by its name on the command line."""


def evaluate_model(name: str, options: EvaluateOptions) -> tuple[dict[str, Any], Table]:
    """Test a model; see `Experiment.evaluate`. With `--source`, on tasks of its classes with all images as queries."""
    model = load_continual_model(name, choose_device(options.device))
    try:
        tasks = dataclasses.replace(
            model.config.tasks,
            tasks=options.tasks or model.config.tasks.tasks,
            shots=options.shots or model.config.tasks.shots,
            classes=model.ways,
        )
    except ValueError as error:
        raise InputError(f"{name} cannot be tested on such sequences: {error}") from error
    content = {"model": name, "tasks": dataclasses.asdict(tasks)}
    figures = {}
    if options.source is None:
        options.refuse(("invert", "learner"), "needs --source")
        title, tested = f"{name}, {options.split or 'test'}", _on_drawn(model, tasks, options)
    else:
        options.refuse(("episodes",), "is for sequences that are drawn; with --source, all images are queries")
        tested = _on_source(model, tasks, options.source, options)
        learner = options.learner or "model"
        title = f"{name} on {options.source}" + ("" if learner == "model" else f", {learner}")
        content |= {"source": options.source, "learner": learner}
        figures = paper_figures(options.source, tasks)
    if options.picture is not None:
        panels = {
            f"{title}{'' if place == 0 else f', order {place + 1}'}": one for place, one in enumerate(tested.orders)
        }
        plot_matrices(panels, options.picture)
    return {**content, **dataclasses.asdict(tested)}, evaluation_table(f"{title}: accuracy in %", tested, figures)


def _on_drawn(model: ContinualModel, tasks: TasksConfig, options: EvaluateOptions) -> ContinualEvaluation:
    sets = 1 if options.sets is None else options.sets
    sequences = 1000 if options.episodes is None else options.episodes
    if min(sets, sequences) < 1:
        raise InputError(f"{sets} sets of {sequences} sequences; expected at least one of each")
    bank = load_bank(tasks, options.split or "test", options.data).to(next(model.parameters()).device)
    return evaluate_orders(model, bank, tasks, sets=sets, sequences=sequences, seed=options.seed)


def _on_source(model: ContinualModel, tasks: TasksConfig, words: str, options: EvaluateOptions) -> ContinualEvaluation:
    draws = 10 if options.sets is None else options.sets
    if draws < 1:
        raise InputError(f"{draws} draws of examples; expected at least one")
    sources = [
        load_split_source(word, tasks, options.split or "test", data=options.data, invert=bool(options.invert))
        for word in words.split(",")
    ]
    found = evaluate_split(
        model, sources, tasks, draws=draws, seed=options.seed, make_learner=LEARNERS[options.learner or "model"]
    )
    return ContinualEvaluation.of_orders((found,))


def export_run(run: Path, out: Path, result: Mapping[str, Any], half: bool, licence: str) -> None:
    """Write the best model of a run to a folder of its own; see `Experiment.export`."""
    model = load_continual_model(run)
    card = model_card(model.config, result, licence=licence, half=half)
    export_continual_model(model, out, half=half, measured=result, card=card)


CONTINUAL = Experiment(
    KIND, RECIPES, train_run, result_table, evaluate_model, export_run, measures, charts, watch_continual
)
