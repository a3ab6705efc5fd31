"""The memories that have a name: the one place where a name stands for a layer.

A configuration says `memory="srwm"`; whoever asks what that is looks here. A layer of your own is named as
`package.module:Class` without being registered, or gets a name by `register_memory`.
"""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import nn

from srwm.errors import InputError
from srwm.named_import import import_named, is_import_name

from ._layer import SequenceLayer
from .attention import Attention
from .deltanet import DeltaNet
from .fake_srwm import FakeSRWM
from .gated_deltanet import GatedDeltaNet
from .lstm import LSTM
from .self_modifying_titans import SelfModifyingTitans
from .sr_deltanet import SRDeltaNet
from .srwm import SRWM

_GIVEN = ("dropout", "device", "dtype")
"""Keyword arguments that the model itself gives to a layer, so that they are no options of a recipe."""


@dataclass(frozen=True)
class MemoryEntry:
    """What a name stands for."""

    layer: type[SequenceLayer[Any]] | None
    """The layer; none where there is no memory."""
    title: str
    """What a sentence calls it."""
    summary: str
    """One line on what it is."""
    layout: Literal["blocks", "alone", "input"] = "blocks"
    """How a `SequenceModel` is built of it: in residual blocks, between two projections (without a layer, blocks of
    feed-forward sub-layers); alone, reading the input directly; or the input itself."""
    instead: str | None = None
    """What it does in the place of changing matrices, as the end of a sentence; none if it changes some."""
    is_stateless: bool = False
    """Whether it remembers nothing."""

    @property
    def has_heads(self) -> bool:
        """Whether its width is cut into heads."""
        return self.layer is not None and _takes(self.layer, "num_heads")

    @property
    def options(self) -> dict[str, Any]:
        """The options that a recipe may give, with their annotations."""
        if self.layer is None or self.layout != "blocks":
            return {}
        parameters = inspect.signature(self.layer).parameters.values()
        keywords = {each.name: each.annotation for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
        return {name: kind for name, kind in keywords.items() if name not in (*_GIVEN, "num_heads")}

    def make(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        dropout: float,
        options: Mapping[str, Any],
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> nn.Module:
        """Make the memory of a block; a layer of your own is given what its signature names of all this.

        Raises:
            InputError: if there is to be dropout, and the layer has none.
        """
        assert self.layer is not None
        given = {"num_heads": num_heads, "dropout": dropout, "device": device, "dtype": dtype}
        taken = {name: value for name, value in given.items() if _takes(self.layer, name)}
        if dropout and "dropout" not in taken:
            raise InputError(f"dropout={dropout}, but {self.layer.__name__} takes no dropout; expected 0")
        make: Any = self.layer
        made: nn.Module = make(hidden_size, **taken, **options)
        # A layer that cannot be told where its parameters go is moved.
        return made if {"device", "dtype"} <= taken.keys() else made.to(device=device, dtype=dtype)


class MemoryNames:
    """The names that a configuration may hold, as its parser asks for them."""

    otherwise = "package.module:Class for a layer of your own"
    """What else may stand there."""

    def words(self) -> tuple[str, ...]:
        """The names, in the order of their registration."""
        return tuple(_ENTRIES)

    def accepts(self, word: str) -> bool:
        """Whether it is a name, or could lead to a class; nothing is imported."""
        return word in _ENTRIES or is_import_name(word)


Memory = Annotated[str, MemoryNames()]
"""The name of a memory, or `package.module:Class`."""

_ENTRIES: dict[str, MemoryEntry] = {
    "srwm": MemoryEntry(SRWM, "An SRWM", "a weight matrix that modifies itself"),
    "deltanet": MemoryEntry(DeltaNet, "A DeltaNet", "fast weights, written by the delta rule"),
    "gated_deltanet": MemoryEntry(GatedDeltaNet, "A gated DeltaNet", "fast weights that also forget"),
    "sr_deltanet": MemoryEntry(SRDeltaNet, "An SR-DeltaNet", "fast weights, programmed by a self-referential matrix"),
    "self_modifying_titans": MemoryEntry(
        SelfModifyingTitans, "A self-modifying Titans layer", "memories that make their own keys, values and rates"
    ),
    "attention": MemoryEntry(
        Attention,
        "A Transformer",
        "causal self-attention to the last steps",
        instead="it keeps the keys and values of its last steps, and its weights stay as they are.",
    ),
    "fake_srwm": MemoryEntry(
        FakeSRWM,
        "Fake SR",
        "an SRWM without self-modification",
        instead="its matrices stay as they are.",
        is_stateless=True,
    ),
    "lstm": MemoryEntry(
        LSTM,
        "An LSTM",
        "the LSTM, on the input itself and without feed-forward sub-layers",
        layout="alone",
        instead="it remembers in its cells, and its weights stay as they are.",
    ),
    "feed_forward": MemoryEntry(
        None,
        "A feed-forward agent",
        "feed-forward sub-layers alone, without a memory",
        instead="its weights stay as they are.",
        is_stateless=True,
    ),
    "none": MemoryEntry(
        None,
        "A feed-forward agent",
        "the input itself",
        layout="input",
        instead="it remembers nothing, and its weights stay as they are.",
        is_stateless=True,
    ),
}


def memory_names() -> tuple[str, ...]:
    """The names of all memories, in the order of their registration."""
    return tuple(_ENTRIES)


def register_memory(name: str, layer: type[SequenceLayer[Any]], *, summary: str, title: str | None = None) -> None:
    """Give a layer of your own a name that configurations may hold.

    It is made as `layer(hidden_size, num_heads=..., dropout=..., device=..., dtype=..., **memory_options)`, with those
    of the named arguments that its signature has, and must keep the number of features.

    Args:
        name: a word of small letters, digits and underscores.
        layer: the class.
        summary: one line on what it is.
        title: what a sentence calls it; None for the name of the class.

    Raises:
        InputError: if the name is none, or taken, or `layer` is no `SequenceLayer`.

    Example:
        >>> from srwm.nn import SRWM, SequenceModel, register_memory
        >>> class Patient(SRWM):
        ...     pass
        >>> register_memory("patient", Patient, summary="an SRWM of our own")
        >>> model = SequenceModel(10, 5, memory="patient", hidden_size=16, num_heads=4)
    """
    if not name.isidentifier() or name != name.lower():
        raise InputError(f"name={name!r}; expected a word of small letters, digits and underscores")
    entry = MemoryEntry(_checked(layer, f"layer={layer!r}"), title or layer.__name__, summary)
    if _ENTRIES.setdefault(name, entry) != entry:
        raise InputError(f"name={name!r} is taken: it stands for {_ENTRIES[name].summary}")


def find_memory(name: str) -> MemoryEntry:
    """Look up a memory by its name; a class of `package.module:Class` is imported, as Python imports it.

    Raises:
        InputError: if there is no such name, module or class, or the class is no `SequenceLayer`.
    """
    if name in _ENTRIES:
        return _ENTRIES[name]
    if not is_import_name(name):
        names = ", ".join(map(repr, _ENTRIES))
        raise InputError(f"memory={name!r}; expected one of {names}, or {MemoryNames.otherwise}")
    said = f"memory={name!r}"
    layer = _checked(import_named(name, said=said, holds="layers"), said)
    return MemoryEntry(layer, layer.__name__, f"the layer {name}")


def known_memory(name: str) -> MemoryEntry | None:
    """Look up a memory by its name, and import nothing: None for a layer of your own that is not registered."""
    return _ENTRIES.get(name)


def _checked(layer: Any, said: str) -> type[SequenceLayer[Any]]:
    if not (isinstance(layer, type) and issubclass(layer, SequenceLayer)):
        raise InputError(f"{said} is no class of a layer; expected a subclass of srwm.nn.SequenceLayer")
    return layer


def _takes(layer: type, argument: str) -> bool:
    parameters = inspect.signature(layer).parameters
    return argument in parameters or any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
