"""The gated DeltaNet: its equations, its gates, and what it shares with the DeltaNet."""

import numpy as np
import pytest
import torch

from srwm.nn import DeltaNet, GatedDeltaNet, SequenceModel

from . import paper


def make(**options):
    return GatedDeltaNet(6, 2, dtype=torch.float64, **options)


def draw(b=2, t=5):
    return torch.randn(b, t, 6, dtype=torch.float64)


def gated_delta_rule(q, k, v, beta, decay):
    """Column vectors, for one head of one sequence: outputs [t, d], and the matrix."""
    w, ys = np.zeros((v.shape[1], k.shape[1])), []
    for step in range(len(q)):
        w = decay[step] * w
        w = w + beta[step] * np.outer(v[step] - w @ k[step], k[step])
        ys.append(w @ q[step])
    return np.array(ys), w


@pytest.mark.parametrize("options", [{}, {"forget_min": 0.2, "forget_max": 0.7, "forget_bias": 1.0}])
def test_agrees_with_the_equations(options):
    layer, x = make(**options), draw()
    y, state = layer(x)
    projected = paper.layer_norm(x.numpy()) @ layer.projection.weight.detach().numpy().T
    read = np.empty(x.shape)
    for row in range(2):
        for head in range(2):
            # Head after head, and in each q, k, v, beta and the gate.
            q, k, v, beta, gate = np.split(projected[row, :, 11 * head : 11 * head + 11], [3, 6, 9, 10], axis=-1)
            q, k = (z / np.sqrt((z * z).sum(-1, keepdims=True) + 1e-6) for z in (q, k))
            least, most, bias = layer.forget_min, layer.forget_max, layer.forget_bias
            decay = 1 - (least + (most - least) / (1 + np.exp(-(gate + bias))))
            ys, w = gated_delta_rule(q, k, v, 1 / (1 + np.exp(-beta)), decay)
            read[row, :, 3 * head : 3 * head + 3] = ys
            np.testing.assert_allclose(state.fast_weight[row, head].detach().numpy(), w.T, atol=1e-12)
    expected = x.numpy() + read @ layer.out_projection.weight.detach().numpy().T
    np.testing.assert_allclose(y.detach().numpy(), expected, atol=1e-12)


def test_a_new_layer_keeps_almost_everything():
    layer = make()
    decay = layer.split_heads(layer.projection(draw())).decay
    assert decay.shape == (2, 5, 2)
    assert ((decay > 0.99) & (decay < 1 - 1e-4)).all()


def test_gates_that_let_go_of_nothing_leave_a_deltanet():
    gated, plain = make(forget_min=0.0, forget_max=0.0), DeltaNet(6, 2, feature_map="l2", dtype=torch.float64)
    with torch.no_grad():
        plain.projection.weight.copy_(gated.projection.weight.unflatten(0, (2, 11))[:, :10].flatten(0, 1))
        plain.out_projection.weight.copy_(gated.out_projection.weight)
    x = draw()
    assert torch.allclose(gated(x)[0], plain(x)[0], atol=1e-12)


def test_an_empty_range_forgets_the_same_at_every_step():
    layer = make(forget_min=0.25, forget_max=0.25)
    assert (layer.split_heads(layer.projection(draw())).decay == 0.75).all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_what_is_kept_is_known_in_float32_where_the_layer_is_in_half_precision(dtype):
    # A bfloat16 just below 1 is 0.996: 0.998 would become 1 or that.
    layer = GatedDeltaNet(6, 2, dtype=dtype)
    heads = layer.split_heads(layer.projection(torch.zeros(1, 1, 6, dtype=dtype)))
    assert heads.decay.dtype == torch.float32
    assert heads.q.dtype == heads.beta.dtype == dtype
    assert torch.allclose(heads.decay, torch.tensor(0.998), atol=2e-4)


def test_under_autocast_what_is_kept_is_known_in_float32():
    layer = GatedDeltaNet(6, 2)
    with torch.autocast("cpu", torch.bfloat16):
        heads = layer.split_heads(layer.projection(torch.randn(2, 5, 6)))
    assert (heads.q.dtype, heads.decay.dtype) == (torch.bfloat16, torch.float32)


def test_the_parameters_are_those_of_a_deltanet_and_a_row_for_each_gate():
    shapes = {name: tuple(p.shape) for name, p in make().named_parameters()}
    assert shapes == {
        "norm.weight": (6,),
        "norm.bias": (6,),
        "out_projection.weight": (6, 6),
        "projection.weight": (2 * (3 * 3 + 2), 6),
    }


def test_every_part_of_the_projection_learns():
    layer = make()
    y, _ = layer(draw(4, 20))
    (y.sin() * torch.randn_like(y)).sum().backward()
    assert (layer.projection.weight.grad.abs().sum(dim=1) > 0).all()


def test_its_fast_weights_stay_below_their_bound():
    # |beta| is 2 at most, keys are no longer than 1, and values are bounded by the LayerNorm before the projection.
    layer = GatedDeltaNet(6, 2, forget_min=0.01, max_learning_rate=2.0)
    state, largest_value, largest = None, 0.0, 0.0
    with torch.no_grad():
        layer.projection.weight.mul_(20)
        for _ in range(50):
            x = 100 * torch.randn(3, 200, 6)
            v = layer.split_heads(layer.projection(layer.norm(x))).v
            largest_value = max(largest_value, float(v.abs().max()))
            _, state = layer(x, state)
            largest = max(largest, float(state.fast_weight.square().sum(dim=-2).sqrt().max()))
    assert 0 < largest <= 2 * largest_value / 0.01


def test_a_model_finds_it_by_name():
    model = SequenceModel(5, 3, memory="gated_deltanet", hidden_size=8, num_heads=2, memory_options={"forget_max": 0.5})
    memory = model.layers[0].memory
    assert isinstance(memory, GatedDeltaNet)
    assert memory.forget_max == 0.5


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_map": "relu"}, "feature_map='relu'; expected one of 'softmax', 'elu_sum', 'l2'"),
        ({"feature_map_eps": 1e-5}, "feature_map_eps=1e-05 has no place in 'l2'"),
        ({"forget_min": -0.1}, "forget_min=-0.1, forget_max=0.1; expected 0 <= forget_min <= forget_max < 1"),
        ({"forget_min": 0.2}, "forget_min=0.2, forget_max=0.1; expected 0 <= forget_min <= forget_max < 1"),
        ({"forget_max": 1.0}, "forget_min=0.0001, forget_max=1.0; expected"),
        ({"forget_max": "0.1"}, "forget_max='0.1'; expected a number"),
        ({"forget_bias": float("inf")}, "forget_bias=inf; expected a finite number"),
        ({"max_learning_rate": 3}, "max_learning_rate=3; expected a number above 0, and 2 at most"),
        ({"backend": "fla"}, "backend='fla'; expected one of 'auto'"),
    ],
)
def test_bad_options_get_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
