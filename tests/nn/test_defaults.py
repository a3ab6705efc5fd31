"""What layers are when nothing is said about them; recipes and saved models count on it."""

import pytest
import torch

from srwm.nn import SRWM, DeltaNet, FakeSRWM, GatedDeltaNet, SequenceModel, SRDeltaNet


@pytest.mark.parametrize("kind", [SRWM, SRDeltaNet])
def test_an_initial_matrix_is_neither_shifted_nor_scaled(kind):
    torch.manual_seed(1)
    drawn = kind(8, 2).self_referential.weight.detach()
    torch.manual_seed(1)
    plain = kind(8, 2, beta_init=0.0, query_init_scale=1.0).self_referential.weight.detach()
    assert torch.equal(drawn, plain)
    assert plain.std() == pytest.approx(0.5, rel=0.2)


@pytest.mark.parametrize(("kind", "activation"), [(SRWM, "none"), (SRDeltaNet, "softmax")])
def test_each_part_of_a_matrix_has_a_learning_rate_of_its_own(kind, activation):
    layer = kind(8, 2).self_referential
    assert (layer.learning_rates, layer.input_activation, layer.reset_every) == (4, activation, None)


@pytest.mark.parametrize("kind", [SRWM, SRDeltaNet, DeltaNet, GatedDeltaNet, FakeSRWM])
def test_nothing_is_dropped(kind):
    layer = kind(8, 2)
    assert layer.training
    x = torch.randn(2, 3, 8)
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_a_sequence_model_has_two_layers_of_256_features_and_16_heads():
    model = SequenceModel(5)
    assert [type(layer.memory) for layer in model.layers] == [SRWM, SRWM]
    assert model.layers[0].memory.self_referential.weight.shape[:2] == (16, 16)
