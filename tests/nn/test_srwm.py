import numpy as np
import pytest
import torch
from torch import nn

from srwm.nn import SRWM, FakeSRWM

from . import paper


def make(**options):
    return SRWM(8, 2, dtype=torch.float64, **options)


def draw(b=2, t=5):
    return torch.randn(b, t, 8, dtype=torch.float64)


def heads(layer, x, *, softmax_input=False):
    """The concatenated outputs of the heads, by the paper's equations."""
    y = np.empty(x.shape)
    for row in range(len(x)):
        for head in range(2):
            columns = slice(4 * head, 4 * head + 4)
            weight = layer.self_referential.weight[head].detach().numpy()
            y[row, :, columns], _ = paper.srwm(x[row, :, columns], weight.T, 4, softmax_input=softmax_input)
    return y


def projected(layer, y):
    return y @ layer.out_projection.weight.detach().numpy().T


def agree(found, expected):
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=0, atol=1e-12)


def test_by_default_the_norm_stands_on_the_residual_branch():
    layer, x = make(), draw()
    h = x.numpy()
    agree(layer(x)[0], paper.layer_norm(h) + projected(layer, heads(layer, h)))


def test_norm_input_is_the_usual_pre_norm():
    layer, x = make(norm="input"), draw()
    h = x.numpy()
    agree(layer(x)[0], h + projected(layer, heads(layer, paper.layer_norm(h))))


@pytest.mark.parametrize("norm", ["none", "unused"])
def test_without_a_norm_it_is_a_plain_residual(norm):
    layer, x = make(norm=norm, input_activation="softmax"), draw()
    h = x.numpy()
    agree(layer(x)[0], h + projected(layer, heads(layer, h, softmax_input=True)))


def test_an_unused_norm_has_parameters_and_none_has_not():
    counts = {norm: sum(p.numel() for p in make(norm=norm).parameters()) for norm in ("none", "unused", "input")}
    assert counts["unused"] == counts["input"] == counts["none"] + 2 * 8


def test_the_parameters_are_those_of_the_paper():
    shapes = {name: tuple(p.shape) for name, p in make().named_parameters()}
    assert shapes == {
        "norm.weight": (8,),
        "norm.bias": (8,),
        "out_projection.weight": (8, 8),
        "self_referential.weight": (2, 4, 3 * 4 + 4),
    }


def test_reset_every_step_equals_the_fake_srwm():
    options = {"input_activation": "softmax", "norm": "none"}
    layer = make(reset_every=1, **options)
    fake = FakeSRWM(8, 2, dtype=torch.float64, **options)
    fake.weight.data.copy_(layer.self_referential.weight[..., :4])
    fake.out_projection.load_state_dict(layer.out_projection.state_dict())
    x = draw(t=6)
    assert torch.allclose(layer(x)[0], fake(x)[0], rtol=0, atol=1e-14)


def test_without_resets_it_differs_from_the_fake_srwm():
    layer, x = make(norm="none"), draw(t=6)
    fake = FakeSRWM(8, 2, norm="none", dtype=torch.float64)
    fake.weight.data.copy_(layer.self_referential.weight[..., :4])
    fake.out_projection.load_state_dict(layer.out_projection.state_dict())
    assert not torch.allclose(layer(x)[0], fake(x)[0], atol=1e-3)


def test_options_reach_the_matrix():
    options = {
        "input_activation": "softmax",
        "learning_rates": 1,
        "beta_init": -1.0,
        "query_init_scale": 0.01,
        "reset_every": 7,
        "key_map": "l2",
        "forget_gates": 1,
        "forget_min": 0.01,
        "forget_max": 0.5,
        "forget_bias": -1.5,
        "difference_clip": 2.0,
        "backend": "reference",
    }
    layer = make(**options).self_referential
    assert {name: getattr(layer, name) for name in options} == options


def test_dropout_falls_on_the_output_of_the_projection_only():
    layer, x = make(norm="none", dropout=0.5), draw()
    kept = layer.eval()(x)[0] - x
    y = layer.train()(x)[0] - x
    assert torch.allclose(y[y != 0], 2 * kept[y != 0])
    assert 0 < (y == 0).double().mean() < 1


def test_dropout_does_not_touch_the_state():
    layer, x = make(dropout=0.5), draw()
    assert torch.equal(layer.train()(x)[1].change, layer.eval()(x)[1].change)


def test_it_learns_from_what_it_wrote_in_an_earlier_segment():
    layer = make()
    _, state = layer(draw(t=1))
    layer(draw(t=1), state)[0].sin().sum().backward()
    gradients = layer.self_referential.weight.grad.split(layer.self_referential.columns, dim=-1)
    assert all(part.any() for part in gradients)


def test_a_state_detached_at_every_step_leaves_q_k_and_beta_untrained():
    layer, state = make(), None
    loss = torch.zeros((), dtype=torch.float64)
    for x_t in draw(t=4).unbind(1):
        y_t, state = layer.step(x_t, state)
        state = state.detach()
        loss = loss + y_t.sin().sum()
    loss.backward()
    w_y, *rest = layer.self_referential.weight.grad.split(layer.self_referential.columns, dim=-1)
    assert w_y.any()
    assert not any(part.any() for part in rest)


@pytest.mark.usefixtures("as_installed")
def test_heads_that_do_not_divide_get_a_sentence():
    with pytest.raises(ValueError, match="hidden_size=10 is not a multiple of num_heads=4"):
        SRWM(10, 4)


@pytest.mark.usefixtures("as_installed")
def test_an_unknown_norm_gets_a_sentence():
    with pytest.raises(ValueError, match="norm='post'; expected one of 'residual', 'input', 'none', 'unused'"):
        SRWM(8, 2, norm="post")


def test_the_projection_has_no_bias():
    assert isinstance(make().out_projection, nn.Linear)
    assert make().out_projection.bias is None


def test_an_input_projection_stands_before_the_heads():
    layer, x = make(norm="none", input_projection=True), draw()
    h = x.numpy()
    agree(layer(x)[0], h + projected(layer, heads(layer, h @ layer.input_projection.weight.detach().numpy().T)))
    assert layer.input_projection.bias is None


def test_an_input_projection_leaves_the_other_parameters_as_they_are_drawn():
    torch.manual_seed(1)
    plain = make().state_dict()
    torch.manual_seed(1)
    projecting = make(input_projection=True).state_dict()
    assert set(projecting) - set(plain) == {"input_projection.weight"}
    assert all(torch.equal(projecting[name], plain[name]) for name in plain)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("value", [1, "yes", None])
def test_an_input_projection_is_asked_for_with_true(value):
    with pytest.raises(ValueError, match=f"input_projection={value!r}; expected True or False"):
        SRWM(8, 2, input_projection=value)


def test_a_gated_layer_lets_go_of_what_it_changed():
    layer = make(forget_gates=1, forget_min=0.5, forget_max=0.5, backend="reference")
    layer.self_referential.weight.data.zero_()
    state = layer.initial_state(2)
    state.change[..., 0] = 1.0
    # Without a matrix nothing is written, and half of the change is left after each step.
    _, after = layer(torch.zeros(2, 3, 8, dtype=torch.float64), state)
    assert torch.equal(after.change, state.change / 8)
