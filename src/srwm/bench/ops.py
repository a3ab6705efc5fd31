"""`srwm bench ops`: the operators beside their reference and beside fla's delta rule, all in one run."""

import contextlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from srwm.ops import Backend, available_backends, delta_rule, self_referential
from srwm.runs.atomic import failures_as_sentences
from srwm.runs.devices import hardware

from ._measure import interleaved_ms, peak_bytes

REFERENCE_BYTES = 12 << 30
"""The reference keeps some matrices of every step for its backward pass; beyond this it is not run on a GPU."""


@dataclass(frozen=True)
class Case:
    """One row: an operator at one shape."""

    operator: str
    batch: int
    heads: int
    steps: int
    head_dim: int
    gradients: bool = True
    """Whether forward and backward are timed, or one call without gradients, as when acting."""

    @property
    def shape(self) -> str:
        """The shape as people write it."""
        return f"{self.batch}x{self.heads}x{self.steps}x{self.head_dim}"


CPU_CASES = [
    Case("self_referential", 32, 16, 150, 16),
    Case("self_referential", 48, 8, 1, 16, gradients=False),
    Case("delta_rule", 32, 16, 150, 16),
    Case("delta_rule", 48, 8, 1, 16, gradients=False),
]
GPU_SHAPES = [
    (128, 16, 6, 16), (32, 16, 150, 16), (32, 16, 1000, 16), (128, 16, 1000, 16), (64, 8, 1000, 32), (64, 4, 1000, 64)
]  # fmt: skip
GPU_CASES = [
    *(Case(operator, *shape) for operator in ("self_referential", "delta_rule") for shape in GPU_SHAPES),
    Case("self_referential", 48, 8, 1, 16, gradients=False),
]


@dataclass(frozen=True)
class Row:
    """What was measured of one case: times in milliseconds, memory in bytes."""

    case: Case
    backend: str
    forward_ms: float
    both_ms: float | None
    reference_forward_ms: float | None
    reference_both_ms: float | None
    fla_forward_ms: float | None
    fla_both_ms: float | None
    peak_bytes: int | None
    least_bytes: int
    """Bytes of the inputs, the outputs and the vectors saved for the backward pass."""

    def times_faster(self) -> float | None:
        """How many times faster than the reference."""
        ours, theirs = (self.both_ms, self.reference_both_ms)
        if ours is None:
            ours, theirs = self.forward_ms, self.reference_forward_ms
        return None if theirs is None else theirs / ours

    def of_fla(self) -> float | None:
        """Our time as a share of fla's delta rule."""
        return None if self.fla_both_ms is None or self.both_ms is None else self.both_ms / self.fla_both_ms


def bench_ops(device: str = "auto", json_path: Path | None = None, quick: bool = False) -> int:
    """Time every operator, print a table, and write JSON if a path is given.

    Args:
        device: "cpu", "cuda", or "auto" for the GPU where there is one.
        json_path: where to write the results, or None.
        quick: one shape of each operator and few repetitions, to see that all is well.

    Returns:
        The exit status: 0, or 1 if the device is not there.
    """
    console = Console()
    if device == "cuda" and not torch.cuda.is_available():
        console.print("No CUDA device was found; try --device cpu.")
        return 1
    place = torch.device("cuda" if device != "cpu" and torch.cuda.is_available() else "cpu")
    cases = GPU_CASES if place.type == "cuda" else CPU_CASES
    if quick:
        cases = [case for case in cases if case.steps < 1000 and case.gradients][::2]
    rows = []
    with console.status("measuring") as status:
        for case in cases:
            status.update(f"{case.operator} {case.shape}")
            rows.append(_measure(case, place, budget_s=0.1 if quick else 1.0))
    about = _environment(place)
    _print(console, rows, about)
    if json_path is not None:
        results = [{**asdict(row), "times_faster": row.times_faster(), "of_fla": row.of_fla()} for row in rows]
        with failures_as_sentences(json_path):
            json_path.write_text(json.dumps({**about, "rows": results}, indent=1) + "\n")
        console.print(f"written to {json_path}")
    return 0


def _measure(case: Case, device: torch.device, budget_s: float) -> Row:
    inputs, run = _operator(case, device)
    backend = available_backends(device, case.head_dim)[0]
    calls: dict[str, Callable[[], object]] = {"ours": lambda: run(backend)}
    if case.gradients:
        calls["ours both"] = lambda: _differentiate(run(backend), inputs)
    matrix_bytes = 4 * case.batch * case.heads * case.head_dim * (3 * case.head_dim + 4)
    if device.type == "cpu" or 6 * case.steps * matrix_bytes < REFERENCE_BYTES:
        calls["reference"] = lambda: run("reference")
        if case.gradients:
            calls["reference both"] = lambda: _differentiate(run("reference"), inputs)
    fla = _fla(case, device) if device.type == "cuda" and case.gradients else None
    if fla is not None:
        calls["fla"], calls["fla both"] = fla
    with torch.set_grad_enabled(case.gradients):
        times = interleaved_ms(calls, device, budget_s)
        peak = peak_bytes(calls.get("ours both", calls["ours"]), device)
    columns = case.head_dim * 3 + 4
    vectors = 2 * case.head_dim + ((columns + 2 * case.head_dim + 4) if case.gradients else 0)
    if case.operator == "delta_rule":
        vectors = 4 * case.head_dim + 1 + (case.head_dim if case.gradients else 0)
    return Row(
        case,
        backend,
        times["ours"],
        times.get("ours both"),
        times.get("reference"),
        times.get("reference both"),
        times.get("fla"),
        times.get("fla both"),
        peak,
        4 * case.batch * case.heads * case.steps * vectors,
    )


def _operator(case: Case, device: torch.device) -> tuple[list[Tensor], Callable[[Backend], tuple[Tensor, Tensor]]]:
    """The inputs of a case, and a call of its operator with a given backend."""
    b, h, t, d = case.batch, case.heads, case.steps, case.head_dim
    generator = torch.Generator(device).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=device).requires_grad_(case.gradients)

    if case.operator == "self_referential":
        x = draw(b, t, h, d)
        weight = (draw(h, d, 3 * d + 4).detach() / d**0.5).requires_grad_(case.gradients)
        state = None if case.gradients else 0.1 * draw(b, h, d, 3 * d + 4)
        return [x, weight], lambda backend: self_referential(x, weight, state, backend=backend)
    q, k = (draw(b, t, h, d).detach().softmax(-1).requires_grad_(case.gradients) for _ in range(2))
    v, beta = draw(b, t, h, d), draw(b, t, h).detach().sigmoid().requires_grad_(case.gradients)
    fast = None if case.gradients else 0.1 * draw(b, h, d, d)
    return [q, k, v, beta], lambda backend: delta_rule(q, k, v, beta, fast, backend=backend)


def _fla(case: Case, device: torch.device) -> tuple[Callable[[], object], Callable[[], object]] | None:
    """Calls of fla's recurrent delta rule at the same shape, forward and both ways; None where it is not installed."""
    if importlib.util.find_spec("fla") is None:
        return None
    from fla.ops.delta_rule import fused_recurrent_delta_rule

    inputs, _ = _operator(Case("delta_rule", *_sizes(case)), device)
    q, k, v, beta = inputs

    def forward() -> tuple[Tensor, Tensor]:
        y, end = fused_recurrent_delta_rule(q, k, v, beta, scale=1.0, output_final_state=True)
        return y, end

    return forward, lambda: _differentiate(forward(), inputs)


def _sizes(case: Case) -> tuple[int, int, int, int]:
    return case.batch, case.heads, case.steps, case.head_dim


def _differentiate(outputs: tuple[Tensor, Tensor], inputs: list[Tensor]) -> object:
    y = outputs[0]
    return torch.autograd.grad(y, inputs, torch.ones_like(y))


def _environment(device: torch.device) -> dict[str, Any]:
    """What the figures depend on."""
    about = hardware(device)
    versions = {name: version for name, version in about["versions"].items() if version}
    for package in ("numba", "fla-core"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return {**about, "versions": versions, "date": date.today().isoformat()}


def _print(console: Console, rows: list[Row], about: dict[str, Any]) -> None:
    table = Table()
    with_fla = any(row.fla_forward_ms is not None for row in rows)
    with_memory = any(row.peak_bytes is not None for row in rows)
    table.add_column("operator", no_wrap=True)
    headings = ["shape", "ours", "reference", "faster"]
    headings += ["fla delta rule", "of fla"] if with_fla else []
    headings += ["peak MB", "of least"] if with_memory else []
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        faster, share = row.times_faster(), row.of_fla()
        cells = [row.case.operator, row.case.shape, _pair(row.forward_ms, row.both_ms)]
        cells += [_pair(row.reference_forward_ms, row.reference_both_ms), "-" if faster is None else f"{faster:.1f}x"]
        if with_fla:
            cells += [_pair(row.fla_forward_ms, row.fla_both_ms), "-" if share is None else f"{share:.2f}"]
        if with_memory:
            peak = row.peak_bytes or 0
            cells += [f"{peak / 1e6:.1f}", f"{peak / row.least_bytes:.2f}"]
        table.add_row(*cells)
    console.print(table)
    console.print(
        "shape: batch x heads x steps x head size; times: milliseconds, forward / forward + backward, float32"
    )
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    console.print(f"{about['device']}, {about['threads']} threads, {about['date']}; {versions}")
    if with_memory:
        console.print("of least: peak memory of a call over the bytes of inputs, outputs and saved vectors")


def _pair(forward: float | None, both: float | None) -> str:
    if forward is None:
        return "-"
    return f"{forward:.3g}" if both is None else f"{forward:.3g} / {both:.3g}"
