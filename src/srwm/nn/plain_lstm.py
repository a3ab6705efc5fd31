"""One step of an LSTM in plain operators.

Exporters have an operator of their own for PyTorch's LSTM, made for sequences; what some versions of them make of a
batch of unknown size is not valid.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._layer import SequenceLayer
from ._state import LSTMState


class PlainLSTM(SequenceLayer[LSTMState]):
    """What `srwm.nn.LSTM` computes for a single step; it shares its parameters."""

    def __init__(self, lstm: nn.LSTM) -> None:
        super().__init__(lstm.input_size, lstm.hidden_size)
        self.lstm = lstm

    def forward(
        self, x: Tensor, state: LSTMState | None = None, *, reset: Tensor | None = None
    ) -> tuple[Tensor, LSTMState]:
        """Read a step [b, 1, input_size] after a state."""
        assert state is not None
        hidden, cell = state
        if reset is not None:
            is_first = reset[:, 0, None, None]
            hidden, cell = hidden.masked_fill(is_first, 0.0), cell.masked_fill(is_first, 0.0)
        y, hs, cs = x[:, 0], [], []
        for layer, weights in enumerate(self.lstm.all_weights):
            y, c = _cell(y, hidden[:, layer], cell[:, layer], *weights)
            hs.append(y)
            cs.append(c)
        return y[:, None], LSTMState(torch.stack(hs, dim=1), torch.stack(cs, dim=1))


def _cell(x: Tensor, h: Tensor, c: Tensor, w_x: Tensor, w_h: Tensor, b_x: Tensor, b_h: Tensor) -> tuple[Tensor, Tensor]:
    """The equations, with the gates in PyTorch's order: input, forget, new, output."""
    i, f, g, o = (F.linear(x, w_x, b_x) + F.linear(h, w_h, b_h)).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c
