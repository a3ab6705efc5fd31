import numpy as np
import pytest
import torch

from srwm.nn import DeltaNet, _delta_layer
from srwm.ops import delta_rule

from . import paper


def make(**options):
    return DeltaNet(6, 2, dtype=torch.float64, **options)


def draw(b=2, t=5):
    return torch.randn(b, t, 6, dtype=torch.float64)


def test_agrees_with_the_papers_equations():
    layer, x = make(), draw()
    y, state = layer(x)
    u = paper.layer_norm(x.numpy())
    qkvb = u @ layer.projection.weight.detach().numpy().T
    read = np.empty(x.shape)
    for row in range(2):
        for head in range(2):
            # Head after head, and in each q, k, v, beta.
            ys, w = paper.deltanet(qkvb[row, :, 10 * head : 10 * head + 10])
            read[row, :, 3 * head : 3 * head + 3] = ys
            np.testing.assert_allclose(state.fast_weight[row, head].detach().numpy(), w.T, atol=1e-12)
    expected = x.numpy() + read @ layer.out_projection.weight.detach().numpy().T
    np.testing.assert_allclose(y.detach().numpy(), expected, atol=1e-12)


def test_it_reads_after_the_update():
    layer, x = make(norm="none"), draw(t=1)
    torch.nn.init.eye_(layer.out_projection.weight)
    q, k, v, beta = layer.projection(x).unflatten(-1, (2, 10)).split([3, 3, 3, 1], dim=-1)
    match = (q.softmax(-1) * k.softmax(-1)).sum(-1, keepdim=True)
    expected = beta.sigmoid() * match * v
    assert torch.allclose(layer(x)[0] - x, expected.flatten(-2))


def test_elu_sum_is_another_feature_map():
    layer, x = make(norm="none", feature_map="elu_sum", feature_map_eps=0.5), draw(t=1)
    torch.nn.init.eye_(layer.out_projection.weight)
    q, k, v, beta = layer.projection(x).unflatten(-1, (2, 10)).split([3, 3, 3, 1], dim=-1)
    q, k = (torch.where(z > 0, z + 1, z.exp()) for z in (q, k))
    match = (q / (q.sum(-1, keepdim=True) + 0.5) * k / (k.sum(-1, keepdim=True) + 0.5)).sum(-1, keepdim=True)
    expected = beta.sigmoid() * match * v
    assert torch.allclose(layer(x)[0] - x, expected.flatten(-2))


def test_l2_is_another_feature_map():
    layer, x = make(norm="none", feature_map="l2"), draw(t=1)
    torch.nn.init.eye_(layer.out_projection.weight)
    q, k, v, beta = layer.projection(x).unflatten(-1, (2, 10)).split([3, 3, 3, 1], dim=-1)
    match = torch.nn.functional.cosine_similarity(q, k, dim=-1)[..., None]
    expected = beta.sigmoid() * match * v
    # But for the 1e-6 added to squared lengths.
    assert torch.allclose(layer(x)[0] - x, expected.flatten(-2), rtol=1e-4)


def test_learning_rates_reach_up_to_their_maximum():
    layer, x = make(feature_map="l2", max_learning_rate=2.0), draw()
    heads, plain = (each.split_heads(layer.projection(x)) for each in (layer, make(feature_map="l2")))
    assert torch.equal(heads.beta, 2 * plain.beta)


def test_the_parameters_are_those_of_the_authors():
    shapes = {name: tuple(p.shape) for name, p in make().named_parameters()}
    assert shapes == {
        "norm.weight": (6,),
        "norm.bias": (6,),
        "out_projection.weight": (6, 6),
        "projection.weight": (2 * (3 * 3 + 1), 6),
    }


def test_under_autocast_the_operator_gets_one_dtype(monkeypatch):
    given = []

    def watch(q, k, v, beta, state, **options):
        given.extend(tensor.dtype for tensor in (q, k, v, beta))
        return delta_rule(q, k, v, beta, state, **options)

    monkeypatch.setattr(_delta_layer, "delta_rule", watch)
    with torch.autocast("cpu", torch.bfloat16):
        DeltaNet(6, 2)(torch.randn(2, 5, 6))
    assert given == [torch.bfloat16] * 4


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_map": "relu"}, "feature_map='relu'; expected one of 'softmax', 'elu_sum', 'l2'"),
        ({"feature_map_eps": 1e-5}, "feature_map_eps=1e-05 has no place in 'softmax'; take feature_map=\"elu_sum\""),
        ({"feature_map": "l2", "feature_map_eps": 1e-5}, "feature_map_eps=1e-05 has no place in 'l2'"),
        ({"max_learning_rate": 0.0}, "max_learning_rate=0.0; expected a number above 0, and 2 at most"),
        ({"max_learning_rate": 2.5}, "max_learning_rate=2.5; expected a number above 0, and 2 at most"),
        ({"max_learning_rate": "2"}, "max_learning_rate='2'; expected a number above 0, and 2 at most"),
        ({"max_learning_rate": float("nan")}, "max_learning_rate=nan; expected a number above 0"),
        ({"backend": "fla"}, "backend='fla'; expected one of 'auto'"),
    ],
)
def test_bad_options_get_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
