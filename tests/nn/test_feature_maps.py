import pytest
import torch

from srwm.nn.feature_maps import activate_input, apply_feature_map


def draw():
    return torch.randn(3, 4, 5, dtype=torch.float64) * 3


def test_softmax_is_over_the_last_axis():
    assert torch.allclose(apply_feature_map(draw(), "softmax", 0.0).sum(-1), torch.ones(3, 4, dtype=torch.float64))


def test_elu_sum_is_elu_plus_one_over_its_sum():
    x = draw()
    positive = torch.where(x > 0, x + 1, x.exp())
    expected = positive / positive.sum(-1, keepdim=True)
    assert torch.allclose(apply_feature_map(x, "elu_sum", 0.0), expected)


def test_eps_is_added_to_the_sum():
    x = draw()
    positive = torch.where(x > 0, x + 1, x.exp())
    expected = positive / (positive.sum(-1, keepdim=True) + 0.5)
    assert torch.allclose(apply_feature_map(x, "elu_sum", 0.5), expected)


def test_l2_is_unit_length_with_its_signs():
    x = draw()
    found = apply_feature_map(x, "l2", 0.0)
    assert torch.allclose(found, torch.nn.functional.normalize(x, dim=-1), rtol=1e-4)
    assert (found.square().sum(-1) < 1).all()
    assert torch.equal(apply_feature_map(torch.zeros(2, 3), "l2", 0.0), torch.zeros(2, 3))


@pytest.mark.parametrize("size", [1e-3, 1.0, 3e3])
def test_l2_of_half_precision_is_as_exact_as_half_precision_is(size):
    x = (size * draw()).to(torch.float16)
    expected = apply_feature_map(x.double(), "l2", 0.0)
    assert torch.allclose(apply_feature_map(x, "l2", 0.0).double(), expected, atol=1e-3)


def test_no_activation_leaves_the_input():
    x = draw()
    assert activate_input(x, "none") is x


def test_the_softmax_of_an_input_is_over_the_last_axis():
    x = draw()
    assert torch.allclose(activate_input(x, "softmax"), x.exp() / x.exp().sum(-1, keepdim=True))
