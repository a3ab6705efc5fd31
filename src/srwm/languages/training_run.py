"""Training and testing a recipe from beginning to end: trainer, steps, result."""

from srwm.runs.devices import set_deterministic
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run

from .config import LanguagesConfig
from .evaluation import LanguagesEvaluation, evaluate
from .registry import find_task
from .trainer import LanguagesTrainer

MAY_CHANGE = (
    "train.total_steps",
    "train.stop_at",
    "train.log_every",
    "train.checkpoint_every",
    "train.test_sequences",
)
"""What may differ when a run is resumed: how long it goes on and how often it looks, but not what it computes."""


def train(config: LanguagesConfig, run: Run) -> None:
    """Train a recipe, and test its last weights, or those that were best in a validation."""
    set_deterministic(config.train.deterministic)
    trainer = LanguagesTrainer(config, run.device, run.processes)
    run.steps(trainer, loop_options(config))

    def test() -> LanguagesEvaluation:
        task, lengths = find_task(config.task, test=True), config.task.test_lengths
        return evaluate(trainer.model, task, lengths, sequences=config.train.test_sequences, device=run.device)

    run.finish(trainer.model, test, memory=config.model.memory, task=config.task.name)


def loop_options(config: LanguagesConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    train = config.train
    return LoopOptions(
        total_steps=train.total_steps,
        log_every=train.log_every,
        # Where nothing is validated, every stop would only cost a line.
        validate_every=train.validate_every if train.validation_lengths else train.total_steps,
        checkpoint_every=train.checkpoint_every,
        score="validation/sequence_accuracy" if train.validation_lengths else None,
        stop_at=train.stop_at,
        items_per_step=train.batch_size,
        item="sequences",
        shown=("train/loss", "train/accuracy", "train/sequence_accuracy", "validation/sequence_accuracy"),
    )
