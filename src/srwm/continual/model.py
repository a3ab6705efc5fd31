"""The network of continual learning: that of few-shot learning, whose state goes on from task to task."""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from srwm.nn import SequenceState
from srwm.supervised.network import ImageLearner

from .config import ContinualConfig


class Boundary(NamedTuple):
    """What a model knows at the end of a task."""

    scores: Float[Tensor, "b n q ways"]
    """Scores (logits) of all labels for the queries of the tasks that were asked about."""
    state: SequenceState
    """The state from which they were read; reading does not change it."""


class ContinualModel(ImageLearner):
    """Learns task after task from labelled examples, and answers questions about every task so far.

    Irie, Csordas and Schmidhuber (2025), "Automating continual learning", arXiv 2312.00276.

    Args:
        config: the recipe; its `tasks` and `model` say what the network is.

    Attributes:
        config: the recipe.

    Raises:
        ValueError: if an option does not fit.

    Example:
        >>> import torch
        >>> from srwm.continual import TasksConfig
        >>> from srwm.supervised.config import ModelConfig
        >>> small = ModelConfig(encoder_channels=8, hidden_size=16, num_heads=2, ff_size=16)
        >>> tasks = TasksConfig(tasks=2, image_size=16, channels=1)
        >>> model = ContinualModel(ContinualConfig(tasks=tasks, model=small))
        >>> images = torch.randint(256, (4, 16, 16), dtype=torch.uint8)
        >>> state = model.learn(images[:2], torch.tensor([0, 1]))  # the first task
        >>> state = model.learn(images[2:], torch.tensor([2, 3]), state)  # the second
        >>> model.predict(images, state).shape  # what is known of both
        torch.Size([4, 4])
    """

    def __init__(self, config: ContinualConfig) -> None:
        tasks = config.tasks
        super().__init__(config.model, tasks.num_classes, in_channels=tasks.channels, image_size=tasks.image_size)
        self.config = config

    def learn_task(
        self,
        support: Float[Tensor, "b k f"],
        labels: Int[Tensor, "b k"],
        query: Float[Tensor, "b n q f"],
        state: SequenceState | None = None,
    ) -> Boundary:
        """Learn the examples of a task, in their order, and answer the queries of n tasks from the state behind them.

        Args:
            support: features of the examples.
            labels: their labels.
            query: features of the queries of each task that is asked about.
            state: what was learnt before; None to begin anew.
        """
        state = self.learn_features(support, labels, state)
        return Boundary(self.read_features(query.flatten(1, 2), state).unflatten(1, query.shape[1:3]), state)
