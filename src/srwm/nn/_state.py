"""What layers carry from one call to the next: named tuples of tensors, batch first, in which zeros mean "new"."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

AnyState = TypeVar("AnyState")


@runtime_checkable
class State(Protocol):
    """What a state can do; that of your own layer needs `to` only where it is to be moved."""

    def detach(self) -> Any:
        """Return the same values, cut from the graph: truncated backpropagation."""

    def reset(self, is_first: Tensor) -> Any:
        """Return the state with the rows where `is_first` (bool [b]) is true reset."""

    def to(self, device: torch.device | str) -> Any:
        """Return the state on another device."""


def map_state(function: Callable[[Tensor], Tensor], state: AnyState) -> AnyState:
    """Apply a function to every tensor of a state, however deeply nested.

    Args:
        function: takes a tensor [b, ...] and returns one.
        state: a state, a tensor, or a tuple of such.

    Returns:
        A new state of the same type.

    Example:
        >>> twice = map_state(lambda rows: rows.repeat_interleave(2, dim=0), DeltaNetState(torch.zeros(3, 1, 2, 2)))
        >>> twice.fast_weight.shape
        torch.Size([6, 1, 2, 2])
    """
    if isinstance(state, Tensor):
        return cast(AnyState, function(state))
    if not isinstance(state, tuple):
        raise ValueError(f"a state holds a {type(state).__name__}; expected tensors, or tuples of tensors")
    parts = [map_state(function, part) for part in state]
    return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)


def named_tensors(state: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Give every tensor of a state with its dotted name, in the order of `map_state`."""
    if isinstance(state, Tensor):
        yield prefix or "state", state
        return
    names = getattr(state, "_fields", range(len(state)))
    for name, part in zip(names, state, strict=True):
        yield from named_tensors(part, f"{prefix}.{name}" if prefix else str(name))


def reset_rows(state: AnyState, is_first: Tensor) -> AnyState:
    """Zero the rows of a state where `is_first` (bool [b]) is true; no gradient crosses, and no NaN survives."""
    if is_first.dtype != torch.bool:
        raise ValueError(f"is_first has dtype {is_first.dtype}; expected torch.bool, true where an episode begins")

    def reset(rows: Tensor) -> Tensor:
        if is_first.shape != rows.shape[:1]:
            raise ValueError(f"is_first has shape {list(is_first.shape)}; expected [b] = {list(rows.shape[:1])}")
        return rows.masked_fill(is_first.reshape(-1, *[1] * (rows.dim() - 1)), 0)

    return map_state(reset, state)


class NoState(NamedTuple):
    """The state of a layer that remembers nothing."""

    def detach(self) -> "NoState":
        """Return itself."""
        return self

    def reset(self, is_first: Bool[Tensor, "b"]) -> "NoState":
        """Return itself."""
        return self

    def to(self, device: torch.device | str) -> "NoState":
        """Return itself."""
        return self


class SelfReferentialState(NamedTuple):
    """What a self-referential matrix did to itself."""

    change: Float[Tensor, "b h d m"]
    """Change of the weight matrix since the episode began."""
    steps: Int[Tensor, "b"]
    """Steps since the episode began; counted only by a layer with `reset_every`, else zero."""

    def detach(self) -> "SelfReferentialState":
        """Return the same values, cut from the graph."""
        return map_state(Tensor.detach, self)

    def reset(self, is_first: Bool[Tensor, "b"]) -> "SelfReferentialState":
        """Return the state with the rows where `is_first` is true reset."""
        return reset_rows(self, is_first)

    def to(self, device: torch.device | str) -> "SelfReferentialState":
        """Return the state on another device."""
        return map_state(lambda tensor: tensor.to(device), self)


class DeltaNetState(NamedTuple):
    """What the delta rule wrote."""

    fast_weight: Float[Tensor, "b h d e"]
    """The fast weight matrix of each head."""

    def detach(self) -> "DeltaNetState":
        """Return the same values, cut from the graph."""
        return map_state(Tensor.detach, self)

    def reset(self, is_first: Bool[Tensor, "b"]) -> "DeltaNetState":
        """Return the state with the rows where `is_first` is true reset."""
        return reset_rows(self, is_first)

    def to(self, device: torch.device | str) -> "DeltaNetState":
        """Return the state on another device."""
        return map_state(lambda tensor: tensor.to(device), self)


class SRDeltaNetState(NamedTuple):
    """The state of a fast weight matrix and of the self-referential matrix that programs it."""

    slow: SelfReferentialState
    """What the programmer did to itself."""
    fast_weight: Float[Tensor, "b h d e"]
    """What it wrote into the fast weight matrix of each head."""

    def detach(self) -> "SRDeltaNetState":
        """Return the same values, cut from the graph."""
        return map_state(Tensor.detach, self)

    def reset(self, is_first: Bool[Tensor, "b"]) -> "SRDeltaNetState":
        """Return the state with the rows where `is_first` is true reset."""
        return reset_rows(self, is_first)

    def to(self, device: torch.device | str) -> "SRDeltaNetState":
        """Return the state on another device."""
        return map_state(lambda tensor: tensor.to(device), self)


class TitansState(NamedTuple):
    """What self-modifying memories did to themselves."""

    change: Float[Tensor, "b h d m"]
    """Change of the matrix since the episode began."""
    snapshot: Float[Tensor, "b h d m"]
    """The same when the chunk began: what keys, values, learning rates and gates of its steps are read from."""
    steps: Int[Tensor, "b"]
    """Steps since the episode began."""

    def detach(self) -> "TitansState":
        """Return the same values, cut from the graph."""
        return map_state(Tensor.detach, self)

    def reset(self, is_first: Bool[Tensor, "b"]) -> "TitansState":
        """Return the state with the rows where `is_first` is true reset."""
        return reset_rows(self, is_first)

    def to(self, device: torch.device | str) -> "TitansState":
        """Return the state on another device."""
        return map_state(lambda tensor: tensor.to(device), self)


class ConvolvedState(NamedTuple):
    """The state of a layer with a short convolution before its heads."""

    memory: Any
    """The state that the layer has without it."""
    recent: Float[Tensor, "b w d"]
    """The last inputs of the convolution, one fewer than its width, oldest first; zeros before an episode's first."""

    # The memory's own methods are asked, because a layer may bring a state type of its own.

    def detach(self) -> "ConvolvedState":
        """Return the same values, cut from the graph."""
        return ConvolvedState(self.memory.detach(), self.recent.detach())

    def reset(self, is_first: Bool[Tensor, "b"]) -> "ConvolvedState":
        """Return the state with the rows where `is_first` is true reset."""
        return ConvolvedState(self.memory.reset(is_first), reset_rows(self.recent, is_first))

    def to(self, device: torch.device | str) -> "ConvolvedState":
        """Return the state on another device."""
        return ConvolvedState(self.memory.to(device), self.recent.to(device))


class LSTMState(NamedTuple):
    """The state of an LSTM; batch first, unlike that of `torch.nn.LSTM`."""

    hidden: Float[Tensor, "b layers d"]
    """The outputs of each layer at the last step."""
    cell: Float[Tensor, "b layers d"]
    """The cells of each layer."""

    def detach(self) -> "LSTMState":
        """Return the same values, cut from the graph."""
        return map_state(Tensor.detach, self)

    def reset(self, is_first: Bool[Tensor, "b"]) -> "LSTMState":
        """Return the state with the rows where `is_first` is true reset."""
        return reset_rows(self, is_first)

    def to(self, device: torch.device | str) -> "LSTMState":
        """Return the state on another device."""
        return map_state(lambda tensor: tensor.to(device), self)


class AttentionState(NamedTuple):
    """The cache of keys and values of causal self-attention, of a fixed size: newest last."""

    keys: Float[Tensor, "b w d"]
    """The keys of the last steps; zeros before an episode's first."""
    values: Float[Tensor, "b w d"]
    """Their values."""
    steps: Int[Tensor, "b"]
    """Steps since the episode began."""

    def detach(self) -> "AttentionState":
        """Return the same values, cut from the graph."""
        return map_state(Tensor.detach, self)

    def reset(self, is_first: Bool[Tensor, "b"]) -> "AttentionState":
        """Return the state with the rows where `is_first` is true reset."""
        return reset_rows(self, is_first)

    def to(self, device: torch.device | str) -> "AttentionState":
        """Return the state on another device."""
        return map_state(lambda tensor: tensor.to(device), self)


class SequenceState(NamedTuple):
    """The states of a stack of layers, first layer first."""

    layers: tuple[Any, ...]
    """One state for each layer."""

    # Each layer's own methods are asked, because a layer may bring a state type of its own.

    def detach(self) -> "SequenceState":
        """Return the same values, cut from the graph."""
        return SequenceState(tuple(layer.detach() for layer in self.layers))

    def reset(self, is_first: Bool[Tensor, "b"]) -> "SequenceState":
        """Return the state with the rows where `is_first` is true reset."""
        return SequenceState(tuple(layer.reset(is_first) for layer in self.layers))

    def to(self, device: torch.device | str) -> "SequenceState":
        """Return the state on another device."""
        return SequenceState(tuple(layer.to(device) for layer in self.layers))
