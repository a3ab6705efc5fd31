import pytest
import torch
from torch import nn

from srwm.nn import (
    LSTM,
    SRWM,
    Block,
    DeltaNet,
    FakeSRWM,
    FeedForward,
    GatedDeltaNet,
    SequenceModel,
    SequenceState,
    SRDeltaNet,
)

SMALL = {"hidden_size": 8, "num_heads": 2, "ff_size": 6}


def test_is_projection_blocks_projection():
    model = SequenceModel(5, 3, **SMALL)
    x = torch.randn(2, 4, 5)
    h = model.input_projection(x)
    for layer in model.layers:
        h, _ = layer(h)
    assert torch.equal(model(x)[0], model.output_projection(h))


def test_both_projections_have_a_bias():
    model = SequenceModel(5, 3, **SMALL)
    assert model.input_projection.bias.shape == (8,)
    assert model.output_projection.bias.shape == (3,)


@pytest.mark.parametrize(
    ("memory", "kind"),
    [
        ("srwm", SRWM),
        ("deltanet", DeltaNet),
        ("gated_deltanet", GatedDeltaNet),
        ("sr_deltanet", SRDeltaNet),
        ("fake_srwm", FakeSRWM),
    ],
)
def test_each_word_makes_its_memory(memory, kind):
    model = SequenceModel(5, 3, memory=memory, num_layers=3, **SMALL)
    assert [type(layer.memory) for layer in model.layers] == [kind] * 3


def test_without_an_output_size_there_is_no_output_projection():
    model = SequenceModel(5, **SMALL)
    assert isinstance(model.output_projection, nn.Identity)
    assert model.output_size == 8


def test_an_lstm_reads_the_input_directly():
    model = SequenceModel(5, 3, memory="lstm", num_layers=2, **SMALL)
    assert isinstance(model.input_projection, nn.Identity)
    assert [type(layer) for layer in model.layers] == [LSTM]
    assert (model.layers[0].input_size, model.layers[0].lstm.num_layers) == (5, 2)


def test_feed_forward_has_no_memory():
    model = SequenceModel(5, 3, memory="feed_forward", **SMALL)
    assert [type(layer) for layer in model.layers] == [FeedForward] * 2


def test_none_is_the_input_itself():
    model = SequenceModel(5, memory="none")
    x = torch.randn(2, 4, 5)
    assert model(x)[0] is x
    assert model.output_size == 5


def test_none_with_an_output_size_is_a_linear_readout():
    model = SequenceModel(5, 3, memory="none")
    x = torch.randn(2, 4, 5)
    assert torch.equal(model(x)[0], model.output_projection(x))


def test_its_state_holds_one_state_for_each_layer():
    _, state = SequenceModel(5, 3, num_layers=3, **SMALL)(torch.randn(2, 4, 5))
    assert [layer.change.shape[0] for layer in state.layers] == [2, 2, 2]


def test_memory_options_reach_every_memory():
    model = SequenceModel(5, 3, memory_options={"input_activation": "softmax", "norm": "unused"}, **SMALL)
    found = [(layer.memory.self_referential.input_activation, layer.memory.norm_place) for layer in model.layers]
    assert found == [("softmax", "unused")] * 2


def test_dropout_reaches_every_sub_layer():
    model = SequenceModel(5, 3, dropout=0.3, **SMALL)
    assert [module.p for module in model.modules() if isinstance(module, nn.Dropout)] == [0.3] * 4


def test_takes_a_memory_of_your_own():
    model = SequenceModel(5, 3, memory=lambda: LSTM(8, 8), **SMALL)
    y, state = model(torch.randn(2, 4, 5))
    assert y.shape == (2, 4, 3)
    assert all(isinstance(layer, Block) for layer in model.layers)
    assert [layer.cell.shape for layer in state.layers] == [(2, 1, 8)] * 2


def test_layers_of_your_own_have_their_own_parameters():
    model = SequenceModel(5, 3, memory=lambda: LSTM(8, 8), **SMALL)
    assert model.layers[0].memory is not model.layers[1].memory


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"memory": "transformer"}, "memory='transformer'; expected one of 'srwm', 'deltanet'"),
        ({"num_heads": 3}, "hidden_size=8 is not a multiple of num_heads=3"),
        ({"num_layers": 0}, "num_layers=0; expected at least 1"),
        ({"memory_options": {"activation": "none"}}, "memory_options has activation; 'srwm' takes input_activation, "),
        ({"memory_options": {"dropout": 0.1}}, "memory_options has dropout; 'srwm' takes input_activation, "),
        ({"memory": "lstm", "memory_options": {"norm": "none"}}, "memory_options has norm; 'lstm' takes no options"),
    ],
)
def test_bad_options_get_a_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        SequenceModel(5, 3, **{**SMALL, **options})


def test_the_state_of_a_model_with_other_layers_gets_a_sentence():
    model = SequenceModel(5, 3, **SMALL)
    with pytest.raises(ValueError, match="state holds 0 layers; expected 2, as the model has"):
        model(torch.randn(2, 4, 5), SequenceState(()))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"reset_every": "x"}, "memory_options has reset_every='x'; expected a whole number or None"),
        ({"reset_every": [1]}, r"memory_options has reset_every=\[1\]; expected a whole number or None"),
        ({"reset_every": 1.5}, r"memory_options has reset_every=1\.5; expected a whole number or None"),
        ({"reset_every": True}, "memory_options has reset_every=True; expected a whole number or None"),
        ({"beta_init": "x"}, "memory_options has beta_init='x'; expected a number"),
        ({"beta_init": None}, "memory_options has beta_init=None; expected a number"),
    ],
)
def test_an_option_of_a_memory_that_is_no_number_is_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        SequenceModel(4, 2, hidden_size=8, num_heads=2, memory_options=options)


def test_whole_numbers_do_for_options_that_are_numbers(as_installed):
    model = SequenceModel(4, 2, hidden_size=8, num_heads=2, memory_options={"beta_init": -1, "reset_every": None})
    given = model.layers[0].memory.self_referential.beta_init
    assert (given, type(given)) == (-1.0, float)


def dtypes_of(state):
    if isinstance(state, torch.Tensor):
        return {state.dtype}
    return {dtype for part in state for dtype in dtypes_of(part)}


@pytest.mark.parametrize("memory", ["srwm", "deltanet", "gated_deltanet", "sr_deltanet", "lstm"])
def test_its_new_state_is_of_the_dtype_that_was_asked_for(memory):
    state = SequenceModel(5, memory=memory, **SMALL).initial_state(2, "cpu", torch.float64)
    assert {dtype for dtype in dtypes_of(state) if dtype.is_floating_point} == {torch.float64}
