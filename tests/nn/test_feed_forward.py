import pytest
import torch

from srwm.nn import LSTM, FeedForward

from . import paper


def test_is_the_papers_pre_norm_block():
    layer = FeedForward(4, 10, dtype=torch.float64)
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    normed = torch.from_numpy(paper.layer_norm(x.numpy()))
    inner = (normed @ layer.expand.weight.T + layer.expand.bias).clamp(min=0)
    assert torch.allclose(layer(x)[0], x + inner @ layer.contract.weight.T + layer.contract.bias)


def test_the_inner_size_is_four_times_the_outer_by_default():
    assert FeedForward(4).expand.out_features == 16


def test_dropout_falls_inside_and_on_the_output():
    layer = FeedForward(4, 64, dropout=0.5)
    x = torch.randn(2, 50, 4)
    dropped = (layer.train()(x)[0] - x) == 0
    assert 0.3 < dropped.double().mean() < 0.7
    # With the second dropout alone, what is kept would be exactly doubled.
    kept = layer.eval()(x)[0] - x
    y = layer.train()(x)[0] - x
    assert not torch.allclose(y[y != 0], 2 * kept[y != 0], atol=1e-3)


@pytest.mark.usefixtures("as_installed")
def test_an_inner_size_of_zero_gets_a_sentence():
    with pytest.raises(ValueError, match="ff_size=0; expected at least 1"):
        FeedForward(4, 0)


@pytest.mark.usefixtures("as_installed")
def test_the_state_of_another_layer_gets_a_sentence_when_it_is_read_too():
    layer, other = FeedForward(4), LSTM(4, 4)
    for call in (layer, layer.read):
        with pytest.raises(ValueError, match=r"state.*LSTMState"):
            call(torch.zeros(2, 3, 4), other.initial_state(2))
