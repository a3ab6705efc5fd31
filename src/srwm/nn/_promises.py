"""The promises of the contract of sequence layers, one function each: it tries, and says what is broken."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any

import torch
from torch import Tensor, nn

from ._state import map_state


@dataclass(frozen=True)
class Trial:
    """A layer, inputs for it, and what it made of the first."""

    layer: Any
    x: Tensor
    other_x: Tensor
    tolerance: float
    y: Tensor
    state: Any

    @property
    def middle(self) -> int:
        """A step inside the sequence."""
        return self.x.shape[1] // 2

    @property
    def some_rows(self) -> Tensor:
        """Every other row, as bool [b]."""
        return torch.arange(len(self.x), device=self.x.device) % 2 == 0

    def reset_at(self, step: int, rows: Tensor) -> Tensor:
        """A mask [b, t] that resets these rows before this step."""
        mask = torch.zeros(self.x.shape[:2], dtype=torch.bool, device=self.x.device)
        mask[:, step] = rows
        return mask

    def differ(self, a: Any, b: Any) -> bool:
        """Whether two tensors or states differ by more than rounding."""
        pairs = list(zip(leaves(a), leaves(b), strict=True))
        return any(one.shape != two.shape or not self._close(one, two) for one, two in pairs)

    def _close(self, a: Tensor, b: Tensor) -> bool:
        if a.numel() == 0:
            return True
        a, b = a.double(), b.double()
        return bool((a - b).abs().max() <= self.tolerance * (1 + b.abs().max()))


def leaves(state: Any) -> list[Tensor]:
    """List the tensors of a state."""
    if isinstance(state, Tensor):
        return [state]
    if isinstance(state, tuple):
        return [leaf for part in state for leaf in leaves(part)]
    raise TypeError(f"a state holds a {type(state).__name__}")


def describe_call(result: Any, x: Tensor) -> tuple[list[str], list[str]]:
    """Say what is wrong with what `layer(x)` returned: first what leaves nothing to try further, then the rest."""
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], Tensor)):
        came = f"a tuple of {len(result)}" if isinstance(result, tuple) else f"a {type(result).__name__}"
        return [f"forward returned {came}; expected the pair (y, state)."], []
    y, state = result
    if y.dim() != 3 or y.shape[:2] != x.shape[:2]:
        return [f"y has shape {list(y.shape)}; expected [b, t, features] = {list(x.shape[:2])} and the features."], []
    try:
        tensors = leaves(state)
    except TypeError as error:
        return [f"{error}; expected a NamedTuple of tensors, or of such NamedTuples."], []
    broken = []
    if (y.dtype, y.device) != (x.dtype, x.device):
        broken.append(f"y is {y.dtype} on {y.device}; expected {x.dtype} on {x.device}, as x is.")
    if not hasattr(state, "_fields"):
        broken.append(f"The state is a {type(state).__name__}; expected a NamedTuple, so that its parts have names.")
    lacking = [method for method in ("detach", "reset") if not callable(getattr(state, method, None))]
    broken += [f"The state has no method {method}." for method in lacking]
    for tensor in tensors:
        if tensor.shape[:1] != x.shape[:1]:
            broken.append(
                f"A tensor of the state has shape {list(tensor.shape)}; expected batch first: [{len(x)}, ...]."
            )
        if tensor.device != x.device:
            broken.append(f"A tensor of the state is on {tensor.device}; expected {x.device}, where x is.")
    return [], broken


@torch.no_grad()
def zeros_are_new(trial: Trial) -> Iterator[str]:
    """A state of zeros equals no state."""
    zeros = map_state(torch.zeros_like, trial.state)
    if trial.differ(trial.layer(trial.x, zeros), (trial.y, trial.state)):
        yield "A state of zeros does not equal state=None: zeros must mean a new episode."
    if hasattr(trial.layer, "initial_state"):
        initial = trial.layer.initial_state(len(trial.x))
        if type(initial) is not type(zeros) or trial.differ(initial, zeros):
            yield "initial_state(b) is not a state of zeros like the one that forward returns."


@torch.no_grad()
def split_equals_whole(trial: Trial) -> Iterator[str]:
    """A sequence cut in two, with the state carried over, equals the whole."""
    time = trial.x.shape[1]
    wrong_y, wrong_state = [], []
    for cut in range(1, time):
        y1, state = trial.layer(trial.x[:, :cut])
        y2, state = trial.layer(trial.x[:, cut:], state)
        if trial.differ(torch.cat([y1, y2], dim=1), trial.y):
            wrong_y.append(cut)
        if trial.differ(state, trial.state):
            wrong_state.append(cut)
    if wrong_y:
        yield f"A sequence of {time} steps cut after {wrong_y[0]}, state carried over, does not give the whole's y."
    if wrong_state:
        yield f"A sequence of {time} steps cut after {wrong_state[0]} does not end in the whole's state."


@torch.no_grad()
def steps_equal_whole(trial: Trial) -> Iterator[str]:
    """`layer.step`, repeated, equals the whole."""
    ys, state = [], None
    for t in range(trial.x.shape[1]):
        y_t, state = trial.layer.step(trial.x[:, t], state)
        if y_t.shape != trial.y[:, t].shape:
            yield f"step returned y_t of shape {list(y_t.shape)}; expected [b, features] = {list(trial.y[:, t].shape)}."
            return
        ys.append(y_t)
    if trial.differ(torch.stack(ys, dim=1), trial.y):
        yield "step, repeated, does not give the y of the whole sequence."
    if trial.differ(state, trial.state):
        yield "step, repeated, does not end in the state of the whole sequence."


@torch.no_grad()
def reads_equal_steps(trial: Trial) -> Iterator[str]:
    """`layer.read`, where there is one, answers each input as a step from the same state would, and changes nothing."""
    if not hasattr(trial.layer, "read"):
        return
    inputs = trial.other_x
    for state in (None, trial.state):
        steps = [trial.layer.step(inputs[:, i], state)[0] for i in range(inputs.shape[1])]
        if trial.differ(trial.layer.read(inputs, state), torch.stack(steps, dim=1)):
            yield "read does not answer each input as a step from the same state does."
            return


@torch.no_grad()
def reset_starts_anew(trial: Trial) -> Iterator[str]:
    """A reset inside a sequence equals a fresh start there."""
    rows, at = trial.some_rows, trial.middle
    y, state = trial.layer(trial.x, reset=trial.reset_at(at, rows))
    fresh = trial.layer(trial.x[:, at:])
    if trial.differ(_rows((y[:, at:], state), rows), _rows(fresh, rows)):
        yield "A reset inside the sequence does not equal a fresh start there."
    kept = (_rows((y, state), ~rows), y[rows, :at])
    if trial.differ(kept, (_rows((trial.y, trial.state), ~rows), trial.y[rows, :at])):
        yield "A reset inside the sequence changes rows, or steps, that it does not concern."


@torch.no_grad()
def reset_forgets_the_given_state(trial: Trial) -> Iterator[str]:
    """A reset at the first step makes the given state new."""
    rows = trial.some_rows
    expected = trial.layer(trial.other_x, map_state(lambda part: _zero(part, rows), trial.state))
    if trial.differ(trial.layer(trial.other_x, trial.state, reset=trial.reset_at(0, rows)), expected):
        yield "A reset at the first step does not make the given state new."
    y_t, state = trial.layer.step(trial.other_x[:, 0], trial.state, reset=rows)
    whole = trial.layer(trial.other_x[:, :1], trial.state, reset=rows[:, None])
    if trial.differ((y_t[:, None], state), whole):
        yield "step with reset= does not equal the layer called with one step and that reset."


def no_gradient_crosses_a_reset(trial: Trial) -> Iterator[str]:
    """The gradient of what comes before a reset is exactly zero."""
    at, everywhere = trial.middle, torch.ones_like(trial.some_rows)
    x = trial.x.clone().requires_grad_()
    y, state = trial.layer(x, reset=trial.reset_at(at, everywhere))
    (gradient,) = _gradients((y[:, at:], state), [x])
    if gradient[:, :at].any():
        yield "Gradient crosses a reset: an input before it gets a gradient from outputs after it."
    given = map_state(_leaf, trial.state)
    gradients = _gradients(trial.layer(trial.x, given, reset=trial.reset_at(0, everywhere)), _floating(given))
    if any(gradient.any() for gradient in gradients):
        yield "Gradient crosses a reset: the given state gets a gradient though the first step resets it."


def gradient_flows_through_the_state(trial: Trial) -> Iterator[str]:
    """The gradient through a carried state equals that through the whole sequence."""
    cut = trial.middle
    x = trial.x.clone().requires_grad_()
    y, state = trial.layer(x)
    (whole,) = _gradients((y[:, cut:], state), [x])
    _, carried = trial.layer(x[:, :cut])
    (split,) = _gradients(trial.layer(x[:, cut:], carried), [x])
    if trial.differ(split, whole):
        yield "Gradient through a carried state differs from that through the whole sequence: is the state detached?"


def detach_cuts_the_gradient(trial: Trial) -> Iterator[str]:
    """`state.detach()` returns the same values without a gradient."""
    _, state = trial.layer(trial.x.clone().requires_grad_())
    detached = state.detach()
    if type(detached) is not type(state) or trial.differ(detached, state):
        yield "state.detach() does not return the same state."
    elif any(leaf.requires_grad for leaf in leaves(detached)):
        yield "state.detach() does not cut the gradient."


@torch.no_grad()
def state_reset_zeroes_rows(trial: Trial) -> Iterator[str]:
    """`state.reset(is_first)` makes these rows new and no others."""
    rows = trial.some_rows
    before = map_state(torch.clone, trial.state)
    after = trial.state.reset(rows)
    if type(after) is not type(before) or trial.differ(after, map_state(lambda part: _zero(part, rows), before)):
        yield "state.reset(is_first) does not return the state with those rows zero and the others as they were."
    if not _same_bits(trial.state, before):
        yield "state.reset(is_first) changes the state it is called on; it must return a new one."


@torch.no_grad()
def arguments_stay(trial: Trial) -> Iterator[str]:
    """No argument is changed."""
    given = {"x": trial.x, "state": trial.state, "reset": trial.reset_at(trial.middle, trial.some_rows)}
    given = {name: map_state(torch.clone, value) for name, value in given.items()}
    copies = {name: map_state(torch.clone, value) for name, value in given.items()}
    trial.layer(given["x"], given["state"], reset=given["reset"])
    for name, value in given.items():
        if not _same_bits(value, copies[name]):
            yield f"forward changes its argument {name} in place."


@torch.no_grad()
def nothing_is_kept(trial: Trial) -> Iterator[str]:
    """Nothing is kept on the module between calls."""
    before = _contents(trial.layer)
    trial.layer(trial.other_x)
    after = _contents(trial.layer)
    changed = [name for name in {**before, **after} if not _same_content(before.get(name), after.get(name))]
    if changed:
        yield f"A call changes the module: {', '.join(changed)}; what is to be remembered belongs in the state."
    if trial.differ(trial.layer(trial.x), (trial.y, trial.state)):
        yield "The same call gives another result after a call in between."


@torch.no_grad()
def rows_do_not_mix(trial: Trial) -> Iterator[str]:
    """The rows of a batch do not depend on each other."""
    x = trial.x.clone()
    x[0] = trial.other_x[0]
    others = torch.arange(len(x), device=x.device) > 0
    if trial.differ(_rows(trial.layer(x), others), _rows((trial.y, trial.state), others)):
        yield "The rows of a batch mix: another input in row 0 changes what other rows give."


def every_parameter_learns(trial: Trial) -> Iterator[str]:
    """Every parameter gets a gradient from the outputs of a sequence."""
    named = {name: p for name, p in trial.layer.named_parameters() if p.requires_grad}
    gradients = _gradients(trial.layer(trial.x)[0], list(named.values()))
    idle = [name for name, gradient in zip(named, gradients, strict=True) if not gradient.any()]
    if idle:
        yield f"No gradient reaches {', '.join(idle)}; if that is meant, pass every_parameter_learns=False."


PROMISES: tuple[Callable[[Trial], Iterator[str]], ...] = (
    zeros_are_new,
    split_equals_whole,
    steps_equal_whole,
    reads_equal_steps,
    reset_starts_anew,
    reset_forgets_the_given_state,
    no_gradient_crosses_a_reset,
    gradient_flows_through_the_state,
    detach_cuts_the_gradient,
    state_reset_zeroes_rows,
    arguments_stay,
    nothing_is_kept,
    rows_do_not_mix,
    every_parameter_learns,
)


def _rows(state: Any, rows: Tensor) -> Any:
    return map_state(lambda part: part[rows], state)


def _zero(part: Tensor, rows: Tensor) -> Tensor:
    part = part.clone()
    part[rows] = 0
    return part


def _leaf(part: Tensor) -> Tensor:
    return part.clone().requires_grad_(part.is_floating_point())


def _floating(state: Any) -> list[Tensor]:
    return [leaf for leaf in leaves(state) if leaf.is_floating_point()]


def _gradients(outputs: Any, inputs: list[Tensor]) -> list[Tensor]:
    """Differentiate a non-linear, randomly weighted sum of all outputs; what is not reached has gradient zero."""
    generator = torch.Generator().manual_seed(1)
    loss = torch.zeros((), dtype=torch.float64)
    for output in _floating(outputs):
        weights = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        loss = loss + (weights * output.double().cpu().sin()).sum()
    if not inputs or not loss.requires_grad:
        return [torch.zeros_like(tensor) for tensor in inputs]
    return list(torch.autograd.grad(loss, inputs, materialize_grads=True))


def _same_bits(a: Any, b: Any) -> bool:
    return all(torch.equal(one, two) for one, two in zip(leaves(a), leaves(b), strict=True))


def _contents(layer: nn.Module) -> dict[str, Any]:
    """Copy what a module and its parts hold: parameters, buffers and attributes."""
    held = {}
    for path, module in layer.named_modules():
        attributes = {name: value for name, value in vars(module).items() if name not in ("_parameters", "_buffers")}
        for name, value in {**attributes, **module._parameters, **module._buffers}.items():
            held[f"{path}.{name}" if path else name] = _copy(value)
    return held


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return _copy(tuple(value.items()))
    if isinstance(value, (tuple, list)):
        return tuple(_copy(part) for part in value)
    # Of anything else, only the kind: two copies of an arbitrary object need not compare equal.
    return value if isinstance(value, (int, float, str, NoneType)) else type(value)


def _same_content(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return torch.equal(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same_content, a, b))
    return type(a) is type(b) and bool(a == b)
