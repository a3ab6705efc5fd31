"""The DeltaNet layer: fast weights programmed by a fixed slow matrix."""

import torch
from torch import Tensor, nn

from srwm.ops import Backend, delta_rule
from srwm.ops.checks import state_dtype

from ._arguments import check_heads, check_state_part, check_state_type, check_word
from ._residual import Norm, ResidualLayer
from ._state import DeltaNetState
from .delta_heads import read_delta_heads, split_delta_heads
from .feature_maps import FeatureMap


class DeltaNet(ResidualLayer[DeltaNetState]):
    """One projection to q, k, v and beta of each head, the delta rule, an output projection, and a residual.

    Paper, section 2 (Eqs. 1-4), after Schlag, Irie and Schmidhuber (ICML 2021).

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        feature_map: phi on keys and queries: "softmax" (paper) or "elu_sum" (authors' code): (elu + 1) over its sum.
        feature_map_eps: added to the sum that "elu_sum" divides by: 0, or 1e-5 in the authors' reinforcement learning.
        norm: where the LayerNorm stands, as in `SRWM`; "input" is the authors' choice.
        dropout: probability of dropping an output of the projection.
        backend: which kernel runs; see `srwm.ops.delta_rule`.
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
        feature_map: FeatureMap = "softmax",
        feature_map_eps: float = 0.0,
        norm: Norm = "input",
        dropout: float = 0.0,
        backend: Backend = "auto",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        check_word("feature_map", feature_map, FeatureMap)
        check_word("backend", backend, Backend)
        if feature_map_eps and feature_map == "softmax":
            raise ValueError(f'feature_map_eps={feature_map_eps} has no place in a softmax; take feature_map="elu_sum"')
        super().__init__(hidden_size, norm=norm, dropout=dropout, device=device, dtype=dtype)
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.feature_map = feature_map
        self.feature_map_eps = feature_map_eps
        self.backend = backend
        width = num_heads * (3 * self.head_dim + 1)
        self.projection = nn.Linear(hidden_size, width, bias=False, device=device, dtype=dtype)

    def run_heads(self, x: Tensor, state: DeltaNetState | None, reset: Tensor | None) -> tuple[Tensor, DeltaNetState]:
        """Project, write and read."""
        heads = split_delta_heads(self.projection(x), self.num_heads, self.feature_map, self.feature_map_eps)
        y, fast_weight = delta_rule(*heads, self._fast_weight(state, x), reset=reset, backend=self.backend)
        return y.flatten(-2), DeltaNetState(fast_weight)

    def read_heads(self, x: Tensor, state: DeltaNetState | None) -> Tensor:
        """Project and read, each input after its own write, which is then forgotten."""
        heads = split_delta_heads(self.projection(x), self.num_heads, self.feature_map, self.feature_map_eps)
        return read_delta_heads(heads, self._fast_weight(state, x)).flatten(-2)

    def _fast_weight(self, state: DeltaNetState | None, x: Tensor) -> Tensor | None:
        check_state_type(state, DeltaNetState)
        if state is None:
            return None
        wanted = (x.shape[0], self.num_heads, self.head_dim, self.head_dim)
        check_state_part("state.fast_weight", state.fast_weight, wanted, "[b, h, d, d]", x)
        return state.fast_weight

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> DeltaNetState:
        """Return the state of `batch_size` new episodes; it is kept in float32 or, for float64, float64."""
        weight = self.projection.weight
        device = weight.device if device is None else device
        dtype = state_dtype(weight) if dtype is None else dtype
        shape = (batch_size, self.num_heads, self.head_dim, self.head_dim)
        return DeltaNetState(torch.zeros(shape, device=device, dtype=dtype))
