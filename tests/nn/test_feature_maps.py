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


def test_no_activation_leaves_the_input():
    x = draw()
    assert activate_input(x, "none") is x


def test_the_softmax_of_an_input_is_over_the_last_axis():
    x = draw()
    assert torch.allclose(activate_input(x, "softmax"), x.exp() / x.exp().sum(-1, keepdim=True))
