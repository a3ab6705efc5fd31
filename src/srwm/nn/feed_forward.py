"""The feed-forward sub-layer of a Transformer block."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ._arguments import (
    check_dtype,
    check_fits,
    check_memory,
    check_positive,
    check_probability,
    check_state_type,
)
from ._layer import SequenceLayer
from ._state import NoState


class FeedForward(SequenceLayer[NoState]):
    """`h + Dropout(W2 Dropout(ReLU(W1 LN(h) + b1)) + b2)`, step by step; it remembers nothing.

    Args:
        hidden_size: features of `x` and `y`.
        ff_size: features between the two layers; None for 4 times `hidden_size`.
        dropout: probability of dropping an inner feature, and an output of the second layer.
        device: where the parameters are made.
        dtype: dtype of the parameters.
    """

    def __init__(
        self,
        hidden_size: int,
        ff_size: int | None = None,
        *,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(hidden_size, hidden_size)
        ff_size = 4 * hidden_size if ff_size is None else ff_size
        check_positive(ff_size=ff_size)
        check_memory((hidden_size, ff_size), hidden_size=hidden_size, ff_size=ff_size)
        check_probability(dropout=dropout)
        check_dtype(dtype)
        self.norm = nn.LayerNorm(hidden_size, device=device, dtype=dtype)
        self.expand = nn.Linear(hidden_size, ff_size, device=device, dtype=dtype)
        self.contract = nn.Linear(ff_size, hidden_size, device=device, dtype=dtype)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "b t d"], state: NoState | None = None, *, reset: Bool[Tensor, "b t"] | None = None
    ) -> tuple[Float[Tensor, "b t d"], NoState]:
        """Read a sequence; see `SequenceLayer.forward`."""
        self.check_inputs(x, reset)
        check_fits(x, self.expand.weight)
        check_state_type(state, NoState)
        inner = self.dropout(self.expand(self.norm(x)).relu())
        return x + self.dropout(self.contract(inner)), NoState()

    def read(self, x: Float[Tensor, "b n d"], state: NoState | None = None) -> Float[Tensor, "b n d"]:
        """Answer each input; without a memory, inputs and steps are the same."""
        return self(x, state)[0]

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> NoState:
        """Return the empty state."""
        return NoState()
