"""The one contract of every sequence layer."""

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from srwm.ops.checks import check_reset, check_tensor

from ._arguments import check_input, check_positive
from ._state import map_state, named_tensors
from .fast_matrix import FastCall, FastMatrix, FastStep

LayerState = TypeVar("LayerState")


class SequenceLayer(nn.Module, Generic[LayerState]):
    """A layer that reads a sequence and carries a state: `y, state = layer(x, state, reset=is_first)`.

    Subclasses define `forward` and `initial_state`; `step` is derived. They keep no state on `self`, and change no
    argument. `srwm.nn.check_layer` tells whether a layer keeps the contract. One that changes matrices can say which
    (`fast_matrices`, `fast_call`, `fast_steps`), so that `srwm.inspect` records it.

    Args:
        input_size: features of `x`.
        output_size: features of `y`.
    """

    def __init__(self, input_size: int, output_size: int) -> None:
        super().__init__()
        check_positive(input_size=input_size, output_size=output_size)
        self.input_size = input_size
        self.output_size = output_size

    if TYPE_CHECKING:

        def __call__(  # so that `layer(x)` has a type
            self, x: Tensor, state: LayerState | None = None, *, reset: Tensor | None = None
        ) -> tuple[Tensor, LayerState]: ...

    def forward(
        self,
        x: Float[Tensor, "b t d_in"],
        state: LayerState | None = None,
        *,
        reset: Bool[Tensor, "b t"] | None = None,
    ) -> tuple[Float[Tensor, "b t d_out"], LayerState]:
        """Read a sequence.

        Args:
            x: inputs [b, t, input_size].
            state: what an earlier call returned; None is new.
            reset: bool [b, t]; where true, the state is reset before that step, and no gradient crosses it.

        Returns:
            y [b, t, output_size] and the state after the last step.

        Raises:
            ValueError: if an argument does not fit the layer.
        """
        raise NotImplementedError

    def step(
        self, x_t: Float[Tensor, "b d_in"], state: LayerState | None = None, *, reset: Bool[Tensor, "b"] | None = None
    ) -> tuple[Float[Tensor, "b d_out"], LayerState]:
        """Read one step; equal to calling the layer with t == 1.

        Args:
            x_t: inputs [b, input_size].
            state: what an earlier call returned; None is new.
            reset: bool [b]; rows whose state is reset before the step.

        Returns:
            y_t [b, output_size] and the state after the step.

        Raises:
            ValueError: if an argument does not fit the layer.
        """
        check_input("x_t", x_t, "b d", self.input_size)
        if reset is not None:
            check_tensor("reset", reset)
            if reset.dim() != 1:
                raise ValueError(f"reset has shape {list(reset.shape)}; expected [b] = [{len(x_t)}] for a single step")
            reset = reset[:, None]
        y, state = self(x_t[:, None], state, reset=reset)
        return y[:, 0], state

    def read(self, x: Float[Tensor, "b n d_in"], state: LayerState | None = None) -> Float[Tensor, "b n d_out"]:
        """Answer each of n inputs as if it came next, each by itself: nothing is learnt from them.

        Args:
            x: inputs [b, n, input_size]; their order does not matter.
            state: what an earlier call returned, left as it is; None is new.

        Returns:
            y [b, n, output_size]: what `step` would return for each input and this state.

        Raises:
            ValueError: if an argument does not fit the layer.
        """
        self.check_inputs(x, None)
        return read_one_by_one(self, x, state)

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> LayerState:
        """Return the state of `batch_size` new episodes: zeros, by default where and as the layer keeps its states."""
        raise NotImplementedError

    def state_parts(self, state: LayerState) -> tuple[Tensor, ...]:
        """Give what of a state was learnt, cut into the parts that are compared by themselves (bootstrapped training).

        By default every tensor of floats.
        """
        return float_parts(state)

    def fast_matrices(self) -> tuple[FastMatrix, ...]:
        """Describe the matrices that the heads of the layer change; none by default."""
        return ()

    def fast_call(self, x: Tensor, state: LayerState | None, reset: Tensor | None, output: Any) -> FastCall:
        """Say what a call of the layer fed to the matrix that it runs itself.

        Args:
            x: the input of the call [b, t, input_size].
            state: its state; None is new.
            reset: its resets, bool [b, t].
            output: what it returned, y and the state.
        """
        raise NotImplementedError(f"{type(self).__name__} has no fast_call; it runs no matrix of its own")

    def fast_steps(self, call: FastCall) -> Iterator[FastStep]:
        """Compute what `fast_call` returned once more, step by step, in plain operators.

        Args:
            call: for some of its rows and heads, in the dtype that the recurrence runs in.

        Yields:
            What the matrix read and wrote in each step.
        """
        raise NotImplementedError(f"{type(self).__name__} has no fast_steps; it runs no matrix of its own")

    def portable(self) -> "SequenceLayer[LayerState]":
        """Return the layer as `srwm.deploy` exports it: one that computes steps in PyTorch's own operators alone.

        It shares its parameters with this one and takes the same states; layers inside are asked themselves. By default
        it is this layer; one whose `backend` may be a kernel returns `self.with_backend("reference")`.
        """
        return self

    def with_backend(self, backend: str) -> "SequenceLayer[LayerState]":
        """Return the same layer on another backend, with the same parameters; it must have an attribute `backend`."""
        other: Any = copy.copy(self)
        other.backend = backend
        made: SequenceLayer[LayerState] = other
        return made

    def check_inputs(self, x: Tensor, reset: Tensor | None) -> None:
        """Refuse inputs that do not fit, with a sentence that names the argument."""
        check_input("x", x, "b t d", self.input_size)
        check_reset(reset, x.shape[0], x.shape[1], x.device)


def float_parts(state: Any) -> tuple[Tensor, ...]:
    """Every tensor of floats in a state; counters say nothing of what was learnt."""
    return tuple(part for _, part in named_tensors(state) if part.is_floating_point())


def read_one_by_one(layer: Any, x: Tensor, state: Any) -> Tensor:
    """Answer each input from a copy of the state of its own: right for every layer under the contract."""
    batch_size, number = x.shape[:2]
    if state is not None:
        state = map_state(lambda part: _repeat_rows(part, number), state)
    y: Tensor = layer(x.flatten(0, 1)[:, None], state)[0]
    return y.reshape(batch_size, number, y.shape[-1])


def _repeat_rows(part: Tensor, number: int) -> Tensor:
    check_tensor("a part of the state", part)
    return part.repeat_interleave(number, dim=0)
