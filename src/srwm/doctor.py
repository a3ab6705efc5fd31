"""What `srwm doctor` finds out: versions, devices, and whether every backend that can run here is right."""

import dataclasses
import importlib
import importlib.metadata
import json
import math
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import srwm
import srwm.ops
from srwm.ops import available_backends

OPERATORS = tuple(name for name in srwm.ops.__all__ if name not in ("Backend", "available_backends"))
"""Each has a package of its name with `sample_inputs`."""

PACKAGES = ("torch", "numpy", "numba", "triton", "matplotlib", "fla-core")

FORWARD_TOLERANCE, GRADIENT_TOLERANCE = 1e-5, 1e-4
"""Largest relative RMS error of float32 kernels against the float64 reference: round-off with room, far below a bug."""


@dataclass(frozen=True)
class Device:
    """A place where tensors can live."""

    name: str
    description: str
    backends: tuple[str, ...]


@dataclass(frozen=True)
class Check:
    """One forward and backward of an operator, held against the reference."""

    operator: str
    device: str
    backend: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class DoctorReport:
    """All that was found out."""

    versions: dict[str, str | None]
    devices: tuple[Device, ...]
    checks: tuple[Check, ...]

    @property
    def healthy(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)


def examine() -> DoctorReport:
    """Look at this installation and check its backends."""
    devices = _devices()
    checks = tuple(
        _check(operator, device.name, backend)
        for device in devices
        for backend in device.backends
        for operator in OPERATORS
    )
    return DoctorReport(_versions(), devices, checks)


def print_json(report: DoctorReport) -> None:
    """Print the report as one JSON object."""
    sys.stdout.write(json.dumps({**dataclasses.asdict(report), "healthy": report.healthy}, indent=2) + "\n")


def print_tables(report: DoctorReport) -> None:
    """Print the report for a person."""
    console = Console()
    versions = Table("package", "version", title="Versions", title_justify="left")
    for name, version in report.versions.items():
        versions.add_row(name, version or "not installed")
    devices = Table("device", "what it is", "usable backends, fastest first", title="Devices", title_justify="left")
    for device in report.devices:
        devices.add_row(device.name, device.description, ", ".join(device.backends))
    checks = Table("operator", "device", "backend", "", "detail", title="Checks", title_justify="left")
    for check in report.checks:
        verdict = "[green]ok[/green]" if check.ok else "[red]FAILED[/red]"
        checks.add_row(check.operator, check.device, check.backend, verdict, check.detail)
    console.print(versions, devices, checks, sep="\n")
    failed = sum(not check.ok for check in report.checks)
    console.print(f"{failed} of {len(report.checks)} checks failed." if failed else "All is well.")


def _versions() -> dict[str, str | None]:
    versions: dict[str, str | None] = {"srwm": srwm.__version__, "Python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return versions


def _devices() -> tuple[Device, ...]:
    processor = f"{platform.machine()}, {torch.get_num_threads()} threads"
    found = [Device("cpu", processor, available_backends("cpu"))]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        description = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB"
        found.append(Device(f"cuda:{index}", description, available_backends("cuda")))
    return tuple(found)


def _check(operator: str, device: str, backend: str) -> Check:
    try:
        forward, gradient = _errors(operator, device, backend)
    except Exception as error:  # A broken kernel can raise anything; naming it is what the doctor is for.
        return Check(operator, device, backend, False, f"{type(error).__name__}: {error}")
    ok = forward <= FORWARD_TOLERANCE and gradient <= GRADIENT_TOLERANCE
    return Check(operator, device, backend, ok, f"error {forward:.0e} forward, {gradient:.0e} gradient")


def _errors(operator: str, device: str, backend: str) -> tuple[float, float]:
    """Give the largest relative RMS error of the outputs and of the gradients of a float32 run."""
    package = importlib.import_module(f"srwm.ops.{operator}")
    run, inputs = getattr(package, operator), package.sample_inputs(torch.Generator().manual_seed(0))
    wanted = _outputs_and_gradients(run, [x.double() for x in inputs], "reference")
    came = _outputs_and_gradients(run, [x.to(device) for x in inputs], backend)
    errors = [
        ((a.cpu().double() - b).square().mean() / b.square().mean()).sqrt().item()
        for a, b in zip(came, wanted, strict=True)
    ]
    # The first two are y and the state after the last step. NaN counts as the largest error there is.
    errors = [error if not math.isnan(error) else math.inf for error in errors]
    return max(errors[:2]), max(errors[2:])


def _outputs_and_gradients(
    run: Callable[..., tuple[Tensor, Tensor]], inputs: list[Tensor], backend: str
) -> list[Tensor]:
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    y, state = run(*leaves, backend=backend)
    # Non-linear, and different at every place, so that no error can hide in a sum.
    loss = sum(
        (out.sin() * torch.arange(out.numel(), device=out.device).view_as(out).cos()).sum() for out in (y, state)
    )
    assert isinstance(loss, Tensor)
    return [y.detach(), state.detach(), *torch.autograd.grad(loss, leaves)]
