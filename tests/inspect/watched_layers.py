"""Layers of every kind to be recorded, inputs for them, and what they must have done."""

import torch

from srwm.nn import (
    SRWM,
    ConvolvedState,
    DeltaNet,
    FakeSRWM,
    GatedDeltaNet,
    SelfModifyingTitans,
    SelfReferentialLinear,
    SRDeltaNet,
)

SIZE = 8
F64 = {"dtype": torch.float64}
GATED = {"forget_gates": 2, "key_map": "l2", "input_projection": True, "forget_bias": -1.0, "forget_max": 0.5}
"""They forget so much that whoever forgets the gates is far off after a few steps."""

LAYERS = {
    "linear": lambda **o: SelfReferentialLinear(SIZE, 6, num_heads=2, **F64, **o),
    "linear, one rate": lambda **o: SelfReferentialLinear(SIZE, 6, num_heads=2, learning_rates=1, **F64, **o),
    "srwm": lambda **o: SRWM(SIZE, 2, **F64, **o),
    "srwm, softmax": lambda **o: SRWM(SIZE, 2, input_activation="softmax", norm="none", **F64, **o),
    "srwm, norm on the input": lambda **o: SRWM(SIZE, 2, norm="input", **F64, **o),
    "linear, gated": lambda **o: SelfReferentialLinear(
        SIZE, 6, num_heads=2, learning_rates=1, forget_gates=1, difference_clip=0.2, **F64, **o
    ),
    "srwm, gated": lambda **o: SRWM(SIZE, 2, **GATED, **F64, **o),
    "srwm, gated, reset every 3": lambda **o: SRWM(SIZE, 2, reset_every=3, **GATED, **F64, **o),
    "srwm, reset every 3": lambda **o: SRWM(SIZE, 2, reset_every=3, **F64, **o),
    "srwm, convolved": lambda **o: SRWM(SIZE, 2, convolution=4, **F64, **o),
    "deltanet, convolved": lambda **o: DeltaNet(SIZE, 2, convolution=4, **F64, **o),
    "deltanet": lambda **o: DeltaNet(SIZE, 2, **F64, **o),
    "deltanet, elu": lambda **o: DeltaNet(
        SIZE, 2, feature_map="elu_sum", feature_map_eps=1e-5, norm="none", **F64, **o
    ),
    "gated_deltanet": lambda **o: GatedDeltaNet(SIZE, 2, **F64, **o),
    "gated_deltanet, half forgotten": lambda **o: GatedDeltaNet(
        SIZE, 2, feature_map="softmax", forget_max=0.9, forget_bias=0.0, max_learning_rate=2.0, **F64, **o
    ),
    "sr_deltanet": lambda **o: SRDeltaNet(SIZE, 2, **F64, **o),
    "titans": lambda **o: SelfModifyingTitans(SIZE, 2, forget_max=0.5, forget_bias=-1.0, **F64, **o),
    "titans, chunks of 3": lambda **o: SelfModifyingTitans(SIZE, 2, chunk=3, value_map="l2", **F64, **o),
    "titans, convolved": lambda **o: SelfModifyingTitans(SIZE, 2, chunk=2, convolution=3, **F64, **o),
}
CHANGING = tuple(LAYERS)
LAYERS["fake_srwm"] = lambda: FakeSRWM(SIZE, 2, **F64)


def inputs(b=3, t=7):
    return torch.randn(b, t, SIZE, **F64)


def resets(b=3, t=7):
    return torch.rand(b, t) < 0.25


def changes(state):
    """The change of each matrix in the state of a layer, first to last."""
    state = state.memory if isinstance(state, ConvolvedState) else state
    if hasattr(state, "slow"):
        return [state.slow.change, state.fast_weight]
    return [state.change if hasattr(state, "change") else state.fast_weight]
