"""Training and testing a recipe from beginning to end: data, trainer, steps, result."""

from srwm.runs.devices import set_deterministic
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run
from srwm.supervised.loop_options import options_of

from .config import FewShotConfig
from .evaluation import evaluate
from .images import image_loader
from .loading import about_model
from .trainer import FewShotTrainer


def train(config: FewShotConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    task, sizes = config.task, config.train
    set_deterministic(sizes.deterministic)
    load = image_loader(task, run.data)
    trainer = FewShotTrainer(config, load("train"), load("validation"), run.device, run.processes)
    run.steps(trainer, loop_options(config), meta=about_model(trainer.model))
    run.finish(
        trainer.model,
        lambda: evaluate(
            trainer.model, load("test").to(run.device), task, sets=sizes.test_sets, episodes=sizes.test_episodes
        ),
    )


def loop_options(config: FewShotConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return options_of(config.train, config.train.batch_size * config.episode_images)
