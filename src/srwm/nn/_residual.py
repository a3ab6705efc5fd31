"""What the memory sub-layers share: the place of the LayerNorm, the output projection, dropout and the residual."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ._arguments import check_dtype, check_fits, check_memory, check_probability, check_word
from ._layer import LayerState, SequenceLayer

Norm = Literal["residual", "input", "none", "unused"]
"""Where a sub-layer with input h, memory M and output projection P has its LayerNorm.

- "residual": LN(h) + P(M(h)), the authors' supervised SRWM;
- "input": h + P(M(LN(h))), the usual pre-LN;
- "none": h + P(M(h)), without a LayerNorm;
- "unused": the same, but the parameters of a LayerNorm exist and are counted: the authors' reinforcement learning.
"""


class ResidualLayer(SequenceLayer[LayerState]):
    """A memory with a residual around it; subclasses define `run_heads`, `read_heads` and `initial_state`.

    Args:
        hidden_size: features of `x` and `y`.
        norm: where the LayerNorm stands.
        dropout: probability of dropping an output of the projection.
        device: where the parameters are made.
        dtype: dtype of the parameters.
    """

    def __init__(
        self,
        hidden_size: int,
        *,
        norm: Norm,
        dropout: float,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        check_word("norm", norm, Norm)
        check_probability(dropout=dropout)
        check_dtype(dtype)
        super().__init__(hidden_size, hidden_size)
        check_memory((hidden_size, hidden_size), hidden_size=hidden_size)
        self.norm_place = norm
        self.norm = None if norm == "none" else nn.LayerNorm(hidden_size, device=device, dtype=dtype)
        self.out_projection = nn.Linear(hidden_size, hidden_size, bias=False, device=device, dtype=dtype)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        state: LayerState | None = None,
        *,
        reset: Bool[Tensor, "b t"] | None = None,
    ) -> tuple[Float[Tensor, "b t d"], LayerState]:
        """Read a sequence; see `SequenceLayer.forward`."""
        inputs, skip = self._inputs_and_skip(x, reset)
        y, state = self.run_heads(inputs, state, reset)
        return skip + self.dropout(self.out_projection(y)), state

    def read(self, x: Float[Tensor, "b n d"], state: LayerState | None = None) -> Float[Tensor, "b n d"]:
        """Answer each input as if it came next; see `SequenceLayer.read`."""
        inputs, skip = self._inputs_and_skip(x, None)
        y: Tensor = skip + self.dropout(self.out_projection(self.read_heads(inputs, state)))
        return y

    def _inputs_and_skip(self, x: Tensor, reset: Tensor | None) -> tuple[Tensor, Tensor]:
        """What the heads read, and what their projected output is added to."""
        self.check_inputs(x, reset)
        check_fits(x, self.out_projection.weight)
        if self.norm is not None and self.norm_place == "input":
            return self.norm(x), x
        if self.norm is not None and self.norm_place == "residual":
            return x, self.norm(x)
        return x, x

    def run_heads(self, x: Tensor, state: LayerState | None, reset: Tensor | None) -> tuple[Tensor, LayerState]:
        """Map [b, t, hidden_size] to the concatenated outputs of the heads, of the same shape."""
        raise NotImplementedError

    def read_heads(self, x: Tensor, state: LayerState | None) -> Tensor:
        """Map n inputs, each as if it came next after `state`, to the outputs of the heads, without learning."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Show where the LayerNorm stands."""
        return f"norm={self.norm_place!r}"
