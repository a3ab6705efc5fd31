"""Sequences in which the matrix grows, and how far gradients in float32 lie from those in float64.

Needs nothing but torch and srwm, so that the tests on a GPU can run without pytest.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .inputs import Problem, make, normal, solve
from .tolerances import distance

RIGHT = 1e-5
"""Where the reference in float32 is this near to float64, the kernels are held to their tolerance."""

RATE = 0.9
"""The learning rate of growing keys."""


class Part(NamedTuple):
    """A linear loss on some of the outputs, and on the end state if `end` is true."""

    first: float = 0.0
    last: float = 1.0
    end: bool = False

    def loss(self, y: Tensor, end: Tensor) -> Tensor:
        """The sum of the chosen outputs with random weights: its gradient does not depend on how large they are."""
        chosen = slice(math.floor(self.first * y.shape[1]), math.ceil(self.last * y.shape[1]))
        loss = (normal(*y.shape, seed=101, device=y.device) * y.double())[:, chosen].sum()
        return loss + (normal(*end.shape, seed=102, device=end.device) * end.double()).sum() if self.end else loss


PARTS = {
    "all": Part(),
    "first half": Part(last=0.5),
    "first tenth": Part(last=0.1),
    "second half": Part(first=0.5),
    "end state": Part(first=1.0, end=True),
    "all and end state": Part(end=True),
}


def with_keys(norm: float, b: int, t: int, h: int, d: int, seed: int = 0) -> Problem:
    """The delta rule with keys of some norm and any direction, from no state."""
    problem = make("delta_rule", b, t, h, d, seed=seed)
    k = norm * torch.nn.functional.normalize(normal(b, t, h, d, seed=seed + 10), dim=-1)
    q, beta = normal(b, t, h, d, seed=seed + 11), torch.full((b, t, h), RATE, dtype=torch.float64)
    return problem.but(q=q, k=k, beta=beta, state=None)


def with_normal_keys(b: int, t: int, h: int, d: int, seed: int = 0) -> Problem:
    """The same with keys from a normal distribution of deviation 0.8."""
    return with_keys(1.0, b, t, h, d, seed).but(k=0.8 * normal(b, t, h, d, seed=seed + 10))


def growing_keys(growth: float, b: int, t: int, h: int, d: int, seed: int = 0) -> Problem:
    """The same with keys of such a norm that the matrix becomes about `growth` times as large.

    A step multiplies what lies along its key by 1 - RATE norm^2 = -f, and so the square of the matrix by
    1 + (f^2 - 1) / d on average.
    """
    f = math.sqrt(1 + d * (growth ** (2 / t) - 1))
    return with_keys(math.sqrt((1 + f) / RATE), b, t, h, d, seed)


def with_a_large_value(size: float, at: int, b: int, t: int, h: int, d: int, seed: int = 0) -> Problem:
    """The delta rule with keys from a softmax, and one value `size` times as large as the others."""
    problem = make("delta_rule", b, t, h, d, seed=seed)
    v = problem.tensors["v"].clone()
    v[:, at] *= size
    return problem.but(v=v)


def decaying(problem: Problem, least: float, zeros: float = 0.0, seed: int = 0) -> Problem:
    """The same problem with decays from `least` to 1, evenly on a logarithmic scale, and a share of them zero."""
    generator = torch.Generator().manual_seed(seed)
    first = next(iter(problem.timed.values()))
    drawn, is_zero = torch.rand(2, *first.shape[:3], generator=generator, dtype=torch.float64)
    decay = torch.where(is_zero < zeros, 0.0, least**drawn)
    return problem.but(decay=decay.to(first))


def growing_outputs(growth: float, b: int, t: int, h: int, d: int, others: float = -14.0, seed: int = 0) -> Problem:
    """A self-referential matrix whose part for y becomes about `growth` times as large.

    Its inputs begin with a one, and the first row of the matrix says what comes of it: always the same query and key,
    along which a step multiplies the y part by 1 + rate (q - k) k, and such rates; `others` is what goes into the
    sigmoid for the rates of the other parts.
    """
    problem = make("self_referential", b, t, h, d, seed=seed, state=False)
    x, weight = 0.1 * problem.tensors["x"], 0.1 * problem.tensors["weight"]
    logits = torch.zeros(2, d, dtype=torch.float64)
    logits[0, 0], logits[1, 0] = 15.0, math.log(max(d - 1, 2))
    q, k = logits.softmax(-1)
    rate = min((growth ** (1 / t) - 1) / ((q - k) @ k).item(), 0.99)
    x[..., 0] = 1.0
    weight[:, 0, d : 3 * d] = logits.flatten()
    weight[:, 0, 3 * d] = math.log(rate / (1 - rate))
    weight[:, 0, 3 * d + 1 :] = others
    return problem.but(x=x, weight=weight)


def with_small_inputs(size: float, b: int, t: int, h: int, d: int) -> Problem:
    """A self-referential matrix that hardly changes, so that its weight gets little of the end state's gradient."""
    problem = make("self_referential", b, t, h, d, state=False)
    return problem.but(x=size * problem.tensors["x"])


def with_few_resets(problem: Problem, share: float = 0.02, seed: int = 0) -> Problem:
    """The same problem with a reset at some of its steps."""
    first = next(iter(problem.timed.values()))
    drawn = torch.rand(first.shape[:2], generator=torch.Generator().manual_seed(seed))
    return problem.with_reset((drawn < share).to(first.device))


def errors(problem: Problem, backend: str, part: Part) -> dict[str, tuple[float, float]]:
    """How far each gradient in float32 lies from float64: the reference's, and a backend's."""
    truth = solve(problem, "reference", part.loss)
    reference, found = (solve(problem.to(torch.float32), how, part.loss) for how in ("reference", backend))
    names = [name for name in truth if name.startswith("d ")]
    return {name: tuple(distance(each[name], truth[name], "relative") for each in (reference, found)) for name in names}  # type: ignore[misc]


def worst_error(problem: Problem, backend: str, part: Part) -> float:
    """The largest error of a backend among the gradients for which the reference in float32 is right."""
    return max(
        (found for reference, found in errors(problem, backend, part).values() if reference <= RIGHT), default=0.0
    )
