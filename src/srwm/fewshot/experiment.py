"""Few-shot learning as one experiment among others."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from srwm.data.sources import described_source
from srwm.errors import InputError
from srwm.runs.charts import Measure
from srwm.runs.experiment import CardText, EvaluateOptions, Experiment
from srwm.runs.results import read_own, read_part
from srwm.supervised.config import MAY_CHANGE

from .config import FewShotConfig
from .evaluation import FewShotEvaluation, evaluate
from .images import image_loader, source_words
from .inspection import FewShotInspectOptions, inspect_few_shot
from .loading import KIND, about_model, build_saved_model
from .model import FewShotModel
from .recipes import RECIPES
from .tables import evaluation_table, result_table
from .trainer import train


@dataclass(frozen=True)
class FewShotEvaluateOptions(EvaluateOptions):
    """What `srwm evaluate` may be asked of a few-shot model."""

    shots: int | None = None
    """Labelled images of a class; none for the recipe's."""
    source: str | None = None
    """Other images than the recipe's; see `srwm data list`."""
    invert: bool | None = None
    """With --source: its images show dark ink on light paper."""

    def __post_init__(self) -> None:
        for name in ("sets", "episodes", "shots"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"--{name} {value}; expected at least 1")
        if self.invert and self.source is None:
            raise ValueError("--invert needs --source: the recipe says by task.invert what its own images show")


class FewShot(Experiment):
    """Few-shot learning."""

    name = KIND
    hub_task = "image-classification"
    recipes = RECIPES
    may_change = MAY_CHANGE
    evaluate_options = FewShotEvaluateOptions
    inspect_options = FewShotInspectOptions
    build = staticmethod(build_saved_model)
    train = staticmethod(train)
    meta = staticmethod(about_model)
    inspect = staticmethod(inspect_few_shot)

    def test(self, model: FewShotModel, config: FewShotConfig, options: FewShotEvaluateOptions) -> dict[str, Any]:
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
            raise InputError(f"the model cannot be tested on such episodes: {error}") from error
        images = image_loader(task, options.data)(options.split or "test").to(next(model.parameters()).device)
        sets, episodes = options.sets or 5, options.episodes or 16_000
        tested = evaluate(model, images, task, sets=sets, episodes=episodes, seed=options.seed)
        return {"images": images.name, "task": dataclasses.asdict(task), **dataclasses.asdict(tested)}

    def evaluation_table(self, name: str, config: FewShotConfig, tested: Mapping[str, Any]) -> Table:
        task = tested["task"]
        is_own_task = (task["source"], task["shots"]) == (config.task.source, config.task.shots)
        paper = RECIPES[config.recipe].paper if config.recipe in RECIPES and is_own_task else None
        title = f"{tested['images']}, {task['ways']}-way {task['shots']}-shot"
        return evaluation_table(title, read_own(FewShotEvaluation, tested), paper)

    def result_table(self, result: Mapping[str, Any]) -> Table:
        entry = RECIPES.get(result["recipe"])
        return result_table(result, entry.paper if entry else None)

    def measures(self, result: Mapping[str, Any]) -> list[Measure]:
        found = []
        if result.get("test") is not None:
            test = read_part(FewShotEvaluation, result["test"])
            entry = RECIPES.get(result.get("recipe", ""))
            paper = None if entry is None or entry.paper is None else entry.paper / 100
            interval = test.interval_episodes if test.interval_sets is None else test.interval_sets
            found.append(Measure("test accuracy, classes never seen", test.accuracy, interval, paper, percent=True))
        if result.get("score") is not None:
            found.append(Measure("best validation accuracy", result["score"], percent=True))
        return found

    def charts(self, result: Mapping[str, Any]) -> list[Any]:
        return []

    def card_text(self, config: FewShotConfig, result: Mapping[str, Any]) -> CardText:
        task, test = config.task, read_part(FewShotEvaluation, result["test"])
        sources = ", ".join(map(described_source, source_words(task.source)))
        interval = "" if test.interval_sets is None else f" ± {test.interval_sets:.2%} (95% over sets)"
        return CardText(
            f"A network that learns {task.ways} new classes of images from a few labelled examples of each, while it "
            "runs.",
            {
                "data": f"{sources}; tested on classes it was not trained on",
                f"test accuracy, {task.ways}-way {task.shots}-shot": f"{test.accuracy:.2%}{interval}, "
                f"{test.episodes:,} episodes",
            },
            "It has seen no other kind of image: on others, test it before you trust it.",
        )


FEW_SHOT = FewShot()
