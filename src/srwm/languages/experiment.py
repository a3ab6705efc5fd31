"""Languages as one experiment among others."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from srwm.errors import InputError
from srwm.runs.experiment import CardText, EvaluateOptions, Experiment
from srwm.runs.results import read_own, read_part

from .config import MAY_CHANGE, LanguagesConfig
from .evaluation import LanguagesEvaluation, evaluate
from .inspection import inspect_tracker
from .loading import KIND, build_network
from .metrics import charts, measures
from .network import StateTracker
from .recipes import RECIPES, Figures
from .registry import find_task
from .tables import evaluation_table, result_table
from .trainer import train


class Languages(Experiment):
    """State tracking and formal languages."""

    name = KIND
    recipes = RECIPES
    may_change = MAY_CHANGE
    build = staticmethod(build_network)
    train = staticmethod(train)
    measures = staticmethod(measures)
    charts = staticmethod(charts)
    inspect = staticmethod(inspect_tracker)

    def test(self, model: StateTracker, config: LanguagesConfig, options: EvaluateOptions) -> dict[str, Any]:
        """`--episodes` are the sequences of each of the lengths."""
        options.refuse(("split", "sets"), "is for images; this network reads sequences of symbols")
        sequences = config.train.test_sequences if options.episodes is None else options.episodes
        if sequences < 1:
            raise InputError(f"--episodes: expected at least 1, got {sequences}")
        task, device = find_task(config.task, test=True), next(model.parameters()).device
        lengths = config.task.test_lengths
        tested = evaluate(model, task, lengths, sequences=sequences, seed=options.seed, device=device)
        return {"task": dataclasses.asdict(config.task), **dataclasses.asdict(tested)}

    def evaluation_table(self, name: str, config: LanguagesConfig, tested: Mapping[str, Any]) -> Table:
        title = f"{name}: {find_task(config.task, test=True).title}"
        return evaluation_table(title, read_own(LanguagesEvaluation, tested), _figures(config.recipe))

    def result_table(self, result: Mapping[str, Any]) -> Table:
        return result_table(result, _figures(result["recipe"]))

    def card_text(self, config: LanguagesConfig, result: Mapping[str, Any]) -> CardText:
        rows = {"task": f"{config.task.name}, trained on lengths {config.task.shortest} to {config.task.longest}"}
        for each in read_part(LanguagesEvaluation, result["test"]).by_length:
            rows[f"test sequences right at every position, length {each.lengths}"] = (
                f"{each.whole:.2%} of {each.sequences:,} sequences"
            )
        about = "A network that reads a sequence of symbols and answers at every position."
        return CardText(about, rows, "It was trained on no sequences longer than that, and on this task alone.")


def _figures(recipe: str) -> Figures:
    return RECIPES[recipe].figures if recipe in RECIPES else {}


LANGUAGES = Languages()
