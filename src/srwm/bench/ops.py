"""`srwm bench ops`: the operators beside their reference and beside fla's delta rule, all in one run."""

import contextlib
import importlib.metadata
import importlib.util
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional

from srwm.ops import Backend, available_backends, delta_rule, self_referential
from srwm.runs.atomic import failures_as_sentences
from srwm.runs.devices import hardware

from ._measure import interleaved_ms, peak_bytes

REFERENCE_BYTES = 12 << 30
"""The reference keeps some matrices of every step for its backward pass; beyond this it is not run on a GPU."""


Operator = Literal["self_referential", "gated_self_referential", "delta_rule", "gated_delta_rule"]
"""An operator; a gated one forgets: by two gates with keys of unit length, or by a decay."""


@dataclass(frozen=True)
class Case:
    """One row: an operator at one shape."""

    operator: Operator
    batch: int
    heads: int
    steps: int
    head_dim: int
    gradients: bool = True
    """Whether forward and backward are timed, or one call without gradients, as when acting."""

    @property
    def gates(self) -> int:
        """How many columns of a self-referential matrix are forget gates."""
        return 2 if self.operator == "gated_self_referential" else 0

    @property
    def columns(self) -> int:
        """The width of a self-referential matrix."""
        return 3 * self.head_dim + 4 + self.gates

    @property
    def vectors(self) -> int:
        """How many numbers a step of a head reads and writes, and saves for the backward pass."""
        d = self.head_dim
        if self.operator.endswith("delta_rule"):
            return 4 * d + 1 + (self.operator == "gated_delta_rule") + (d if self.gradients else 0)
        # Keys of unit length are saved with what scaled them.
        return 2 * d + ((2 * d + 4 + 2 * self.gates + self.columns) if self.gradients else 0)

    @property
    def shape(self) -> str:
        """The shape as people write it."""
        return f"{self.batch}x{self.heads}x{self.steps}x{self.head_dim}"


CPU_CASES = [
    Case("self_referential", 32, 16, 150, 16),
    Case("self_referential", 48, 8, 1, 16, gradients=False),
    Case("delta_rule", 32, 16, 150, 16),
    Case("delta_rule", 48, 8, 1, 16, gradients=False),
    Case("gated_self_referential", 32, 16, 150, 16),
    Case("gated_delta_rule", 32, 16, 150, 16),
]
GPU_SHAPES = [
    (128, 16, 6, 16), (32, 16, 150, 16), (32, 16, 1000, 16), (128, 16, 1000, 16), (64, 8, 1000, 32), (64, 4, 1000, 64),
    (32, 4, 1000, 128),
]  # fmt: skip
GPU_CASES = [
    *(Case(operator, *shape) for operator in get_args(Operator) for shape in GPU_SHAPES),
    Case("self_referential", 48, 8, 1, 16, gradients=False),
]


@dataclass(frozen=True)
class OperatorRow:
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
    fla_refusal: str | None = None
    """Why a call of fla's was not timed, in its own words."""

    def times_faster(self) -> float | None:
        """How many times faster than the reference."""
        ours, theirs = (self.both_ms, self.reference_both_ms)
        if ours is None:
            ours, theirs = self.forward_ms, self.reference_forward_ms
        return None if theirs is None else theirs / ours

    def of_fla(self) -> float | None:
        """Our time as a share of that of fla's delta rule."""
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


def _measure(case: Case, device: torch.device, budget_s: float) -> OperatorRow:
    inputs, run = _operator(case, device)
    backend = available_backends(device, case.head_dim)[0]
    calls: dict[str, Callable[[], object]] = {"ours": lambda: run(backend)}
    if case.gradients:
        calls["ours both"] = lambda: _differentiate(run(backend), inputs)
    matrix_bytes = 4 * case.batch * case.heads * case.head_dim * case.columns
    if device.type == "cpu" or 6 * case.steps * matrix_bytes < REFERENCE_BYTES:
        calls["reference"] = lambda: run("reference")
        if case.gradients:
            calls["reference both"] = lambda: _differentiate(run("reference"), inputs)
    fla = _fla(case, device) if device.type == "cuda" and case.gradients else None
    refusals = []
    for name, call in zip(("fla", "fla both"), fla or (), strict=False):
        if refusal := _refusal(call):
            refusals.append(refusal)
        else:
            calls[name] = call
    with torch.set_grad_enabled(case.gradients):
        times = interleaved_ms(calls, device, budget_s)
        peak = peak_bytes(calls.get("ours both", calls["ours"]), device)
    return OperatorRow(
        case,
        backend,
        times["ours"],
        times.get("ours both"),
        times.get("reference"),
        times.get("reference both"),
        times.get("fla"),
        times.get("fla both"),
        peak,
        4 * case.batch * case.heads * case.steps * case.vectors,
        refusals[0] if refusals else None,
    )


def _refusal(call: Callable[[], object]) -> str | None:
    """Why fla does not run a call here, in its own words: some of its kernels refuse some versions of Triton."""
    try:
        call()
    except RuntimeError as error:
        return str(error).partition("\n")[0]
    return None


def _operator(case: Case, device: torch.device) -> tuple[list[Tensor], Callable[[Backend], tuple[Tensor, Tensor]]]:
    """The inputs of a case, and a call of its operator with a given backend."""
    b, h, t, d = case.batch, case.heads, case.steps, case.head_dim
    generator = torch.Generator(device).manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=device).requires_grad_(case.gradients)

    def leaf(tensor: Tensor) -> Tensor:
        return tensor.detach().requires_grad_(case.gradients)

    if case.operator.endswith("self_referential"):
        x, weight = draw(b, t, h, d), leaf(draw(h, d, case.columns) / d**0.5)
        state = None if case.gradients else 0.1 * draw(b, h, d, case.columns)
        options: dict[str, Any] = {"forget_gates": case.gates, "key_map": "l2"} if case.gates else {}
        return [x, weight], lambda backend: self_referential(x, weight, state, backend=backend, **options)
    is_gated = case.operator == "gated_delta_rule"
    q, k = (draw(b, t, h, d) for _ in range(2))
    q, k = (leaf(functional.normalize(each, dim=-1) if is_gated else each.softmax(-1)) for each in (q, k))
    v, beta = draw(b, t, h, d), leaf(draw(b, t, h).sigmoid())
    fast = None if case.gradients else 0.1 * draw(b, h, d, d)
    if not is_gated:
        return [q, k, v, beta], lambda backend: delta_rule(q, k, v, beta, fast, backend=backend)
    # As of a new layer with its own bias.
    decay = leaf(1 - 0.1 * (draw(b, t, h) - 4).sigmoid())
    return [q, k, v, beta, decay], lambda backend: delta_rule(q, k, v, beta, fast, decay=decay, backend=backend)


def _fla(case: Case, device: torch.device) -> tuple[Callable[[], object], Callable[[], object]] | None:
    """Calls of fla's recurrent delta rule at the same shape, forward and both ways; None where it is not installed.

    Its recurrent gated delta rule has no backward pass: beside that of a gated operator stands the chunked one, which
    takes no float32.
    """
    if importlib.util.find_spec("fla") is None:
        return None
    if case.operator.startswith("gated"):
        return _fla_gated(case, device)
    from fla.ops.delta_rule import fused_recurrent_delta_rule

    inputs, _ = _operator(Case("delta_rule", *_sizes(case)), device)
    q, k, v, beta = inputs

    def forward() -> tuple[Tensor, Tensor]:
        y, end = fused_recurrent_delta_rule(q, k, v, beta, scale=1.0, output_final_state=True)
        return y, end

    return forward, lambda: _differentiate(forward(), inputs)


def _fla_gated(case: Case, device: torch.device) -> tuple[Callable[[], object], Callable[[], object]]:
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule

    inputs, _ = _operator(Case("gated_delta_rule", *_sizes(case)), device)
    *others, decay = (each.detach() for each in inputs)
    log_decay = decay.log()
    halves = [each.bfloat16().requires_grad_() for each in others]
    leaves = [*halves, log_decay.clone().requires_grad_()]

    def run(rule: Callable[..., Any], given: list[Tensor]) -> Any:
        q, k, v, beta, g = given
        return rule(q=q, k=k, v=v, g=g, beta=beta, scale=1.0, output_final_state=True)

    return (
        lambda: run(fused_recurrent_gated_delta_rule, [*others, log_decay]),
        lambda: _differentiate(run(chunk_gated_delta_rule, leaves), leaves),
    )


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


def _print(console: Console, rows: list[OperatorRow], about: dict[str, Any]) -> None:
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
    if with_fla:
        console.print(
            "fla: fused_recurrent_delta_rule; beside gated operators fused_recurrent_gated_delta_rule forward and "
            "chunk_gated_delta_rule forward + backward, the latter in bfloat16"
        )
    for refusal in sorted({row.fla_refusal for row in rows if row.fla_refusal}):
        console.print(f"where fla has no time, it said: {refusal}", markup=False)
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    console.print(f"{about['device']}, {about['threads']} threads, {about['date']}; {versions}")
    if with_memory:
        console.print("of least: peak memory of a call over the bytes of inputs, outputs and saved vectors")


def _pair(forward: float | None, both: float | None) -> str:
    if forward is None:
        return "-"
    return f"{forward:.3g}" if both is None else f"{forward:.3g} / {both:.3g}"
