"""The network that learns labelled images, and its parts: images become features, features with labels a state."""

from typing import cast

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from srwm.nn import SequenceModel, SequenceState, named_tensors
from srwm.vision import BatchNorm, Conv4, Res12

from .config import ModelConfig

__all__ = [
    "ImageLearner",
    "ImageNetwork",
    "build_encoder",
    "build_sequence",
    "encoder_autocast",
    "evaluating",
    "to_unit",
]


def to_unit(images: UInt8[Tensor, "*axes"] | Float[Tensor, "*axes"]) -> Float[Tensor, "*axes"]:
    """Images as floats in [0, 1]; floats are taken to be such already."""
    return images if images.is_floating_point() else images.float() / 255


class evaluating:
    """Hold a model in evaluation mode for a while."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.was_training = model, model.training

    def __enter__(self) -> None:
        self.model.eval()

    def __exit__(self, *_: object) -> None:
        self.model.train(self.was_training)


def encoder_autocast(device: torch.device, precision: str) -> torch.autocast:
    """The arithmetic of the encoder, to be used as `with`: bfloat16 on a GPU that is told so, else float32.

    The self-modifying layers keep float32. On a CPU bfloat16 would be slower than float32, not faster.
    """
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda" and precision == "bfloat16")


def build_encoder(config: ModelConfig, in_channels: int, image_size: int) -> Conv4 | Res12:
    """Make the part that turns images into features."""
    if config.encoder == "conv4":
        return Conv4(
            in_channels,
            image_size,
            channels=config.encoder_channels,
            dropout=config.encoder_dropout,
            norm=config.encoder_norm,
        )
    if image_size < 16:
        raise ValueError(f"image_size={image_size}; expected at least 16, because Res-12 halves an image four times")
    return Res12(
        in_channels,
        features=config.encoder_channels,
        dropout=config.encoder_dropout,
        dropout_variant=config.dropout_variant,
    )


def build_sequence(config: ModelConfig, features: int, ways: int) -> SequenceModel:
    """Make the part that turns features and labels into scores."""
    return SequenceModel(
        features + ways + (config.label_slot == "no_label"),
        ways,
        memory=config.memory,
        hidden_size=config.hidden_size,
        num_layers=config.num_layers,
        num_heads=config.num_heads,
        ff_size=config.ff_size,
        dropout=config.dropout,
        memory_options=config.memory_options,
    )


class ImageNetwork(nn.Module):
    """Images to features, and features with labels to scores.

    Args:
        model: what the network is.
        classes: labels that it tells apart.
        in_channels: 1 for grey images, 3 for colour.
        image_size: height and width of the images.
        images_a_step: images whose features stand in a step of the sequence.

    Attributes:
        options: what the network is.
        ways: labels that it tells apart.
        image_shape: channels, height and width of the images.
        encoder: images to features.
        sequence: features and labels to scores, under the contract of `srwm.nn`.

    Raises:
        ValueError: if an option does not fit.
    """

    def __init__(
        self, model: ModelConfig, classes: int, *, in_channels: int, image_size: int, images_a_step: int = 1
    ) -> None:
        super().__init__()
        self.options = model
        self.ways = classes
        self.image_shape = (in_channels, image_size, image_size)
        self.encoder = build_encoder(model, in_channels, image_size)
        self.feature_norm = BatchNorm(self.encoder.feature_size) if model.feature_norm else None
        self.sequence = build_sequence(model, images_a_step * self.encoder.feature_size, classes)

    def features(self, images: Float[Tensor, "*axes c h w"]) -> Float[Tensor, "*axes f"]:
        """Turn images, brought to the scale of the network, into features."""
        flat = cast(Tensor, self.encoder(images.flatten(0, -4)))
        if self.feature_norm is not None:
            flat = self.feature_norm(flat.float()[..., None, None])[..., 0, 0]
        return flat.reshape(*images.shape[:-3], flat.shape[-1])


class ImageLearner(ImageNetwork):
    """Learns classes from labelled images while it runs, and answers without learning from the question.

    Each image becomes features; with the one-hot of its label beside them, they are one step of a sequence. The label
    of a query is not known, so another word stands in its place (`ModelConfig.label_slot`). Images are in [0, 1].
    """

    def learn_features(
        self, features: Float[Tensor, "b n f"], labels: Int[Tensor, "b n"], state: SequenceState | None = None
    ) -> SequenceState:
        """Learn from features and their labels, in their order; gradients flow."""
        return self.sequence(self.inputs(features, labels), state)[1]

    def read_features(self, query: Float[Tensor, "b q f"], state: SequenceState | None) -> Float[Tensor, "b q ways"]:
        """Scores of the classes for each query, none of which changes the state; gradients flow."""
        return self.sequence.read(self.inputs(query), state)

    def inputs(
        self, features: Float[Tensor, "*axes f"], labels: Int[Tensor, "*axes"] | None = None
    ) -> Float[Tensor, "*axes i"]:
        """Give what `sequence` reads: features with their labels beside them, or with the word for "not known"."""
        width = self.sequence.input_size - features.shape[-1]
        if labels is None:
            slot = features.new_zeros(*features.shape[:-1], width)
            slot[..., 0 if self.options.label_slot == "class_zero" else self.ways] = 1.0
        else:
            slot = torch.eye(width, device=features.device, dtype=features.dtype)[labels]
        return torch.cat([features, self.options.label_scale * slot], dim=-1)

    @torch.no_grad()
    def learn(self, images: Tensor, labels: Tensor, state: SequenceState | None = None) -> SequenceState:
        """Learn from labelled images, in their order.

        Args:
            images: [n, c, h, w], or [b, n, c, h, w] for b learners at once; uint8, or floats in [0, 1]. Grey images of
                a single learner may be [n, h, w]; with the axis b, the axis c must be there.
            labels: 0 to ways - 1, [n] or [b, n].
            state: what was learnt before; None for a fresh state.

        Returns:
            What is known now; give it to `predict`, or to `learn` to go on learning.

        Raises:
            ValueError: if images, labels and state do not fit.
        """
        batched, images = self._images(images)
        labels = torch.as_tensor(labels, device=images.device)
        labels = labels if batched or labels.dim() == 0 else labels[None]
        if labels.shape != images.shape[:2] or labels.is_floating_point():
            raise ValueError(
                f"labels are {labels.dtype} of shape {list(labels.shape)}; expected whole numbers, one for each of the "
                f"images {list(images.shape[:2])}"
            )
        if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < self.ways:
            raise ValueError(
                f"labels go from {int(labels.min())} to {int(labels.max())}; expected 0 to {self.ways - 1}: "
                f"the model tells {self.ways} classes apart"
            )
        _check_learners(images, state)
        with evaluating(self):
            return self.learn_features(self.features(images), labels.long(), state)

    @torch.no_grad()
    def predict(self, images: Tensor, state: SequenceState | None = None) -> Tensor:
        """Say what new images show; nothing is learnt from them.

        Args:
            images: as in `learn`, with the same b.
            state: what `learn` returned; None for a model that has seen nothing.

        Returns:
            Probabilities of the classes [q, ways] or [b, q, ways].

        Raises:
            ValueError: if images and state do not fit.
        """
        batched, images = self._images(images)
        _check_learners(images, state)
        with evaluating(self):
            scores = self.read_features(self.features(images), state).softmax(dim=-1)
        return scores if batched else scores[0]

    def _images(self, images: Tensor) -> tuple[bool, Tensor]:
        """Bring a user's images to [b, n, c, h, w], and say whether they came with the axis b."""
        device = next(self.parameters()).device
        shape, grey = list(images.shape), "[n, h, w], " if self.image_shape[0] == 1 else ""
        if grey and images.dim() == 3:
            images = images.unsqueeze(-3)
        if tuple(images.shape[-3:]) != self.image_shape or images.dim() not in (4, 5):
            raise ValueError(
                f"images have shape {shape}; expected {grey}[n, c, h, w] or [b, n, c, h, w] with c, h, w = "
                f"{', '.join(map(str, self.image_shape))}"
            )
        batched = images.dim() == 5
        return batched, to_unit(images.to(device) if batched else images.to(device)[None])


def _check_learners(images: Float[Tensor, "b n c h w"], state: SequenceState | None) -> None:
    """Refuse a state of another number of learners than the images are for."""
    learners = next((len(tensor) for _, tensor in named_tensors(state)), len(images)) if state is not None else 0
    if state is not None and learners != len(images):
        raise ValueError(
            f"the images are for {len(images)} learners and the state is of {learners}; expected [b, n, c, h, w] "
            f"with b = {learners}"
        )
