"""A short causal convolution of each channel, whose last inputs are carried from call to call."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.ops.checks import state_dtype

from ._arguments import check_memory


class ShortConvolution(nn.Module):
    """Mixes each channel with its own last inputs, then applies SiLU: y_t = silu(sum over a of w_a x_(t-a)).

    It stands before the heads of many recent linear recurrences (Mamba, Gated DeltaNet, HOPE): a head then reads a few
    steps at once. There is no bias. What was before the first step of an episode is zero.

    Args:
        channels: features of x and y.
        width: how many inputs an output sees, its own among them; at least 2.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Attributes:
        weight: [channels, width]; the last of a channel is that of the present input, the first of the oldest.
    """

    def __init__(
        self,
        channels: int,
        width: int,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        check_memory((channels, width), hidden_size=channels, convolution=width)
        self.width = width
        self.weight = nn.Parameter(torch.empty(channels, width, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights as `torch.nn.Conv1d` draws those of one channel: evenly within 1 / sqrt(width)."""
        nn.init.uniform_(self.weight, -(self.width**-0.5), self.width**-0.5)

    def forward(
        self, x: Float[Tensor, "b t d"], recent: Float[Tensor, "b w d"] | None, reset: Bool[Tensor, "b t"] | None
    ) -> tuple[Float[Tensor, "b t d"], Float[Tensor, "b w d"]]:
        """Convolve a sequence.

        Args:
            x: inputs [b, t, channels].
            recent: the inputs before it, oldest first [b, width - 1, channels]; None for zeros.
            reset: bool [b, t]; where true, all inputs before that step count as zero from there on.

        Returns:
            y [b, t, channels], and the inputs before what comes next.
        """
        padded = self._after_recent(x, recent)
        kept = padded[:, x.shape[1] :]
        if reset is not None:
            kept = kept.masked_fill(self._are_forgotten(reset)[..., None], 0.0)
        # On a GPU one kernel is quicker than a few; on CPUs, the sum is quicker than theirs.
        mixed = self._by_kernel(padded) if reset is None and x.is_cuda else self._by_taps(padded, reset)
        # A copy: a view would keep the whole sequence in memory for as long as the state lives.
        return F.silu(mixed), kept.to(state_dtype(padded), copy=True)

    def read(self, x: Float[Tensor, "b n d"], recent: Float[Tensor, "b w d"] | None) -> Float[Tensor, "b n d"]:
        """Convolve each of n inputs as if it came next after `recent`."""
        mixed = x * self.weight[:, -1]
        if recent is not None:
            mixed = mixed + (recent.to(mixed.dtype) * self.weight[:, :-1].T).sum(dim=1, keepdim=True)
        return F.silu(mixed)

    def _after_recent(self, x: Tensor, recent: Tensor | None) -> Tensor:
        """The inputs behind those before them [b, width - 1 + t, channels], in a dtype that suits the weights, too."""
        x = x.to(torch.promote_types(x.dtype, self.weight.dtype))
        if recent is None:
            return F.pad(x, (0, 0, self.width - 1, 0))
        return torch.cat([recent.to(x.dtype), x], dim=1)

    def _by_kernel(self, padded: Tensor) -> Tensor:
        # Autocast would round inputs and weights to half precision.
        with torch.autocast(padded.device.type, enabled=False):
            return F.conv1d(padded.mT, self.weight[:, None], groups=len(self.weight)).mT

    def _by_taps(self, padded: Tensor, reset: Tensor | None) -> Tensor:
        """Sum over the few inputs that each output sees, leaving out those from before a reset."""
        last, time = self.width - 1, padded.shape[1] - self.width + 1
        mixed = padded[:, last:] * self.weight[:, last]
        resets = None if reset is None else F.pad(reset, (last, 0))
        forgotten: Tensor | None = None
        for place in reversed(range(last)):
            inputs = padded[:, place : place + time]
            if resets is not None:
                # A reset before the step that came after this input, or before any later one.
                since = resets[:, place + 1 : place + 1 + time]
                forgotten = since if forgotten is None else forgotten | since
                inputs = inputs.masked_fill(forgotten[..., None], 0.0)
            mixed = torch.addcmul(mixed, inputs, self.weight[:, place])
        return mixed

    def _are_forgotten(self, reset: Tensor) -> Tensor:
        """Which of the last inputs were followed by a reset [b, width - 1]."""
        resets = F.pad(reset, (self.width - 1, 0))[:, reset.shape[1] :].long()
        return resets.sum(dim=1, keepdim=True) > resets.cumsum(dim=1)

    def extra_repr(self) -> str:
        """Show the sizes."""
        return f"channels={len(self.weight)}, width={self.width}"
