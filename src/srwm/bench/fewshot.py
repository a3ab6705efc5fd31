"""How fast a recipe of few-shot learning trains on this machine."""

from dataclasses import replace

import torch

from srwm.data.sources import SOURCES
from srwm.errors import InputError
from srwm.fewshot.config import FewShotConfig, FewShotTaskConfig
from srwm.fewshot.recipes import RECIPES
from srwm.fewshot.trainer import FewShotTrainer, loop_options

from ._training import TrainingBench, random_sets


def random_trainer(config: FewShotConfig, device: torch.device) -> FewShotTrainer:
    """A trainer on random images of the right shape."""
    channels, size = _image_shape(config.task)
    (image_set,) = random_sets(["random/train"], 64, 20, channels, size)
    return FewShotTrainer(replace(config, seed=0), image_set, image_set, device)


def _image_shape(task: FewShotTaskConfig) -> tuple[int, int]:
    """Channels and size of the images that the task asks for, or of its source."""
    source = SOURCES.get(task.source)
    channels = task.channels or (source.channels if source else None)
    size = task.image_size or (source.image_size if source else None)
    if channels is None or size is None:
        raise InputError(f"the images of {task.source!r} are not looked at here; set task.channels and task.image_size")
    return channels, size


FEW_SHOT = TrainingBench(
    RECIPES,
    trainer=random_trainer,
    loop_options=loop_options,
    title="Training, whole step",
)
