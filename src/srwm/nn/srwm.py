"""The SRWM layer of the paper."""

from typing import Literal

import torch
from torch import Tensor

from srwm.ops import Backend

from ._arguments import check_heads
from ._feature_maps import InputActivation
from ._residual import Norm, ResidualLayer
from ._state import SelfReferentialState
from .self_referential_linear import SelfReferentialLinear


class SRWM(ResidualLayer[SelfReferentialState]):
    """Self-referential heads, an output projection without bias, and a residual (paper, section 3 and appendix A).

    It stands where self-attention stands in a Transformer. The matrices read the input itself: there is no projection
    before them.

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        input_activation: phi on the input of each head: "none" (paper, supervised) or "softmax" (paper, reinforcement
            learning).
        norm: where the LayerNorm stands; the paper does not say. "residual" (authors' supervised code): LN(h) +
            SRWM(h); "input": h + SRWM(LN(h)); "none": h + SRWM(h); "unused" (authors' reinforcement learning): as
            "none", but with the parameters of a LayerNorm.
        dropout: probability of dropping an output of the projection.
        learning_rates: 4, one for each of the y, q, k and beta columns (paper, "3D+4"), or 1 for all (paper, "3D+1").
        beta_init: mean of the initial beta columns: 0 (the paper's runs); -1 makes the first changes smaller.
        query_init_scale: factor on the initial q columns: 1 (the paper's runs); the authors' later work uses 0.01.
        reset_every: forget the change after every n steps of an episode (the paper's "Reset" ablation); None for never.
            The authors' code amounts to 1: the self-modification then has no effect.
        backend: which kernel runs; see `srwm.ops.self_referential`.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Raises:
        ValueError: if `num_heads` does not divide `hidden_size`, or an option has no such value.

    Example:
        >>> layer = SRWM(hidden_size=8, num_heads=2)
        >>> y, state = layer(torch.randn(3, 5, 8))
        >>> y_t, state = layer.step(torch.randn(3, 8), state)
        >>> y_t.shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        input_activation: InputActivation = "none",
        norm: Norm = "residual",
        dropout: float = 0.0,
        learning_rates: Literal[1, 4] = 4,
        beta_init: float = 0.0,
        query_init_scale: float = 1.0,
        reset_every: int | None = None,
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        super().__init__(hidden_size, norm=norm, dropout=dropout, device=device, dtype=dtype)
        self.self_referential = SelfReferentialLinear(
            hidden_size,
            hidden_size,
            num_heads=num_heads,
            input_activation=input_activation,
            learning_rates=learning_rates,
            beta_init=beta_init,
            query_init_scale=query_init_scale,
            reset_every=reset_every,
            backend=backend,
            device=device,
            dtype=dtype,
        )

    def run_heads(
        self, x: Tensor, state: SelfReferentialState | None, reset: Tensor | None
    ) -> tuple[Tensor, SelfReferentialState]:
        """Run the self-referential heads."""
        return self.self_referential(x, state, reset=reset)

    def read_heads(self, x: Tensor, state: SelfReferentialState | None) -> Tensor:
        """Read the self-referential heads."""
        return self.self_referential.read(x, state)

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> SelfReferentialState:
        """Return the state of `batch_size` new episodes."""
        return self.self_referential.initial_state(batch_size, device, dtype)
