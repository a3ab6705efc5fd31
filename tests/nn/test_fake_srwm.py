import pytest
import torch

from srwm.nn import FakeSRWM, NoState

from . import paper


def test_each_head_is_an_ordinary_matrix():
    layer = FakeSRWM(6, 2, norm="none", dtype=torch.float64)
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    matrix = torch.block_diag(*layer.weight)
    expected = x + layer.out_projection(x @ matrix)
    assert torch.allclose(layer(x)[0], expected)


def test_the_softmax_is_over_each_head():
    layer = FakeSRWM(6, 2, norm="none", input_activation="softmax", dtype=torch.float64)
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    activated = torch.cat([x[..., :3].softmax(-1), x[..., 3:].softmax(-1)], dim=-1)
    expected = x + layer.out_projection(activated @ torch.block_diag(*layer.weight))
    assert torch.allclose(layer(x)[0], expected)


def test_by_default_the_norm_stands_where_the_srwm_has_it():
    layer = FakeSRWM(6, 2, dtype=torch.float64)
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    matrix = torch.block_diag(*layer.weight)
    expected = torch.from_numpy(paper.layer_norm(x.numpy())) + layer.out_projection(x @ matrix)
    assert torch.allclose(layer(x)[0], expected)


def test_it_remembers_nothing():
    _, state = FakeSRWM(6, 2)(torch.randn(2, 4, 6))
    assert state == NoState()


def test_the_initial_matrices_have_the_spread_of_an_srwm():
    layer = FakeSRWM(256, 4)
    assert layer.weight.std().item() == pytest.approx(64**-0.5, rel=0.02)


@pytest.mark.usefixtures("as_installed")
def test_an_unknown_activation_gets_a_sentence():
    with pytest.raises(ValueError, match="input_activation='elu'; expected one of 'none', 'softmax'"):
        FakeSRWM(6, 2, input_activation="elu")
