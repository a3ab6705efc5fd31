"""The two kinds of files, `model.pt2` of `torch.export` and `model.onnx`: how each is made, and how each is run."""

import importlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.export import ExportedProgram

from srwm.errors import InputError

from .program import quietly
from .slots import Named
from .steps import Step

__all__ = ["FORMATS", "OPSET", "FileFormat", "Format", "Run"]

Format = Literal["torch", "onnx"]
"""The words for the kinds of files."""

OPSET = 18
"""Of ONNX: the one that PyTorch writes without converting it, and that runtimes have known since 2023."""

Run = Callable[[tuple[Tensor, ...], Named], tuple[list[Tensor], Named]]
"""From the inputs and the state to the outputs and the new state."""


@dataclass(frozen=True)
class FileFormat:
    """A kind of file that a step can be written as."""

    file: str
    """Name of the file."""
    runtime: str
    """What runs it."""
    packages: tuple[str, ...]
    """What is needed beyond srwm itself, all in the extra of the format's name."""
    new_prefix: str
    """What stands before the name of a tensor of the state where it comes out."""
    write: Callable[[ExportedProgram, Step], bytes]
    """Makes the content of the file."""
    open: Callable[[bytes, Step], Run]
    """Makes such a content run."""

    def check_packages(self) -> None:
        """Refuse to begin where something is not installed.

        Raises:
            InputError: with what to install.
        """
        for package in self.packages:
            _package(package)

    def versions(self) -> dict[str, Any]:
        """Name the versions of what makes such files, as JSON values."""
        packages = {package: str(_package(package).__version__) for package in ("torch", *self.packages)}
        return {**packages, "opset": OPSET} if "onnx" in packages else packages


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(f"an ONNX file needs the package {error.name}; run `pip install 'srwm[export]'`") from error


def _write_torch(program: ExportedProgram, step: Step) -> bytes:
    buffer = io.BytesIO()
    with quietly():
        torch.export.save(program, buffer)
    return buffer.getvalue()


def _open_torch(content: bytes, step: Step) -> Run:
    with quietly():
        module = torch.export.load(io.BytesIO(content)).module()

    def run(inputs: tuple[Tensor, ...], state: Named) -> tuple[list[Tensor], Named]:
        *outputs, new = module(*inputs, state)
        return outputs, new

    return run


_NEW = "new_"


def _write_onnx(program: ExportedProgram, step: Step) -> bytes:
    states = [slot.name for slot in step.state]
    with quietly():
        made = torch.onnx.export(
            program,
            input_names=[*(slot.name for slot in step.inputs), *states],
            output_names=[*(slot.name for slot in step.outputs), *(f"{_NEW}{name}" for name in states)],
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert made is not None
    model = made.model_proto
    graph = model.graph
    # What the exporter notes down for itself is several times as large as a small model.
    del graph.value_info[:]
    for part in (*graph.node, *graph.input, *graph.output, *graph.initializer, graph, model):
        del part.metadata_props[:]
    for value in (*graph.input, *graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    _package("onnx").checker.check_model(model, full_check=True)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def _open_onnx(content: bytes, step: Step) -> Run:
    onnxruntime = _package("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def run(inputs: tuple[Tensor, ...], state: Named) -> tuple[list[Tensor], Named]:
        names = (slot.name for slot in step.inputs)
        given = {**dict(zip(names, inputs, strict=True)), **state}
        made = session.run(None, {name: tensor.numpy() for name, tensor in given.items()})
        outputs, new = made[: len(step.outputs)], made[len(step.outputs) :]
        return [*map(torch.from_numpy, outputs)], dict(zip(state, map(torch.from_numpy, new), strict=True))

    return run


FORMATS: dict[Format, FileFormat] = {
    "torch": FileFormat("model.pt2", "torch.export", (), "", _write_torch, _open_torch),
    "onnx": FileFormat(
        "model.onnx", "ONNX Runtime", ("onnx", "onnxscript", "onnxruntime"), _NEW, _write_onnx, _open_onnx
    ),
}
"""Every kind of file by its word."""
