import doctest
import importlib
import pkgutil

import pytest

import srwm.nn

MODULES = sorted(module.name for module in pkgutil.iter_modules(srwm.nn.__path__, "srwm.nn."))


def test_the_public_names_are_these():
    assert sorted(srwm.nn.__all__) == sorted(
        [
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
            "LSTM",
            "LSTMState",
            "LayerContractError",
            "MatrixKind",
            "Memory",
            "MemoryEntry",
            "NoState",
            "SRDeltaNet",
            "SRDeltaNetState",
            "SRWM",
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
    )


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
