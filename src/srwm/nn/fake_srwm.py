"""The SRWM without self-modification: the paper's "Fake SR"."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from srwm.ops.checks import state_dtype

from ._arguments import check_heads, check_state_type, check_word
from ._residual import Norm, ResidualLayer
from ._state import NoState
from .fast_matrix import FastCall, FastMatrix, FastStep
from .fast_steps import fixed_steps
from .feature_maps import InputActivation, activate_input


class FakeSRWM(ResidualLayer[NoState]):
    """The y columns of an SRWM as an ordinary weight matrix for each head (paper, section 4.3).

    It has no state. To compare it with an `SRWM`, give both the same options.

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        input_activation: phi on the input of each head, "none" or "softmax". The paper's Fake SR has that of its SRWM
            (in reinforcement learning "softmax"); the authors' code has "none".
        norm: where the LayerNorm stands, as in `SRWM`.
        dropout: probability of dropping an output of the projection.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Attributes:
        weight: the matrices [num_heads, hidden_size / num_heads, hidden_size / num_heads].

    Raises:
        ValueError: if `num_heads` does not divide `hidden_size`, or an option has no such value.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        input_activation: InputActivation = "none",
        norm: Norm = "residual",
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        check_word("input_activation", input_activation, InputActivation)
        super().__init__(hidden_size, norm=norm, dropout=dropout, device=device, dtype=dtype)
        self.input_activation = input_activation
        head_dim = hidden_size // num_heads
        self.weight = nn.Parameter(torch.empty(num_heads, head_dim, head_dim, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the matrices as an SRWM draws its y columns: Normal(0, 1 / sqrt(head_dim))."""
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5)

    def run_heads(
        self, x: Float[Tensor, "b t d"], state: NoState | None, reset: Tensor | None
    ) -> tuple[Float[Tensor, "b t d"], NoState]:
        """Apply each head's matrix to each step."""
        check_state_type(state, NoState)
        heads = activate_input(x.unflatten(-1, self.weight.shape[:2]), self.input_activation)
        return torch.einsum("bthd,hde->bthe", heads, self.weight).flatten(-2), NoState()

    def read_heads(self, x: Float[Tensor, "b n d"], state: NoState | None) -> Float[Tensor, "b n d"]:
        """Apply each head's matrix to each input: without a memory, inputs and steps are the same."""
        return self.run_heads(x, state, None)[0]

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """Describe the matrix, which stays as it is."""
        heads, head_dim, _ = self.weight.shape
        sizes = (heads, head_dim, 0, 0, state_dtype(self.weight))
        return (FastMatrix("fixed", ("y",), (head_dim,), *sizes, self, self.out_projection),)

    def heads_call(self, x: Tensor, state: NoState | None, reset: Tensor | None, after: NoState) -> FastCall:
        """Say what was fed to the matrix: the inputs of the heads."""
        heads = activate_input(x.unflatten(-1, self.weight.shape[:2]), self.input_activation)
        return FastCall((heads,), self.weight, state is None, None, None, reset)

    def fast_steps(self, call: FastCall) -> Iterator[FastStep]:
        """Compute a call again."""
        return fixed_steps(call)

    def initial_memory(self, batch_size: int, device: torch.device | str | None, dtype: torch.dtype | None) -> NoState:
        """Return the empty state."""
        return NoState()
