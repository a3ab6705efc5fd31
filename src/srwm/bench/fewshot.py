"""How fast a recipe of few-shot learning trains on this machine."""

from dataclasses import replace

import torch

from srwm.data import ImageSet
from srwm.data.sources import SOURCES
from srwm.errors import InputError
from srwm.fewshot.config import FewShotConfig, TaskConfig
from srwm.fewshot.recipes import RECIPES
from srwm.fewshot.trainer import FewShotTrainer
from srwm.fewshot.training_run import loop_options

from ._training import TrainingBench


def random_trainer(config: FewShotConfig, device: torch.device) -> FewShotTrainer:
    """A trainer on random images of the right shape."""
    channels, size = _image_shape(config.task)
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(256, (64 * 20, channels, size, size), dtype=torch.uint8, generator=generator)
    classes = [str(i) for i in range(64)]
    image_set = ImageSet.of_counts("random/train", images, [20] * 64, classes)
    return FewShotTrainer(replace(config, seed=0), image_set, image_set, device)


def _image_shape(task: TaskConfig) -> tuple[int, int]:
    """Channels and size of the images that the task asks for, or of its source."""
    source = SOURCES.get(task.source)
    channels = task.channels or (source.channels if source else None)
    size = task.image_size or (source.image_size if source else None)
    if channels is None or size is None:
        raise InputError(f"the images of {task.source!r} are not looked at here; set task.channels and task.image_size")
    return channels, size


FEW_SHOT = TrainingBench(
    RECIPES,
    train_step=lambda config, device: random_trainer(config, device).train_step,
    loop_options=loop_options,
    title="Training, whole step",
)
