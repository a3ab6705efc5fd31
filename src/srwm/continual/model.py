"""The network of continual learning: that of few-shot learning, whose state goes on from task to task."""

from srwm.supervised.network import ImageLearner

from .config import ContinualConfig


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
