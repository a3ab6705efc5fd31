"""The SRWM layer of the paper."""

import math
from typing import Any, Literal

import torch
from torch import Tensor, nn

from srwm.ops import Backend
from srwm.ops.self_referential import KeyMap

from ._arguments import check_bool, check_heads
from ._residual import Norm, ResidualLayer
from ._state import SelfReferentialState
from .fast_matrix import FastMatrix
from .feature_maps import InputActivation
from .self_referential_linear import SelfReferentialLinear


class SRWM(ResidualLayer[SelfReferentialState]):
    """Self-referential heads, an output projection without bias, and a residual (paper, section 3 and appendix A).

    It stands where self-attention stands in a Transformer. The paper's matrices read the input itself: there is no
    projection before them unless `input_projection` asks for one.

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
        input_projection: whether a projection without bias stands before the heads, which mixes what they read.
        convolution: width of a short causal convolution of each channel, with SiLU behind it, between the norm and the
            heads: they then read a few inputs at once. 0 for none, else at least 2 (4 is usual). It goes on over the
            resets of `reset_every`. The state is then a `ConvolvedState`: the layer's own, and the last inputs.
        key_map: "softmax" (paper) or "l2": keys and queries of unit length.
        forget_gates: 0 (paper), 1 (one for all columns) or 2 (one for the y columns, one for all others).
        forget_min: share of the change that a gate lets go of at a step at least.
        forget_max: the same at most.
        forget_bias: added to what the matrix puts out for a gate, before the sigmoid.
        difference_clip: limit of each number of q W - k W, by its size.
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
        input_projection: bool = False,
        convolution: int = 0,
        key_map: KeyMap = "softmax",
        forget_gates: Literal[0, 1, 2] = 0,
        forget_min: float = 1e-4,
        forget_max: float = 0.1,
        forget_bias: float = -4.0,
        difference_clip: float = math.inf,
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        check_bool(input_projection=input_projection)
        super().__init__(hidden_size, norm=norm, dropout=dropout, convolution=convolution, device=device, dtype=dtype)
        self.self_referential = SelfReferentialLinear(
            hidden_size,
            hidden_size,
            num_heads=num_heads,
            input_activation=input_activation,
            learning_rates=learning_rates,
            beta_init=beta_init,
            query_init_scale=query_init_scale,
            reset_every=reset_every,
            key_map=key_map,
            forget_gates=forget_gates,
            forget_min=forget_min,
            forget_max=forget_max,
            forget_bias=forget_bias,
            difference_clip=difference_clip,
            backend=backend,
            device=device,
            dtype=dtype,
        )
        # Made last, so that equal seeds draw equal matrices with and without it.
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.input_projection = nn.Linear(hidden_size, hidden_size, bias=False, **place) if input_projection else None

    def run_heads(
        self, x: Tensor, state: SelfReferentialState | None, reset: Tensor | None
    ) -> tuple[Tensor, SelfReferentialState]:
        """Run the self-referential heads."""
        return self.self_referential(self._project(x), state, reset=reset)

    def read_heads(self, x: Tensor, state: SelfReferentialState | None) -> Tensor:
        """Read the self-referential heads."""
        return self.self_referential.read(self._project(x), state)

    def heads_parts(self, state: SelfReferentialState) -> tuple[Tensor, ...]:
        """Give the change of each sub-matrix."""
        return self.self_referential.state_parts(state)

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """Describe the self-referential matrix, which the linear layer inside runs."""
        return self.self_referential.fast_matrices()

    def _project(self, x: Tensor) -> Tensor:
        if self.input_projection is None:
            return x
        projected: Tensor = self.input_projection(x)
        return projected

    def initial_memory(
        self, batch_size: int, device: torch.device | str | None, dtype: torch.dtype | None
    ) -> SelfReferentialState:
        """Return the state of the self-referential heads in `batch_size` new episodes."""
        return self.self_referential.initial_state(batch_size, device, dtype)
