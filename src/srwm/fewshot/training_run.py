"""Training and testing a recipe from beginning to end: data, trainer, steps, result."""

import dataclasses

from srwm.runs.devices import set_deterministic
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run
from srwm.supervised.loop_options import options_of

from .config import FewShotConfig
from .evaluation import evaluate
from .images import image_loader
from .trainer import FewShotTrainer


def train(config: FewShotConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    set_deterministic(config.train.deterministic)
    load = image_loader(config.task, run.data)
    trainer = FewShotTrainer(config, load("train"), load("validation"), run.device, run.processes)

    loop = run.loop(trainer, loop_options(config), meta={"image_shape": list(trainer.model.image_shape)})
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
        images, train = load("test").to(run.device), config.train
        tested = evaluate(trainer.model, images, config.task, sets=train.test_sets, episodes=train.test_episodes)
    run.write_result(trainer.model, test=None if tested is None else dataclasses.asdict(tested))


def loop_options(config: FewShotConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return options_of(config.train, config.train.batch_size * config.episode_images)
