"""What an experiment offers to the commands that serve all: `srwm train`, `evaluate`, `export`, `recipes`, `sweep`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from rich.console import Console
from rich.table import Table

from srwm.errors import InputError

from .charts import Chart, Measure
from .loop import LoopResult
from .recipes import Recipe

__all__ = ["EvaluateOptions", "Experiment", "TrainRun"]


@runtime_checkable
class TrainRun(Protocol):
    """`train_run` of a room: trains a recipe in a run folder; see `srwm.runs.training.train_in_folder`."""

    def __call__(
        self,
        config: Any,
        path: Path,
        *,
        resume: bool = False,
        device: str = "auto",
        data: Path | None = None,
        test: bool = True,
        tensorboard: bool = False,
        console: Console | None = None,
    ) -> tuple[LoopResult, dict[str, Any] | None]:
        """Train, and test the best checkpoint unless told not to."""


@dataclass(frozen=True)
class EvaluateOptions:
    """What `srwm evaluate` was asked for; None stands for what the experiment does by itself."""

    split: Literal["test", "validation"] | None = None
    """Which classes to test on."""
    sets: int | None = None
    """Sets of episodes."""
    episodes: int | None = None
    """Episodes of each set."""
    shots: int | None = None
    """Labelled images of a class."""
    source: str | None = None
    """Other images than the recipe's."""
    invert: bool | None = None
    """Whether those show dark ink on light paper."""
    tasks: int | None = None
    """Tasks of a sequence."""
    learner: Literal["model", "nearest-mean", "fine-tuning"] | None = None
    """What learns the tasks."""
    picture: Path | None = None
    """Where to draw what was measured."""
    seed: int = 0
    """Seed of the episodes."""
    device: str = "auto"
    """Where to compute."""
    data: Path | None = None
    """The data folder."""

    def refuse(self, names: Sequence[str], why: str) -> None:
        """Refuse options that were given and make no sense for an experiment.

        Args:
            names: of the options, as fields of this class.
            why: the rest of the sentence behind the option.

        Raises:
            InputError: if one of them was given.
        """
        for name in names:
            if getattr(self, name) is not None:
                raise InputError(f"--{name} {why}")


@dataclass(frozen=True)
class Experiment:
    """An experiment: its recipes, and the functions of its room that commands call."""

    name: str
    """As it stands in `config.json`, `model.json` and `result.json`."""
    recipes: Mapping[str, Recipe]
    """Every recipe by name; no two experiments share one."""
    train_run: TrainRun
    """Trains a recipe."""
    result_table: Callable[[Mapping[str, Any]], Table]
    """From the content of `result.json` to a table, with the paper's figures beside ours."""
    evaluate: Callable[[str, EvaluateOptions], tuple[dict[str, Any], Table]]
    """From a model's name or folder to what a test measured, as JSON values and as a table."""
    export: Callable[[Path, Path, Mapping[str, Any], bool, str], None]
    """Writes a tested run as a small model: the folder of the run, that of the model, the content of `result.json`,
    whether to round to 16 bits, and the licence of the weights."""
    measures: Callable[[Mapping[str, Any]], list[Measure]]
    """From the content of `result.json` to figures, with the paper's beside ours."""
    charts: Callable[[Mapping[str, Any]], list[Chart]]
    """From the content of `result.json` to the curves of its test."""
    watch: Callable[[str, Any], Any] | None = None
    """From a model's name or folder and a `srwm.inspect.inspected.WatchOptions` to a `Watched`; none if there is no
    such thing for the kind."""
