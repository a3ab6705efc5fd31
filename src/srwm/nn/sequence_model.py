"""The whole sequence network of the paper: projection, blocks of a memory and a feed-forward layer, projection."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ._arguments import MOST_LAYERS, check_fits, check_memory, check_positive, check_state_type
from ._layer import SequenceLayer, float_parts, read_one_by_one
from ._state import SequenceState
from .feed_forward import FeedForward
from .registry import Memory, MemoryEntry, find_memory


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


class SequenceModel(SequenceLayer[SequenceState]):
    """A network from sequences to sequences; the default is the paper's for Omniglot.

    A projection with bias, `num_layers` times [memory ; feed-forward], a projection with bias. With "feed_forward", the
    same without the memories. An "lstm" reads the input directly and has no feed-forward sub-layers; "none" is the
    input itself, the paper's feed-forward baseline in reinforcement learning. No LayerNorm stands before the output
    projection.

    Args:
        input_size: features of `x`.
        output_size: features of `y`; None for no output projection.
        memory: a name (`srwm.nn.memory_names()` lists them), or for a layer of your own `package.module:Class`, which
            is imported, or a function that makes the memory of a block.
        hidden_size: features between the projections.
        num_layers: blocks, or layers of the LSTM.
        num_heads: heads of each memory; must divide `hidden_size`. An LSTM has none.
        ff_size: inner features of the feed-forward sub-layers; None for 4 times `hidden_size`.
        dropout: dropout of the sub-layers, or between the layers of the LSTM.
        memory_options: further options of the memory by name, for example `{"input_activation": "softmax"}`.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Raises:
        ValueError: if a size, word or option does not exist or fit.

    Example:
        >>> model = SequenceModel(10, 5, memory="srwm", hidden_size=16, num_heads=4)
        >>> logits, state = model(torch.randn(3, 7, 10))
        >>> logits.shape
        torch.Size([3, 7, 5])
    """

    def __init__(
        self,
        input_size: int,
        output_size: int | None = None,
        *,
        memory: Memory | Callable[[], nn.Module] = "srwm",
        hidden_size: int = 256,
        num_layers: int = 2,
        num_heads: int = 16,
        ff_size: int | None = None,
        dropout: float = 0.0,
        memory_options: Mapping[str, Any] | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_positive(hidden_size=hidden_size)
        check_positive(most=MOST_LAYERS, num_layers=num_layers)
        entry = None if callable(memory) else find_memory(memory)
        name = memory if isinstance(memory, str) else None
        options = _checked_options(name, entry, dict(memory_options or {}))
        layout = "blocks" if entry is None else entry.layout
        width = input_size if layout == "input" else hidden_size
        super().__init__(input_size, width if output_size is None else output_size)
        check_memory(
            (self.input_size, width),
            (width, self.output_size),
            (num_layers, hidden_size, hidden_size) if layout != "input" else (0,),
            input_size=input_size,
            output_size=self.output_size,
            hidden_size=hidden_size,
            num_layers=num_layers,
        )
        place: dict[str, Any] = {"device": device, "dtype": dtype}

        def feed_forward() -> FeedForward:
            return FeedForward(hidden_size, ff_size, dropout=dropout, **place)

        def block() -> nn.Module:
            if callable(memory):
                return Block(memory(), feed_forward())
            assert entry is not None
            if entry.layer is None:
                return feed_forward()
            made = entry.make(hidden_size, num_heads, dropout=dropout, options=options, **place)
            return Block(made, feed_forward())

        layers: Iterable[nn.Module]
        if layout == "input":
            layers = ()
        elif layout == "alone":
            make: Any = cast(MemoryEntry, entry).layer
            layers = (make(input_size, hidden_size, num_layers=num_layers, dropout=dropout, **place),)
        else:
            layers = [block() for _ in range(num_layers)]
        projects_input = layout == "blocks"
        self.input_projection = nn.Linear(input_size, hidden_size, **place) if projects_input else nn.Identity()
        self.layers = nn.ModuleList(layers)
        self.output_projection = nn.Identity() if output_size is None else nn.Linear(width, output_size, **place)

    def forward(
        self,
        x: Float[Tensor, "b t d_in"],
        state: SequenceState | None = None,
        *,
        reset: Bool[Tensor, "b t"] | None = None,
    ) -> tuple[Float[Tensor, "b t d_out"], SequenceState]:
        """Read a sequence; see `SequenceLayer.forward`."""
        h = self._project(x, reset)
        before = self._layer_states(state)
        after = []
        for layer, layer_state in zip(self.layers, before, strict=True):
            h, layer_state = layer(h, layer_state, reset=reset)
            after.append(layer_state)
        return self.output_projection(h), SequenceState(tuple(after))

    def read(self, x: Float[Tensor, "b n d_in"], state: SequenceState | None = None) -> Float[Tensor, "b n d_out"]:
        """Answer each input as if it came next; see `SequenceLayer.read`."""
        h = self._project(x, None)
        for layer, layer_state in zip(self.layers, self._layer_states(state), strict=True):
            h = cast(Block, layer).read(h, layer_state)
        y: Tensor = self.output_projection(h)
        return y

    def _project(self, x: Tensor, reset: Tensor | None) -> Tensor:
        self.check_inputs(x, reset)
        if isinstance(self.input_projection, nn.Linear):
            check_fits(x, self.input_projection.weight)
        h: Tensor = self.input_projection(x)
        return h

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> SequenceState:
        """Return the state of `batch_size` new episodes."""
        return SequenceState(
            tuple(cast(Block, layer).initial_state(batch_size, device, dtype) for layer in self.layers)
        )

    def state_parts(self, state: SequenceState) -> tuple[Tensor, ...]:
        """Give the parts of the state of every layer, first layer first."""
        pairs = zip(self.layers, self._layer_states(state), strict=True)
        return tuple(part for layer, each in pairs for part in cast(Block, layer).state_parts(each))

    def _layer_states(self, state: SequenceState | None) -> tuple[Any, ...]:
        check_state_type(state, SequenceState)
        if state is None:
            return (None,) * len(self.layers)
        if len(state.layers) != len(self.layers):
            raise ValueError(f"state holds {len(state.layers)} layers; expected {len(self.layers)}, as the model has")
        return state.layers


def _checked_options(memory: str | None, entry: MemoryEntry | None, options: dict[str, Any]) -> dict[str, Any]:
    """Refuse options that the memory does not have, and those that are arguments of the model itself.

    Where an option is a number with a fraction, a whole number becomes one: on the command line `1` may stand for it.
    """
    known = {} if entry is None else entry.options
    unknown = sorted(set(options) - set(known))
    if unknown:
        name = "a memory of your own" if memory is None else repr(memory)
        raise ValueError(f"memory_options has {', '.join(unknown)}; {name} takes {', '.join(known) or 'no options'}")
    for name, value in options.items():
        _check_number(name, value, known[name])
    return {name: float(value) if known[name] is float else value for name, value in options.items()}


def _check_number(name: str, value: Any, kind: Any) -> None:
    """Refuse what is no number where an option is one; the memory itself refuses words that it does not know."""
    types = get_args(kind) or (kind,)
    numbers = tuple(each for each in types if each in (int, float))
    if not numbers or (value is None and type(None) in types):
        return
    if isinstance(value, bool) or not isinstance(value, (int, float) if float in numbers else int):
        wanted = "a number" if float in numbers else "a whole number"
        none = " or None" if type(None) in types else ""
        raise ValueError(f"memory_options has {name}={value!r}; expected {wanted}{none}")
