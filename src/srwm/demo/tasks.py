"""Tasks without end: characters of Strokes that no model has seen, some of them as negatives."""

from typing import NamedTuple

import torch
from jaxtyping import UInt8
from torch import Tensor

from srwm.data.random import random_bits, stream_key
from srwm.data.strokes import draw_strokes
from srwm.sequential import StreamModel
from srwm.sequential.bank import INVERTED

TASK_LENGTHS = (15, 30, 75)
"""Images from one change of the classes to the next that a page can choose from."""
MAX_SEED = 2**31 - 1
"""Of a stream."""
_STREAM = 0xDE40
"""Keeps these random numbers apart from those of training and testing."""
_SEED_BITS = 2**63 - 1


class StreamTask(NamedTuple):
    """Some classes, and images of them in the order in which they are shown."""

    images: UInt8[Tensor, "n c h w"]
    """As many as the longest task has, or a few more."""
    labels: list[int]
    """The class of each, 0 to ways - 1."""
    source: str
    """Which of the model's sources they are like."""
    is_inverted: bool
    """Whether they are dark on bright."""


def draw_task(model: StreamModel, seed: int, number: int) -> StreamTask:
    """Draw a task; it is a function of the seed and its number alone.

    A model that was trained on negatives, too, is shown them in about half of the tasks.

    Args:
        model: says how many classes there are, and the shape of the images.
        seed: of the stream.
        number: of the task in the stream, from 0.
    """
    key = stream_key(seed, _STREAM, torch.tensor(number))
    ways, (channels, size, _) = model.ways, model.image_shape
    per_class = -(-max(TASK_LENGTHS) // ways)
    # Alphabets of its own for each task: the test split of no seed has a character of the training.
    drawn = draw_strokes("test", seed=int(key) & _SEED_BITS, image_size=size, classes=ways, per_class=per_class)
    order = random_bits(key, (ways * per_class,)).argsort(stable=True)
    images = drawn.images[order].expand(-1, channels, -1, -1)
    negatives = [name for name in model.source_names if name.endswith(INVERTED)]
    is_inverted = bool(negatives) and bool(random_bits(key + 1, (1,)) % 2)
    positives = [name for name in model.source_names if name not in negatives]
    source = (negatives if is_inverted else [*positives, *negatives])[0]
    return StreamTask(255 - images if is_inverted else images, (order // per_class).tolist(), source, is_inverted)


def task_bytes(model: StreamModel) -> int:
    """How much memory a task takes, about."""
    channels, size, _ = model.image_shape
    return channels * size**2 * (max(TASK_LENGTHS) + model.ways)
