"""Continual learning as one experiment among others."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table

from srwm.data.sources import described_source
from srwm.errors import InputError
from srwm.runs.experiment import CardText, EvaluateOptions, Experiment
from srwm.runs.results import read_own, read_part
from srwm.supervised.config import MAY_CHANGE

from .bank import load_bank
from .baselines import FineTuning, NearestMean
from .config import ContinualConfig, TasksConfig
from .evaluation import ContinualLearner, InContext, evaluate_orders
from .inspection import ContinualInspectOptions, inspect_continual
from .loading import KIND, build_model
from .measures import ContinualEvaluation
from .metrics import charts, measures
from .model import ContinualModel
from .plots import plot_matrices
from .recipes import RECIPES, paper_figures
from .split import evaluate_split, load_split_source
from .tables import evaluation_table, result_table
from .trainer import train

LEARNERS: dict[str, Callable[[ContinualModel], ContinualLearner]] = {
    "model": InContext,
    "nearest-mean": NearestMean,
    "fine-tuning": FineTuning,
}
"""What can learn the tasks of a test, by its name on the command line."""


@dataclass(frozen=True)
class ContinualEvaluateOptions(EvaluateOptions):
    """What `srwm evaluate` may be asked of a model of continual learning."""

    tasks: int | None = None
    """Tasks of a sequence; none for the recipe's."""
    shots: int | None = None
    """Examples of each class; none for the recipe's."""
    source: str | None = None
    """Tasks of the classes of this source, with all images as queries; several with commas between them."""
    invert: bool | None = None
    """With --source: its images show dark ink on light paper."""
    learner: Literal["model", "nearest-mean", "fine-tuning"] | None = None
    """With --source: the model (default), or what is set beside it."""
    picture: Path | None = None
    """Draw what is still known (.svg, .png, .pdf)."""


class Continual(Experiment):
    """Task after task, in one state."""

    name = KIND
    hub_task = "image-classification"
    recipes = RECIPES
    may_change = MAY_CHANGE
    evaluate_options = ContinualEvaluateOptions
    inspect_options = ContinualInspectOptions
    build = staticmethod(build_model)
    train = staticmethod(train)
    result_table = staticmethod(result_table)
    measures = staticmethod(measures)
    charts = staticmethod(charts)
    inspect = staticmethod(inspect_continual)

    def test(self, model: ContinualModel, config: ContinualConfig, options: ContinualEvaluateOptions) -> dict[str, Any]:
        """On sequences that are drawn, or with `--source` on tasks of its classes with all images as queries."""
        own = config.tasks
        try:
            tasks = dataclasses.replace(
                own, tasks=options.tasks or own.tasks, shots=options.shots or own.shots, classes=model.ways
            )
        except ValueError as error:
            raise InputError(f"the model cannot be tested on such sequences: {error}") from error
        content: dict[str, Any] = {"tasks": dataclasses.asdict(tasks)}
        if options.source is None:
            options.refuse(("invert", "learner"), "needs --source")
            tested = _on_drawn(model, tasks, options)
        else:
            options.refuse(("episodes",), "is for sequences that are drawn; with --source, all images are queries")
            tested = _on_source(model, tasks, options.source, options)
            content |= {"source": options.source, "learner": options.learner or "model"}
        if options.picture is not None:
            title = options.source or f"{config.recipe}, {options.split or 'test'}"
            names = (title, *(f"{title}, order {number}" for number in range(2, len(tested.orders) + 1)))
            plot_matrices(dict(zip(names, tested.orders, strict=True)), options.picture)
        return {**content, **dataclasses.asdict(tested)}

    def evaluation_table(self, name: str, config: ContinualConfig, tested: Mapping[str, Any]) -> Table:
        source, learner = tested.get("source"), tested.get("learner", "model")
        title = name if source is None else f"{name} on {source}" + ("" if learner == "model" else f", {learner}")
        figures = paper_figures(source, TasksConfig(**tested["tasks"])) if source is not None else {}
        return evaluation_table(f"{title}: accuracy in %", read_own(ContinualEvaluation, tested), figures)

    def card_text(self, config: ContinualConfig, result: Mapping[str, Any]) -> CardText:
        tasks, tested = config.tasks, read_part(ContinualEvaluation, result["test"])
        rows = {
            "data": "; ".join(described_source(word) for word in tasks.sources),
            "sequences": f"{tasks.tasks} tasks of {tasks.ways} classes, {tasks.shots} examples of each, "
            f"{tasks.labels.replace('_', '-')} labels",
        }
        for order in tested.orders:
            where = ", then ".join(dict.fromkeys(order.tasks))
            rows[f"accuracy on all tasks after the last one, {where}"] = f"{order.accuracy.percent()}% (95%)"
            if order.forgetting is not None:
                rows[f"forgetting, {where}"] = f"{order.forgetting.percent()} points (95%)"
        return CardText(
            "A network that learns one task after the other from labelled examples while it runs, and goes on knowing "
            "the earlier ones.",
            rows,
            "Tested on classes it was not trained on. It has seen no other kind of image, and no longer sequences of "
            "tasks: on others, test it before you trust it.",
        )


def _on_drawn(model: ContinualModel, tasks: TasksConfig, options: ContinualEvaluateOptions) -> ContinualEvaluation:
    sets = 1 if options.sets is None else options.sets
    sequences = 1000 if options.episodes is None else options.episodes
    if min(sets, sequences) < 1:
        raise InputError(f"{sets} sets of {sequences} sequences; expected at least one of each")
    bank = load_bank(tasks, options.split or "test", options.data).to(next(model.parameters()).device)
    return evaluate_orders(model, bank, tasks, sets=sets, sequences=sequences, seed=options.seed)


def _on_source(
    model: ContinualModel, tasks: TasksConfig, words: str, options: ContinualEvaluateOptions
) -> ContinualEvaluation:
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


CONTINUAL = Continual()
