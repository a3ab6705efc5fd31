"""Training and testing a recipe from beginning to end: data, trainer, steps, result."""

from srwm.runs.devices import set_deterministic
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run
from srwm.supervised.loop_options import options_of

from .bank import load_bank
from .config import ContinualConfig
from .evaluation import evaluate_orders
from .measures import ContinualEvaluation
from .trainer import ContinualTrainer


def train(config: ContinualConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    tasks, sizes = config.tasks, config.train
    set_deterministic(sizes.deterministic)
    training, validation = (load_bank(tasks, split, run.data) for split in ("train", "validation"))
    trainer = ContinualTrainer(config, training, validation, run.device, run.processes)
    run.steps(trainer, loop_options(config))

    def test() -> ContinualEvaluation:
        bank = load_bank(tasks, "test", run.data).to(run.device)
        return evaluate_orders(trainer.model, bank, tasks, sets=sizes.test_sets, sequences=sizes.test_episodes)

    run.finish(trainer.model, test, memory=config.model.memory)


def loop_options(config: ContinualConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return options_of(config.train, config.train.batch_size * config.tasks.images)
