"""Causal self-attention, the Transformer's, under the contract of the other layers."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from srwm.ops.checks import check_shape, state_dtype

from ._arguments import check_heads, check_memory, check_positive, check_state_part, check_state_type
from ._residual import Norm, ResidualLayer
from ._state import AttentionState


class Attention(ResidualLayer[AttentionState]):
    """Heads of causal self-attention, an output projection without bias, and a residual.

    Attention is PyTorch's own. There are no positions, as in the networks of the paper on formal languages: only the
    causal mask tells the order. The state is the cache of keys and values, of a fixed size, so that it can be carried
    on for ever: a step sees itself and the `window - 1` steps before it.

    Args:
        hidden_size: features of `x` and `y`.
        num_heads: heads; must divide `hidden_size`.
        window: how many steps a step sees at most, itself among them.
        norm: where the LayerNorm stands: "input" (the usual pre-LN), or as in `SRWM`.
        dropout: probability of dropping an output of the projection.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Raises:
        ValueError: if `num_heads` does not divide `hidden_size`, or an option has no such value.

    Example:
        >>> layer = Attention(hidden_size=8, num_heads=2, window=16)
        >>> y, state = layer(torch.randn(3, 5, 8))
        >>> y.shape, state.keys.shape
        (torch.Size([3, 5, 8]), torch.Size([3, 16, 8]))
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        window: int = 1024,
        norm: Norm = "input",
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        check_heads(num_heads, hidden_size=hidden_size)
        check_positive(window=window)
        super().__init__(hidden_size, norm=norm, dropout=dropout, device=device, dtype=dtype)
        check_memory((3, hidden_size, hidden_size), (2, window, hidden_size), hidden_size=hidden_size, window=window)
        self.num_heads = num_heads
        self.window = window
        self.projection = nn.Linear(hidden_size, 3 * hidden_size, bias=False, device=device, dtype=dtype)

    def run_heads(
        self, x: Float[Tensor, "b t d"], state: AttentionState | None, reset: Bool[Tensor, "b t"] | None
    ) -> tuple[Float[Tensor, "b t d"], AttentionState]:
        """Attend to the steps before, those in the state among them."""
        batch_size, time = x.shape[:2]
        q, k, v = self.projection(x).chunk(3, dim=-1)
        mask = None
        before = self._check(state, x)
        if before is not None and reset is not None and time:
            # A weight of zero would not keep NaN away.
            before = before.reset(reset[:, 0])
        steps = torch.arange(1, time + 1, device=x.device).expand(batch_size, time)
        if before is not None:
            steps = steps + before.steps[:, None]
        if reset is not None:
            steps = torch.minimum(steps, _steps_since(reset))
        if before is not None or reset is not None or time > self.window:
            past = 0 if before is None else self.window
            mask = self._mask(steps, past)
        if before is not None:
            k, v = (torch.cat([old.to(new.dtype), new], dim=1) for old, new in ((before.keys, k), (before.values, v)))
        y = self._attend(q, k, v, mask, is_causal=mask is None)
        return y, self._after(k, v, steps[:, -1] if time else self._steps(before, batch_size, x))

    def read_heads(self, x: Float[Tensor, "b n d"], state: AttentionState | None) -> Float[Tensor, "b n d"]:
        """Attend to the steps in the state, each input as if it came next."""
        before = self._check(state, x)
        q, k, v = self.projection(x).chunk(3, dim=-1)
        number = x.shape[1]
        mask = torch.eye(number, dtype=torch.bool, device=x.device).expand(x.shape[0], 1, number, number)
        if before is not None:
            # The oldest of the window gives way to the input itself.
            place = torch.arange(self.window, 0, -1, device=x.device)
            seen = (place <= before.steps[:, None]) & (place < self.window)
            mask = torch.cat([seen[:, None, None].expand(-1, 1, number, -1), mask], dim=-1)
            k, v = (torch.cat([old.to(new.dtype), new], dim=1) for old, new in ((before.keys, k), (before.values, v)))
        return self._attend(q, k, v, mask, is_causal=False)

    def initial_memory(
        self, batch_size: int, device: torch.device | str | None, dtype: torch.dtype | None
    ) -> AttentionState:
        """Return the empty cache of `batch_size` new episodes."""
        weight = self.projection.weight
        device = weight.device if device is None else device
        dtype = state_dtype(weight) if dtype is None else dtype
        empty = torch.zeros((batch_size, self.window, self.input_size), device=device, dtype=dtype)
        return AttentionState(empty, empty.clone(), torch.zeros(batch_size, device=device, dtype=torch.int64))

    def extra_repr(self) -> str:
        """Show the sizes."""
        return f"num_heads={self.num_heads}, window={self.window}, {super().extra_repr()}"

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, is_causal: bool) -> Tensor:
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal).transpose(1, 2).flatten(-2)

    def _mask(self, steps: Tensor, past: int) -> Tensor:
        """Which of the steps, those of the state first, each step sees [b, 1, t, past + t]."""
        time = steps.shape[1]
        place = torch.arange(past + time, device=steps.device)
        age = (place[past:, None] - place)[None]
        return ((age >= 0) & (age < steps[..., None]) & (age < self.window))[:, None]

    def _after(self, k: Tensor, v: Tensor, steps: Tensor) -> AttentionState:
        """The last keys and values, right-aligned; zeros where an episode has none yet."""
        place = torch.arange(self.window, 0, -1, device=k.device)
        is_empty = (place > steps[:, None])[..., None]

        def last(part: Tensor) -> Tensor:
            part = F.pad(part, (0, 0, max(self.window - part.shape[1], 0), 0))[:, -self.window :]
            return part.to(state_dtype(self.projection.weight)).masked_fill(is_empty, 0.0)

        return AttentionState(last(k), last(v), steps)

    def _steps(self, before: AttentionState | None, batch_size: int, x: Tensor) -> Tensor:
        return x.new_zeros(batch_size, dtype=torch.int64) if before is None else before.steps

    def _check(self, state: AttentionState | None, x: Tensor) -> AttentionState | None:
        check_state_type(state, AttentionState)
        if state is not None:
            wanted = (x.shape[0], self.window, self.input_size)
            check_state_part("state.keys", state.keys, wanted, "[b, window, d]", x)
            check_state_part("state.values", state.values, wanted, "[b, window, d]", x)
            check_shape("state.steps", state.steps, wanted[:1], "[b]")
        return state


def _steps_since(reset: Tensor) -> Tensor:
    """For each step, how many steps its episode has by then if it began in this sequence; many if it did not [b, t]."""
    place = torch.arange(reset.shape[1], device=reset.device)
    first = torch.where(reset, place, -(1 << 62)).cummax(dim=1).values
    return place + 1 - first
