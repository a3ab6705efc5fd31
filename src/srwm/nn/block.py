"""The residual block: a memory sub-layer, then a feed-forward sub-layer."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ._layer import SequenceLayer, float_parts, read_one_by_one
from .feed_forward import FeedForward


class Block(SequenceLayer[Any]):
    """One layer of a Transformer with a memory in place of self-attention; its state is that of the memory.

    Args:
        memory: any layer under the contract that keeps the number of features: `SRWM`, `DeltaNet`, your own.
        feed_forward: the second sub-layer.

    Example:
        >>> from srwm.nn import SRWM
        >>> block = Block(SRWM(hidden_size=8, num_heads=2), FeedForward(8, 16))
        >>> y, state = block(torch.randn(3, 5, 8))
    """

    memory: Any  # a module under the contract; its class need not be one of ours

    def __init__(self, memory: nn.Module, feed_forward: FeedForward) -> None:
        hidden_size = feed_forward.input_size
        super().__init__(hidden_size, hidden_size)
        sizes = (getattr(memory, "input_size", hidden_size), getattr(memory, "output_size", hidden_size))
        if sizes != (hidden_size, hidden_size):
            raise ValueError(
                f"memory maps {sizes[0]} features to {sizes[1]}; expected {hidden_size} to {hidden_size}, "
                "as the feed-forward sub-layer has"
            )
        self.memory = memory
        self.feed_forward = feed_forward

    def forward(
        self, x: Float[Tensor, "b t d"], state: Any = None, *, reset: Bool[Tensor, "b t"] | None = None
    ) -> tuple[Float[Tensor, "b t d"], Any]:
        """Read a sequence; see `SequenceLayer.forward`."""
        self.check_inputs(x, reset)
        y, state = self.memory(x, state, reset=reset)
        return self.feed_forward(y)[0], state

    def read(self, x: Float[Tensor, "b n d"], state: Any = None) -> Float[Tensor, "b n d"]:
        """Answer each input as if it came next; see `SequenceLayer.read`."""
        self.check_inputs(x, None)
        # A memory of the user's own need not have a `read`.
        read = getattr(self.memory, "read", None)
        y = read_one_by_one(self.memory, x, state) if read is None else read(x, state)
        return self.feed_forward.read(y)

    def state_parts(self, state: Any) -> tuple[Tensor, ...]:
        """Give the parts of the memory's state."""
        # A memory of the user's own need not have `state_parts`.
        parts = getattr(self.memory, "state_parts", float_parts)
        found: tuple[Tensor, ...] = parts(state)
        return found

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> Any:
        """Return the memory's state of `batch_size` new episodes."""
        return self.memory.initial_state(batch_size, device, dtype)
