"""An experiment of one's own: a network that learns linear functions while it runs, in one file.

It is shown examples (x, y) of a random linear function, and at each step is to say the y of the next x. Nothing that it
could know beforehand helps: it has to find the function in its context. Garg et al. (2022), "What can transformers
learn in-context?", ask the same of Transformers.

What stands here is recipes, a network, a training and a test. All commands serve it, in generic form where nothing else
is said; they find it by its name, if the folder of this file is on Python's path:

    PYTHONPATH=examples srwm train own_experiment:LinearRegression/gated --out runs/regression
    PYTHONPATH=examples srwm evaluate runs/regression
    PYTHONPATH=examples srwm report runs/regression
    PYTHONPATH=examples srwm inspect runs/regression
    PYTHONPATH=examples srwm export runs/regression exported
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from srwm.errors import InputError
from srwm.nn import Memory, SequenceModel
from srwm.runs.adam_training import AdamTraining
from srwm.runs.config import at_least
from srwm.runs.experiment import EvaluateOptions, Experiment
from srwm.runs.loop import LoopOptions
from srwm.runs.recipes import NamedRecipe
from srwm.runs.training import Run

TRAINING, TEST = range(2)
"""Numbers that keep the random functions of training and test apart."""


@dataclass(frozen=True)
class RegressionConfig:
    """A recipe: everything that a run is made of."""

    recipe: str = "custom"
    """Name of the recipe that this came from."""
    seed: int = 0
    """Seed of the weights and the functions."""
    inputs: int = 4
    """Numbers that a function takes."""
    examples: int = 20
    """Examples of a function that are shown."""
    memory: Memory = "srwm"
    """What learns a function: a memory by its name, or a layer of your own as package.module:Class."""
    gated: bool = False
    """Whether the memory is an SRWM with forget gates and keys of unit length."""
    hidden_size: int = 32
    """Width of the network."""
    batch_size: int = 32
    """Functions of a step."""
    total_steps: int = 1000
    """Steps of the training."""
    learning_rate: float = 3e-3
    """Learning rate of Adam."""
    log_every: int = 50
    """Steps between two lines of metrics."""

    def __post_init__(self) -> None:
        at_least(1, inputs=self.inputs, examples=self.examples, batch_size=self.batch_size)


RECIPES = {
    "plain": NamedRecipe(RegressionConfig(recipe="plain"), "linear functions, an SRWM"),
    "gated": NamedRecipe(RegressionConfig(recipe="gated", gated=True), "linear functions, a gated SRWM"),
}


class LinearRegression(Experiment):
    """In-context linear regression."""

    name = "own_experiment:LinearRegression"
    recipes = RECIPES
    may_change = ("total_steps", "log_every")

    def build(self, config: RegressionConfig, about: Mapping[str, Any]) -> SequenceModel:
        """Make the network: x and the y before it go in, an estimate of y comes out."""
        options = {"key_map": "l2", "forget_gates": 2, "input_projection": True} if config.gated else {}
        try:
            return SequenceModel(
                config.inputs + 1,
                1,
                memory=config.memory,
                hidden_size=config.hidden_size,
                num_heads=2,
                memory_options=options,
            )
        except ValueError as error:
            raise InputError(f"the model cannot be built: {error}") from error

    def train(self, config: RegressionConfig, run: Run) -> None:
        """Train on new functions at every step."""
        torch.manual_seed(config.seed)
        model = self.build(config, {}).to(run.device)
        training = AdamTraining(model, config.learning_rate, processes=run.processes)

        loop = run.loop(training, LoopOptions(config.total_steps, config.log_every, score=None, shown=("train/loss",)))
        for step in loop:  # from the newest checkpoint to the end, or to Ctrl-C
            x, y = draw(config, config.batch_size, TRAINING, step, run.device)
            own = slice(run.processes.rank, None, run.processes.count)
            training.update(F.mse_loss(answers(model, x[own], y[own]), y[own]), step)
            if loop.is_due:
                loop.record(loop.measure(training.metrics))

        if not run.is_finished:
            return
        run.load_best(model)
        test = self.test(model, config, EvaluateOptions()) if run.test else None
        run.write_result(model, test=test, test_score=test and test["explained"])

    def test(self, model: SequenceModel, config: RegressionConfig, options: EvaluateOptions) -> dict[str, Any]:
        """The error on functions that were never seen, and how it falls with each example."""
        options.refuse(("split", "sets"), "is not for functions, which are drawn")
        device = next(model.parameters()).device
        functions = options.episodes or 1000
        x, y = draw(replace(config, seed=options.seed), functions, TEST, 0, device)
        with torch.no_grad():
            squared = (answers(model.eval(), x, y) - y).square()
        error = float(squared.mean())
        return {
            "error": error,
            "explained": 1 - error / float(y.square().mean()),
            "error by example": squared.mean(dim=0).tolist(),
        }


def draw(
    config: RegressionConfig, functions: int, stream: int, step: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Draw examples of random functions: x [b, t, inputs] and y [b, t], whose variance is 1."""
    generator = torch.Generator().manual_seed((config.seed * 2 + stream) * 1_000_003 + step)
    x = torch.randn(functions, config.examples, config.inputs, generator=generator)
    weight = torch.randn(functions, config.inputs, 1, generator=generator)
    return x.to(device), ((x @ weight)[..., 0] / config.inputs**0.5).to(device)


def answers(model: SequenceModel, x: Tensor, y: Tensor) -> Tensor:
    """What the network says of each x, knowing the examples before it [b, t]."""
    before = torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], dim=1)
    said: Tensor = model(torch.cat([x, before[..., None]], dim=-1))[0]
    return said[..., 0]
