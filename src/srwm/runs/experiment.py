"""What an experiment is: recipes, a training and a test. Tables, charts, cards and exports come in generic form."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Unpack

import torch
from rich.table import Table
from torch import nn

from srwm.errors import InputError

from .charts import Chart, Measure
from .config import to_json
from .devices import choose_device
from .generic_results import generic_charts, generic_measures, generic_table
from .loading import load_trained
from .loop import LoopResult
from .model_card import model_card
from .model_files import write_model
from .recipes import Recipe
from .training import Run, RunOptions, start_run

__all__ = ["CardText", "EvaluateOptions", "Experiment"]


@dataclass(frozen=True)
class EvaluateOptions:
    """What `srwm evaluate` was asked for; None stands for what the experiment does by itself.

    An experiment with options of its own has a subclass, as its `evaluate_options`: each further field is an option of
    the command, and the text under it its help.
    """

    split: Literal["test", "validation"] | None = None
    """Which part of the data to test on."""
    sets: int | None = None
    """Sets of episodes."""
    episodes: int | None = None
    """Episodes of each set."""
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


class CardText(NamedTuple):
    """What the card of a model says in words of its experiment; the rest of it is the same for all."""

    about: str
    """A sentence on what the network does."""
    rows: dict[str, str]
    """What it was trained on and what a test measured, a line each."""
    caution: str
    """A sentence on where it may fail."""


class Experiment(ABC):
    """An experiment, which the commands serve: `srwm train`, `evaluate`, `report`, `export`, `sweep`, `recipes`.

    To write are `name`, `recipes`, `build`, `train` and `test`. All else has a generic form, made of the numbers that
    `test` gives, and can be replaced by a better one. `examples/own_experiment.py` is a whole one.
    """

    name: ClassVar[str]
    """As it stands in `config.json`, `model.json` and `result.json`; of one outside of srwm, `module:CLASS`."""
    recipes: Mapping[str, Recipe]
    """Every recipe by name; no two experiments share one. All have configurations of one class."""
    may_change: Sequence[str] = ()
    """Dotted keys of the configuration that may differ when a run is resumed: how long it goes on and how often it
    looks, but not what it computes."""
    evaluate_options: type[EvaluateOptions] = EvaluateOptions
    """What `srwm evaluate` may be asked for."""
    hub_task: str | None = None
    """What the Hugging Face Hub calls what its models do (`pipeline_tag`); None if it has no word for it."""
    inspect_options: type | None = None
    """What `srwm inspect` may be asked for: a subclass of `srwm.inspect.inspected.InspectOptions`; None for itself."""

    @abstractmethod
    def build(self, config: Any, about: Mapping[str, Any]) -> nn.Module:
        """Make the network of a recipe, with any weights.

        Args:
            config: the recipe.
            about: what its checkpoints say of themselves: the `meta` that `train` gave to `Run.loop`.

        Raises:
            InputError: if it cannot be made.
        """

    @abstractmethod
    def train(self, config: Any, run: Run) -> None:
        """Train a recipe from beginning to end, and write the result: a linear function; see `srwm.runs.training`."""

    @abstractmethod
    def test(self, model: Any, config: Any, options: Any) -> dict[str, Any]:
        """Test a network, as the `evaluate_options` say.

        Returns:
            What was measured, as JSON values: numbers by name, and lists of numbers that are curves. A number that is
            called "accuracy", or ends in "/accuracy", is a share. Sweeps compare the one that is called "accuracy".
        """

    def train_run(
        self, config: Any, path: Path, **options: Unpack[RunOptions]
    ) -> tuple[LoopResult, dict[str, Any] | None]:
        """Train a recipe in a run folder, and test its best checkpoint.

        Args:
            config: the recipe.
            path: the folder of the run.
            options: how; see `RunOptions`.

        Returns:
            How the loop ended, and the content of `result.json`; None for a run that was interrupted, and in processes
            other than the main one.

        Raises:
            InputError: if the data, the folder or the device do not fit.
            RunError: if something fails on the way.
        """
        with start_run(config, path, experiment=self.name, may_change=self.may_change, **options) as run:
            self.train(config, run)
        return run.result, run.content

    def load(self, name: str | Path, device: torch.device | str = "cpu") -> tuple[nn.Module, Any]:
        """Load a trained network and its recipe, from the folder of a run or of an exported model.

        Raises:
            InputError: if there is no such model, or its files are broken.
        """
        return load_trained(name, self.name, self.config_type, self.build, device)

    def evaluate(self, name: str, options: Any) -> tuple[dict[str, Any], Table]:
        """Test a model that is named or lies in a folder: what was measured, as JSON values and as a table."""
        model, config = self.load(name, choose_device(options.device))
        tested = self.test(model, config, options)
        return {"model": name, **tested}, self.evaluation_table(name, config, tested)

    def evaluation_table(self, name: str, config: Any, tested: Mapping[str, Any]) -> Table:
        """A table of what `test` gave for the model of a name."""
        return generic_table(name, self.measures({"recipe": config.recipe, "test": tested}), {})

    def result_table(self, result: Mapping[str, Any]) -> Table:
        """A table of the content of `result.json`, with the paper's figures beside ours."""
        about = {name: f"{result[name]:,.0f}" for name in ("step", "parameters", "seconds")}
        return generic_table(f"{result['recipe']}, seed {result['seed']}", self.measures(result), about)

    def measures(self, result: Mapping[str, Any]) -> list[Measure]:
        """The figures of a `result.json` for a report, with the paper's beside ours."""
        return generic_measures(result, self.recipes.get(result.get("recipe", "")))

    def charts(self, result: Mapping[str, Any]) -> list[Chart]:
        """The curves of the test of a `result.json`."""
        return generic_charts(result)

    def export(self, run: Path, out: Path, result: Mapping[str, Any], half: bool, licence: str) -> None:
        """Write a tested run as a small model, in a folder of its own.

        Args:
            run: the folder of the run.
            out: that of the model.
            result: the content of `result.json`.
            half: whether to round the weights to 16 bits.
            licence: of the weights.
        """
        model, config = self.load(run)
        write_model(
            model,
            out,
            kind=self.name,
            config=to_json(config),
            half=half,
            measured=self.measured(result),
            card=self.card(config, result, licence=licence, half=half),
            more=self.meta(model),
        )

    def measured(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """What an exported model keeps of the `result.json` of its run."""
        return result

    def card(self, config: Any, result: Mapping[str, Any], *, licence: str, half: bool) -> str:
        """The card of an exported model, in Markdown; see `export`."""
        return model_card(config, result, *self.card_text(config, result), licence=licence, half=half)

    def card_text(self, config: Any, result: Mapping[str, Any]) -> CardText:
        """What the card of an exported model says of it."""
        entry = self.recipes.get(config.recipe)
        rows = {each.name: str(each) for each in self.measures(result)}
        caution = "It was trained on this task alone: on another, test it before you trust it."
        return CardText(f"A network of the experiment {self.name}{': ' + entry.title if entry else ''}.", rows, caution)

    def inspect(self, name: str, options: Any) -> Any:
        """Show a model at work, for `srwm inspect`: a `Inspected` of `srwm.inspect` for the `inspect_options`.

        None for the generic form, which records the model while `test` runs (`srwm.inspect.tested`).
        """
        return None

    def meta(self, model: Any) -> dict[str, Any]:
        """What an exported model says of itself beside its configuration, for `build`, as JSON values."""
        return {}

    @property
    def config_type(self) -> type:
        """The class of the configurations."""
        return type(next(iter(self.recipes.values())).config)
