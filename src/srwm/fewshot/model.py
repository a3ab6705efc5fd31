"""The network of few-shot learning: images become features, features with labels become a state, states answer."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from srwm.supervised.network import ImageLearner

from .config import FewShotConfig


class FewShotModel(ImageLearner):
    """Learns new classes from a few labelled images while it runs (paper, section 4.1).

    Args:
        config: the recipe; its `task.ways` and `model` say what the network is.
        in_channels: 1 for grey images, 3 for colour.
        image_size: height and width of the images.

    Attributes:
        config: the recipe.

    Raises:
        ValueError: if an option does not fit.

    Example:
        >>> from srwm.fewshot import ModelConfig, FewShotTaskConfig
        >>> small = ModelConfig(encoder_channels=8, hidden_size=16, num_heads=2, ff_size=16)
        >>> model = FewShotModel(FewShotConfig(task=FewShotTaskConfig(ways=3), model=small))
        >>> images = torch.randint(256, (5, 28, 28), dtype=torch.uint8)
        >>> state = model.learn(images[:3], torch.tensor([0, 1, 2]))
        >>> model.predict(images[3:], state).shape
        torch.Size([2, 3])
    """

    def __init__(self, config: FewShotConfig, *, in_channels: int = 1, image_size: int = 28) -> None:
        super().__init__(config.model, config.task.ways, in_channels=in_channels, image_size=image_size)
        self.config = config

    def forward(
        self,
        support: Float[Tensor, "b n c h w"],
        labels: Int[Tensor, "b n"],
        query: Float[Tensor, "b q c h w"],
    ) -> Float[Tensor, "b q ways"]:
        """Learn from the support and answer each query, all images in one batch of the encoder.

        Args:
            support: images in [0, 1] to learn from.
            labels: their labels, 0 to ways - 1.
            query: images in [0, 1] to classify.

        Returns:
            Scores (logits) of the classes for each query.
        """
        features = self.features(torch.cat([support, query], dim=1))
        return self.answer(features[:, : support.shape[1]], labels, features[:, support.shape[1] :])

    def answer(
        self, support: Float[Tensor, "b n f"], labels: Int[Tensor, "b n"], query: Float[Tensor, "b q f"]
    ) -> Float[Tensor, "b q ways"]:
        """Learn from features and their labels, and answer each query; see `forward`."""
        known, asked = self.inputs(support, labels), self.inputs(query)
        if query.shape[1] == 1:
            # One pass over one sequence gives the same as a pass for learning and one for reading, sooner.
            return self.sequence(torch.cat([known, asked], dim=1))[0][:, -1:]
        _, state = self.sequence(known)
        return self.sequence.read(asked, state)
