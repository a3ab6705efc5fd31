"""Compiles the GPU kernels for a Hopper GPU, without one, and counts what a step of the sequence comes to.

    python benchmarks/machine_code.py self_referential --head-dim 64 --forget-gates 2
    python benchmarks/machine_code.py delta_rule --head-dim 32 --decay --launch DECAY_BWD=8,1,16

For each launch of the forward and the backward pass: registers a thread, bytes of a thread's own memory (spills),
shared memory, seconds to compile, and for the innermost loops, longest first: instructions of a warp, those times the
warps, loads and stores of spills, barriers, exchanges between threads. What counted in every comparison on an H200 so
far is how many instructions all warps issue at a step. `--launch TABLE=LANES,WARPS[,BLOCK]` tries another entry of a
table of launches (`CORE_BWD`, `READ_FWD`, ... in the operator's `triton.py`). Needs Triton with its NVIDIA tools.
"""

import argparse
import importlib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from srwm.ops import delta_rule, self_referential
from srwm.ops._launch import ALIGNMENT, Launcher

HOPPER = GPUTarget("cuda", 90, 32)
TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
TYPES = {torch.float32: "fp32", torch.float64: "fp64", torch.bfloat16: "bf16", torch.float16: "fp16"}
TYPES |= {torch.int32: "i32", torch.uint8: "u8"}
LOOP = 40
"""Instructions from which on a loop is one of steps."""
OPTIONS = ("num_warps", "num_stages", "maxnreg")


class Call(NamedTuple):
    """A kernel as it would have been launched."""

    kernel: Any
    args: Sequence[Tensor | int]
    constants: dict[str, Any]


def recorded_calls(options: argparse.Namespace) -> list[Call]:
    """The launches of a forward and a backward pass; none of them runs."""
    calls: list[Call] = []

    def record(launcher: Launcher, grid: tuple[int, int], args: Sequence[Tensor | int], **flags: bool) -> None:
        calls.append(Call(launcher.kernel, args, {**launcher.constants, **flags}))

    d, size = options.head_dim, (1, 4, 1)
    state = None
    if options.operator == "self_referential":
        columns = 3 * d + 4 + options.forget_gates
        inputs = [torch.zeros(*size, d), torch.zeros(1, d, columns)]
        named: dict[str, Any] = {"forget_gates": options.forget_gates, "key_map": options.key_map}
    else:
        inputs = [torch.zeros(*size, d), torch.zeros(*size, d), torch.zeros(*size, d), torch.zeros(*size)]
        named = {"decay": torch.ones(size, requires_grad=True)} if options.decay else {}
        columns = d
    if options.state:
        state = torch.zeros(1, 1, d, columns)
    reset = torch.zeros(size[:2], dtype=torch.bool) if options.reset else None
    operator = {"self_referential": self_referential, "delta_rule": delta_rule}[options.operator]
    # The kernels were imported as what is compiled; this only lets them be chosen for tensors of a CPU.
    os.environ["TRITON_INTERPRET"] = "1"
    run, Launcher.__call__ = Launcher.__call__, record  # type: ignore[method-assign]
    try:
        leaves = [each.requires_grad_() for each in inputs]
        y, end = operator(*leaves, state=state, reset=reset, backend="triton", **named)
        torch.autograd.grad(y.sum() + (end.sum() if options.end else 0), leaves)
    finally:
        Launcher.__call__ = run  # type: ignore[method-assign]
        del os.environ["TRITON_INTERPRET"]
    return calls


def compiled_lines(call: Call) -> list[str]:
    """Compile a launch, and describe its machine code."""
    options = {name: call.constants[name] for name in OPTIONS if name in call.constants}
    constants = {name: value for name, value in call.constants.items() if name not in OPTIONS}
    names = call.kernel.arg_names
    signature = dict.fromkeys(names, "constexpr")
    for name, arg in zip(names, call.args, strict=False):
        signature[name] = f"*{TYPES[arg.dtype]}" if isinstance(arg, Tensor) else "i32"
    aligned = {(at,): [["tt.divisibility", ALIGNMENT]] for at, name in enumerate(names) if signature[name][0] == "*"}
    began = time.perf_counter()
    source = ASTSource(call.kernel, signature, constants, aligned)
    compiled = triton.compile(source, target=HOPPER, options=options)
    seconds = time.perf_counter() - began
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(compiled.asm["cubin"])
        file.flush()
        usage, code = (tool_output("cuobjdump", flag, file.name) for flag in ("-res-usage", "-sass"))
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert found is not None
    parts = [name.lower() for name in ("CORE", "READ") if constants.get(name)]
    warps = options["num_warps"]
    lines = [
        f"{' '.join([call.kernel.fn.__name__, *parts])}: {warps} warps of {found[1]} registers, {found[2]} bytes of "
        f"memory a thread, {compiled.metadata.shared} bytes shared, compiled in {seconds:.1f} s"
    ]
    for body in inner_loops(code)[:3]:
        counts = {word: sum(each.startswith(word) for each in body) for word in ("LDL", "STL", "BAR", "SHFL", "MUFU")}
        words = ", ".join(f"{word} {count}" for word, count in counts.items())
        lines.append(f"    loop of {len(body)} instructions, {len(body) * warps} with all warps; {words}")
    return lines


def tool_output(tool: str, *arguments: str) -> str:
    """What one of Triton's NVIDIA tools prints."""
    return subprocess.run([TOOLS / tool, *arguments], capture_output=True, text=True, check=True).stdout


def inner_loops(code: str) -> list[list[str]]:
    """The innermost loops of disassembled code, the longest first: their instructions without predicates."""
    found = re.findall(r"^\s+/\*([0-9a-f]{4,5})\*/\s+(?:@!?\w+ )?(.*?);", code, re.MULTILINE)
    places = {int(address, 16): at for at, (address, _) in enumerate(found)}
    loops = []
    for at, (_, text) in enumerate(found):
        target = re.search(r"^BRA\b.*?0x([0-9a-f]+)", text)
        start = places.get(int(target[1], 16)) if target else None
        if start is not None and at - start > LOOP:
            loops.append((start, at))
    inner = [one for one in loops if not any(o != one and one[0] <= o[0] and o[1] <= one[1] for o in loops)]
    return sorted(([text for _, text in found[start : end + 1]] for start, end in inner), key=len, reverse=True)


def change_launches(operator: str, changes: Sequence[str], rows: int) -> None:
    """Change entries of the tables of launches, for this process."""
    module = importlib.import_module(f"srwm.ops.{operator}.triton")
    for change in changes:
        name, _, numbers = change.partition("=")
        table = getattr(module, name)
        table[rows] = type(table[rows])(*map(int, numbers.split(",")))


def main() -> None:
    """Compile, count, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operator", choices=["self_referential", "delta_rule"])
    parser.add_argument("--head-dim", type=int, default=16)
    parser.add_argument("--forget-gates", type=int, default=0, choices=[0, 1, 2])
    parser.add_argument("--key-map", default="softmax", choices=["softmax", "l2"])
    parser.add_argument("--decay", action="store_true", help="the delta rule with a decay")
    parser.add_argument("--state", action="store_true", help="with an incoming state")
    parser.add_argument("--reset", action="store_true", help="with resets")
    parser.add_argument("--end", action="store_true", help="with a gradient of the end state")
    parser.add_argument("--launch", nargs="*", default=[], metavar="TABLE=LANES,WARPS[,BLOCK]")
    options = parser.parse_args()
    # What lies in Triton's cache would take no time.
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    change_launches(options.operator, options.launch, max(8, triton.next_power_of_2(options.head_dim)))
    print(f"Triton {triton.__version__}, torch {torch.__version__}, sm_90")
    for call in recorded_calls(options):
        print("\n".join(compiled_lines(call)), flush=True)


if __name__ == "__main__":
    main()
