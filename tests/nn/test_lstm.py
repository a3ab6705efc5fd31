import pytest
import torch
from torch import nn

from srwm.nn import LSTM


def make(**options):
    return LSTM(4, 3, num_layers=2, dtype=torch.float64, **options)


def draw(b=3, t=6):
    return torch.randn(b, t, 4, dtype=torch.float64)


def segments(layer, x, reset):
    """Count how often PyTorch's LSTM is called."""
    calls = []
    with torch.no_grad():
        handle = layer.lstm.register_forward_hook(lambda *_: calls.append(1))
        layer(x, reset=reset)
        handle.remove()
    return len(calls)


def test_without_resets_it_is_pytorchs_lstm():
    layer, x = make(), draw()
    y, state = layer(x)
    expected, (hidden, cell) = layer.lstm(x)
    assert torch.equal(y, expected)
    assert torch.equal(state.hidden, hidden.transpose(0, 1))
    assert torch.equal(state.cell, cell.transpose(0, 1))


def test_its_parameters_are_those_of_pytorchs_lstm():
    expected = nn.LSTM(4, 3, num_layers=2).state_dict()
    assert {name: p.shape for name, p in make().lstm.state_dict().items()} == {n: p.shape for n, p in expected.items()}


def test_resets_equal_pytorchs_lstm_on_each_episode():
    layer, x = make(), draw(b=1)
    reset = torch.tensor([[False, False, True, False, True, False]])
    expected = torch.cat([layer.lstm(part)[0] for part in x.split([2, 2, 2], dim=1)], dim=1)
    assert torch.allclose(layer(x, reset=reset)[0], expected, rtol=0, atol=1e-15)


def test_a_mask_without_resets_runs_in_one_piece():
    assert segments(make(), draw(), torch.zeros(3, 6, dtype=torch.bool)) == 1


def test_the_sequence_is_cut_only_where_some_row_is_reset():
    reset = torch.zeros(3, 6, dtype=torch.bool)
    reset[0, 2] = reset[1, 2] = reset[2, 5] = True
    assert segments(make(), draw(), reset) == 3


def test_dropout_acts_between_layers_in_training_only():
    layer, x = make(dropout=0.5), draw()
    expected, _ = layer.eval()(x)
    assert torch.equal(layer(x)[0], expected)
    assert not torch.equal(layer.train()(x)[0], expected)


def test_dropout_of_a_single_layer_does_not_warn():
    assert LSTM(4, 3, dropout=0.5).lstm.dropout == 0.0


@pytest.mark.parametrize("parameters", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("autocast", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("time", [0, 6])
def test_under_autocast_on_a_cpu_only_y_is_rounded(parameters, autocast, time):
    layer, x = make().to(parameters), draw(t=time).to(parameters)
    reset = torch.rand(3, time) < 0.3
    expected, expected_state = layer(x, reset=reset)
    with torch.autocast("cpu", autocast):
        y, state = layer(x, reset=reset)
    # Autocast leaves float64 as it is.
    assert torch.equal(y, expected if parameters == torch.float64 else expected.to(autocast))
    assert all(map(torch.equal, state, expected_state))


def test_under_autocast_on_a_cpu_half_precision_inputs_meet_float32_parameters():
    layer, x = make().float(), draw().bfloat16()
    expected, expected_state = layer(x.float())
    with torch.autocast("cpu", torch.bfloat16):
        y, state = layer(x)
    assert torch.equal(y, expected.bfloat16())
    assert all(map(torch.equal, state, expected_state))


@pytest.mark.usefixtures("as_installed")
def test_no_layers_get_a_sentence():
    with pytest.raises(ValueError, match="num_layers=0; expected at least 1"):
        LSTM(4, 3, num_layers=0)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("part", ["hidden", "cell"])
def test_each_part_of_a_state_of_another_size_gets_a_sentence(part):
    layer = LSTM(4, 6)
    state = layer.initial_state(2)._replace(**{part: torch.zeros(2, 1, 5)})
    with pytest.raises(ValueError, match=rf"state\.{part} has shape \[2, 1, 5\]; .*\[2, 1, 6\]"):
        layer(torch.zeros(2, 3, 4), state)
