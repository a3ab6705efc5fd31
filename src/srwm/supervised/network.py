"""The two parts of a network that learns images: an encoder, and a sequence model over features and labels."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from srwm.nn import SequenceModel
from srwm.vision import Conv4, Res12

from .config import ModelConfig

__all__ = ["build_encoder", "build_sequence", "encoder_autocast", "evaluating", "to_unit"]


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
