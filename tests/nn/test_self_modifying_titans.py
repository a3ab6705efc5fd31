import pytest
import torch

from srwm.nn import SelfModifyingTitans, SequenceModel

B, T, D, H = 2, 11, 6, 2
HEAD = D // H


def make(**options) -> SelfModifyingTitans:
    return SelfModifyingTitans(D, H, norm="none", dtype=torch.float64, **options)


def draw(b=B, t=T):
    return torch.randn(b, t, D, dtype=torch.float64)


def unit(x):
    return x / (x.square().sum() + 1e-6).sqrt()


def by_the_equations(layer, x, resets=()):
    """The outputs of the heads of one sequence, a step and a head at a time; `resets` are steps that begin anew."""
    queries = x @ layer.query_projection.weight.T
    y = torch.empty_like(x)
    for head in range(H):
        own = slice(head * HEAD, (head + 1) * HEAD)
        weight = layer.weight[head]
        matrix, since = weight, 0
        for t in range(len(x)):
            if t in resets:
                matrix, since = weight, 0
            if since % layer.chunk == 0:
                stale = matrix
            y[t, own] = unit(queries[t, own]) @ matrix[:, :HEAD]
            _, k, v, rate, forget = (x[t, own] @ stale).split(layer.columns)
            k = unit(k)
            v = unit(v) if layer.value_map == "l2" else v
            share = layer.forget_min + (layer.forget_max - layer.forget_min) * (forget + layer.forget_bias).sigmoid()
            error = v @ stale - k @ matrix
            matrix = matrix + rate.sigmoid() * k[:, None] * error - share * (matrix - weight)
            since += 1
    return y


def heads_of(layer, x, **given):
    """The outputs of the heads, out of the layer."""
    return (layer(x, **given)[0] - x) @ torch.linalg.inv(layer.out_projection.weight).T


@pytest.mark.parametrize("chunk", [1, 2, 4, 11, 100])
@pytest.mark.parametrize("value_map", ["none", "l2"])
def test_it_computes_its_equations(chunk, value_map):
    layer, x = make(chunk=chunk, value_map=value_map, forget_max=0.6, forget_bias=0.0), draw()
    expected = torch.stack([by_the_equations(layer, row) for row in x])
    torch.testing.assert_close(heads_of(layer, x), expected, rtol=0, atol=1e-11)


def test_chunks_are_counted_from_the_start_of_each_episode():
    layer, x = make(chunk=4), draw()
    reset = torch.zeros(B, T, dtype=torch.bool)
    reset[0, 3] = reset[1, 6] = reset[1, 7] = True
    found = heads_of(layer, x, reset=reset)
    torch.testing.assert_close(found[0], by_the_equations(layer, x[0], (3,)), rtol=0, atol=1e-11)
    torch.testing.assert_close(found[1], by_the_equations(layer, x[1], (6, 7)), rtol=0, atol=1e-11)


@pytest.mark.parametrize("chunk", [1, 3])
def test_gradients_flow_through_the_stale_matrix_too(chunk):
    layer, x = make(chunk=chunk), draw(1, 5).requires_grad_()
    parameters = [x, layer.weight, layer.query_projection.weight]
    weights = torch.randn(1, 5, D, dtype=torch.float64)
    found = torch.autograd.grad((weights * heads_of(layer, x)).sum(), parameters)
    expected = torch.autograd.grad((weights * by_the_equations(layer, x[0])).sum(), parameters)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_a_chunk_of_one_keeps_nothing_stale_and_larger_ones_do():
    exact, stale, x = make(), make(chunk=4), draw()
    stale.load_state_dict(exact.state_dict())
    y, y_stale = exact(x)[0], stale(x)[0]
    # The first write is read from the same matrix, the second no longer.
    torch.testing.assert_close(y_stale[:, :2], y[:, :2])
    assert not torch.allclose(y_stale[:, 2:], y[:, 2:])


@torch.no_grad()
def test_what_it_holds_does_not_grow_over_many_steps():
    layer = make(forget_min=0.01, value_map="l2")
    state = None
    for _ in range(20):
        _, state = layer(10 * draw(1, 100), state)
    assert float(state.change.abs().max()) < 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk": 0}, "chunk=0"),
        ({"forget_min": 0.5}, "forget_min=0.5"),
    ],
)
def test_values_that_it_cannot_have_get_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_it_is_named_in_a_sequence_model():
    model = SequenceModel(5, 3, memory="self_modifying_titans", hidden_size=8, num_heads=2, memory_options={"chunk": 4})
    memory = model.layers[0].memory
    assert isinstance(memory, SelfModifyingTitans)
    assert memory.chunk == 4
