"""The LSTM under the contract of the other layers."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ._arguments import (
    MOST_LAYERS,
    check_dtype,
    check_fits,
    check_memory,
    check_positive,
    check_probability,
    check_state_part,
    check_state_type,
)
from ._layer import SequenceLayer
from ._state import LSTMState
from .plain_lstm import PlainLSTM


class LSTM(SequenceLayer[LSTMState]):
    """`torch.nn.LSTM` with resets inside the sequence and a state that is batch first.

    It runs PyTorch's own kernels and cuts the sequence only at the steps where some row begins a new episode; to find
    them it looks at the mask, which on a GPU waits for the device once. `torch.compile` leaves every LSTM of PyTorch
    out of its graphs unless `torch._dynamo.config.allow_rnn` is set.

    Under autocast `y` has autocast's dtype, and the state keeps its own. On a CPU the recurrence itself then runs in
    the dtype of the parameters, because only some CPUs have a kernel for an LSTM in half precision.

    Args:
        input_size: features of `x`.
        hidden_size: features of `y`.
        num_layers: layers.
        dropout: probability of dropping an output between layers.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Attributes:
        lstm: the `torch.nn.LSTM` that holds the parameters.

    Example:
        >>> layer = LSTM(3, 4)
        >>> y, state = layer(torch.randn(2, 5, 3), reset=torch.tensor([[True] + [False] * 4] * 2))
        >>> y.shape, state.cell.shape
        (torch.Size([2, 5, 4]), torch.Size([2, 1, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        num_layers: int = 1,
        dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size)
        check_positive(most=MOST_LAYERS, num_layers=num_layers)
        check_memory(
            (4, input_size, hidden_size),
            (4, 2 * num_layers - 1, hidden_size, hidden_size),
            input_size=input_size,
            hidden_size=hidden_size,
            num_layers=num_layers,
        )
        check_probability(dropout=dropout)
        check_dtype(dtype)
        # With one layer there is no place between layers, and PyTorch warns about a dropout there.
        between = dropout if num_layers > 1 else 0.0
        self.lstm = nn.LSTM(
            input_size, hidden_size, num_layers, batch_first=True, dropout=between, device=device, dtype=dtype
        )

    def forward(
        self,
        x: Float[Tensor, "b t d_in"],
        state: LSTMState | None = None,
        *,
        reset: Bool[Tensor, "b t"] | None = None,
    ) -> tuple[Float[Tensor, "b t d_out"], LSTMState]:
        """Read a sequence; see `SequenceLayer.forward`."""
        self.check_inputs(x, reset)
        check_fits(x, self.lstm.all_weights[0][0])
        self._check_state(state, x)
        state = self.initial_state(x.shape[0]) if state is None else state
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            return self._run_on_cpu_under_autocast(x, state, reset)
        return self._run(x, state, reset)

    def _run_on_cpu_under_autocast(self, x: Tensor, state: LSTMState, reset: Tensor | None) -> tuple[Tensor, LSTMState]:
        dtype = self.lstm.all_weights[0][0].dtype
        with torch.autocast("cpu", enabled=False):
            y, after = self._run(x.to(dtype), LSTMState(*(part.to(dtype) for part in state)), reset)
        after = LSTMState(*(part.to(before.dtype) for part, before in zip(after, state, strict=True)))
        # Autocast leaves float64 as it is.
        return y if dtype == torch.float64 else y.to(torch.get_autocast_dtype("cpu")), after

    def _run(self, x: Tensor, state: LSTMState, reset: Tensor | None) -> tuple[Tensor, LSTMState]:
        if x.shape[1] == 0:
            return x.new_zeros(*x.shape[:2], self.output_size), state
        # Copies in the layout PyTorch wants: layers first and contiguous.
        hidden, cell = (part.transpose(0, 1).contiguous() for part in state)
        dtype = cell.dtype
        ys = []
        starts = _segment_starts(reset, x.shape[1])
        for start, end in zip(starts, [*starts[1:], x.shape[1]], strict=True):
            if reset is not None:
                is_first = reset[None, :, start, None]
                hidden, cell = hidden.masked_fill(is_first, 0.0), cell.masked_fill(is_first, 0.0)
            y, (hidden, cell) = self.lstm(x[:, start:end], (hidden, cell))
            # Autocast returns them in half precision; the state keeps the dtype it came in.
            hidden, cell = hidden.to(dtype), cell.to(dtype)
            ys.append(y)
        return torch.cat(ys, dim=1), LSTMState(hidden.transpose(0, 1), cell.transpose(0, 1))

    def initial_state(
        self, batch_size: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> LSTMState:
        """Return the state of `batch_size` new episodes."""
        weight = self.lstm.all_weights[0][0]
        device = weight.device if device is None else device
        dtype = weight.dtype if dtype is None else dtype
        zeros = torch.zeros(batch_size, self.lstm.num_layers, self.output_size, device=device, dtype=dtype)
        return LSTMState(hidden=zeros, cell=zeros.clone())

    def portable(self) -> SequenceLayer[LSTMState]:
        """Return the same layer in plain operators, for a step at a time."""
        return PlainLSTM(self.lstm)

    def _check_state(self, state: LSTMState | None, x: Tensor) -> None:
        check_state_type(state, LSTMState)
        if state is None:
            return
        for name, part in zip(state._fields, state, strict=True):
            wanted = (x.shape[0], self.lstm.num_layers, self.output_size)
            check_state_part(f"state.{name}", part, wanted, "[b, layers, d]", x)
            if part.dtype != x.dtype and not torch.is_autocast_enabled(x.device.type):
                raise ValueError(
                    f"state.{name} has dtype {part.dtype} but x has {x.dtype}; convert one with .to(dtype)"
                )


def _segment_starts(reset: Tensor | None, time: int) -> list[int]:
    """Name the steps at which the sequence must be cut: the first, and those where some row is reset."""
    if reset is None:
        return [0]
    # A graph being compiled or captured cannot look at the values of the mask: every step may be a reset.
    if torch.compiler.is_compiling() or (reset.is_cuda and torch.cuda.is_current_stream_capturing()):
        return list(range(time))
    begins = reset.any(dim=0)
    begins[0] = True
    return begins.nonzero().flatten().tolist()
