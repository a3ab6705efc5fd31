"""The layers, the state they share, and the checker that users can run on their own layer.

Every layer obeys one contract: `y, state = layer(x, state, reset=is_first)` with x and y [batch, time, features].
"""

from ._layer import SequenceLayer
from ._state import (
    AttentionState,
    ConvolvedState,
    DeltaNetState,
    LSTMState,
    NoState,
    SelfReferentialState,
    SequenceState,
    SRDeltaNetState,
    State,
    TitansState,
    map_state,
    named_tensors,
)
from .attention import Attention
from .check import LayerContractError, check_layer
from .deltanet import DeltaNet
from .fake_srwm import FakeSRWM
from .fast_matrix import FastCall, FastMatrix, FastStep, MatrixKind
from .fast_steps import delta_rule_call, delta_rule_steps
from .feed_forward import FeedForward
from .gated_deltanet import GatedDeltaNet
from .lstm import LSTM
from .registry import Memory, MemoryEntry, find_memory, known_memory, memory_names, register_memory
from .self_modifying_titans import SelfModifyingTitans
from .self_referential_linear import SelfReferentialLinear
from .sequence_model import Block, SequenceModel
from .sr_deltanet import SRDeltaNet
from .srwm import SRWM

__all__ = [
    "LSTM",
    "SRWM",
    "Attention",
    "AttentionState",
    "Block",
    "ConvolvedState",
    "DeltaNet",
    "DeltaNetState",
    "FakeSRWM",
    "FastCall",
    "FastMatrix",
    "FastStep",
    "FeedForward",
    "GatedDeltaNet",
    "LSTMState",
    "LayerContractError",
    "MatrixKind",
    "Memory",
    "MemoryEntry",
    "NoState",
    "SRDeltaNet",
    "SRDeltaNetState",
    "SelfModifyingTitans",
    "SelfReferentialLinear",
    "SelfReferentialState",
    "SequenceLayer",
    "SequenceModel",
    "SequenceState",
    "State",
    "TitansState",
    "check_layer",
    "delta_rule_call",
    "delta_rule_steps",
    "find_memory",
    "known_memory",
    "map_state",
    "memory_names",
    "named_tensors",
    "register_memory",
]
