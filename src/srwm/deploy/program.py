"""From a step to a graph of PyTorch's plain operators (`torch.export`), with a batch of any size."""

import contextlib
import copy
import logging
import operator
import warnings
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch import nn
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule, Node

from srwm.nn import SequenceLayer

from .steps import Step

__all__ = ["quietly", "trace"]

_EXAMPLES = 2
"""Rows that the step is traced with; a batch of one would be taken for a constant."""


def trace(step: Step) -> ExportedProgram:
    """Record what a step computes.

    The recurrences are recorded as the reference computes them, in operators that every runtime has.

    Returns:
        A program that is called as the step is; it holds no paths of this machine and no examples.
    """
    with quietly(), torch.no_grad():
        inputs = (*step.examples(_EXAMPLES, torch.Generator().manual_seed(0)), step.initial_state(_EXAMPLES))
        program = torch.export.export(_portable(step), inputs, dynamic_shapes=_shapes(step))
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            _simplify(module)
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)
    # They would be stored as a pickle.
    program._example_inputs = None
    return program


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Keep back what exporters say about their own insides; what they make is checked by its answers instead."""
    logger = logging.getLogger("torch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _portable(step: Step) -> Step:
    """A copy that runs recurrences in plain operators, and whose weights lie in memory in the usual order."""
    portable = copy.deepcopy(step)
    _make_portable(portable)
    return cast(Step, portable.to(memory_format=torch.contiguous_format))  # type: ignore[call-overload]


def _make_portable(module: nn.Module) -> None:
    """Replace every layer inside a module, in place, by what it gives for export."""
    for name, child in list(module.named_children()):
        if isinstance(child, SequenceLayer):
            child = child.portable()
            setattr(module, name, child)
        _make_portable(child)


def _shapes(step: Step) -> tuple[Any, ...]:
    """Say for `torch.export` that the first axis of every input is the batch."""
    batch = {0: Dim("batch")}
    return *(batch for _ in step.inputs), {slot.name: batch for slot in step.state}


def _simplify(module: GraphModule) -> None:
    """Leave out operators that change nothing, and that cost something or do not exist elsewhere.

    - An `as_strided` by which grey images are said to lie pixel by pixel: no number moves, but in ONNX it becomes an
      index for every pixel.
    - The running maximum over a single step, by which `reset_every` finds the start of an episode: ONNX has none.
    """
    for node in list(module.graph.nodes):
        if node.target is torch.ops.aten.as_strided.default and _same_elements(node):
            node.replace_all_uses_with(node.args[0])
        elif node.target is torch.ops.aten.cummax.default and node.args[0].meta["val"].shape[node.args[1]] == 1:
            for user in list(node.users):
                if user.target is operator.getitem and user.args[1] == 0:
                    user.replace_all_uses_with(node.args[0])
    module.graph.eliminate_dead_code()
    module.recompile()


def _same_elements(node: Node) -> bool:
    """Whether an `as_strided` gives every element its own place: its strides differ only where an axis has size 1."""
    given, made = cast(Node, node.args[0]).meta["val"], node.meta["val"]
    if len(given.shape) != len(made.shape) or made.storage_offset() != given.storage_offset():
        return False
    axes = zip(given.shape, made.shape, given.stride(), made.stride(), strict=True)
    return all(one == other and (one == 1 or s == t) for one, other, s, t in axes)
