"""One small layer of every kind and option, by name."""

from collections.abc import Callable
from typing import Any

import torch

from srwm.nn import (
    LSTM,
    SRWM,
    Attention,
    Block,
    DeltaNet,
    FakeSRWM,
    FeedForward,
    GatedDeltaNet,
    SelfModifyingTitans,
    SelfReferentialLinear,
    SequenceLayer,
    SequenceModel,
    SRDeltaNet,
)

SIZE = 8
"""Features of the input of every layer here."""

SMALL: dict[str, Any] = {"hidden_size": 8, "num_heads": 2, "ff_size": 6}

GATED: dict[str, Any] = {"key_map": "l2", "forget_gates": 2}

LAYERS: dict[str, Callable[[], SequenceLayer[Any]]] = {
    "linear": lambda: SelfReferentialLinear(SIZE, 6, num_heads=2),
    "linear, one head": lambda: SelfReferentialLinear(SIZE, 3),
    "linear, one learning rate": lambda: SelfReferentialLinear(SIZE, 6, num_heads=2, learning_rates=1),
    "linear, gated": lambda: SelfReferentialLinear(SIZE, 6, num_heads=2, difference_clip=0.5, **GATED),
    "srwm": lambda: SRWM(SIZE, 2),
    "srwm, softmax": lambda: SRWM(SIZE, 2, input_activation="softmax", norm="none"),
    "srwm, norm on the input": lambda: SRWM(SIZE, 2, norm="input"),
    "srwm, reset every 3": lambda: SRWM(SIZE, 2, reset_every=3),
    "srwm, gated": lambda: SRWM(SIZE, 2, input_projection=True, **GATED),
    "srwm, gated, reset every 3": lambda: SRWM(SIZE, 2, reset_every=3, **(GATED | {"forget_gates": 1})),
    "deltanet": lambda: DeltaNet(SIZE, 2),
    "deltanet, elu": lambda: DeltaNet(SIZE, 2, feature_map="elu_sum", feature_map_eps=1e-5),
    "deltanet, l2, rates up to 2": lambda: DeltaNet(SIZE, 2, feature_map="l2", max_learning_rate=2.0),
    "gated_deltanet": lambda: GatedDeltaNet(SIZE, 2),
    "gated_deltanet, softmax": lambda: GatedDeltaNet(SIZE, 2, feature_map="softmax", forget_max=0.9, forget_bias=0.0),
    "sr_deltanet": lambda: SRDeltaNet(SIZE, 2),
    "self_modifying_titans": lambda: SelfModifyingTitans(SIZE, 2),
    "self_modifying_titans, chunk of 3": lambda: SelfModifyingTitans(SIZE, 2, chunk=3, value_map="l2", forget_max=0.9),
    "srwm, convolved": lambda: SRWM(SIZE, 2, convolution=4),
    "srwm, gated, reset every 3, convolved": lambda: SRWM(
        SIZE, 2, norm="input", input_projection=True, convolution=3, reset_every=3, **GATED
    ),
    "deltanet, convolved": lambda: DeltaNet(SIZE, 2, convolution=4),
    "gated_deltanet, convolved": lambda: GatedDeltaNet(SIZE, 2, convolution=4),
    "self_modifying_titans, convolved": lambda: SelfModifyingTitans(SIZE, 2, chunk=2, convolution=4),
    "deltanet, convolved far": lambda: DeltaNet(SIZE, 2, norm="none", convolution=11),
    "attention": lambda: Attention(SIZE, 2, window=16),
    "attention, to the last four": lambda: Attention(SIZE, 2, window=4, norm="residual"),
    "fake_srwm": lambda: FakeSRWM(SIZE, 2),
    "lstm": lambda: LSTM(SIZE, 5, num_layers=2),
    "feed_forward": lambda: FeedForward(SIZE, 6),
    "block": lambda: Block(SRWM(SIZE, 2), FeedForward(SIZE, 6)),
    "model of srwm": lambda: SequenceModel(SIZE, 3, memory="srwm", **SMALL),
    "model of deltanet": lambda: SequenceModel(SIZE, 3, memory="deltanet", **SMALL),
    "model of gated_deltanet": lambda: SequenceModel(SIZE, 3, memory="gated_deltanet", **SMALL),
    "model of convolved srwm": lambda: SequenceModel(
        SIZE, 3, memory="srwm", memory_options={"convolution": 4}, **SMALL
    ),
    "model of attention": lambda: SequenceModel(SIZE, 3, memory="attention", memory_options={"window": 9}, **SMALL),
    "model of lstm": lambda: SequenceModel(SIZE, 3, memory="lstm", **SMALL),
    "model of feed_forward": lambda: SequenceModel(SIZE, 3, memory="feed_forward", **SMALL),
    "model of none": lambda: SequenceModel(SIZE, 3, memory="none"),
}

STATELESS = ("fake_srwm", "feed_forward", "model of feed_forward", "model of none")
"""Those that remember nothing."""


def random_reset(b: int, t: int) -> torch.Tensor:
    """A mask that resets about a third of the steps."""
    return torch.rand(b, t) < 1 / 3
