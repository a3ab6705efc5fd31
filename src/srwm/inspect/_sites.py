"""Where in a model matrices change: which modules to listen to, and what a call of one feeds to its matrix."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from srwm.nn import (
    SRWM,
    ConvolvedState,
    DeltaNet,
    FakeSRWM,
    GatedDeltaNet,
    SelfReferentialLinear,
    SelfReferentialState,
    SRDeltaNet,
)
from srwm.nn.feature_maps import activate_input
from srwm.nn.periodic_reset import periodic_reset
from srwm.ops.checks import state_dtype
from srwm.ops.self_referential.options import Options

from ._trace import Step, trace_delta_rule, trace_fixed, trace_self_referential

Kind = Literal["self_referential", "delta_rule", "fixed"]
"""How a matrix changes: by itself, by what another one says, or not at all."""


@dataclass(frozen=True)
class Call:
    """What a call of a layer fed to its matrix, and what came of it."""

    inputs: tuple[Tensor, ...]
    """x, or the q, k, v, beta and, where it has one, decay of a delta rule, each [b, t, h, ...]."""
    weight: Tensor
    """The initial matrix [h, d, m]."""
    is_new: bool
    """Whether the layer was given no state."""
    before: Tensor | None
    """The change of the matrix before the call [b, h, d, m]; None is zero."""
    after: Tensor | None
    """The change after it, as the layer returned it; None for a matrix that never changes."""
    reset: Tensor | None
    """Where the change is made new before a step, bool [b, t]."""
    y: Tensor | None
    """The outputs of the heads as the layer returned them [b, t, h, e]; None where they cannot be seen."""

    def of(self, rows: list[int], heads: list[int]) -> "Call":
        """The same call for chosen rows and heads."""
        at = torch.tensor(rows, device=self.weight.device)
        of = torch.tensor(heads, device=self.weight.device)

        def states(state: Tensor | None) -> Tensor | None:
            return None if state is None else state.detach()[at][:, of]

        return replace(
            self,
            inputs=tuple(each.detach()[at][:, :, of] for each in self.inputs),
            weight=self.weight.detach()[of],
            before=states(self.before),
            after=states(self.after),
            reset=None if self.reset is None else self.reset[at],
            y=None if self.y is None else self.y.detach()[at][:, :, of],
        )

    @property
    def dtype(self) -> torch.dtype:
        """What the recurrence runs in."""
        given = (*self.inputs, self.weight, *(each for each in (self.before,) if each is not None))
        return state_dtype(*given)

    def start(self) -> Tensor:
        """The change before the first step [b, h, d, m]."""
        if self.before is not None:
            return self.before.to(self.dtype)
        return self.weight.new_zeros(len(self.inputs[0]), *self.weight.shape, dtype=self.dtype)


@dataclass(frozen=True)
class Site:
    """A matrix of each head of a layer."""

    name: str
    """The layer's name in the model; with "/slow" or "/fast" behind it where the layer has two matrices."""
    kind: Kind
    """How it changes."""
    parts: tuple[str, ...]
    """What its columns are."""
    columns: tuple[int, ...]
    """How many columns each part has; the outputs are those of the first part."""
    num_heads: int
    """Heads."""
    head_dim: int
    """Rows of the matrix of a head."""
    learning_rates: int
    """How many each head has."""
    forget_gates: int
    """How many each head has."""
    dtype: torch.dtype
    """What its changes are kept in."""
    module: Any
    """The layer."""

    @property
    def width(self) -> int:
        """Columns of all parts together."""
        return sum(self.columns)

    @property
    def vectors(self) -> int:
        """The width of query and key."""
        return 0 if self.kind == "fixed" else self.head_dim

    def run(self, call: Call) -> Iterator[Step]:
        """Compute the call again, step by step."""
        inputs = [each.to(call.dtype) for each in call.inputs]
        weight, start = call.weight.to(call.dtype), call.start()
        if self.kind == "self_referential":
            options = Options(*(getattr(self.module, name) for name in Options._fields))
            return trace_self_referential(inputs[0], weight, start, call.reset, options)
        if self.kind == "delta_rule":
            q, k, v, beta, *decay = inputs
            return trace_delta_rule(q, k, v, beta, start, decay[0] if decay else None, call.reset)
        return trace_fixed(inputs[0], weight, start)

    def listen(self, tell: Callable[[Call], None]) -> list[RemovableHandle]:
        """Have `tell` called with every call of the layer, until the handles are removed."""
        if self.kind == "self_referential":
            return _listen_to_self_referential(self.module, tell)
        if self.kind == "delta_rule":
            return _listen_to_delta_rule(self.module, tell)
        return _listen_to_fixed(self.module, tell)


def find_sites(model: nn.Module) -> list[Site]:
    """List the matrices of a model's layers, in the order of its modules."""
    sites: list[Site] = []
    inner: set[nn.Module] = set()
    for name, module in model.named_modules():
        if isinstance(module, SRDeltaNet):
            inner.add(module.self_referential)
            sites += [
                _self_referential(f"{name}/slow".lstrip("/"), module.self_referential),
                _delta_rule(f"{name}/fast".lstrip("/"), module, module.self_referential.weight),
            ]
        elif isinstance(module, SRWM):
            inner.add(module.self_referential)
            sites.append(_self_referential(name, module.self_referential))
        elif isinstance(module, DeltaNet | GatedDeltaNet):
            sites.append(_delta_rule(name, module, module.projection.weight))
        elif isinstance(module, FakeSRWM):
            heads, head_dim, _ = module.weight.shape
            place = (("y",), (head_dim,), heads, head_dim, 0, 0, state_dtype(module.weight), module)
            sites.append(Site(name or "layer", "fixed", *place))
        elif isinstance(module, SelfReferentialLinear) and module not in inner:
            sites.append(_self_referential(name, module))
    return sites


def _self_referential(name: str, module: SelfReferentialLinear) -> Site:
    parts = ("y", "q", "k", "beta", "forget")[: len(module.columns)]
    gates = module.forget_gates
    sizes = (module.num_heads, module.head_dim, module.learning_rates, gates, state_dtype(module.weight))
    return Site(name or "layer", "self_referential", parts, module.columns, *sizes, module)


def _delta_rule(name: str, module: DeltaNet | GatedDeltaNet | SRDeltaNet, weight: Tensor) -> Site:
    gates = 1 if isinstance(module, GatedDeltaNet) else 0
    sizes = (module.num_heads, module.head_dim, 1, gates, state_dtype(weight))
    return Site(name or "layer", "delta_rule", ("fast",), (module.head_dim,), *sizes, module)


def _arguments(x: Tensor, state: Any = None, *, reset: Tensor | None = None) -> tuple[Tensor, Any, Tensor | None]:
    """The arguments of a layer under the contract, however they were given."""
    return x, state, reset


def _listen_to_self_referential(module: SelfReferentialLinear, tell: Callable[[Call], None]) -> list[RemovableHandle]:
    @torch.no_grad()
    def hook(_: nn.Module, args: Any, kwargs: Any, output: tuple[Tensor, SelfReferentialState]) -> None:
        x, state, reset = _arguments(*args, **kwargs)
        if module.reset_every is not None:
            steps = torch.zeros(len(x), dtype=torch.int64, device=x.device) if state is None else state.steps
            reset, _steps = periodic_reset(steps, x.shape[1], reset, module.reset_every)
        heads = activate_input(x.unflatten(-1, (module.num_heads, module.head_dim)), module.input_activation)
        y = output[0].unflatten(-1, (module.num_heads, -1))
        before = None if state is None else state.change
        tell(Call((heads,), module.weight, state is None, before, output[1].change, reset, y))

    return [module.register_forward_hook(hook, with_kwargs=True)]


def _listen_to_delta_rule(
    module: DeltaNet | GatedDeltaNet | SRDeltaNet, tell: Callable[[Call], None]
) -> list[RemovableHandle]:
    programmer: nn.Module = module.self_referential if isinstance(module, SRDeltaNet) else module.projection
    projected: list[Tensor] = []

    def note(_: nn.Module, __: Any, output: Any) -> None:
        projected[:] = [output[0] if isinstance(output, tuple) else output]

    @torch.no_grad()
    def hook(_: nn.Module, args: Any, kwargs: Any, output: tuple[Tensor, Any]) -> None:
        _x, state, reset = _arguments(*args, **kwargs)
        heads = tuple(each for each in module.split_heads(projected.pop()) if each is not None)
        after = _memory_of(output[1]).fast_weight
        before = None if state is None else _memory_of(state).fast_weight
        tell(Call(heads, after.new_zeros(after.shape[1:]), state is None, before, after, reset, None))

    return [programmer.register_forward_hook(note), module.register_forward_hook(hook, with_kwargs=True)]


def _memory_of(state: Any) -> Any:
    """The state of the heads of a layer that may have a convolution before them."""
    return state.memory if isinstance(state, ConvolvedState) else state


def _listen_to_fixed(module: FakeSRWM, tell: Callable[[Call], None]) -> list[RemovableHandle]:
    @torch.no_grad()
    def hook(_: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        x, state, reset = _arguments(*args, **kwargs)
        inputs, _skip = module._inputs_and_skip(x, reset)
        heads = activate_input(inputs.unflatten(-1, module.weight.shape[:2]), module.input_activation)
        tell(Call((heads,), module.weight, state is None, None, None, reset, None))

    return [module.register_forward_hook(hook, with_kwargs=True)]
