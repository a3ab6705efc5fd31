"""Memories by name: those of the library, registered ones, and layers of the user's own in their modules."""

import sys

import pytest
import torch

import srwm.nn
from srwm import named_import
from srwm.errors import InputError
from srwm.nn import (
    SRWM,
    SequenceModel,
    find_memory,
    known_memory,
    memory_names,
    register_memory,
    registry,
)

SMALL = {"hidden_size": 8, "num_heads": 2, "ff_size": 6, "num_layers": 2}
MODULE = '''
import torch
from srwm.nn import LSTMState, SRWM, LSTM, SequenceLayer


class Narrow(SequenceLayer):
    """A layer that takes nothing but its size and an option of its own."""

    def __init__(self, hidden_size, *, inner: int = 3):
        super().__init__(hidden_size, hidden_size)
        self.inner = inner
        self.memory = LSTM(hidden_size, hidden_size)

    def forward(self, x, state=None, *, reset=None):
        return self.memory(x, state, reset=reset)

    def initial_state(self, batch_size, device=None, dtype=None):
        return self.memory.initial_state(batch_size, device, dtype)


class Patient(SRWM):
    pass


def function(hidden_size):
    return Narrow(hidden_size)


class NoLayer(torch.nn.Linear):
    pass
'''


@pytest.fixture
def module(tmp_path, monkeypatch):
    """The name of an importable module of layers, which nobody has imported yet."""
    (tmp_path / "somebodys_layers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "somebodys_layers"
    sys.modules.pop("somebodys_layers", None)


class Patient(SRWM):
    """A layer of the user's own."""


class Other(SRWM):
    """Another one."""


def test_every_name_stands_for_a_public_layer_or_for_none():
    layers = {name: find_memory(name).layer for name in memory_names()}
    assert {name for name, layer in layers.items() if layer is None} == {"feed_forward", "none"}
    for layer in filter(None, layers.values()):
        assert getattr(srwm.nn, layer.__name__) is layer
        assert layer.__name__ in srwm.nn.__all__


@pytest.mark.parametrize("name", memory_names())
def test_every_name_makes_a_model_of_its_layer(name):
    entry = find_memory(name)
    model = SequenceModel(5, 3, memory=name, **SMALL)
    assert model(torch.randn(2, 4, 5))[0].shape == (2, 4, 3)
    found = {type(each) for each in model.modules()}
    assert entry.layer is None or entry.layer in found
    assert entry.summary
    assert entry.title


def test_which_memories_have_heads_and_which_remember_nothing():
    headless = {name for name in memory_names() if not find_memory(name).has_heads}
    assert headless == {"lstm", "feed_forward", "none"}
    assert {name for name in memory_names() if find_memory(name).is_stateless} == {"fake_srwm", "feed_forward", "none"}


def test_a_stateless_memory_has_no_tensors_in_its_state():
    for name in memory_names():
        state = SequenceModel(5, 3, memory=name, **SMALL).initial_state(1)
        is_empty = not any(len(layer) for layer in state.layers)
        assert is_empty == find_memory(name).is_stateless, name


def test_a_registered_layer_is_made_by_its_name():
    register_memory("patient", Patient, summary="an SRWM of our own")
    model = SequenceModel(5, 3, memory="patient", memory_options={"forget_gates": 2}, dropout=0.1, **SMALL)
    assert [type(layer.memory) for layer in model.layers] == [Patient] * 2
    assert [layer.memory.self_referential.forget_gates for layer in model.layers] == [2, 2]
    assert memory_names()[-1] == "patient"
    assert find_memory("patient").title == "Patient"


def test_a_name_stands_for_one_layer():
    register_memory("patient", Patient, summary="an SRWM of our own")
    register_memory("patient", Patient, summary="an SRWM of our own")
    with pytest.raises(InputError, match="name='patient' is taken: it stands for an SRWM of our own"):
        register_memory("patient", Other, summary="another")
    with pytest.raises(InputError, match="name='srwm' is taken"):
        register_memory("srwm", Patient, summary="mine")
    assert find_memory("srwm").layer is SRWM


@pytest.mark.parametrize("name", ["", "My Layer", "Patient", "a:B", "a.b"])
def test_what_is_no_name_is_not_registered(name):
    with pytest.raises(InputError, match="expected a word of small letters, digits and underscores"):
        register_memory(name, Patient, summary="an SRWM of our own")


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("layer", [torch.nn.Linear, SRWM(8, 2), lambda size: SRWM(size, 2)])
def test_only_classes_of_layers_are_registered(layer):
    with pytest.raises(InputError, match=r"is no class of a layer; expected a subclass of srwm\.nn\.SequenceLayer"):
        register_memory("mine", layer, summary="mine")


def test_a_layer_of_a_module_is_imported_only_when_it_is_made(module):
    path = f"{module}:Narrow"
    assert registry.MemoryNames().accepts(path)
    assert known_memory(path) is None
    assert module not in sys.modules
    model = SequenceModel(5, 3, memory=path, memory_options={"inner": 4}, **SMALL)
    assert [(type(layer.memory).__name__, layer.memory.inner) for layer in model.layers] == [("Narrow", 4)] * 2
    assert module in sys.modules
    assert model(torch.randn(2, 4, 5))[0].shape == (2, 4, 3)


def test_a_layer_of_a_module_is_given_what_its_signature_names(module):
    model = SequenceModel(5, 3, memory=f"{module}:Patient", dropout=0.2, dtype=torch.float64, **SMALL)
    assert [(layer.memory.dropout.p, layer.memory.self_referential.num_heads) for layer in model.layers] == [
        (0.2, 2),
        (0.2, 2),
    ]
    moved = SequenceModel(5, 3, memory=f"{module}:Narrow", dtype=torch.float64, **SMALL)
    assert {parameter.dtype for parameter in moved.parameters()} == {torch.float64}


def test_a_layer_without_dropout_is_given_none(module):
    with pytest.raises(InputError, match=r"dropout=0.2, but Narrow takes no dropout; expected 0"):
        SequenceModel(5, 3, memory=f"{module}:Narrow", dropout=0.2, **SMALL)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"outer": 3}, "memory_options has outer; 'somebodys_layers:Narrow' takes inner"),
        ({"inner": "x"}, "memory_options has inner='x'; expected a whole number"),
    ],
)
def test_options_of_a_layer_of_a_module_are_checked(module, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        SequenceModel(5, 3, memory=f"{module}:Narrow", memory_options=options, **SMALL)


@pytest.mark.parametrize(
    "name", ["srmw", "", ":", "a:", ":B", "a:b:C", "a.b", "a b:C", "../a:B", "a..b:C", "a/b:C", "a:b.C", "a-b:C"]
)
def test_what_is_neither_a_name_nor_a_path_is_refused(name):
    assert not registry.MemoryNames().accepts(name)
    with pytest.raises(InputError, match=r"expected one of 'srwm', .*, or package\.module:Class for a layer"):
        find_memory(name)


@pytest.mark.parametrize("name", ["function", "NoLayer", "torch"])
def test_what_is_no_class_of_a_layer_is_refused(module, name):
    with pytest.raises(InputError, match=rf"memory='{module}:{name}' is no class of a layer; expected a subclass of"):
        find_memory(f"{module}:{name}")


def test_a_class_that_is_not_there_is_refused(module):
    with pytest.raises(InputError, match=f"memory='{module}:Wide': {module} has no Wide"):
        find_memory(f"{module}:Wide")


def test_a_module_that_is_not_there_is_refused():
    with pytest.raises(InputError, match=r"nobodys_layers\.deep cannot be imported .*; install it, or name its"):
        find_memory("nobodys_layers.deep:Layer")


def test_a_module_that_python_cannot_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "broken_layers.py").write_text("class Layer(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="broken_layers cannot be imported"):
        find_memory("broken_layers:Layer")


@pytest.mark.parametrize("path", ["antigravity:Layer", "idlelib.idle:Layer", "os:system"])
def test_modules_of_python_itself_are_not_imported(monkeypatch, path):
    monkeypatch.setattr(named_import.importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    with pytest.raises(InputError, match="is of Python's standard library; expected a module of layers"):
        find_memory(path)
