"""Training images as they are shown: changed at random where the recipe says so."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.supervised.augment import episode_keys, horizontal_flip, jitter, thicken
from srwm.supervised.network import to_unit

from .bank import TaskBank
from .config import ContinualConfig
from .evaluation import AUGMENTATION


class Views:
    """Gives images of a bank as a training shows them; a pure function of the step."""

    def __init__(self, bank: TaskBank, config: ContinualConfig) -> None:
        self._images, self._tasks, self._seed = bank.images, config.tasks, config.seed
        flipped = [word in config.tasks.horizontal_flip for word in config.tasks.sources]
        self._flipped = torch.tensor(flipped, device=bank.images.device)

    def __call__(
        self, places: Int[Tensor, "b n k"], source: Int[Tensor, "b n"], step: Int[Tensor, ""], first: int
    ) -> Float[Tensor, "b m c h w"]:
        """Give the images of n tasks, one behind the other.

        Args:
            places: where they lie in the bank.
            source: the number of the source of each task.
            step: number of the step, on the device; the images of a sequence change alike whenever they are asked for.
            first: place of the first sequence in the whole batch.
        """
        tasks, images = self._tasks, to_unit(self._images[places.flatten(1)])
        keys = episode_keys(len(images), seed=self._seed, rng_stream=AUGMENTATION, step=step, first=first)
        if tasks.horizontal_flip:
            chosen = self._flipped[source][..., None].expand(places.shape).flatten(1)
            images = torch.where(chosen[..., None, None, None], horizontal_flip(images, keys), images)
        if tasks.thicken:
            images = thicken(images, keys, tasks.thicken)
        if tasks.augment or tasks.augment_sequences:
            images = jitter(images, keys, each_image=tasks.augment, each_episode=tasks.augment_sequences)
        return images
