"""Training and testing a recipe from beginning to end: data, trainer, steps, result."""

import dataclasses

from srwm.runs.devices import set_deterministic
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run
from srwm.supervised.loop_options import options_of

from .bank import load_bank
from .config import SequentialConfig
from .evaluation import evaluate
from .trainer import SequentialTrainer


def train(config: SequentialConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    set_deterministic(config.train.deterministic)
    training, validation = (load_bank(config.stream, split, run.data) for split in ("train", "validation"))
    trainer = SequentialTrainer(config, training, validation, run.device, run.processes)

    loop = run.loop(trainer, loop_options(config))
    for step in loop:  # from the newest checkpoint to the end, or to Ctrl-C
        trainer.train_step(step)
        if loop.is_due:
            numbers = loop.measure(trainer.metrics)
            if loop.is_validation_due:
                numbers |= trainer.validate()
            loop.record(numbers, trainer.notice(step + 1, numbers))

    if not run.is_finished:
        return
    run.load_best(trainer.model)
    tested = None
    if run.test:
        bank, train = load_bank(config.stream, "test", run.data).to(run.device), config.train
        tested = evaluate(trainer.model, bank, sets=train.test_sets, streams=train.test_episodes)
    run.write_result(
        trainer.model, memory=config.model.memory, test=None if tested is None else dataclasses.asdict(tested)
    )


def loop_options(config: SequentialConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return options_of(config.train, config.train.batch_size * config.stream.length)
