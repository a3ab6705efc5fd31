import numpy as np
import pytest
import torch

from srwm.nn import SelfReferentialLinear
from srwm.ops import self_referential

from . import paper

# Both sides run in float64; what differs is the order of sums.
EXACT = {"rtol": 0.0, "atol": 1e-12}


def make(in_features=8, out_features=6, num_heads=2, **options):
    return SelfReferentialLinear(in_features, out_features, num_heads=num_heads, dtype=torch.float64, **options)


def draw(b=2, t=5, d=8):
    return torch.randn(b, t, d, dtype=torch.float64)


def parts(layer):
    """The y, q, k and beta sub-matrices of the weight, as views that can be written to."""
    return layer.weight.data.split(layer.columns, dim=-1)


@pytest.mark.parametrize("learning_rates", [1, 4])
@pytest.mark.parametrize("input_activation", ["none", "softmax"])
@pytest.mark.parametrize(("in_features", "out_features", "num_heads"), [(8, 8, 2), (8, 6, 2), (6, 9, 3), (5, 7, 1)])
def test_agrees_with_the_papers_equations(in_features, out_features, num_heads, input_activation, learning_rates):
    layer = make(in_features, out_features, num_heads, input_activation=input_activation, learning_rates=learning_rates)
    x = draw(d=in_features)
    y, state = layer(x)
    d, out = in_features // num_heads, out_features // num_heads
    for row in range(len(x)):
        for head in range(num_heads):
            weight = layer.weight[head].detach().numpy()
            inputs = x[row, :, head * d : (head + 1) * d].numpy()
            ys, w = paper.srwm(inputs, weight.T, out, softmax_input=input_activation == "softmax")
            np.testing.assert_allclose(y[row, :, head * out : (head + 1) * out].detach().numpy(), ys, **EXACT)
            np.testing.assert_allclose(state.change[row, head].detach().numpy(), w.T - weight, **EXACT)


def test_the_output_is_read_before_the_update():
    layer, x = make(num_heads=1), draw(t=1)
    w_y = parts(layer)[0][0]
    assert torch.allclose(layer(x)[0], x @ w_y, **EXACT)


def test_it_does_modify_itself():
    layer, x = make(), draw(t=1)
    y, state = layer(x)
    y_again, _ = layer(x, state)
    assert not torch.allclose(y_again, y, atol=1e-3)


def test_a_constant_row_added_to_w_y_is_added_to_the_output():
    layer, x = make(num_heads=1), draw()
    y, state = layer(x)
    row = torch.randn(6, dtype=torch.float64)
    parts(layer)[0].add_(row)
    y_shifted, state_shifted = layer(x)
    assert torch.allclose(y_shifted, y + x.sum(-1, keepdim=True) * row, **EXACT)
    assert torch.allclose(state_shifted.change, state.change, **EXACT)


@pytest.mark.parametrize("part", [1, 2], ids=["w_q", "w_k"])
def test_a_constant_column_added_changes_no_output(part):
    layer, x = make(), draw()
    y, _ = layer(x)
    parts(layer)[part].add_(torch.randn(2, 4, 1, dtype=torch.float64))
    assert torch.allclose(layer(x)[0], y, **EXACT)


def test_with_equal_w_q_and_w_k_it_never_changes():
    layer, x = make(num_heads=1), draw()
    w_y, w_q, w_k, _ = parts(layer)
    w_k.copy_(w_q)
    y, state = layer(x)
    assert torch.allclose(y, x @ w_y[0], **EXACT)
    assert not state.change.any()


def test_the_zero_matrix_is_a_fixed_point():
    layer = make()
    layer.weight.data.zero_()
    y, state = layer(draw())
    assert not y.any()
    assert not state.change.any()


def test_one_step_trains_the_y_columns_only():
    layer = make()
    layer(draw(t=1))[0].sin().sum().backward()
    w_y, *rest = layer.weight.grad.split(layer.columns, dim=-1)
    assert w_y.any()
    assert not any(part.any() for part in rest)


def test_two_steps_train_every_sub_matrix():
    layer = make()
    layer(draw(t=2))[0].sin().sum().backward()
    assert all(part.any() for part in layer.weight.grad.split(layer.columns, dim=-1))


def test_heads_do_not_interact():
    layer, x = make(), draw()
    y, _ = layer(x)
    x[..., :4] += 1
    assert torch.equal(layer(x)[0][..., 3:], y[..., 3:])


def test_the_weight_is_the_only_parameter():
    layer = make()
    assert [(name, tuple(p.shape)) for name, p in layer.named_parameters()] == [("weight", (2, 4, 3 + 4 + 4 + 4))]


def test_the_initial_weight_has_the_papers_spread():
    # 4 heads of 64 x 256 draws: the standard error of the spread is below 0.3 %.
    layer = SelfReferentialLinear(256, 256, num_heads=4)
    assert layer.weight.std().item() == pytest.approx(64**-0.5, rel=0.01)
    assert layer.weight.mean().item() == pytest.approx(0.0, abs=0.005)


def test_beta_init_shifts_the_beta_columns_only():
    torch.manual_seed(1)
    plain = parts(make())
    torch.manual_seed(1)
    shifted = parts(make(beta_init=-1.0))
    assert all(map(torch.equal, shifted[:3], plain[:3]))
    assert torch.allclose(shifted[3], plain[3] - 1, **EXACT)


def test_query_init_scale_scales_the_q_columns_only():
    torch.manual_seed(1)
    plain = parts(make())
    torch.manual_seed(1)
    scaled = parts(make(query_init_scale=0.01))
    assert torch.allclose(scaled[1], plain[1] * 0.01, **EXACT)
    assert all(torch.equal(scaled[i], plain[i]) for i in (0, 2, 3))


@pytest.mark.parametrize("gates", [1, 2])
def test_the_columns_of_the_gates_are_the_last(gates):
    layer = make(forget_gates=gates)
    assert layer.columns == (3, 4, 4, 4, gates)
    assert layer.weight.shape == (2, 4, 3 + 4 + 4 + 4 + gates)
    assert parts(layer)[4].std() > 0


@pytest.mark.parametrize("learning_rates", [1, 4])
@pytest.mark.parametrize("gates", [0, 1, 2])
def test_its_options_are_those_of_the_operator(gates, learning_rates):
    options = {
        "learning_rates": learning_rates,
        "key_map": "l2",
        "forget_gates": gates,
        "forget_min": 0.01,
        "forget_max": 0.4,
        "forget_bias": -1.0,
        "difference_clip": 0.7,
        "backend": "reference",
    }
    layer, x, reset = make(**options), draw(), torch.rand(2, 5) < 0.3
    y, state = layer(x, reset=reset)
    expected, change = self_referential(x.unflatten(-1, (2, 4)), layer.weight, reset=reset, **options)
    assert torch.equal(y, expected.flatten(-2))
    assert torch.equal(state.change, change)


def test_gates_are_trained():
    layer = make(forget_gates=2, backend="reference")
    layer(draw())[0].sin().sum().backward()
    assert all(part.any() for part in layer.weight.grad.split(layer.columns, dim=-1))


def test_backends_are_passed_on():
    x = draw()
    layer = make(backend="reference")
    expected, _ = layer(x)
    layer.backend = "auto"
    assert torch.allclose(layer(x)[0], expected, **EXACT)


def test_a_state_kept_without_gradient_is_a_constant():
    layer = make()
    x = draw().requires_grad_()
    _, state = layer(x)
    layer(draw(), state.detach())[0].sum().backward()
    assert x.grad is None


def test_reset_every_equals_resets_on_that_schedule():
    x = draw(t=7)
    layer = make(reset_every=3)
    y, _ = layer(x)
    layer.reset_every = None
    schedule = torch.tensor([[False, False, False, True, False, False, True]] * 2)
    expected, _ = layer(x, reset=schedule)
    assert torch.equal(y, expected)


def test_reset_every_counts_from_the_start_of_an_episode():
    x = draw(t=7)
    reset = torch.tensor([[False, False, True, False, False, False, False], [False] * 7])
    layer = make(reset_every=3)
    y, _ = layer(x, reset=reset)
    layer.reset_every = None
    schedule = torch.tensor([[0, 0, 1, 0, 0, 1, 0], [0, 0, 0, 1, 0, 0, 1]]).bool()
    expected, _ = layer(x, reset=schedule)
    assert torch.equal(y, expected)


def test_reset_every_counts_steps_in_the_state():
    _, state = make(reset_every=3)(draw(t=5))
    assert state.steps.tolist() == [5, 5]


def test_without_reset_every_the_count_stays_zero():
    _, state = make()(draw(t=5))
    assert state.steps.tolist() == [0, 0]


def test_a_reset_of_the_state_starts_the_count_anew():
    layer = make(reset_every=4)
    _, state = layer(draw(t=3))
    _, state = layer(draw(t=2), state.reset(torch.tensor([True, False])))
    assert state.steps.tolist() == [2, 5]


def test_no_gradient_crosses_a_periodic_reset():
    layer = make(reset_every=3)
    x = draw(t=5).requires_grad_()
    layer(x)[0][:, 3:].sin().sum().backward()
    assert not x.grad[:, :3].any()
    assert x.grad[:, 3:].any()


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_features": 7}, "in_features=7 is not a multiple of num_heads=2; choose a number of heads that divides"),
        ({"out_features": 5}, "out_features=5 is not a multiple of num_heads=2"),
        ({"num_heads": 0}, "num_heads=0; expected at least 1"),
        ({"out_features": 0}, "out_features=0; expected at least 1"),
        ({"input_activation": "relu"}, "input_activation='relu'; expected one of 'none', 'softmax'"),
        ({"learning_rates": 2}, "learning_rates=2; expected one of 1, 4"),
        ({"reset_every": 0}, "reset_every=0; expected at least 1"),
        ({"key_map": "relu"}, "key_map='relu'; expected 'softmax' or 'l2'"),
        ({"forget_gates": 3}, "forget_gates=3; expected 0"),
        ({"forget_min": 0.2}, "forget_min=0.2, forget_max=0.1; expected 0 <= forget_min <= forget_max < 1"),
        ({"forget_bias": "low"}, "forget_bias='low'; expected a number"),
        ({"difference_clip": 0}, "difference_clip=0; expected a number above zero"),
        ({"backend": "tpu"}, "backend='tpu'; expected one of 'auto'"),
    ],
)
def test_bad_options_get_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


@pytest.mark.usefixtures("as_installed")
def test_a_count_of_another_batch_gets_a_sentence():
    layer = make()
    state = layer.initial_state(2)._replace(steps=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"state.steps has shape \[3\]; expected \[b\] = \[2\]"):
        layer(draw(), state)


def test_its_repr_names_the_options_that_were_chosen():
    layer = make(input_activation="softmax", learning_rates=1, reset_every=5)
    assert repr(layer) == (
        "SelfReferentialLinear(in_features=8, out_features=6, num_heads=2, "
        "input_activation='softmax', learning_rates=1, reset_every=5)"
    )


def test_its_repr_names_the_gates():
    assert repr(make(key_map="l2", forget_gates=2)) == (
        "SelfReferentialLinear(in_features=8, out_features=6, num_heads=2, key_map='l2', forget_gates=2)"
    )
