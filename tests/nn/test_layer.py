"""What holds for every layer."""

import copy

import pytest
import torch
from torch.utils import _pytree as pytree

from srwm.nn import LSTM, FastMatrix, SequenceLayer, check_layer

from .layers import LAYERS, SIZE, STATELESS, random_reset

autocast_dtypes = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bfloat16", "float16"])


@pytest.fixture(params=LAYERS)
def layer(request: pytest.FixtureRequest) -> SequenceLayer:
    return LAYERS[request.param]()


def results_and_gradients(layer, x, reset):
    """What a call returns, and the gradients of a non-linear loss on it for all parameters."""
    results = pytree.tree_leaves(layer(x, reset=reset))
    loss = sum(leaf.double().sin().sum() for leaf in results if leaf.is_floating_point())
    return [*results, *torch.autograd.grad(loss, list(layer.parameters()), materialize_grads=True)]


def test_keeps_the_contract_in_float64(layer):
    check_layer(layer.double())


@pytest.mark.usefixtures("as_installed")
def test_keeps_the_contract_in_float32(layer):
    check_layer(layer)


@pytest.mark.gpu
@pytest.mark.usefixtures("as_installed")
def test_keeps_the_contract_on_a_gpu(layer):
    # In float64, because cuDNN runs a float32 LSTM in TF32.
    check_layer(layer.double().cuda())


def test_a_read_has_the_gradients_of_a_step(layer):
    layer = layer.double()
    learnt, asked = (torch.randn(3, 4, layer.input_size, dtype=torch.float64, requires_grad=True) for _ in range(2))
    _, state = layer(learnt)
    by_steps = torch.stack([layer.step(asked[:, i], state)[0] for i in range(4)], dim=1)
    weights = torch.randn_like(by_steps)
    wanted, got = (
        torch.autograd.grad((y.sin() * weights).sum(), [learnt, asked, *layer.parameters()], allow_unused=True)
        for y in (by_steps, layer.read(asked, layer(learnt)[1]))
    )
    torch.testing.assert_close(
        [g if g is not None else torch.zeros(1) for g in got],
        [w if w is not None else torch.zeros(1) for w in wanted],
        rtol=1e-9,
        atol=1e-11,
    )


def test_half_precision_keeps_its_dtype(layer):
    y, _ = layer.bfloat16()(torch.randn(2, 3, SIZE, dtype=torch.bfloat16))
    assert y.dtype == torch.bfloat16


def test_half_precision_is_near_float32(layer):
    x = torch.randn(2, 4, SIZE).bfloat16()
    expected, _ = layer(x.float())
    y, _ = layer.bfloat16()(x)
    assert torch.allclose(y.float(), expected, atol=0.1, rtol=0.1)


def test_initial_state_of_a_half_precision_layer_is_what_forward_returns(layer):
    layer = layer.bfloat16()
    _, state = layer(torch.randn(2, 3, SIZE, dtype=torch.bfloat16))
    initial = layer.initial_state(2)
    assert [leaf.dtype for leaf in pytree.tree_leaves(initial)] == [leaf.dtype for leaf in pytree.tree_leaves(state)]


def test_initial_state_can_be_made_elsewhere(layer):
    state = layer.initial_state(2, device="meta")
    assert all(leaf.is_meta for leaf in pytree.tree_leaves(state))


def test_can_be_made_on_the_meta_device_and_filled():
    for make in LAYERS.values():
        source = make()
        with torch.device("meta"):
            target = make()
        target.load_state_dict(source.state_dict(), assign=True)
        x = torch.randn(2, 3, SIZE)
        assert torch.equal(target(x)[0], source(x)[0])


@autocast_dtypes
def test_autocast_is_near_float32(layer, dtype):
    x = torch.randn(2, 4, SIZE)
    expected, _ = layer(x)
    with torch.autocast("cpu", dtype):
        y, _ = layer(x)
    assert torch.allclose(y.float(), expected, atol=0.1, rtol=0.1)


@autocast_dtypes
def test_autocast_keeps_the_state_in_float32(layer, dtype):
    with torch.autocast("cpu", dtype):
        _, state = layer(torch.randn(2, 4, SIZE), reset=random_reset(2, 4))
    floats = [leaf for leaf in pytree.tree_leaves(state) if leaf.is_floating_point()]
    assert all(leaf.dtype == torch.float32 for leaf in floats)


@autocast_dtypes
def test_autocast_has_finite_gradients(layer, dtype):
    with torch.autocast("cpu", dtype):
        found = results_and_gradients(layer, torch.randn(2, 4, SIZE), None)
    assert all(tensor.isfinite().all() for tensor in found)


@pytest.mark.usefixtures("as_installed", "fresh_compiler")
@pytest.mark.parametrize(
    "name", ["linear", "srwm", "srwm, gated", "deltanet", "gated_deltanet", "sr_deltanet", "lstm", "model of srwm"]
)
def test_compiled_to_one_graph_it_gives_the_same_values_and_gradients(name):
    layer = LAYERS[name]().double()
    x, reset = torch.randn(2, 3, SIZE, dtype=torch.float64), random_reset(2, 3)
    # PyTorch keeps its LSTM out of compiled graphs unless told otherwise.
    with torch._dynamo.config.patch(allow_rnn=True):
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
        found = results_and_gradients(compiled, x, reset)
    for one, two in zip(found, results_and_gradients(layer, x, reset), strict=True):
        assert torch.allclose(one, two, atol=1e-10)


def test_a_copy_computes_the_same(layer):
    x = torch.randn(2, 3, SIZE)
    assert torch.equal(copy.deepcopy(layer)(x)[0], layer(x)[0])


def test_state_dict_round_trip_computes_the_same(layer):
    x = torch.randn(2, 3, SIZE)
    other = copy.deepcopy(layer)
    for parameter in other.parameters():
        torch.nn.init.normal_(parameter)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other(x)[0], layer(x)[0])


def test_no_steps_leave_the_state_as_it_is(layer):
    _, state = layer(torch.randn(2, 3, SIZE))
    y, after = layer(torch.randn(2, 0, SIZE), state, reset=torch.zeros(2, 0, dtype=torch.bool))
    assert y.shape == (2, 0, layer.output_size)
    assert all(map(torch.equal, pytree.tree_leaves(after), pytree.tree_leaves(state)))


def test_an_empty_batch_gives_an_empty_result(layer):
    y, state = layer(torch.randn(0, 3, SIZE), reset=torch.zeros(0, 3, dtype=torch.bool))
    assert y.shape == (0, 3, layer.output_size)
    assert all(len(leaf) == 0 for leaf in pytree.tree_leaves(state))


def test_non_contiguous_input_is_the_same_input(layer):
    x = torch.randn(3, SIZE, 2).permute(2, 0, 1)
    assert torch.allclose(layer(x)[0], layer(x.contiguous())[0], atol=1e-6)


def test_reset_of_the_state_equals_reset_of_the_call(layer):
    _, state = layer(torch.randn(3, 3, SIZE))
    x, is_first = torch.randn(3, SIZE), torch.tensor([True, False, True])
    expected, _ = layer.step(x, state.reset(is_first))
    assert torch.allclose(layer.step(x, state, reset=is_first)[0], expected, atol=1e-6)


def test_a_reset_forgets_even_nan(layer):
    _, state = layer(torch.randn(2, 3, SIZE))
    poisoned = pytree.tree_map(lambda leaf: leaf * float("nan") if leaf.is_floating_point() else leaf, state)
    y, _ = layer(torch.randn(2, 3, SIZE), poisoned, reset=torch.tensor([[True, False, False]] * 2))
    assert y.isfinite().all()


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("x", "reset", "message"),
    [
        (torch.zeros(3, SIZE), None, r"x has shape \[3, 8\]; expected \[b, t, d\] with 8 features"),
        (torch.zeros(2, 3, SIZE + 1), None, r"x has shape \[2, 3, 9\]; expected \[b, t, d\] with 8 features"),
        (torch.zeros(2, 3, SIZE, dtype=torch.int64), None, "x has dtype torch.int64"),
        (torch.zeros(2, 3, SIZE), torch.zeros(2, dtype=torch.bool), r"reset has shape \[2\]"),
        (torch.zeros(2, 3, SIZE), torch.zeros(3, 2, dtype=torch.bool), r"reset has shape \[3, 2\]"),
        (torch.zeros(2, 3, SIZE), torch.zeros(2, 3), "reset has dtype torch.float32; expected torch.bool"),
    ],
)
def test_bad_input_gets_a_sentence(layer, x, reset, message):
    with pytest.raises(ValueError, match=message):
        layer(x, reset=reset)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("x_t", "reset", "message"),
    [
        (torch.zeros(2, 1, SIZE), None, r"x_t has shape \[2, 1, 8\]; expected \[b, d\] with 8 features"),
        (torch.zeros(2, SIZE - 1), None, r"x_t has shape \[2, 7\]; expected \[b, d\] with 8 features"),
        (torch.zeros(2, SIZE), torch.zeros(2, 1, dtype=torch.bool), r"reset has shape \[2, 1\]; expected \[b\]"),
        (torch.zeros(2, SIZE), torch.zeros(2), "reset has dtype torch.float32; expected torch.bool"),
    ],
)
def test_bad_input_of_a_step_gets_a_sentence(layer, x_t, reset, message):
    with pytest.raises(ValueError, match=message):
        layer.step(x_t, reset=reset)


@pytest.mark.usefixtures("as_installed")
def test_the_state_of_another_kind_of_layer_gets_a_sentence(layer):
    class Other(tuple):
        __slots__ = ()

    with pytest.raises(ValueError, match=r"state is a Other; expected the .*State"):
        layer(torch.zeros(2, 3, SIZE), Other())


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", [name for name in LAYERS if name not in STATELESS])
def test_the_state_of_another_batch_gets_a_sentence(name):
    layer = LAYERS[name]()
    with pytest.raises(ValueError, match=r"state\.\w+ has shape \[3, .*expected \[b, .*= \[2, "):
        layer(torch.zeros(2, 3, SIZE), layer.initial_state(3))


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", [name for name in LAYERS if "linear" not in name and "none" not in name])
def test_input_of_another_dtype_gets_a_sentence(name):
    with pytest.raises(ValueError, match=r"x has dtype torch.float64 but the layer has torch.float32; convert one"):
        LAYERS[name]()(torch.zeros(2, 3, SIZE, dtype=torch.float64))


def test_a_layer_says_of_no_matrices_that_it_changes_them():
    layer = LSTM(3, 4)
    assert layer.fast_matrices() == ()
    x = torch.randn(2, 5, 3)
    with pytest.raises(NotImplementedError, match="LSTM has no fast_call; it runs no matrix of its own"):
        layer.fast_call(x, None, None, layer(x))


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"kind": "hebbian"}, "kind='hebbian'; expected one of 'self_referential', 'delta_rule', 'fixed'"),
        ({"parts": ("rate",)}, "part='rate'; expected one of 'y', 'q', 'k', 'v', 'beta', 'forget', 'fast'"),
        ({"columns": (2, 2)}, "expected as many of each"),
    ],
)
def test_a_description_of_a_matrix_has_the_words_that_pictures_know(values, sentence):
    known = {"kind": "delta_rule", "parts": ("fast",), "columns": (2,)}
    rest = {"num_heads": 1, "head_dim": 2, "learning_rates": 1, "forget_gates": 0, "dtype": torch.float32}
    with pytest.raises(ValueError, match=sentence):
        FastMatrix(**{**known, **rest, **values}, layer=LSTM(2, 2))
