"""Wrong arguments get a sentence that names them."""

import pytest
import torch

from srwm.ops import delta_rule, self_referential

pytestmark = pytest.mark.usefixtures("as_installed")


def zeros(*shape, **options):
    return torch.zeros(*shape, **options)


FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
OF_16_BITS = "expected a floating-point tensor of 16, 32 or 64 bits"

NO_BLOCKS = [
    (
        zeros(2, 3).to_sparse(),
        r"{} has layout torch\.sparse_coo; expected a dense tensor: convert it with \.to_dense\(\)",
    ),
    (zeros(2, 3).to_mkldnn(), r"{} has layout torch\._mkldnn; expected a dense tensor"),
    (
        torch.nested.nested_tensor([zeros(2), zeros(3)], layout=torch.jagged),
        "{} is a nested tensor; expected a dense one",
    ),
]
"""Tensors that are not a block of numbers, and what is said of them."""

SELF_REFERENTIAL = {"x": zeros(2, 5, 3, 4), "weight": zeros(3, 4, 16)}
WRONG_SELF_REFERENTIAL = [
    ({"x": zeros(5, 3, 4)}, r"x has shape \[5, 3, 4\]; expected \[b, t, h, d\]"),
    ({"x": zeros(2, 2, 5, 3, 4)}, r"x has shape \[2, 2, 5, 3, 4\]; expected \[b, t, h, d\]"),
    ({"x": zeros(2, 5, 3, 5)}, r"weight has shape \[3, 4, 16\]; expected \[h, d, m\] = \[3, 5, m\] to fit x"),
    ({"x": zeros(2, 5, 2, 4)}, r"weight has shape \[3, 4, 16\]; expected \[h, d, m\] = \[2, 4, m\] to fit x"),
    ({"x": zeros(2, 5, 3, 4, dtype=torch.int64)}, "x has dtype torch.int64; expected a floating-point tensor"),
    ({"x": zeros(2, 5, 3, 4, dtype=torch.complex64)}, "x has dtype torch.complex64; expected a floating-point tensor"),
    ({"x": zeros(2, 5, 3, 0), "weight": zeros(3, 0, 5)}, "weight has 5 columns for heads of size 0; .*at least 1"),
    ({"weight": zeros(4, 16)}, r"weight has shape \[4, 16\]; expected \[h, d, m\]"),
    ({"weight": zeros(3, 4, 12)}, r"weight has 12 columns for heads of size 4; .*out \+ 12 with out and d at least 1"),
    ({"weight": zeros(3, 4, 9), "learning_rates": 1}, r"weight has 9 columns .*= out \+ 9 with out and d at least 1"),
    ({"weight": zeros(3, 4, 16, dtype=torch.bool)}, "weight has dtype torch.bool; expected a floating-point tensor"),
    ({"weight": zeros(3, 4, 16, device="meta")}, "weight is on meta but x is on cpu; move them to one device"),
    ({"state": zeros(3, 4, 16)}, r"state has shape \[3, 4, 16\]; expected \[b, h, d, m\] = \[2, 3, 4, 16\]"),
    ({"state": zeros(1, 3, 4, 16)}, r"state has shape \[1, 3, 4, 16\]; expected .* = \[2, 3, 4, 16\]"),
    ({"state": zeros(2, 3, 4, 15)}, r"state has shape \[2, 3, 4, 15\]; expected .* = \[2, 3, 4, 16\]"),
    ({"state": zeros(2, 3, 4, 16, dtype=torch.int32)}, "state has dtype torch.int32"),
    ({"state": zeros(2, 3, 4, 16, device="meta")}, "state is on meta but x is on cpu; move them to one device"),
    ({"reset": zeros(2, dtype=torch.bool)}, r"reset has shape \[2\]; expected \[b, t\] = \[2, 5\]"),
    ({"reset": zeros(5, 2, dtype=torch.bool)}, r"reset has shape \[5, 2\]; expected \[b, t\] = \[2, 5\]"),
    ({"reset": zeros(2, 5)}, "reset has dtype torch.float32; expected torch.bool, true where an episode begins"),
    ({"reset": zeros(2, 5, dtype=torch.bool, device="meta")}, "reset is on meta but the inputs are on cpu"),
    ({"learning_rates": 2}, r"learning_rates=2; expected 4 \(one for each of y, q, k, beta\) or 1 \(shared\)"),
    ({"learning_rates": 0}, "learning_rates=0; expected 4"),
    ({"learning_rates": 4.0}, r"learning_rates=4\.0; expected 4"),
    ({"learning_rates": True, "weight": zeros(3, 4, 13)}, "learning_rates=True; expected 4"),
    ({"learning_rates": torch.tensor(4)}, r"learning_rates=tensor\(4\); expected 4"),
    ({"learning_rates": [4]}, r"learning_rates=\[4\]; expected 4"),
    ({"x": None}, r"x is of type NoneType; expected a torch\.Tensor"),
    ({"x": [1.0]}, r"x is of type list; expected a torch\.Tensor"),
    ({"weight": zeros(3, 4, 16).numpy()}, r"weight is of type ndarray; expected a torch\.Tensor"),
    ({"state": (1,)}, r"state is of type tuple; expected a torch\.Tensor"),
    ({"reset": [True]}, r"reset is of type list; expected a torch\.Tensor"),
    *(({name: no_block}, sentence.format(name)) for name in ("x", "weight") for no_block, sentence in NO_BLOCKS),
    ({"state": zeros(2, 3, 4, 16).to_sparse()}, r"state has layout torch\.sparse_coo; expected a dense tensor"),
    ({"reset": zeros(2, 5, dtype=torch.bool).to_sparse()}, r"reset has layout torch\.sparse_coo; expected a dense"),
    *(({"x": zeros(2, 5, 3, 4).to(dtype)}, f"x has dtype {dtype}; {OF_16_BITS}") for dtype in FLOAT8),
    ({"weight": zeros(3, 4, 16).to(FLOAT8[0])}, f"weight has dtype {FLOAT8[0]}; {OF_16_BITS}"),
    ({"state": zeros(2, 3, 4, 16).to(FLOAT8[1])}, f"state has dtype {FLOAT8[1]}; {OF_16_BITS}"),
]

DELTA_RULE = {"q": zeros(2, 5, 3, 4), "k": zeros(2, 5, 3, 4), "v": zeros(2, 5, 3, 6), "beta": zeros(2, 5, 3)}
WRONG_DELTA_RULE = [
    ({"q": zeros(5, 3, 4)}, r"q has shape \[5, 3, 4\]; expected \[b, t, h, d\]"),
    ({"q": zeros(2, 5, 3, 0)}, r"q has shape \[2, 5, 3, 0\]; expected \[b, t, h, d\] with d at least 1"),
    ({"q": zeros(2, 5, 3, 4, dtype=torch.int64)}, "q has dtype torch.int64; expected a floating-point tensor"),
    ({"k": zeros(2, 5, 3, 5)}, r"k has shape \[2, 5, 3, 5\]; expected \[b, t, h, d\] = \[2, 5, 3, 4\]"),
    ({"k": zeros(2, 6, 3, 4)}, r"k has shape \[2, 6, 3, 4\]; expected \[b, t, h, d\] = \[2, 5, 3, 4\]"),
    ({"k": zeros(2, 5, 3, 4, dtype=torch.int64)}, "k has dtype torch.int64"),
    ({"k": zeros(2, 5, 3, 4, device="meta")}, "k is on meta but q is on cpu; move them to one device"),
    ({"v": zeros(2, 5, 3)}, r"v has shape \[2, 5, 3\]; expected \[b, t, h, e\] = \[2, 5, 3, e\]"),
    ({"v": zeros(2, 5, 3, 0)}, r"v has shape \[2, 5, 3, 0\]; .*with e at least 1"),
    ({"v": zeros(2, 4, 3, 6)}, r"v has shape \[2, 4, 3, 6\]; expected \[b, t, h, e\] = \[2, 5, 3, e\]"),
    ({"v": zeros(2, 5, 3, 6, dtype=torch.complex64)}, "v has dtype torch.complex64"),
    ({"v": zeros(2, 5, 3, 6, device="meta")}, "v is on meta but q is on cpu"),
    ({"beta": zeros(2, 5, 3, 1)}, r"beta has shape \[2, 5, 3, 1\]; expected \[b, t, h\] = \[2, 5, 3\]"),
    ({"beta": zeros(2, 5)}, r"beta has shape \[2, 5\]; expected \[b, t, h\] = \[2, 5, 3\]"),
    ({"beta": zeros(2, 5, 3, dtype=torch.int8)}, "beta has dtype torch.int8"),
    ({"beta": zeros(2, 5, 3, device="meta")}, "beta is on meta but q is on cpu"),
    ({"state": zeros(2, 3, 6, 4)}, r"state has shape \[2, 3, 6, 4\]; expected \[b, h, d, e\] = \[2, 3, 4, 6\]"),
    ({"state": zeros(3, 4, 6)}, r"state has shape \[3, 4, 6\]; expected \[b, h, d, e\] = \[2, 3, 4, 6\]"),
    ({"state": zeros(2, 3, 4, 6, dtype=torch.int64)}, "state has dtype torch.int64"),
    ({"state": zeros(2, 3, 4, 6, device="meta")}, "state is on meta but q is on cpu"),
    ({"decay": zeros(2, 5, 3, 1)}, r"decay has shape \[2, 5, 3, 1\]; expected \[b, t, h\] = \[2, 5, 3\]"),
    ({"decay": zeros(5, 2, 3)}, r"decay has shape \[5, 2, 3\]; expected \[b, t, h\] = \[2, 5, 3\]"),
    ({"decay": zeros(2, 5, 3, dtype=torch.bool)}, "decay has dtype torch.bool"),
    ({"decay": zeros(2, 5, 3, device="meta")}, "decay is on meta but q is on cpu"),
    ({"decay": 0.5}, r"decay is of type float; expected a torch\.Tensor"),
    ({"q": [1.0]}, r"q is of type list; expected a torch\.Tensor"),
    ({"k": None}, r"k is of type NoneType; expected a torch\.Tensor"),
    ({"v": 1.0}, r"v is of type float; expected a torch\.Tensor"),
    ({"beta": 0.5}, r"beta is of type float; expected a torch\.Tensor"),
    ({"state": [0]}, r"state is of type list; expected a torch\.Tensor"),
    *(({name: no_block}, sentence.format(name)) for name in "qkv" for no_block, sentence in NO_BLOCKS),
    ({"q": zeros(2, 5, 3, 4).to(FLOAT8[0])}, f"q has dtype {FLOAT8[0]}; {OF_16_BITS}"),
    ({"beta": zeros(2, 5, 3).to(FLOAT8[1])}, f"beta has dtype {FLOAT8[1]}; {OF_16_BITS}"),
    ({"reset": zeros(5, dtype=torch.bool)}, r"reset has shape \[5\]; expected \[b, t\] = \[2, 5\]"),
    ({"reset": zeros(2, 5, dtype=torch.uint8)}, "reset has dtype torch.uint8; expected torch.bool"),
    ({"reset": zeros(2, 5, dtype=torch.bool, device="meta")}, "reset is on meta but the inputs are on cpu"),
]


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize(("wrong", "sentence"), WRONG_SELF_REFERENTIAL)
def test_a_wrong_argument_of_self_referential_gets_a_sentence(wrong, sentence, backend):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        self_referential(**{**SELF_REFERENTIAL, **wrong}, backend=backend)


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize(("wrong", "sentence"), WRONG_DELTA_RULE)
def test_a_wrong_argument_of_delta_rule_gets_a_sentence(wrong, sentence, backend):
    with pytest.raises(ValueError, match=f"^{sentence}"):
        delta_rule(**{**DELTA_RULE, **wrong}, backend=backend)


@pytest.mark.parametrize(("operator", "right"), [(self_referential, SELF_REFERENTIAL), (delta_rule, DELTA_RULE)])
def test_right_arguments_get_results(operator, right):
    y, _ = operator(**right)
    assert y.shape[:3] == (2, 5, 3)


@pytest.mark.parametrize("backend", ["auto", "reference"])
@pytest.mark.parametrize(("operator", "right"), [(self_referential, SELF_REFERENTIAL), (delta_rule, DELTA_RULE)])
def test_tensors_without_numbers_get_the_shapes_of_the_results(operator, right, backend):
    expected = operator(**right)
    found = operator(**{name: tensor.to("meta") for name, tensor in right.items()}, backend=backend)
    assert all(each.is_meta for each in found)
    assert [(each.shape, each.dtype) for each in found] == [(each.shape, each.dtype) for each in expected]


def test_heads_of_size_1_are_served():
    y, state = delta_rule(*torch.ones(3, 1, 2, 1, 1), torch.ones(1, 2, 1))
    assert y.flatten().tolist() == [1.0, 1.0]
    assert state.shape == (1, 1, 1, 1)
    y, state = self_referential(torch.ones(1, 2, 1, 1), torch.zeros(1, 1, 7))
    assert y.flatten().tolist() == [0.0, 0.0]
    assert state.shape == (1, 1, 1, 7)
