"""What the layers with fast weights have in common that a fixed slow matrix programs by the delta rule."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from srwm.ops import Backend, delta_rule
from srwm.ops.checks import is_number, state_dtype

from ._arguments import check_heads, check_state_part, check_state_type, check_word
from ._layer import SequenceLayer
from ._residual import Norm, ResidualLayer
from ._state import DeltaNetState
from .delta_heads import DeltaHeads, ForgetGate, read_delta_heads, split_delta_heads
from .fast_matrix import FastCall, FastMatrix, FastStep
from .fast_steps import delta_rule_call, delta_rule_steps
from .feature_maps import FeatureMap

MOST_LEARNING_RATE = 2.0
"""With keys of unit length at most, no higher rate keeps the matrix from growing by itself."""


class DeltaLayer(ResidualLayer[DeltaNetState]):
    """One projection to what the delta rule of each head asks for, an output projection, and a residual."""

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        feature_map: FeatureMap,
        feature_map_eps: float,
        max_learning_rate: float,
        gate: ForgetGate | None,
        norm: Norm,
        dropout: float,
        convolution: int,
        backend: Backend,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        check_word("feature_map", feature_map, FeatureMap)
        check_word("backend", backend, Backend)
        if feature_map_eps and feature_map != "elu_sum":
            raise ValueError(
                f'feature_map_eps={feature_map_eps} has no place in {feature_map!r}; take feature_map="elu_sum"'
            )
        if not is_number(max_learning_rate) or not 0 < max_learning_rate <= MOST_LEARNING_RATE:
            raise ValueError(f"max_learning_rate={max_learning_rate!r}; expected a number above 0, and 2 at most")
        super().__init__(hidden_size, norm=norm, dropout=dropout, convolution=convolution, device=device, dtype=dtype)
        self.num_heads = num_heads
        self.head_dim = hidden_size // num_heads
        self.feature_map = feature_map
        self.feature_map_eps = feature_map_eps
        self.max_learning_rate = max_learning_rate
        self.gate = gate
        self.backend = backend
        width = num_heads * (3 * self.head_dim + 1 + (gate is not None))
        self.projection = nn.Linear(hidden_size, width, bias=False, device=device, dtype=dtype)

    def split_heads(self, projected: Tensor) -> DeltaHeads:
        """What the delta rule of each head is given, from what the projection gave."""
        return split_delta_heads(
            projected, self.num_heads, self.feature_map, self.feature_map_eps, self.max_learning_rate, self.gate
        )

    def run_heads(self, x: Tensor, state: DeltaNetState | None, reset: Tensor | None) -> tuple[Tensor, DeltaNetState]:
        """Project, forget, write and read."""
        q, k, v, beta, decay = self.split_heads(self.projection(x))
        before = self._fast_weight(state, x)
        y, fast_weight = delta_rule(q, k, v, beta, before, decay=decay, reset=reset, backend=self.backend)
        return y.flatten(-2), DeltaNetState(fast_weight)

    def read_heads(self, x: Tensor, state: DeltaNetState | None) -> Tensor:
        """Project and read, each input after its own write, which is then forgotten."""
        return read_delta_heads(self.split_heads(self.projection(x)), self._fast_weight(state, x)).flatten(-2)

    def portable(self) -> SequenceLayer[DeltaNetState]:
        """Return the same layer on the reference."""
        return self.with_backend("reference")

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """Describe the fast weights."""
        sizes = (self.num_heads, self.head_dim, 1, 0 if self.gate is None else 1, state_dtype(self.projection.weight))
        return (FastMatrix("delta_rule", ("fast",), (self.head_dim,), *sizes, self, self.out_projection),)

    def heads_call(
        self, x: Tensor, state: DeltaNetState | None, reset: Tensor | None, after: DeltaNetState
    ) -> FastCall:
        """Say what was fed to the fast weights: q, k, v, beta and, with a gate, the decay."""
        before = None if state is None else state.fast_weight
        return delta_rule_call(self.split_heads(self.projection(x)), before, after.fast_weight, reset)

    def fast_steps(self, call: FastCall) -> Iterator[FastStep]:
        """Compute a call again, by the equations of the paper."""
        return delta_rule_steps(call)

    def _fast_weight(self, state: DeltaNetState | None, x: Tensor) -> Tensor | None:
        check_state_type(state, DeltaNetState)
        if state is None:
            return None
        wanted = (x.shape[0], self.num_heads, self.head_dim, self.head_dim)
        check_state_part("state.fast_weight", state.fast_weight, wanted, "[b, h, d, d]", x)
        return state.fast_weight

    def initial_memory(
        self, batch_size: int, device: torch.device | str | None, dtype: torch.dtype | None
    ) -> DeltaNetState:
        """Return the fast weights of `batch_size` new episodes."""
        weight = self.projection.weight
        device = weight.device if device is None else device
        dtype = state_dtype(weight) if dtype is None else dtype
        shape = (batch_size, self.num_heads, self.head_dim, self.head_dim)
        return DeltaNetState(torch.zeros(shape, device=device, dtype=dtype))
