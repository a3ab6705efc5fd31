"""A model of continual learning at a live stream: one image after the other, and no word on where a task ends."""

import torch
from torch import Tensor, nn

from srwm.nn import SequenceState
from srwm.supervised.last_image import LastImage
from srwm.supervised.network import evaluating, to_unit

from .model import ContinualModel


class LiveContinualModel(nn.Module):
    """Learns each image as soon as its label is told, and answers every question from what it has learnt so far.

    It gives `srwm.live` what it asks for. Its state holds the features of the last image as well, which are learnt
    when the next call brings the label, and dropped if it brings none.

    Args:
        model: what `load_continual_model` gave.

    Attributes:
        model: the same.
        ways: labels that it tells apart.
        image_shape: channels, height and width of the images.
        source_names: none; all images are treated alike.
        trained_length: images of a sequence of the training, or of the sequences of a life with carried states.

    Example:
        >>> from srwm.continual import ContinualConfig, TasksConfig
        >>> from srwm.supervised.config import ModelConfig
        >>> small = ModelConfig(encoder_channels=8, hidden_size=16, num_heads=2, ff_size=16)
        >>> config = ContinualConfig(tasks=TasksConfig(tasks=2, image_size=16, channels=1), model=small)
        >>> live = LiveContinualModel(ContinualModel(config))
        >>> previous, state = None, None
        >>> for image, label in zip(torch.rand(3, 1, 16, 16), [2, 0, 3]):
        ...     probabilities, state = live.observe(image, previous, state)
        ...     previous = label
        >>> probabilities.shape
        torch.Size([4])
    """

    def __init__(self, model: ContinualModel) -> None:
        super().__init__()
        self.model = model
        self.ways = model.ways
        self.image_shape = model.image_shape
        self.source_names: tuple[str, ...] = ()
        tasks, carry = model.config.tasks, model.config.train.carry_state_prob
        learnt = tasks.tasks * tasks.ways * tasks.shots
        self.trained_length = learnt / (1 - carry) if carry < 1 else float("inf")

    @torch.no_grad()
    def observe(
        self,
        image: Tensor,
        previous_label: int | None,
        state: SequenceState | None = None,
        *,
        source: str | None = None,
    ) -> tuple[Tensor, SequenceState]:
        """Learn the image before, if its label is known now, and say what this one shows.

        Args:
            image: [c, h, w], uint8 or floats in [0, 1].
            previous_label: the label of the image before, 0 to ways - 1; None if there was none or it is not known.
            state: what the call before returned; None at the start of the stream.
            source: None; all images are treated alike.

        Returns:
            Probabilities of the labels [ways], and the state to go on with.

        Raises:
            ValueError: if the image, the label or the source does not fit.
        """
        if source is not None:
            raise ValueError(f"source={source!r}; expected none: this model treats all images alike")
        if previous_label is not None and not 0 <= previous_label < self.ways:
            raise ValueError(f"previous_label={previous_label}; expected 0 to {self.ways - 1}, or None")
        if tuple(image.shape) != self.image_shape:
            raise ValueError(f"image has shape {list(image.shape)}; expected [c, h, w] = {list(self.image_shape)}")
        device = next(self.model.parameters()).device
        with evaluating(self.model):
            features = self.model.features(to_unit(image.to(device))[None])
            layers = self.model.sequence.initial_state(1, device) if state is None else SequenceState(state.layers[1:])
            if state is not None and previous_label is not None:
                label = torch.tensor([[previous_label]], device=device)
                layers = self.model.learn_features(state.layers[0].features[:, None], label, layers)
            scores = self.model.read_features(features[:, None], layers)[0, 0]
        return scores.softmax(dim=-1), SequenceState((LastImage(features), *layers.layers))
