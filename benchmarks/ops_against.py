"""Times the operators of this checkout against those of another one, all in one run.

    git worktree add ../other COMMIT
    python benchmarks/ops_against.py ../other/src [--device cuda] [--graph]

On a GPU, short calls last as long as Python takes to launch them; with `--graph` each call is captured in a CUDA graph
and replayed, as in our trainings, which leaves the time of the kernels alone. Prints milliseconds, forward / forward
and backward, their ratios, this checkout over the other, and whether all outputs and gradients are bitwise equal.
"""

import argparse
import importlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

import srwm.ops
from srwm.bench._measure import interleaved_ms
from srwm.bench.ops import CPU_CASES, GPU_CASES, Case
from srwm.runs.cuda_graph import record

# The other checkout may know nothing of forgetting.
SHORT = [Case("self_referential", 32, 16, 6, 16), Case("delta_rule", 32, 16, 6, 16)]
CASES = {
    "cpu": [*(case for case in CPU_CASES if not case.operator.startswith("gated")), *SHORT],
    "cuda": [case for case in GPU_CASES if not case.operator.startswith("gated")],
}


def other_operators(source: Path, folder: Path) -> ModuleType:
    """The operators of another checkout, under names of their own, so that both can be loaded at once."""
    shutil.copytree(source / "srwm" / "ops", folder / "other" / "ops", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "other" / "__init__.py").touch()
    for file in (folder / "other").rglob("*.py"):
        file.write_text(file.read_text().replace('"srwm::', '"other::'))
    sys.path.insert(0, str(folder))
    return importlib.import_module("other.ops")


def inputs_of(case: Case, device: torch.device) -> list[Tensor]:
    """The inputs of an operator, which gather gradients."""
    b, h, t, d = case.batch, case.heads, case.steps, case.head_dim
    generator = torch.Generator(device).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=device)

    if case.operator == "self_referential":
        drawn = [draw(b, t, h, d), draw(h, d, 3 * d + 4) / d**0.5]
    else:
        drawn = [draw(b, t, h, d).softmax(-1), draw(b, t, h, d).softmax(-1), draw(b, t, h, d), draw(b, t, h).sigmoid()]
    return [each.requires_grad_() for each in drawn]


def measure(
    case: Case, here: ModuleType, other: ModuleType, device: torch.device, budget_s: float, *, graph: bool
) -> dict[str, float]:
    """Milliseconds of forward, and of forward and backward, with and without a gradient of the end state."""
    inputs = inputs_of(case, device)
    y, end = getattr(here, case.operator)(*inputs)
    dy, dend = torch.randn_like(y), torch.randn_like(end)

    def with_gradients(run: Callable[..., tuple[Tensor, Tensor]], *gradients: Tensor) -> object:
        # Gradients arrive on the stream that leaves were made on: in a capture, that of the capture.
        leaves = [each.detach().requires_grad_() for each in inputs] if graph else inputs
        return torch.autograd.grad(run(*leaves)[: len(gradients)], leaves, gradients)

    calls: dict[str, Callable[[], object]] = {}
    for name, operators in (("here", here), ("other", other)):
        run = getattr(operators, case.operator)
        calls[f"{name} forward"] = lambda run=run: run(*inputs)
        calls[f"{name} both"] = lambda run=run: with_gradients(run, dy)
        calls[f"{name} with end"] = lambda run=run: with_gradients(run, dy, dend)
    if graph:
        calls = {name: record(_without_result(call)) for name, call in calls.items()}
    return interleaved_ms(calls, device, budget_s)


def _without_result(call: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        call()

    return run


def are_equal(case: Case, here: ModuleType, other: ModuleType, device: torch.device) -> bool:
    """Whether both checkouts give the same outputs and gradients, bitwise."""
    inputs = inputs_of(case, device)
    found = []
    for operators in (here, other):
        y, end = getattr(operators, case.operator)(*inputs)
        found.append((y, end, *torch.autograd.grad((y, end), inputs, (y.detach(), end.detach()))))
    return all(map(torch.equal, *found))


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the folder `src` of the other checkout")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each call is repeated")
    parser.add_argument("--graph", action="store_true", help="replay each call from a CUDA graph")
    parser.add_argument("--most-steps", type=int, default=None, help="leave out the cases of more steps")
    args = parser.parse_args()
    device = torch.device(args.device)
    if args.graph and device.type != "cuda":
        parser.error("expected --device cuda with --graph")
    with tempfile.TemporaryDirectory() as folder:
        other = other_operators(args.other, Path(folder))
        for case in CASES[device.type]:
            if not case.gradients or (args.most_steps is not None and case.steps > args.most_steps):
                continue
            ms = measure(case, srwm.ops, other, device, args.seconds, graph=args.graph)
            print(f"{case.operator} {case.shape}", end="")
            for name in ("forward", "both", "with end"):
                here, there = ms[f"here {name}"], ms[f"other {name}"]
                print(f" | {name}: {here:.3g} of {there:.3g} ms, {here / there:.2f}", end="")
            print(" | " + ("" if are_equal(case, srwm.ops, other, device) else "not ") + "bitwise equal", flush=True)


if __name__ == "__main__":
    main()
