"""The SR-DeltaNet layer: fast weights programmed by a matrix that also programs itself."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from srwm.ops import Backend, delta_rule

from ._arguments import check_heads, check_state_part, check_state_type
from ._residual import Norm, ResidualLayer
from ._state import SelfReferentialState, SRDeltaNetState
from .delta_heads import DeltaHeads, read_delta_heads, split_delta_heads
from .fast_matrix import FastCall, FastMatrix, FastStep
from .fast_steps import delta_rule_call, delta_rule_steps
from .feature_maps import InputActivation
from .self_referential_linear import SelfReferentialLinear


class SRDeltaNet(ResidualLayer[SRDeltaNetState]):
    """A DeltaNet whose slow weight matrix is self-referential (paper, appendix C.1).

    The y columns of each self-referential matrix are the q, k, v and beta of a delta rule, so they number 3 d + 1. Keys
    and queries pass through a softmax.

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        input_activation: phi on the input of each head: "softmax" (paper: the layer was tried in reinforcement learning
            only) or "none".
        norm: where the LayerNorm stands, as in `SRWM`.
        dropout: probability of dropping an output of the projection.
        learning_rates: 4, one for each of the y, q, k and beta columns, or 1 for all; see `SRWM`.
        beta_init: mean of the initial beta columns of the self-referential matrix.
        query_init_scale: factor on the initial q columns of the self-referential matrix.
        backend: which kernels run; see `srwm.ops.self_referential` and `srwm.ops.delta_rule`.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Raises:
        ValueError: if `num_heads` does not divide `hidden_size`, or an option has no such value.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        input_activation: InputActivation = "softmax",
        norm: Norm = "residual",
        dropout: float = 0.0,
        learning_rates: Literal[1, 4] = 4,
        beta_init: float = 0.0,
        query_init_scale: float = 1.0,
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        super().__init__(hidden_size, norm=norm, dropout=dropout, device=device, dtype=dtype)
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.self_referential = SelfReferentialLinear(
            hidden_size,
            num_heads * (3 * self.head_dim + 1),
            num_heads=num_heads,
            input_activation=input_activation,
            learning_rates=learning_rates,
            beta_init=beta_init,
            query_init_scale=query_init_scale,
            backend=backend,
            device=device,
            dtype=dtype,
        )

    def split_heads(self, projected: Tensor) -> DeltaHeads:
        """What the delta rule of each head is given, from what the self-referential matrix put out."""
        return split_delta_heads(projected, self.num_heads, "softmax")

    def run_heads(
        self, x: Tensor, state: SRDeltaNetState | None, reset: Tensor | None
    ) -> tuple[Tensor, SRDeltaNetState]:
        """Run the self-referential matrix, then write and read what it says."""
        slow, fast_weight = self._parts(state, x)
        projected, slow = self.self_referential(x, slow, reset=reset)
        q, k, v, beta, _ = self.split_heads(projected)
        y, fast_weight = delta_rule(q, k, v, beta, fast_weight, reset=reset, backend=self.self_referential.backend)
        return y.flatten(-2), SRDeltaNetState(slow, fast_weight)

    def read_heads(self, x: Tensor, state: SRDeltaNetState | None) -> Tensor:
        """Read the self-referential matrix, then the fast weights after the write that it says."""
        slow, fast_weight = self._parts(state, x)
        heads = self.split_heads(self.self_referential.read(x, slow))
        return read_delta_heads(heads, fast_weight).flatten(-2)

    def heads_parts(self, state: SRDeltaNetState) -> tuple[Tensor, ...]:
        """Give the change of each sub-matrix, and the fast weights."""
        return *self.self_referential.state_parts(state.slow), state.fast_weight

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """Describe the self-referential matrix, which the linear layer inside runs, and the fast weights."""
        (slow,) = self.self_referential.fast_matrices()
        sizes = (self.num_heads, self.head_dim, 1, 0, slow.dtype)
        fast = FastMatrix("delta_rule", ("fast",), (self.head_dim,), *sizes, self, self.out_projection, "fast")
        return replace(slow, name="slow"), fast

    def heads_call(
        self, x: Tensor, state: SRDeltaNetState | None, reset: Tensor | None, after: SRDeltaNetState
    ) -> FastCall:
        """Say what was fed to the fast weights: q, k, v and beta."""
        slow, before = self._parts(state, x)
        # Not as a module, or whoever listens to the matrix inside would hear it twice.
        projected, _slow = self.self_referential.forward(x, slow, reset=reset)
        return delta_rule_call(self.split_heads(projected), before, after.fast_weight, reset)

    def fast_steps(self, call: FastCall) -> Iterator[FastStep]:
        """Compute a call of the fast weights again, by the equations of the paper."""
        return delta_rule_steps(call)

    def _parts(self, state: SRDeltaNetState | None, x: Tensor) -> tuple[SelfReferentialState | None, Tensor | None]:
        check_state_type(state, SRDeltaNetState)
        if state is None:
            return None, None
        wanted = (x.shape[0], self.num_heads, self.head_dim, self.head_dim)
        check_state_part("state.fast_weight", state.fast_weight, wanted, "[b, h, d, d]", x)
        return state

    def initial_memory(
        self, batch_size: int, device: torch.device | str | None, dtype: torch.dtype | None
    ) -> SRDeltaNetState:
        """Return the slow and fast weights of `batch_size` new episodes."""
        slow = self.self_referential.initial_state(batch_size, device, dtype)
        return SRDeltaNetState(slow, slow.change.new_zeros(batch_size, self.num_heads, self.head_dim, self.head_dim))
