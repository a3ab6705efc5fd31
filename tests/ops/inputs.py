"""What the tests of the operators share: problems to solve, ways to solve them, and comparisons by name.

Needs nothing but torch and srwm, so that the tests on a GPU can run without pytest.
"""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from srwm.ops import delta_rule, self_referential

from .tolerances import TOLERANCES, assert_near, distance

OPERATORS: dict[str, Callable[..., tuple[Tensor, Tensor]]] = {
    "self_referential": self_referential,
    "delta_rule": delta_rule,
}

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gated self_referential": ("self_referential", {"gates": 2, "keys": "l2", "clip": 1.5}),
    "gated delta_rule": ("delta_rule", {"decay": True}),
}
"""Operators with other options than by default, by the names under which tests draw their problems: see `make`."""

TIMELESS = ("weight", "state")
"""Inputs that stay the same from step to step; all others are [b, t, h, ...]."""

Results = dict[str, Tensor]
"""What a call gives, by name: y, end, and "d NAME" for the gradient of the input of that name."""


@dataclasses.dataclass(frozen=True)
class Problem:
    """One call of an operator."""

    operator: str
    inputs: Mapping[str, Tensor | None]
    """By the names of the signature. `state` and `decay` may be None."""
    reset: Tensor | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __call__(self, backend: str) -> tuple[Tensor, Tensor]:
        """Solve it: y and the end state."""
        return OPERATORS[self.operator](**self.inputs, reset=self.reset, backend=backend, **self.options)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The inputs that are there."""
        return {name: tensor for name, tensor in self.inputs.items() if tensor is not None}

    @property
    def timed(self) -> dict[str, Tensor]:
        """The inputs that run along time."""
        return {name: tensor for name, tensor in self.tensors.items() if name not in TIMELESS}

    @property
    def steps(self) -> int:
        """How many steps it has."""
        return next(iter(self.timed.values())).shape[1]

    @property
    def sets_dtype(self) -> str:
        """The name of the input whose dtype y has."""
        return "x" if self.operator == "self_referential" else "v"

    def but(self, **inputs: Tensor | None) -> "Problem":
        """The same problem with some inputs replaced."""
        return dataclasses.replace(self, inputs={**self.inputs, **inputs})

    def with_reset(self, reset: Tensor | None) -> "Problem":
        """The same problem with other resets."""
        return dataclasses.replace(self, reset=reset)

    def map(self, change: Callable[[Tensor], Tensor]) -> "Problem":
        """The same problem with every input changed."""
        return self.but(**{name: change(tensor) for name, tensor in self.tensors.items()})

    def to(self, to: torch.dtype | str) -> "Problem":
        """The same problem in another dtype, or on another device."""
        moved = self.map(lambda tensor: tensor.to(to))
        keeps_reset = self.reset is None or isinstance(to, torch.dtype)
        return moved if keeps_reset else moved.with_reset(self.reset.to(to))

    def cut(self, first: int | None, last: int | None, state: Tensor | None) -> "Problem":
        """Its steps from `first` up to `last`, beginning from a state."""
        timed = {name: tensor[:, first:last] for name, tensor in self.timed.items()}
        return self.but(**timed, state=state).with_reset(None if self.reset is None else self.reset[:, first:last])

    def rows(self, rows: slice) -> "Problem":
        """Some rows of its batch."""
        chosen = {name: tensor[rows] for name, tensor in self.tensors.items() if name != "weight"}
        return self.but(**chosen).with_reset(None if self.reset is None else self.reset[rows])

    def leaves(self, names: Iterable[str] | None = None) -> "Problem":
        """The same problem with inputs that gather gradients: those named, or all."""
        chosen = set(self.tensors if names is None else names)
        return self.but(**{name: each.detach().requires_grad_(name in chosen) for name, each in self.tensors.items()})


def normal(*shape: int, seed: int, device: torch.device | str = "cpu") -> Tensor:
    """Draw float64 from the standard normal distribution: the same numbers on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(device)


def some_resets(b: int, t: int, seed: int = 0) -> Tensor:
    """A mask that resets about a quarter of the steps, each row at its own."""
    return torch.rand(b, t, generator=torch.Generator().manual_seed(seed)) < 0.25


class Case(NamedTuple):
    """The sizes and options of a problem."""

    b: int = 2
    t: int = 4
    h: int = 1
    d: int = 3
    out: int | None = None
    """The size of y; None is that of a head."""
    rates: int = 4
    state: bool = True
    reset: bool = False
    keys: str = "softmax"
    """How a self-referential matrix makes its keys."""
    gates: int = 0
    """How many gates a self-referential matrix forgets by."""
    clip: float = math.inf
    """Limit of the differences of a self-referential matrix; they are about 1."""
    decay: bool = False
    """Whether the matrix of the delta rule decays: mostly by a tenth a step, at some steps almost to nothing."""


def make(operator: str, *args: Any, dtype: torch.dtype = torch.float64, seed: int = 0, **sizes: Any) -> Problem:
    """Draw the problem of a `Case`, given as its fields, for an operator or a variant; the numbers are about 1."""
    operator, options_of_variant = VARIANTS.get(operator, (operator, {}))
    case = Case(*args, **sizes)
    given = {name for name, default in Case._field_defaults.items() if getattr(case, name) != default}
    case = case._replace(**{name: value for name, value in options_of_variant.items() if name not in given})
    b, t, h, d, out, rates, state, reset, keys, gates, clip, decay = case
    out = d if out is None else out
    if operator == "self_referential":
        m = out + 2 * d + rates + gates
        drawn = {
            "x": normal(b, t, h, d, seed=seed),
            "weight": normal(h, d, m, seed=seed + 1) / d**0.5,
            "state": 0.3 * normal(b, h, d, m, seed=seed + 2) / d**0.5,
        }
    else:
        drawn = {
            "q": normal(b, t, h, d, seed=seed).softmax(-1),
            "k": normal(b, t, h, d, seed=seed + 1).softmax(-1),
            "v": normal(b, t, h, out, seed=seed + 2),
            "beta": normal(b, t, h, seed=seed + 3).sigmoid(),
            "state": 0.3 * normal(b, h, d, out, seed=seed + 4),
            "decay": (2 + 2 * normal(b, t, h, seed=seed + 5)).sigmoid() if decay else None,
        }
    options: dict[str, Any] = {}
    if operator == "self_referential":
        # All of them, in the order in which the registered operator takes them. A bias of zero, so that the gates are
        # half open.
        options = {
            "learning_rates": rates,
            "key_map": keys,
            "forget_gates": gates,
            "forget_min": 1e-4,
            "forget_max": 0.1,
            "forget_bias": 0.0,
            "difference_clip": clip,
        }
    problem = Problem(operator, drawn, some_resets(b, t, seed) if reset else None, options).to(dtype)
    return problem if state else problem.but(state=None)


def random_loss(y: Tensor, end: Tensor) -> Tensor:
    """A non-linear loss that weighs every element differently."""
    of_y = normal(*y.shape, seed=101, device=y.device) * y.double().sin()
    of_end = normal(*end.shape, seed=102, device=end.device) * end.double().sin()
    return of_y.sum() + of_end.sum()


def solve(
    problem: Problem,
    how: str | Callable[[Problem], tuple[Tensor, Tensor]],
    loss: Callable[[Tensor, Tensor], Tensor] = random_loss,
) -> Results:
    """Everything a problem gives: y, end, and the gradients of a loss for all its inputs.

    Args:
        problem: what to solve.
        how: a backend, or a function that gives y and end.
        loss: of y and end.
    """
    leaves = problem.leaves()
    y, end = leaves(how) if isinstance(how, str) else how(leaves)
    names = [f"d {name}" for name in leaves.tensors]
    grads = torch.autograd.grad(loss(y, end), list(leaves.tensors.values()), materialize_grads=True)
    return {"y": y.detach(), "end": end.detach(), **dict(zip(names, grads, strict=True))}


def assert_same(found: Results, expected: Results) -> None:
    """Check that all results are equal in every bit."""
    assert found.keys() == expected.keys()
    different = [name for name in expected if not torch.equal(found[name], expected[name])]
    if different:
        raise AssertionError(f"these differ: {', '.join(different)}")


def assert_agree(problem: Problem, found: Results, expected: Results, kind: str, floor: float = 0.0) -> None:
    """Check all results against the rows "KIND values" and "KIND gradients" of the table of tolerances.

    Where the table has "KIND end", the end state of `self_referential` is compared as the matrix it is a part of.
    """
    assert found.keys() == expected.keys()
    for name in expected:
        one, two = found[name], expected[name]
        row = f"{kind} gradients" if name.startswith("d ") else f"{kind} values"
        weight = problem.inputs.get("weight")
        if name == "end" and weight is not None and f"{kind} end" in TOLERANCES:
            row = f"{kind} end"
            one, two = (each.double() + weight.to(each.device).double() for each in (one, two))
        try:
            assert_near(one, two, row, floor)
        except AssertionError as problem_found:
            raise AssertionError(f"{name}: {problem_found}") from None


def assert_within_the_error_of_half_precision(found: Results, reference: Results, truth: Results) -> None:
    """Check all results against twice the error of the reference on the same half-precision inputs, and a little."""
    extra, measure, _ = TOLERANCES["half precision"]
    for name in truth:
        error, allowed = (distance(each[name], truth[name], measure) for each in (found, reference))
        if not error <= 2 * allowed + extra:
            raise AssertionError(f"{name}: {measure} distance {error:.2e}; the reference's is {allowed:.2e}")
