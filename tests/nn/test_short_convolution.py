"""The short convolution before the heads: what it computes, what it sees, and what it forgets."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from srwm.nn import SRWM, ConvolvedState, DeltaNet, SelfReferentialState, SequenceModel
from srwm.nn._short_convolution import ShortConvolution

SIZE = 8
F64 = {"dtype": torch.float64}


def convolution(width=4):
    return ShortConvolution(SIZE, width, **F64)


def inputs(b=3, t=9):
    return torch.randn(b, t, SIZE, **F64)


def resets(b=3, t=9):
    reset = torch.zeros(b, t, dtype=torch.bool)
    # In a row: none; one inside; several, the first and the last step among them.
    reset[1, 4] = True
    reset[2, [0, 1, 5, 8]] = True
    return reset


@pytest.mark.parametrize("width", [2, 4, 20])
def test_it_is_a_causal_convolution_of_each_channel_and_silu(width):
    layer, x = convolution(width), inputs()
    found, _ = layer(x, None, None)
    padded = F.pad(x.mT, (width - 1, 0))
    assert torch.allclose(found, F.silu(F.conv1d(padded, layer.weight[:, None], groups=SIZE)).mT, atol=1e-14)


def test_an_output_sees_its_own_input_and_the_three_before_it():
    layer, x = convolution(), inputs(1, 9).requires_grad_()
    for t in range(9):
        (gradient,) = torch.autograd.grad(layer(x, None, None)[0][0, t].sum(), x)
        assert gradient[0].any(dim=-1).nonzero()[:, 0].tolist() == list(range(max(0, t - 3), t + 1))


@pytest.mark.parametrize("width", [2, 4, 20])
def test_a_reset_hides_all_that_came_before_it_values_and_gradients(width):
    layer, reset = convolution(width), resets()
    x, recent = inputs().requires_grad_(), torch.randn(3, width - 1, SIZE, **F64, requires_grad=True)
    y, kept = layer(x, recent, reset)
    for row in range(3):
        begins = [0, *reset[row].nonzero()[:, 0].tolist(), 9]
        for begin, end in itertools.pairwise(begins):
            before = recent[row : row + 1] if begin == 0 and not reset[row, 0] else None
            alone, left = layer(x[row : row + 1, begin:end], before, None)
            assert torch.allclose(y[row : row + 1, begin:end], alone, atol=1e-14)
            if end == 9:
                assert torch.equal(kept[row : row + 1], left)
            if begin == end:
                continue
            of_x, of_recent = torch.autograd.grad(y[row, begin:end].sin().sum(), [x, recent], retain_graph=True)
            assert (of_x[row, :begin] == 0).all()
            assert bool(of_recent.any()) == (before is not None)


def test_what_is_carried_are_the_last_inputs_and_zeros_after_a_reset():
    layer, x = convolution(), inputs()
    _, kept = layer(x, None, resets())
    assert torch.equal(kept[:2], x[:2, -3:])
    assert not kept[2, :2].any()
    assert torch.equal(kept[2, 2], x[2, -1])
    _, kept = layer(x[:, :2], None, None)
    assert torch.equal(kept, F.pad(x[:, :2], (0, 0, 1, 0)))


@pytest.mark.parametrize("with_reset", [False, True])
def test_a_cut_anywhere_gives_the_whole(with_reset):
    layer, x = convolution(), inputs()
    reset = resets() if with_reset else None
    whole, end = layer(x, None, reset)
    for cut in range(10):
        first, middle = layer(x[:, :cut], None, None if reset is None else reset[:, :cut])
        second, kept = layer(x[:, cut:], middle, None if reset is None else reset[:, cut:])
        assert torch.allclose(torch.cat([first, second], dim=1), whole, rtol=0, atol=1e-14)
        assert torch.equal(kept, end)


def test_the_state_does_not_hold_on_to_the_sequence():
    _, kept = convolution()(inputs(1, 500), None, None)
    assert kept.untyped_storage().nbytes() == kept.nbytes


@pytest.mark.parametrize("with_reset", [False, True])
def test_its_gradients_are_right_twice(with_reset):
    layer = convolution(3)
    reset = torch.tensor([[False, False, True, False, False], [True, False, False, False, True]])
    given = [torch.randn(2, 5, SIZE, **F64), torch.randn(2, 2, SIZE, **F64)]

    def run(x, recent, weight):
        return torch.func.functional_call(layer, {"weight": weight}, (x, recent, reset if with_reset else None))

    given = [each.requires_grad_() for each in (*given, layer.weight.detach().clone())]
    assert torch.autograd.gradcheck(run, given)
    assert torch.autograd.gradgradcheck(run, given)


@pytest.mark.gpu
@pytest.mark.parametrize("with_reset", [False, True])
def test_on_a_gpu_it_gives_the_same_and_equal_bits(with_reset):
    layer, x, reset = ShortConvolution(64, 4), torch.randn(5, 99, 64), torch.rand(5, 99) < 0.1
    recent = torch.randn(5, 3, 64)

    def run(device):
        weight = layer.weight.detach().to(device).requires_grad_()
        given = [each.detach().to(device).requires_grad_() for each in (x, recent)]
        masks = reset.to(device) if with_reset else None
        y, kept = torch.func.functional_call(layer, {"weight": weight}, (*given, masks))
        return [y, kept, *torch.autograd.grad(y.sin().sum() + kept.cos().sum(), [*given, weight])]

    ours, first = run("cpu"), run("cuda")
    for wanted, got in zip(ours, first, strict=True):
        torch.testing.assert_close(got.cpu(), wanted, rtol=1e-4, atol=1e-4)
    for _ in range(5):
        assert all(torch.equal(one, other) for one, other in zip(run("cuda"), first, strict=True))


@pytest.mark.parametrize("make", [SRWM, DeltaNet])
@pytest.mark.parametrize("norm", ["residual", "input", "none"])
def test_it_stands_between_the_norm_and_the_heads(make, norm):
    layer, x = make(SIZE, 2, convolution=4, norm=norm, **F64), inputs()
    y, state = layer(x)
    plain = make(SIZE, 2, norm=norm, **F64)
    plain.load_state_dict({name: p for name, p in layer.state_dict().items() if name != "convolution.weight"})
    read = layer.norm(x) if norm == "input" else x
    heads, memory = plain.run_heads(layer.convolution(read, None, None)[0], None, None)
    skip = layer.norm(x) if norm == "residual" else x
    assert torch.equal(y, skip + layer.out_projection(heads))
    assert torch.equal(state.memory[0], memory[0])
    assert torch.equal(state.recent, read[:, -3:])


@pytest.mark.parametrize("make", [SRWM, DeltaNet])
def test_without_one_the_layer_is_as_it_was(make):
    layer = make(SIZE, 2, convolution=0)
    torch.manual_seed(5)
    one = make(SIZE, 2, convolution=0)
    torch.manual_seed(5)
    other = make(SIZE, 2)
    assert layer.convolution is None
    assert one.state_dict().keys() == other.state_dict().keys()
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))
    assert not isinstance(layer(torch.randn(1, 2, SIZE))[1], ConvolvedState)


def test_resets_of_the_matrix_alone_do_not_cut_it():
    layer, x = SRWM(SIZE, 2, convolution=4, reset_every=2, **F64), inputs(1, 8)
    _, state = layer(x)
    assert torch.equal(state.recent, x[:, -3:])
    assert not torch.allclose(layer(x)[0][:, 4:], layer(x[:, 4:])[0])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_last_inputs_are_kept_in_single_precision(dtype):
    layer = DeltaNet(SIZE, 2, convolution=4).to(dtype)
    y, state = layer(torch.randn(2, 5, SIZE, dtype=dtype), reset=torch.zeros(2, 5, dtype=torch.bool))
    assert (y.dtype, state.recent.dtype) == (dtype, torch.float32)
    y, state = layer(torch.randn(2, 5, SIZE, dtype=dtype), state)
    assert (y.dtype, state.recent.dtype) == (dtype, torch.float32)


@pytest.mark.parametrize("memory", ["srwm", "deltanet"])
def test_a_whole_model_has_it_in_every_memory(memory):
    model = SequenceModel(5, 3, memory=memory, hidden_size=8, num_heads=2, ff_size=6, memory_options={"convolution": 4})
    _, state = model(torch.randn(2, 7, 5))
    assert [layer.recent.shape for layer in state.layers] == [(2, 3, 8)] * 2


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("width", [1, -4, 2.0, True, "4", 2**40])
def test_what_is_no_width_gets_a_sentence(width):
    with pytest.raises(
        ValueError, match=r"convolution=.*; expected 0 for none, or how many inputs it sees, at least 2"
    ):
        SRWM(SIZE, 2, convolution=width)


@pytest.mark.usefixtures("as_installed")
def test_a_width_that_no_memory_holds_gets_a_sentence():
    with pytest.raises(ValueError, match=r"would make a layer of .* parameters"):
        DeltaNet(2**12, 2, convolution=2**30)


@pytest.mark.usefixtures("as_installed")
def test_states_that_do_not_fit_get_a_sentence():
    layer, x = SRWM(SIZE, 2, convolution=4), torch.randn(2, 3, SIZE)
    plain = SRWM(SIZE, 2)
    with pytest.raises(ValueError, match="state is a SelfReferentialState; expected the ConvolvedState"):
        layer(x, plain.initial_state(2))
    with pytest.raises(ValueError, match="state is a ConvolvedState; expected the SelfReferentialState"):
        plain(x, layer.initial_state(2))
    with pytest.raises(ValueError, match="state is a DeltaNetState; expected the SelfReferentialState"):
        layer(x, layer.initial_state(2)._replace(memory=DeltaNet(SIZE, 2).initial_state(2)))
    with pytest.raises(ValueError, match=r"state\.recent has shape \[2, 2, 8\]; expected \[b, convolution - 1, d\]"):
        layer(x, SRWM(SIZE, 2, convolution=3).initial_state(2))
    assert isinstance(layer.initial_state(2).memory, SelfReferentialState)
