import numpy as np
import pytest
import torch

from srwm.nn import SRDeltaNet

from . import paper


def test_agrees_with_the_papers_equations():
    layer = SRDeltaNet(6, 2, norm="none", dtype=torch.float64)
    x = torch.randn(2, 5, 6, dtype=torch.float64)
    y, state = layer(x)
    read = np.empty(x.shape)
    for row in range(2):
        for head in range(2):
            columns = slice(3 * head, 3 * head + 3)
            weight = layer.self_referential.weight[head].detach().numpy()
            qkvb, w_slow = paper.srwm(x[row, :, columns].numpy(), weight.T, 3 * 3 + 1, softmax_input=True)
            read[row, :, columns], w_fast = paper.deltanet(qkvb)
            np.testing.assert_allclose(state.slow.change[row, head].detach().numpy(), w_slow.T - weight, atol=1e-12)
            np.testing.assert_allclose(state.fast_weight[row, head].detach().numpy(), w_fast.T, atol=1e-12)
    expected = x.numpy() + read @ layer.out_projection.weight.detach().numpy().T
    np.testing.assert_allclose(y.detach().numpy(), expected, atol=1e-12)


def test_the_softmax_on_the_input_can_be_left_out():
    layer = SRDeltaNet(6, 2, input_activation="none")
    assert layer.self_referential.input_activation == "none"


def test_the_matrix_has_columns_for_q_k_v_and_beta():
    assert SRDeltaNet(6, 2).self_referential.columns == (10, 3, 3, 4)


@pytest.mark.usefixtures("as_installed")
def test_heads_that_do_not_divide_get_a_sentence():
    with pytest.raises(ValueError, match="hidden_size=6 is not a multiple of num_heads=4"):
        SRDeltaNet(6, 4)


def test_options_reach_the_matrix():
    options = {"learning_rates": 1, "beta_init": -2.0, "query_init_scale": 0.5, "backend": "reference"}
    matrix = SRDeltaNet(6, 2, **options).self_referential
    assert {name: getattr(matrix, name) for name in options} == options
