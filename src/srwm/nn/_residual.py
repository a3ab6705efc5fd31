"""What the memory sub-layers share: the place of the LayerNorm, the output projection, dropout and the residual."""

from typing import Any, Literal, cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from srwm.ops.checks import state_dtype

from ._arguments import (
    check_convolution,
    check_dtype,
    check_fits,
    check_memory,
    check_probability,
    check_state_part,
    check_state_type,
    check_word,
)
from ._layer import LayerState, SequenceLayer
from ._short_convolution import ShortConvolution
from ._state import ConvolvedState
from .fast_matrix import FastCall

Norm = Literal["residual", "input", "none", "unused"]
"""Where a sub-layer with input h, memory M and output projection P has its LayerNorm.

- "residual": LN(h) + P(M(h)), the authors' supervised SRWM;
- "input": h + P(M(LN(h))), the usual pre-LN;
- "none": h + P(M(h)), without a LayerNorm;
- "unused": the same, but the parameters of a LayerNorm exist and are counted: the authors' reinforcement learning.
"""


class ResidualLayer(SequenceLayer[LayerState]):
    """A memory with a residual around it; subclasses define `run_heads`, `read_heads` and `initial_memory`.

    With a convolution the layer's state is a `ConvolvedState`, which holds the state that it has without.
    """

    def __init__(
        self,
        hidden_size: int,
        *,
        norm: Norm,
        dropout: float,
        convolution: int = 0,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        check_word("norm", norm, Norm)
        check_probability(dropout=dropout)
        check_convolution(convolution)
        check_dtype(dtype)
        super().__init__(hidden_size, hidden_size)
        check_memory((hidden_size, hidden_size), hidden_size=hidden_size)
        self.norm_place = norm
        self.norm = None if norm == "none" else nn.LayerNorm(hidden_size, device=device, dtype=dtype)
        self.out_projection = nn.Linear(hidden_size, hidden_size, bias=False, device=device, dtype=dtype)
        self.dropout = nn.Dropout(dropout)
        place: dict[str, Any] = {"device": device, "dtype": dtype}
        self.convolution = ShortConvolution(hidden_size, convolution, **place) if convolution else None

    def forward(
        self,
        x: Float[Tensor, "b t d"],
        state: LayerState | None = None,
        *,
        reset: Bool[Tensor, "b t"] | None = None,
    ) -> tuple[Float[Tensor, "b t d"], LayerState]:
        """Read a sequence; see `SequenceLayer.forward`."""
        inputs, skip = self._inputs_and_skip(x, reset)
        inputs, memory, recent = self._convolved(inputs, state, reset)
        y, memory = self.run_heads(inputs, memory, reset)
        return skip + self.dropout(self.out_projection(y)), self._state(memory, recent)

    def read(self, x: Float[Tensor, "b n d"], state: LayerState | None = None) -> Float[Tensor, "b n d"]:
        """Answer each input as if it came next; see `SequenceLayer.read`."""
        inputs, skip = self._inputs_and_skip(x, None)
        memory, recent = self._memory_and_recent(state, x)
        if self.convolution is not None:
            inputs = self.convolution.read(inputs, recent)
        y: Tensor = skip + self.dropout(self.out_projection(self.read_heads(inputs, memory)))
        return y

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> LayerState:
        """Return the state of `batch_size` new episodes; it is kept in float32 or, for float64, float64."""
        memory = self.initial_memory(batch_size, device, dtype)
        if self.convolution is None:
            return memory
        weight = self.convolution.weight
        recent = torch.zeros(
            (batch_size, self.convolution.width - 1, self.input_size),
            device=weight.device if device is None else device,
            dtype=state_dtype(weight) if dtype is None else dtype,
        )
        return self._state(memory, recent)

    def state_parts(self, state: LayerState) -> tuple[Tensor, ...]:
        """Give the parts of the state of the heads; what a convolution saw last was not learnt."""
        return self.heads_parts(cast(LayerState, state.memory) if isinstance(state, ConvolvedState) else state)

    def heads_parts(self, state: LayerState) -> tuple[Tensor, ...]:
        """Cut the state of the heads into its parts; see `SequenceLayer.state_parts`."""
        return super().state_parts(state)

    def fast_call(self, x: Tensor, state: Any, reset: Tensor | None, output: Any) -> FastCall:
        """Say what a call fed to the matrix of the heads; see `SequenceLayer.fast_call`."""
        inputs, memory, _recent = self._convolved(self._inputs_and_skip(x, reset)[0], state, reset)
        after = output[1].memory if isinstance(output[1], ConvolvedState) else output[1]
        return self.heads_call(inputs, memory, reset, after)

    def _convolved(
        self, inputs: Tensor, state: LayerState | None, reset: Tensor | None
    ) -> tuple[Tensor, LayerState | None, Tensor | None]:
        """What the heads read, their state, and what the convolution has seen last now."""
        memory, recent = self._memory_and_recent(state, inputs)
        if self.convolution is not None:
            inputs, recent = self.convolution(inputs, recent, reset)
        return inputs, memory, recent

    def _memory_and_recent(self, state: LayerState | None, x: Tensor) -> tuple[LayerState | None, Tensor | None]:
        """The state of the heads, and what the convolution has seen last."""
        if self.convolution is None or state is None:
            return state, None
        check_state_type(state, ConvolvedState)
        memory, recent = cast(ConvolvedState, state)
        wanted = (x.shape[0], self.convolution.width - 1, self.input_size)
        check_state_part("state.recent", recent, wanted, "[b, convolution - 1, d]", x)
        return cast(LayerState, memory), recent

    def _state(self, memory: LayerState, recent: Tensor | None) -> LayerState:
        """The state of the layer; its type is that of the heads for a type checker, with a convolution or without."""
        return memory if recent is None else cast(LayerState, ConvolvedState(memory, recent))

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

    def heads_call(self, x: Tensor, state: LayerState | None, reset: Tensor | None, after: LayerState) -> FastCall:
        """Say what `run_heads` fed to the matrix of the heads, when it went from `state` to the state `after`."""
        raise NotImplementedError(f"{type(self).__name__} has no heads_call; it runs no matrix of its own")

    def initial_memory(
        self, batch_size: int, device: torch.device | str | None, dtype: torch.dtype | None
    ) -> LayerState:
        """Return the state of the heads of `batch_size` new episodes, by default where and as they keep it."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Show where the LayerNorm stands."""
        return f"norm={self.norm_place!r}"
