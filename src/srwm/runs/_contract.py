"""What the training loop is asked for, what it asks of a training, and how it ended."""

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor

from srwm.errors import InputError


@runtime_checkable
class Checkpointed(Protocol):
    """What checkpoints are made of: all that the next step of a training depends on.

    Under several processes each has one, and all are called alike.
    """

    def tensors(self) -> dict[str, dict[str, Tensor]]:
        """Give it by group: "weights", "optimizer", "rng" and what else there is.

        With the running sums behind the metrics among them, a run interrupted between two log lines writes the same
        line after it is resumed. Of several processes the main one's are saved, and the group "rng" of each.
        """

    def load_tensors(self, groups: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Take back what `tensors` gave; they are on the CPU.

        Raises:
            InputError: if they belong to another model.
        """


class Trainer(Checkpointed):
    """A network in training, step by step; see `srwm.runs.training.Run.steps`."""

    @abstractmethod
    def train_step(self, step: int) -> None:
        """Do one step; on a GPU it may still be under way afterwards."""

    @abstractmethod
    def metrics(self) -> dict[str, float]:
        """Means since the last call, named like "train/loss"; waits for the device."""

    def validate(self) -> dict[str, float]:
        """What a validation measures; not asked for where `LoopOptions.score` is None."""
        return {}

    def notice(self, step: int, metrics: Mapping[str, float]) -> str | None:
        """What a person should know after a line of metrics, such as a plateau at chance level."""
        return None


@dataclass(frozen=True)
class LoopOptions:
    """When the loop does what; all in training steps."""

    total_steps: int
    """Steps of the whole run."""
    log_every: int = 100
    """A line in `metrics.jsonl`; the only time at which the loop waits for the device."""
    validate_every: int = 1000
    """Validation; also after the last step."""
    checkpoint_every: int = 1000
    """A checkpoint; also after the last step, after a validation better than all before, and on Ctrl-C."""
    keep_checkpoints: int = 2
    """The newest ones that stay, besides the best."""
    score: str | None = "validation/accuracy"
    """The number of a validation that says which checkpoint is best; higher is better. None for no validation: the
    newest checkpoint is then the one that counts."""
    stop_at: float | None = None
    """Stop once the score has reached this."""
    items_per_step: int = 1
    """What a step works through, for the rate that is shown."""
    item: str = "steps"
    """The name of these, for example "images"."""
    shown: tuple[str, ...] = ("train/loss", "train/accuracy", "validation/accuracy")
    """Which numbers the progress line shows."""
    tensorboard: bool = False
    """Also write the numbers for TensorBoard."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if type(value) is int and value < 1:
                raise InputError(f"{field.name} is {value}; expected at least 1")


@dataclass(frozen=True)
class LoopResult:
    """How a run ended."""

    step: int
    """Steps done, those of earlier parts of the run included."""
    score: float | None
    """The best score so far; None if there was no validation."""
    score_step: int | None
    """The step it was measured at."""
    interrupted: bool
    """Whether Ctrl-C or SIGTERM ended it before its time."""
    stopped_early: bool
    """Whether the score reached `stop_at`."""
    seconds: float
    """Time since it was started or resumed."""
    checkpoint: Path | None
    """The newest checkpoint; None in processes other than the main one."""
