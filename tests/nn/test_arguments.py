"""Arguments that no layer can use get a sentence, before anything of their size is made."""

import numpy as np
import pytest
import torch
from torch.utils import _pytree as pytree

from srwm.nn import (
    LSTM,
    SRWM,
    DeltaNet,
    FakeSRWM,
    FeedForward,
    GatedDeltaNet,
    SelfReferentialLinear,
    SequenceModel,
    SRDeltaNet,
)

from .layers import LAYERS, SIZE, STATELESS

pytestmark = pytest.mark.usefixtures("as_installed")

HEADED = [SRWM, DeltaNet, GatedDeltaNet, SRDeltaNet, FakeSRWM]

HUGE = 2**40


@pytest.mark.parametrize("layer", HEADED)
@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ((HUGE, 16), "hidden_size=1099511627776; expected at most 2147483647"),
        ((2**20, 16), "hidden_size=1048576 would make a layer of .* parameters; expected at most 68,719,476,736"),
        ((64, HUGE), "num_heads=1099511627776; expected at most"),
        ((64.0, 4), "hidden_size=64.0; expected a whole number"),
        ((64, 4.0), "num_heads=4.0; expected a whole number"),
        ((True, 1), "hidden_size=True; expected a whole number"),
        (("64", 4), "hidden_size='64'; expected a whole number"),
        ((None, 4), "hidden_size=None; expected a whole number"),
        ((float("nan"), 4), "hidden_size=nan; expected a whole number"),
    ],
)
def test_sizes_of_heads_that_no_machine_holds_get_a_sentence(layer, sizes, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        layer(*sizes)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SelfReferentialLinear(HUGE, 6), "in_features=1099511627776; expected at most"),
        (
            lambda: SelfReferentialLinear(2**20, 2**20),
            "in_features=1048576, out_features=1048576, num_heads=1 would make",
        ),
        (lambda: SelfReferentialLinear(6, 6, reset_every=2.5), "reset_every=2.5; expected a whole number"),
        (lambda: FeedForward(2**16, 2**24), "hidden_size=65536, ff_size=16777216 would make a layer of .* parameters"),
        (lambda: FeedForward(2**24), "hidden_size=16777216, ff_size=67108864 would make a layer of"),
        (lambda: FeedForward(8, 6.5), "ff_size=6.5; expected a whole number"),
        (lambda: LSTM(4, HUGE), "output_size=1099511627776; expected at most"),
        (lambda: LSTM(4, 2**18), "input_size=4, hidden_size=262144, num_layers=1 would make a layer of"),
        (lambda: LSTM(4, 3, num_layers=10**8), "num_layers=100000000; expected at most 10000"),
        (lambda: LSTM(4, 3, num_layers=1e8), "num_layers=100000000.0; expected a whole number"),
        (lambda: SequenceModel(4, 3, hidden_size=HUGE), "hidden_size=1099511627776; expected at most"),
        (lambda: SequenceModel(4, 3, num_layers=10**8), "num_layers=100000000; expected at most 10000"),
        (lambda: SequenceModel(4, 3, num_layers=1e8), "num_layers=100000000.0; expected a whole number"),
        (lambda: SequenceModel(2**30, 3), "input_size=1073741824, .* would make a layer of"),
        (lambda: SequenceModel(4, 2**30), ".*output_size=1073741824, .* would make a layer of"),
        (lambda: SequenceModel(4, 3, hidden_size=2**14, num_layers=1000), ".*num_layers=1000 would make a layer of"),
        (lambda: SequenceModel(2**31 - 1, 2**31 - 1, memory="none"), "input_size=2147483647, .* would make a layer of"),
    ],
)
def test_sizes_that_no_machine_holds_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        make()


def test_sizes_may_be_whole_numbers_of_numpy():
    y, _ = SRWM(np.int64(8), np.int32(2), learning_rates=np.int64(1))(torch.zeros(1, 2, 8))
    assert y.shape == (1, 2, 8)


@pytest.mark.parametrize("learning_rates", [4.0, True, 2, None])
def test_learning_rates_that_are_not_1_or_4_get_a_sentence(learning_rates):
    with pytest.raises(ValueError, match=f"^learning_rates={learning_rates}; expected one of 1, 4"):
        SRWM(8, 2, learning_rates=learning_rates)


@pytest.mark.parametrize("dropout", [-0.1, 1.5, float("nan"), "0.5", None])
@pytest.mark.parametrize("layer", [SRWM, DeltaNet, FeedForward, LSTM])
def test_a_dropout_that_is_no_probability_gets_a_sentence(layer, dropout):
    with pytest.raises(ValueError, match=r"^dropout=.*; expected a probability from 0 to 1"):
        layer(8, 2, dropout=dropout)


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64, torch.float8_e5m2])
@pytest.mark.parametrize("layer", [*HEADED, SelfReferentialLinear, FeedForward, LSTM])
def test_a_dtype_that_no_parameter_has_gets_a_sentence(layer, dtype):
    with pytest.raises(ValueError, match=f"^dtype={dtype}; expected a floating-point dtype of 16, 32 or 64 bits"):
        layer(8, 2, dtype=dtype)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x: x.tolist(), "is of type list; expected a torch.Tensor"),
        (lambda x: x.to_sparse(), "has layout torch.sparse_coo; expected a dense tensor"),
        (
            lambda x: torch.nested.nested_tensor(list(x), layout=torch.jagged),
            "is a nested tensor; expected a dense one",
        ),
        (lambda x: x.to(torch.float8_e4m3fn), "has dtype torch.float8_e4m3fn; expected a floating-point tensor of 16"),
    ],
    ids=["list", "sparse", "nested", "float8"],
)
def test_inputs_that_are_no_block_of_numbers_get_a_sentence(name, change, sentence):
    layer, x = LAYERS[name](), torch.zeros(2, 3, SIZE)
    for call in (layer, layer.read):
        with pytest.raises(ValueError, match=f"^x {sentence}"):
            call(change(x))
    with pytest.raises(ValueError, match=f"^x_t {sentence}"):
        layer.step(change(x[:, 0]))


@pytest.mark.parametrize("name", LAYERS)
def test_resets_that_are_no_tensor_get_a_sentence(name):
    layer, x = LAYERS[name](), torch.zeros(2, 3, SIZE)
    with pytest.raises(ValueError, match=r"^reset is of type list; expected a torch.Tensor"):
        layer(x, reset=[True])
    with pytest.raises(ValueError, match=r"^reset is of type list; expected a torch.Tensor"):
        layer.step(x[:, 0], reset=[True, False])


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in STATELESS])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda part: part.tolist(), "(is of type|holds a) list; expected (a torch.Tensor|tensors)"),
        (lambda part: part.to_sparse(), "has layout torch.sparse_coo; expected a dense tensor"),
        (lambda part: part.int(), "has dtype torch.int32; expected a floating-point tensor"),
        (lambda part: part.to("meta"), "is on meta but x is on cpu; move them to one device"),
    ],
    ids=["list", "sparse", "integers", "elsewhere"],
)
def test_states_that_no_call_returned_get_a_sentence(name, change, sentence):
    layer, x = LAYERS[name](), torch.zeros(2, 3, SIZE)
    state = pytree.tree_map(change, layer.initial_state(2))
    for call in (layer, layer.read):
        with pytest.raises(ValueError, match=rf"^(state\.\w+|a (part of the )?state) {sentence}"):
            call(x, state)


def test_a_state_of_another_dtype_than_an_lstm_reads_gets_a_sentence():
    layer = LSTM(SIZE, 5)
    with pytest.raises(
        ValueError, match=r"^state\.hidden has dtype torch.float64 but x has torch.float32; convert one"
    ):
        layer(torch.zeros(2, 3, SIZE), layer.initial_state(2, dtype=torch.float64))


@pytest.mark.parametrize("name", [name for name in LAYERS if "linear" not in name and "none" not in name])
def test_float64_under_autocast_gets_a_sentence(name):
    # Autocast leaves it as it is, beside parameters that it takes to half precision.
    with (
        torch.autocast("cpu", torch.bfloat16),
        pytest.raises(ValueError, match=r"^x has dtype torch.float64 but the layer has torch.float32; convert one"),
    ):
        LAYERS[name]()(torch.zeros(2, 3, SIZE, dtype=torch.float64))


@pytest.mark.parametrize("name", ["linear", "srwm", "deltanet", "gated_deltanet", "sr_deltanet", "model of srwm"])
def test_a_derivative_of_torch_func_names_the_backend_that_has_it(name):
    layer = LAYERS[name]()
    with pytest.raises(RuntimeError, match='pass backend="reference"'):
        torch.func.grad(lambda x: layer(x)[0].sum())(torch.zeros(2, 3, SIZE))


def test_a_layer_on_the_reference_has_the_derivatives_of_torch_func():
    layer, x = SRWM(SIZE, 2, backend="reference"), torch.randn(2, 3, SIZE, requires_grad=True)
    (expected,) = torch.autograd.grad(layer(x)[0].sin().sum(), x)
    found = torch.func.grad(lambda given: layer(given)[0].sin().sum())(x)
    torch.testing.assert_close(found, expected)
