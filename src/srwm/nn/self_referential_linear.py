"""A self-referential weight matrix that stands where `torch.nn.Linear` stands."""

import math
from collections.abc import Iterator
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from srwm.ops import Backend, self_referential
from srwm.ops.checks import check_shape, state_dtype
from srwm.ops.self_referential import KeyMap
from srwm.ops.self_referential.options import Options, check_options

from ._arguments import (
    check_dtype,
    check_heads,
    check_memory,
    check_positive,
    check_state_part,
    check_state_type,
    check_word,
)
from ._layer import SequenceLayer
from ._state import SelfReferentialState
from .fast_matrix import FastCall, FastMatrix, FastStep, MatrixPart
from .fast_steps import self_referential_steps
from .feature_maps import InputActivation, activate_input
from .periodic_reset import periodic_reset


class SelfReferentialLinear(SequenceLayer[SelfReferentialState]):
    """A linear layer whose weight matrix modifies itself at every step (paper, Eqs. 5-8).

    The features are cut into heads; in each, the matrix `W = weight + state.change` maps the input to
    `y | q | k | beta`, then `W <- W + beta * k^T (q W - k W)`, with softmax on q and k and a sigmoid on beta. `y` is
    read before the update. There is no bias; the initial matrix is the only parameter.

    With forget gates, the matrix also computes how much of its change so far it lets go of at each step, so that the
    change need not grow with every step of a long life.

    Args:
        in_features: features of `x`.
        out_features: features of `y`.
        num_heads: independent matrices; must divide both sizes.
        input_activation: phi on the input of each head: "none" (paper, supervised) or "softmax" (paper, reinforcement
            learning).
        learning_rates: 4, one for each of the y, q, k and beta columns (paper, "3D+4"), or 1 for all (paper, "3D+1").
        beta_init: mean of the initial beta columns: 0 (the paper's runs); -1 makes the first changes smaller.
        query_init_scale: factor on the initial q columns: 1 (the paper's runs); the authors' later work uses 0.01.
        reset_every: forget the change after every n steps of an episode (the paper's "Reset" ablation); None for never.
        key_map: how keys and queries are made: "softmax" (paper), or "l2": unit length, signs kept.
        forget_gates: 0 (paper), 1 (one for all columns) or 2 (one for the y columns, one for all others).
        forget_min: share of the change that a gate lets go of at a step at least.
        forget_max: the same at most.
        forget_bias: added to what the matrix puts out for a gate, before the sigmoid; below zero, it begins near
            `forget_min`.
        difference_clip: limit of each number of q W - k W, by its size.
        backend: which kernel runs; see `srwm.ops.self_referential`.
        device: where the parameter is made.
        dtype: dtype of the parameter.

    Attributes:
        weight: the initial matrix [num_heads, in_features / num_heads, sum(columns)].
        columns: widths of the sub-matrices; `weight.split(columns, dim=-1)` gives those of y, q, k and beta, and last
            that of the gates, where there are any.

    Raises:
        ValueError: if a size is not a multiple of `num_heads`, or an option has no such value.

    Example:
        >>> layer = SelfReferentialLinear(6, 10, num_heads=2)
        >>> y, state = layer(torch.randn(3, 5, 6))
        >>> y, state = layer(torch.randn(3, 5, 6), state)  # goes on where it ended
        >>> y.shape
        torch.Size([3, 5, 10])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        num_heads: int = 1,
        input_activation: InputActivation = "none",
        learning_rates: Literal[1, 4] = 4,
        beta_init: float = 0.0,
        query_init_scale: float = 1.0,
        reset_every: int | None = None,
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
        check_heads(num_heads, in_features=in_features, out_features=out_features)
        check_word("input_activation", input_activation, InputActivation)
        check_word("learning_rates", learning_rates, Literal[1, 4])
        check_word("backend", backend, Backend)
        check_dtype(dtype)
        if reset_every is not None:
            check_positive(reset_every=reset_every)
        options = Options(learning_rates, key_map, forget_gates, forget_min, forget_max, forget_bias, difference_clip)
        check_options(options)
        super().__init__(in_features, out_features)
        self.in_features = in_features
        self.out_features = out_features
        self.num_heads = num_heads
        self.head_dim = in_features // num_heads
        self.input_activation = input_activation
        self.learning_rates = learning_rates
        self.beta_init = beta_init
        self.query_init_scale = query_init_scale
        self.reset_every = reset_every
        self.key_map = key_map
        self.forget_gates = forget_gates
        self.forget_min = forget_min
        self.forget_max = forget_max
        self.forget_bias = forget_bias
        self.difference_clip = difference_clip
        self.backend = backend
        gates = (forget_gates,) if forget_gates else ()
        self.columns = (out_features // num_heads, self.head_dim, self.head_dim, learning_rates, *gates)
        shape = (num_heads, self.head_dim, sum(self.columns))
        check_memory(shape, in_features=in_features, out_features=out_features, num_heads=num_heads)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial matrix: Normal(0, 1 / sqrt(head_dim)), the q columns scaled, the beta columns shifted."""
        nn.init.normal_(self.weight, std=self.head_dim**-0.5)
        with torch.no_grad():
            _, query, _, beta, *_ = self.weight.split(self.columns, dim=-1)
            query.mul_(self.query_init_scale)
            beta.add_(self.beta_init)

    def forward(
        self,
        x: Float[Tensor, "b t d_in"],
        state: SelfReferentialState | None = None,
        *,
        reset: Bool[Tensor, "b t"] | None = None,
    ) -> tuple[Float[Tensor, "b t d_out"], SelfReferentialState]:
        """Read a sequence, modifying the matrix at every step; see `SequenceLayer.forward`."""
        self.check_inputs(x, reset)
        self._check_state(state, x)
        change = None if state is None else state.change
        steps = torch.zeros(x.shape[0], dtype=torch.int64, device=x.device) if state is None else state.steps
        if self.reset_every is not None:
            reset, steps = periodic_reset(steps, x.shape[1], reset, self.reset_every)
        heads = activate_input(x.unflatten(-1, (self.num_heads, self.head_dim)), self.input_activation)
        y, change = self_referential(
            heads,
            self.weight,
            change,
            reset=reset,
            learning_rates=self.learning_rates,
            key_map=self.key_map,
            forget_gates=self.forget_gates,
            forget_min=self.forget_min,
            forget_max=self.forget_max,
            forget_bias=self.forget_bias,
            difference_clip=self.difference_clip,
            backend=self.backend,
        )
        return y.flatten(-2), SelfReferentialState(change, steps)

    def read(
        self, x: Float[Tensor, "b n d_in"], state: SelfReferentialState | None = None
    ) -> Float[Tensor, "b n d_out"]:
        """Answer each input as if it came next; see `SequenceLayer.read`. Only the y columns take part."""
        self.check_inputs(x, None)
        self._check_state(state, x)
        heads = activate_input(x.unflatten(-1, (self.num_heads, self.head_dim)), self.input_activation)
        weight = self.weight[..., : self.columns[0]]
        if state is None:
            return torch.einsum("bnhd,hde->bnhe", heads, weight).flatten(-2)
        if self.reset_every is not None:
            is_first, _ = periodic_reset(state.steps, 1, None, self.reset_every)
            state = state.reset(is_first[:, 0])
        weight = weight + state.change[..., : self.columns[0]]
        return torch.einsum("bnhd,bhde->bnhe", heads, weight.to(heads.dtype)).flatten(-2)

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> SelfReferentialState:
        """Return the state of `batch_size` new episodes; the change is kept in float32 or, for float64, float64."""
        device = self.weight.device if device is None else device
        dtype = state_dtype(self.weight) if dtype is None else dtype
        return SelfReferentialState(
            change=torch.zeros(batch_size, *self.weight.shape, device=device, dtype=dtype),
            steps=torch.zeros(batch_size, device=device, dtype=torch.int64),
        )

    def state_parts(self, state: SelfReferentialState) -> tuple[Tensor, ...]:
        """Give the change of each sub-matrix."""
        return tuple(state.change.split(self.columns, dim=-1))

    def portable(self) -> SequenceLayer[SelfReferentialState]:
        """Return the same layer on the reference."""
        return self.with_backend("reference")

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """Describe the matrix."""
        parts: tuple[MatrixPart, ...] = ("y", "q", "k", "beta", "forget")
        sizes = (self.num_heads, self.head_dim, self.learning_rates, self.forget_gates, state_dtype(self.weight))
        return (FastMatrix("self_referential", parts[: len(self.columns)], self.columns, *sizes, self),)

    def fast_call(
        self,
        x: Tensor,
        state: SelfReferentialState | None,
        reset: Tensor | None,
        output: tuple[Tensor, SelfReferentialState],
    ) -> FastCall:
        """Say what a call fed to the matrix: the inputs of the heads."""
        if self.reset_every is not None:
            steps = torch.zeros(len(x), dtype=torch.int64, device=x.device) if state is None else state.steps
            reset, _steps = periodic_reset(steps, x.shape[1], reset, self.reset_every)
        heads = activate_input(x.unflatten(-1, (self.num_heads, self.head_dim)), self.input_activation)
        y = output[0].unflatten(-1, (self.num_heads, -1))
        before = None if state is None else state.change
        return FastCall((heads,), self.weight, state is None, before, output[1].change, reset, y)

    def fast_steps(self, call: FastCall) -> Iterator[FastStep]:
        """Compute a call again, by the equations of the paper."""
        return self_referential_steps(call, Options(*(getattr(self, name) for name in Options._fields)))

    def _check_state(self, state: SelfReferentialState | None, x: Tensor) -> None:
        check_state_type(state, SelfReferentialState)
        if state is not None:
            check_state_part("state.change", state.change, (x.shape[0], *self.weight.shape), "[b, h, d, m]", x)
            check_shape("state.steps", state.steps, (x.shape[0],), "[b]")

    def extra_repr(self) -> str:
        """Show the sizes and the options that differ from their defaults."""
        shown = f"in_features={self.in_features}, out_features={self.out_features}, num_heads={self.num_heads}"
        for name, default in _SHOWN.items():
            value = getattr(self, name)
            if value != default:
                shown += f", {name}={value!r}"
        return shown


_SHOWN = {"input_activation": "none", "learning_rates": 4, "reset_every": None, **Options._field_defaults}
"""The options that are shown where they differ from these."""
