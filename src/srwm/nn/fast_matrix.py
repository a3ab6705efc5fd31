"""What a layer says of the matrices that it changes while it runs, so that they can be looked at from outside.

A layer describes each of its matrices (`SequenceLayer.fast_matrices`), says of a call what went into its matrix
(`fast_call`), and goes through that once more step by step (`fast_steps`). `srwm.inspect` needs nothing else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from srwm.ops.checks import state_dtype

from ._arguments import check_word

MatrixKind = Literal["self_referential", "delta_rule", "fixed"]
"""How a matrix changes: by itself, and it is read before it does; by what another one says, and it is read after; or
not at all."""


MatrixPart = Literal["y", "q", "k", "v", "beta", "forget", "fast"]
"""What columns of a matrix are: of one that makes its own keys and rates, what each part makes; "fast" for all of a
fast weight matrix."""


class FastStep(NamedTuple):
    """What one matrix of each row and head did in one step; what a kind of matrix has not is of width zero."""

    read: Float[Tensor, "b h d"]
    """What the matrix was multiplied by for the output."""
    y: Float[Tensor, "b h e"]
    """The output."""
    query: Float[Tensor, "b h q"]
    """After its feature map."""
    key: Float[Tensor, "b h q"]
    """After its feature map."""
    beta: Float[Tensor, "b h r"]
    """Learning rates."""
    forget: Float[Tensor, "b h g"]
    """The share of the change that each forget gate let go of."""
    write: Float[Tensor, "b h m"]
    """What was added under the key: the change, what was kept of it, grew by the outer product of `key` and `write`."""
    change: Float[Tensor, "b h d m"]
    """The change of the matrix after the step."""


@dataclass(frozen=True)
class FastCall:
    """What a call of a layer fed to its matrix, and what came of it."""

    inputs: tuple[Float[Tensor, "b t h ..."], ...]
    """What the steps are computed from, in an order of the layer's own."""
    weight: Float[Tensor, "h d m"]
    """The initial matrix."""
    is_new: bool
    """Whether the layer was given no state."""
    before: Float[Tensor, "b h d m"] | None
    """The change of the matrix before the call; None is zero."""
    after: Float[Tensor, "b h d m"] | None
    """The change after it, as the layer returned it; None for a matrix that never changes."""
    reset: Bool[Tensor, "b t"] | None
    """Where the change is reset before a step."""
    y: Float[Tensor, "b t h e"] | None = None
    """The outputs of the heads as the layer returned them; None where they cannot be seen."""
    more: tuple[Float[Tensor, "b h ..."], ...] = ()
    """What else of the state before the call the steps depend on."""

    def of(self, rows: Sequence[int], heads: Sequence[int]) -> "FastCall":
        """The same call for chosen rows and heads."""
        at = torch.tensor(rows, device=self.weight.device)
        of = torch.tensor(heads, device=self.weight.device)

        def states(state: Tensor) -> Tensor:
            return state.detach()[at][:, of]

        return replace(
            self,
            inputs=tuple(each.detach()[at][:, :, of] for each in self.inputs),
            weight=self.weight.detach()[of],
            before=None if self.before is None else states(self.before),
            after=None if self.after is None else states(self.after),
            reset=None if self.reset is None else self.reset[at],
            y=None if self.y is None else self.y.detach()[at][:, :, of],
            more=tuple(states(each) for each in self.more),
        )

    @property
    def dtype(self) -> torch.dtype:
        """What the recurrence runs in."""
        given = (*self.inputs, self.weight, *(each for each in (self.before,) if each is not None))
        return state_dtype(*given)

    @property
    def start(self) -> Float[Tensor, "b h d m"]:
        """The change before the first step."""
        if self.before is not None:
            return self.before.to(self.dtype)
        return self.weight.new_zeros(len(self.inputs[0]), *self.weight.shape, dtype=self.dtype)

    def in_full(self) -> "FastCall":
        """The same call in the dtype that the recurrence runs in."""
        return replace(
            self,
            inputs=tuple(each.to(self.dtype) for each in self.inputs),
            weight=self.weight.to(self.dtype),
            more=tuple(each.to(self.dtype) for each in self.more),
        )


@dataclass(frozen=True)
class FastMatrix:
    """A matrix of each head of a layer: what it is, and where to listen to it."""

    kind: MatrixKind
    """How it changes."""
    parts: tuple[MatrixPart, ...]
    """What its columns are."""
    columns: tuple[int, ...]
    """How many columns each part has; the outputs are those of the first part."""
    num_heads: int
    """Heads."""
    head_dim: int
    """Rows of the matrix of a head."""
    learning_rates: int
    """How many each head has."""
    forget_gates: int
    """How many each head has."""
    dtype: torch.dtype
    """What its changes are kept in."""
    layer: Any
    """The `SequenceLayer` whose calls run it: that answers `fast_call` and `fast_steps`."""
    read_by: nn.Module | None = None
    """The module whose input are the outputs of its heads, side by side; None if `layer` itself puts them out."""
    name: str = ""
    """Which matrix of its layer it is; empty for the only one."""

    def __post_init__(self) -> None:
        check_word("kind", self.kind, MatrixKind)
        for part in self.parts:
            check_word("part", part, MatrixPart)
        if len(self.parts) != len(self.columns):
            raise ValueError(f"parts={self.parts} and columns={self.columns}; expected as many of each")

    @property
    def width(self) -> int:
        """Columns of all parts together."""
        return sum(self.columns)

    @property
    def vectors(self) -> int:
        """The width of query and key."""
        return 0 if self.kind == "fixed" else self.head_dim

    def steps(self, call: FastCall) -> Iterator[FastStep]:
        """Compute a call again, step by step."""
        steps: Iterator[FastStep] = self.layer.fast_steps(call.in_full())
        return steps
