"""How far gradients in float32 lie from those in float64, by how much the matrix grows.

The kernels do not keep the matrix of every step, so the backward pass has to find them again; the more a matrix has
grown, the harder that is. Measured are the `cpu` kernels and, as what float32 allows, PyTorch's own gradients of the
reference. Takes about a minute.

python benchmarks/growth.py --json growth.json

docs/tools/pictures.py draws docs/pictures/growth.svg from two such files, one of the kernels as they were up to commit
e2580d5: `git worktree add ../before e2580d5`, then the same command with PYTHONPATH=../before/src before it.
"""

import argparse
import json
import math
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from srwm.ops import delta_rule, self_referential
from srwm.runs.devices import hardware

HEADS, HEAD_DIM, KEYS_STEPS, OUTPUTS_STEPS, SMALL_STEPS = 2, 16, 100, 150, 20


class Problem(NamedTuple):
    """One call of an operator."""

    operator: Callable[..., tuple[Tensor, Tensor]]
    inputs: dict[str, Tensor]
    part: slice
    """The columns of the matrix whose growth counts."""
    of_end: bool = False
    """Whether the loss is one of the end state, too."""


def growing_keys(norm: float, normal: Callable[..., Tensor]) -> Problem:
    """The delta rule with keys of some norm and any direction, at the rate 0.9.

    A step multiplies what lies along its key by 1 - 0.9 norm^2: beyond a norm of 1.5, the matrix grows.
    """
    shape, d = (1, KEYS_STEPS, HEADS), HEAD_DIM
    inputs = {
        "q": normal(*shape, d).softmax(-1),
        "k": norm * torch.nn.functional.normalize(normal(*shape, d), dim=-1),
        "v": normal(*shape, d),
        "beta": torch.full(shape, 0.9, dtype=torch.float64),
        "state": normal(1, HEADS, d, d),
    }
    return Problem(delta_rule, inputs, slice(None))


def growing_outputs(rate: float, normal: Callable[..., Tensor]) -> Problem:
    """A self-referential matrix whose part for y grows, at a rate of learning.

    Its inputs begin with a one, and the first row of the matrix says what comes of it: always about the same query and
    key, along which a step multiplies the y part by 1 + rate (q - k) k; and rates near zero for the other parts.
    """
    d = HEAD_DIM
    x, weight = 0.1 * normal(1, OUTPUTS_STEPS, HEADS, d), 0.025 * normal(HEADS, d, 3 * d + 4)
    x[..., 0] = 1.0
    weight[:, 0, d : 3 * d] = 0.0
    weight[:, 0, d] = 15.0  # the query points to the first row,
    weight[:, 0, 2 * d] = math.log(d - 1)  # the key to half of it
    weight[:, 0, 3 * d] = math.log(rate / (1 - rate))
    weight[:, 0, 3 * d + 1 :] = -14.0
    return Problem(self_referential, {"x": x, "weight": weight}, slice(d))


def small_inputs(size: float, normal: Callable[..., Tensor]) -> Problem:
    """A matrix that hardly changes, so that its weight gets little of the gradient of the end state."""
    d = HEAD_DIM
    inputs = {"x": size * normal(2, SMALL_STEPS, HEADS, d), "weight": normal(HEADS, d, 3 * d + 4) / math.sqrt(d)}
    return Problem(self_referential, inputs, slice(d), of_end=True)


CASES: dict[str, tuple[Callable[..., Problem], str, list[float]]] = {
    "delta_rule, long keys": (growing_keys, "norm of keys", [1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.1, 2.2, 2.3, 2.4]),
    "self_referential, growing outputs": (
        growing_outputs,
        "rate",
        [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
    ),
    "self_referential, small inputs": (small_inputs, "size of inputs", [1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6]),
}
"""Problems by a number, what that number is, and its values."""


def gradients(problem: Problem, backend: str, dtype: torch.dtype) -> tuple[dict[str, Tensor], float]:
    """The gradients of a linear loss with random weights, and how much larger the matrix is at the end."""
    leaves = {name: each.to(dtype, copy=True).requires_grad_() for name, each in problem.inputs.items()}
    y, end = problem.operator(*leaves.values(), backend=backend)
    generator = torch.Generator().manual_seed(1000)
    weights = [torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in (y, end)]
    loss = (weights[0] * y.double()).sum() + problem.of_end * (weights[1] * end.double()).sum()
    grads = torch.autograd.grad(loss, list(leaves.values()))
    first, last = leaves.get("state", leaves.get("weight")), end + leaves.get("weight", 0.0)
    grown = (last[..., problem.part].norm() / first[..., problem.part].norm()).item()
    return dict(zip(leaves, grads, strict=True)), grown


def measure(make: Callable[..., Problem], number: float, seeds: int) -> dict[str, Any]:
    """The largest relative error of any gradient in any seed: root mean square, over that of the true gradient."""
    grown: list[float] = []
    errors: dict[str, list[Tensor]] = {"cpu": [], "reference": []}
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        problem = make(number, lambda *shape, to=generator: torch.randn(shape, generator=to, dtype=torch.float64))
        # All begin with the same numbers, those that float32 has.
        rounded = problem._replace(inputs={name: each.float().double() for name, each in problem.inputs.items()})
        truth, times = gradients(rounded, "reference", torch.float64)
        grown.append(times)
        for backend, of_backend in errors.items():
            found, _ = gradients(rounded, backend, torch.float32)
            of_backend += [(found[each].double() - truth[each]).norm() / truth[each].norm() for each in truth]
    # The largest of tensors, because that of floats may pass over a NaN.
    kernel, reference = (torch.stack(each).max().item() for each in errors.values())
    return {"grown": grown, "kernel": kernel, "reference": reference}


def main() -> None:
    """Print the table and write it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="(default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the results, too")
    args = parser.parse_args()
    torch.set_num_threads(1)  # the tensors are small
    console, rows = Console(), []
    for case, (make, what, numbers) in CASES.items():
        table = Table(what, "grown", "kernel", "reference", title=case)
        for number in numbers:
            row = {"case": case, what: number, **measure(make, number, args.seeds)}
            least, most = min(row["grown"]), max(row["grown"])
            table.add_row(
                f"{number:g}", f"{least:.0e} to {most:.0e}", *(f"{row[how]:.0e}" for how in ("kernel", "reference"))
            )
            rows.append(row)
        console.print(table)
    if args.json:
        about = {**hardware(torch.device("cpu")), "date": date.today().isoformat(), "seeds": args.seeds}
        args.json.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
