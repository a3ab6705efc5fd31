"""Res-12, the residual network of few-shot learning."""

from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from .batch_norm import BatchNorm
from .conv4 import channels_last

DropoutVariant = Literal["base", "inblock", "2d", "2d_inblock"]
"""Where Res-12 drops: single features after each pool ("base"), also after the first two activations of each block
("inblock"); whole channels instead of single features in either ("2d", "2d_inblock")."""

WIDTHS = {256: (64, 96, 128, 256), 512: (64, 128, 256, 512)}
"""Channels of the four blocks, by the number of features."""


class Res12(nn.Module):
    """Four residual blocks of three convolutions each, and the mean over what remains of the image.

    Paper, appendix B.2; after Chen et al., "Meta-Baseline" (ICCV 2021).

    Args:
        in_channels: 1 for grey images, 3 for colour.
        features: 256 or 512 features of an image; they name the network, "Res-12-256" or "Res-12-512".
        dropout: probability of dropping.
        dropout_variant: where it drops.
        input_dropout: probability of dropping a pixel of a channel of the input.

    Attributes:
        feature_size: features of an image.
    """

    def __init__(
        self,
        in_channels: int,
        *,
        features: int = 256,
        dropout: float = 0.0,
        dropout_variant: DropoutVariant = "base",
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if features not in WIDTHS:
            raise ValueError(f"features={features}; expected one of {', '.join(map(str, WIDTHS))}")
        sizes = [in_channels, *WIDTHS[features]]
        self.feature_size = features
        self.input_dropout = nn.Dropout(input_dropout)
        self.blocks = nn.ModuleList(_Res12Block(*pair, dropout, dropout_variant) for pair in pairwise(sizes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu")
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n features"]:
        """Turn images into features."""
        height, width = images.shape[2:]
        if min(height, width) < 16:
            halved = "because Res-12 halves an image four times"
            raise ValueError(f"images are {height} x {width} pixels; expected at least 16 x 16, {halved}")
        x = self.input_dropout(channels_last(images))
        for block in self.blocks:
            x = block(x)
        features: Tensor = x.mean(dim=(2, 3))
        return features


class _Res12Block(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, dropout: float, variant: DropoutVariant) -> None:
        super().__init__()
        sizes = [in_channels, out_channels, out_channels, out_channels]
        self.convs = nn.ModuleList(nn.Conv2d(*pair, 3, padding=1, bias=False) for pair in pairwise(sizes))
        self.norms = nn.ModuleList(BatchNorm(out_channels) for _ in range(3))
        self.shortcut = nn.Conv2d(in_channels, out_channels, 1, bias=False)
        self.shortcut_norm = BatchNorm(out_channels)
        make = nn.Dropout2d if variant.startswith("2d") else nn.Dropout
        self.inner_dropout = make(dropout) if variant.endswith("inblock") else nn.Identity()
        self.dropout = make(dropout)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.shortcut_norm(self.shortcut(x))
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            x = norm(conv(x))
            if i < 2:
                x = self.inner_dropout(F.leaky_relu(x, 0.1))
        dropped: Tensor = self.dropout(F.max_pool2d(F.leaky_relu(x + skip, 0.1), 2))
        return dropped
