"""Training and testing a recipe from beginning to end: data, trainer, steps, result."""

from srwm.runs.devices import set_deterministic
from srwm.runs.loop import LoopOptions
from srwm.runs.training import Run
from srwm.supervised.loop_options import options_of

from .bank import load_bank
from .config import SequentialConfig
from .evaluation import StreamEvaluation, evaluate
from .trainer import SequentialTrainer


def train(config: SequentialConfig, run: Run) -> None:
    """Train a recipe, and test its best checkpoint."""
    sizes = config.train
    set_deterministic(sizes.deterministic)
    training, validation = (load_bank(config.stream, split, run.data) for split in ("train", "validation"))
    trainer = SequentialTrainer(config, training, validation, run.device, run.processes)
    run.steps(trainer, loop_options(config))

    def test() -> StreamEvaluation:
        bank = load_bank(config.stream, "test", run.data).to(run.device)
        return evaluate(trainer.model, bank, sets=sizes.test_sets, streams=sizes.test_episodes)

    run.finish(trainer.model, test, memory=config.model.memory)


def loop_options(config: SequentialConfig) -> LoopOptions:
    """When the loop of a recipe does what."""
    return options_of(config.train, config.train.batch_size * config.stream.length)
